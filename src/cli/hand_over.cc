// Commands that live in programs of their own beside this one: `run` links neither the benchmarks nor a parser of shell.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/commands.h"
#include "cli/errors.h"

namespace belljar::cli {

const char* other_program(std::span<char* const> argv) noexcept {
  if (argv.size() < 2) return nullptr;
  const std::string_view word = argv[1];
  if (word == "bench") return "belljar-bench";
  if (word == "audit") return "belljar-audit";
  if (word == "rules" || word == "scan") return "belljar-guard";
  if (word == "policy" && argv.size() > 2 && std::string_view(argv[2]) == "import") return "belljar-guard";
  return nullptr;
}

int hand_over(const char* program, char** argv) {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  std::string file(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  file.resize(file.rfind('/') + 1);
  file += program;
  ::execv(file.c_str(), argv);
  return print_error(Error(Code::kNotFound, format("cannot do `belljar {}`: it is done by {}", escaped(argv[0]), quoted(file)))
                         .sys(errno, "execve")
                         .next(format("build it: ./dev build release {}", program)));
}

}  // namespace belljar::cli
