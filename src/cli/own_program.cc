#include "cli/own_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/read_file.h"
#include "base/unique_fd.h"

namespace belljar::cli {

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return {path, size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::string own_path() {
  const std::string path = own_program();
  return path.empty() ? "/usr/bin/belljar" : path;
}

void exec_program(const std::string& file, const char* component) {
  // CLI11 has the words in pieces by now.
  const UniqueFd given(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::string words = read_at_most(given.get(), SIZE_MAX).value_or("");
  std::vector<char*> argv;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) argv.push_back(words.data() + at);
  argv.insert(argv.begin() + 1, const_cast<char*>(component));
  argv.push_back(nullptr);
  ::execv(file.c_str(), argv.data());
}

}  // namespace belljar::cli
