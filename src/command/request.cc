// Defaults and caps of a command's options. exec and spawn differ on purpose: exec blocks its
// caller, so it always has a timeout (five minutes at most, where the policy names no other), while
// a spawned command may run as long as its sandbox unless its options or the policy name a timeout.
// The caller can only shorten the policy's cap.
#include "command/request.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/patience.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"

namespace belljar::command {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestTimeout = std::chrono::minutes(5);
constexpr std::uint64_t kOutputBytes = 200'000;

std::optional<milliseconds> spawn_timeout(const SpawnOptions& options, const Limits& limits) {
  if (limits.max_timeout) return std::min(options.timeout.value_or(*limits.max_timeout), *limits.max_timeout);
  if (options.timeout) return bounded(*options.timeout);
  return {};
}

template <class Options>
Request common(const Command& command, const Options& options, const Limits& limits) {
  Request request;
  request.command = command;
  request.cancel = options.cancel;
  request.on_stdout = options.on_stdout;
  request.on_stderr = options.on_stderr;
  request.output_bytes = options.output_bytes.value_or(limits.output_bytes.value_or(Bytes{kOutputBytes}).count);
  request.allowed_domains = options.allowed_domains;
  request.limits = limits;
  return request;
}

}  // namespace

Request make_request(const Command& command, const ExecOptions& options, const Limits& limits) {
  Request request = common(command, options, limits);
  request.timeout = exec_timeout(options, limits);
  request.stdin_bytes = options.stdin_bytes;
  return request;
}

Request make_request(const Command& command, const SpawnOptions& options, const Limits& limits) {
  Request request = common(command, options, limits);
  request.purpose = Purpose::kSpawn;
  request.timeout = spawn_timeout(options, limits);
  request.stdin_pipe = options.input == SpawnInput::kPipe;
  request.terminal = options.terminal;
  return request;
}

Result<void> check_no_hosts(const std::vector<std::string>& allowed_domains) {
  if (allowed_domains.empty()) return {};
  return Error(Code::kUnimplemented, "cannot open hosts for one command")
      .reason("no proxy of ours serves this backend")
      .next("use backend native or container with network.mode = \"proxy\", or name the hosts in the policy");
}

milliseconds exec_timeout(const ExecOptions& options, const Limits& limits) {
  return bounded(
      std::min(options.timeout.value_or(limits.timeout.value_or(kShortTask)), limits.max_timeout.value_or(kLongestTimeout)));
}

EnforcementClause timeout_clause(const Limits& limits) {
  const auto most = limits.max_timeout.value_or(kLongestTimeout);
  return {"limits.timeout",
          format("{} a command, at most {}", to_string(std::min(limits.timeout.value_or(kShortTask), most)), to_string(most)),
          "session: TERM, then KILL of the command's tree",
          Enforced::kFull,
          {}};
}

}  // namespace belljar::command
