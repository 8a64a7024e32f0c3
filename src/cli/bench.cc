// belljar bench [options]: hands over to belljar-bench beside this program, which is not part of it so that `run` stays small.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/errors.h"

namespace belljar::cli {

int run_bench(char** argv) {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  std::string program(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  program.resize(program.rfind('/') + 1);
  program += "belljar-bench";
  ::execv(program.c_str(), argv);
  return print_error(Error(Code::kNotFound, format("cannot run the benchmarks, {}", quoted(program)))
                         .sys(errno, "execve")
                         .next("build them: ./dev build (option BELLJAR_BENCH)"));
}

}  // namespace belljar::cli
