// The hosts that a kept sandbox may reach: asked for, and changed while it runs.

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/events.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "decorate/call.h"
#include "keeper/serve.h"

namespace belljar::keeper {
namespace {

void add(std::vector<std::string>& rules, const Json& more) {
  for (const Json& rule : more) {
    if (std::ranges::find(rules, rule.get<std::string>()) == rules.end()) rules.push_back(rule);
  }
}

Result<void> drop(NetworkRules& rules, const Json& dropped) {
  for (const Json& rule : dropped) {
    const auto text = rule.get<std::string>();
    const std::size_t gone =
        std::erase(rules.allowed_domains, text) + std::erase(rules.denied_domains, text) + std::erase(rules.allowed_requests, text);
    if (gone == 0)
      return Error(Code::kNotFound, "there is no rule " + belljar::quoted(text)).next("`belljar network ID` shows those in force");
  }
  return {};
}

Result<NetworkRules> change(const Json& message, const Kept& kept) {
  const std::lock_guard lock(*kept.changing);
  session::LiveSandbox& sandbox = *kept.sandbox;
  NetworkRules rules = BELLJAR_TRY(sandbox.network_rules());
  const NetworkRules before = rules;
  if (message.at("reset").get<bool>()) rules = sandbox.rules_of_policy();
  BELLJAR_CHECK(drop(rules, message.at("drop")));
  add(rules.allowed_domains, message.at("allowed_domains"));
  add(rules.denied_domains, message.at("denied_domains"));
  add(rules.allowed_requests, message.at("allowed_requests"));
  if (rules == before) return rules;
  BELLJAR_CHECK(sandbox.set_network_rules(rules));
  kept.log->publish({.body = LifecycleEvent{Lifecycle::kRulesChanged, decorate::text_of(rules)}});
  return rules;
}

}  // namespace

Json serve_network(const Json& message, const Kept& kept) {
  const auto rules = change(message, kept);
  if (!rules) return {{"error", to_message(rules.error())}};
  return {{"allowed_domains", rules->allowed_domains},
          {"denied_domains", rules->denied_domains},
          {"allowed_requests", rules->allowed_requests}};
}

}  // namespace belljar::keeper
