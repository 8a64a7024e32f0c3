// The request for one command, whichever backend runs it, and the defaults and caps of what its caller left out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "belljar/sandbox.h"
#include "policy/check_command.h"

namespace belljar::command {

enum class Purpose { kExec, kSpawn, kHelper };  // kHelper: one of ours, for a file call or the end of another

struct Request {
  Purpose purpose = Purpose::kExec;
  Command command;
  std::string cwd;                                   // inside, absolute: where the backend has looked for it
  std::optional<std::chrono::milliseconds> timeout;  // in force already: defaults and caps applied
  std::string stdin_bytes;
  bool stdin_pipe = false;
  std::optional<TerminalSize> terminal;
  CancelToken cancel;
  OutputCallback on_stdout, on_stderr;
  std::uint64_t output_bytes = 0;            // kept of each stream
  std::vector<std::string> allowed_domains;  // open while it runs, beside the policy's
  Limits limits;                             // the policy's: the grace before KILL, what too much output does
};

// Of exec and of spawn. Errors: kInvalidArgument, see check_command.h.
template <class Options>
Result<void> check(const Command& command, const Options& options) {
  BELLJAR_CHECK(policy::check_command(command));
  return policy::check_timeout(options.timeout);
}

Request make_request(const Command& command, const ExecOptions& options, const Limits& limits);
Request make_request(const Command& command, const SpawnOptions& options, const Limits& limits);

// For a backend that has no proxy of ours. Errors: kUnimplemented, hosts are to be opened for one command.
Result<void> check_no_hosts(const std::vector<std::string>& allowed_domains);

std::chrono::milliseconds exec_timeout(const ExecOptions& options, const Limits& limits);
// The row of the report that the above is.
EnforcementClause timeout_clause(const Limits& limits);

}  // namespace belljar::command
