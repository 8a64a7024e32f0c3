#include "egress/context.h"

#include <algorithm>
#include <utility>

namespace belljar::egress {

bool Context::is_own(const policy::Ip& ip) {
  constexpr std::chrono::seconds kFresh{5};
  const auto now = std::chrono::steady_clock::now();
  if (now >= own_until) own = options.own_addresses(), own_until = now + kFresh;
  return std::ranges::find(own, ip) != own.end();
}

void Context::add(EgressRecord record) {
  if (log.records.size() < options.max_records) log.records.push_back(std::move(record));
  else ++log.records_dropped;
}

// A loop's refusals are counted in the first record of their kind that is still the last.
void Context::add(Violation violation) {
  violation.time = std::chrono::system_clock::now();
  if (!log.violations.empty()) {
    Violation& last = log.violations.back();
    if (last.target == violation.target && last.pid == violation.pid && last.rule == violation.rule &&
        last.allowed == violation.allowed) {
      ++last.count;
      return;
    }
  }
  if (log.violations.size() < options.max_records) log.violations.push_back(std::move(violation));
  else ++log.violations_dropped;
}

bool Context::spend(std::uint64_t bytes) {
  passed += bytes;
  credit -= static_cast<double>(bytes);
  return passed <= options.max_bytes;
}

std::optional<Resolved> Context::look_up(const std::string& name, std::uint64_t id) {
  auto kept = lookups->ask(name, id);
  if (!kept) (void)spend(name.size());
  return kept;
}

bool Context::may_name(const std::string& name) {
  if (options.methods != Methods::kLimited) return true;
  const auto [budget, fresh] = heads.try_emplace("", options.max_heads);
  return budget->second.take(name, {}, HeadBudget::Clock::now(), std::chrono::milliseconds(0)).has_value();
}

// A bucket that holds what a quarter of a second brings, or one burst: what is asked for little by little never waits.
bool Context::has_credit() {
  if (options.max_rate == 0) return true;
  constexpr double kShare = 0.25, kBurst = 65536;
  const auto now = std::chrono::steady_clock::now();
  const auto rate = static_cast<double>(options.max_rate);
  credit += rate * std::chrono::duration<double>(now - credited).count();
  credit = std::min(credit, std::max(rate * kShare, kBurst));
  credited = now;
  return credit > 0;
}

const Origin& Context::origin_of(const std::string& rule_key) const {
  if (rule_key == "network.denied_domains") return options.rule_origins.denied;
  if (rule_key == "network.allowed_domains") return options.rule_origins.allowed;
  if (rule_key == "network.allowed_requests") return options.rule_origins.requests;
  if (rule_key == "network.credentials") return options.credentials_origin;
  if (rule_key == "limits.egress_heads") return options.heads_origin;
  return rule_key == "limits.egress_bytes" ? options.limit_origin : options.mode_origin;
}

}  // namespace belljar::egress
