// In belljar-mcp only; belljar-mcp-guardian has guardian/with_guardian.cc instead.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "cli/mcp/defence_flags.h"

namespace belljar::cli {

// The same words to the program beside us: libcurl cannot be linked statically on Debian, and few need it.
Result<std::function<Judgement(const GuardianQuestion&)>> make_guardian(GuardianOptions /*options*/) {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  std::string file(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  file.resize(file.rfind('/') + 1);
  file += "belljar-mcp-guardian";
  std::string words;
  const UniqueFd given(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(given.get(), buffer, sizeof buffer)) > 0) words.append(buffer, static_cast<std::size_t>(got));
  std::vector<char*> argv;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) argv.push_back(words.data() + at);
  argv.push_back(nullptr);
  ::execv(file.c_str(), argv.data());
  return Error(Code::kNotFound, format("cannot ask a guardian: it is done by {}", belljar::quoted(file)))
      .sys(errno, "execve")
      .next("build it: ./dev build release belljar-mcp-guardian");
}

}  // namespace belljar::cli
