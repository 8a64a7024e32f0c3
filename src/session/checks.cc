#include "session/checks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
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

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestTimeout = std::chrono::minutes(5);
constexpr std::uint64_t kOutputBytes = 200'000;

}  // namespace

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

std::optional<milliseconds> spawn_timeout(const SpawnOptions& options, const Limits& limits) {
  if (limits.max_timeout) return std::min(options.timeout.value_or(*limits.max_timeout), *limits.max_timeout);
  if (options.timeout) return bounded(*options.timeout);
  return {};
}

std::uint64_t kept_output(std::optional<std::uint64_t> asked, const Limits& limits) {
  return asked.value_or(limits.output_bytes.value_or(Bytes{kOutputBytes}).count);
}

EnforcementClause timeout_clause(const Limits& limits) {
  const auto most = limits.max_timeout.value_or(kLongestTimeout);
  return {"limits.timeout",
          format("{} a command, at most {}", to_string(std::min(limits.timeout.value_or(kShortTask), most)), to_string(most)),
          "session: TERM, then KILL of the command's tree",
          Enforced::kFull,
          {}};
}

std::string next_id() {
  static std::atomic<unsigned> serial{0};
  return format("sb-{}-{}", ::getpid(), ++serial);
}

}  // namespace belljar::session
