#include "runtime/violations.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "policy/schema.h"
#include "runtime/supervise.h"

namespace belljar::runtime {
namespace {

constexpr char kEgressBytes[] = "egress_bytes";

// What the call beyond the limit was answered with. 0: no call was, processes were ended.
int errno_of(std::string_view limit) noexcept {
  if (limit == "pids") return EAGAIN;
  if (limit == "file_size") return EFBIG;
  if (limit == "open_files") return EMFILE;
  return 0;
}

// A violation may be hidden (ignore_violations), a record without room.
bool used_up_egress(const ExecResult& result) {
  return std::ranges::any_of(result.egress, [](const EgressRecord& record) { return record.reason == kEgressBytes; }) ||
         std::ranges::any_of(result.violations, [](const Violation& violation) { return violation.rule == "limits.egress_bytes"; });
}

std::vector<std::string> limits_of(const ExecResult& result) {
  std::vector<std::string> limits = result.limits_hit;
  if (result.reason == Reason::kTimeout) limits.emplace_back("timeout");
  if (result.reason == Reason::kIdle) limits.emplace_back("idle_timeout");
  return limits;
}

// A timeout that only its cap gives is the cap's. `timeout`: the one in force.
std::string key_of(const std::string& limit, const Policy& policy, std::optional<std::chrono::milliseconds> timeout) {
  if (limit == "timeout" && policy.limits.max_timeout && timeout >= policy.limits.max_timeout) return "limits.max_timeout";
  if (limit == "output") return "limits.output_bytes";
  return "limits." + limit;
}

}  // namespace

Origin origin_of(const Origins* origins, const std::string& key) {
  if (origins != nullptr) {
    if (const auto found = origins->find(key); found != origins->end()) return found->second;
  }
  return {"built-in", "", 0};
}

void add_limit_violations(ExecResult& result, const Policy& policy, const Origins* origins, const std::string& program,
                          std::optional<std::chrono::milliseconds> timeout) {
  std::uint64_t next = result.violations_dropped + result.violations_hidden;
  for (const Violation& violation : result.violations) next += violation.count;
  const auto rules = effective_timeout(policy.limits);
  if (!timeout) timeout = rules;
  for (const std::string& limit : limits_of(result)) {
    if (limit == "timeout" && timeout != rules && timeout != policy.limits.max_timeout) continue;
    const std::string name = key_of(limit, policy, timeout);
    const policy::Key* key = policy::find_key(name);
    const auto value = key == nullptr ? std::nullopt : policy::load(*key, policy);
    if (!value) continue;  // for instance the cap on output of --json, which no policy asked for
    Violation violation;
    violation.time = std::chrono::system_clock::now();
    violation.sequence = next++;
    violation.program = program;
    violation.operation = "limit";
    violation.target = limit;
    violation.rule = name;
    violation.origin = origin_of(origins, name);
    violation.errnum = errno_of(limit);
    violation.allowed = "up to " + policy::to_toml(*value);
    std::erase(violation.allowed, '"');  // of a size or a time: whoever shows it quotes it
    result.violations.push_back(std::move(violation));
  }
  // Last: the proxy has said already whom it refused.
  if (used_up_egress(result)) result.limits_hit.emplace_back(kEgressBytes);
}

}  // namespace belljar::runtime
