// The smallest use of the library: runs shell text in the current directory and tells what came of it.
//
//   run_command 'make test'
#include <cstdio>
#include <string>

#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/run.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_command 'shell text'\n");
    return 2;
  }
  using namespace std::chrono_literals;
  belljar::Policy policy;  // the current directory writable, no network, secrets hidden
  policy.limits.timeout = 60s;
  policy.limits.pids = 200;

  const auto result = belljar::run(policy, belljar::shell_command(argv[1]), {.workspace = "."});
  if (!result) {  // the sandbox could not be made; what the command does is never an error
    std::fprintf(stderr, "%s\n", result.error().line().c_str());
    return result.error().exit_code();
  }
  std::fwrite(result->out.bytes.data(), 1, result->out.bytes.size(), stdout);
  std::fwrite(result->err.bytes.data(), 1, result->err.bytes.size(), stderr);
  const long long microseconds = result->duration.count();
  std::fprintf(stderr, "%s, exit code %d, %lld us\n", std::string(to_string(result->reason)).c_str(), result->exit_code,
               microseconds);
  return result->exit_code;
}
