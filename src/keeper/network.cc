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

// `text` is a rule, or a line of the listing: the kind and the rule.
Result<void> drop_one(NetworkRules& rules, const std::string& text) {
  struct List {
    std::string_view kind;
    std::vector<std::string>& rules;
  };
  const List lists[] = {{"denied", rules.denied_domains}, {"allowed", rules.allowed_domains}, {"requests", rules.allowed_requests}};
  std::vector<const List*> found;
  for (const List& list : lists) {
    if (std::ranges::find(list.rules, text) != list.rules.end()) found.push_back(&list);
  }
  if (found.size() > 1)
    return Error(Code::kInvalidArgument, "cannot drop the rule " + belljar::quoted(text))
        .reason(format("it is both {} and {}", found[0]->kind, found[1]->kind))
        .next(format("say which: --drop '{} {}'", found[0]->kind, escaped(text)));
  if (found.size() == 1) return std::erase(found[0]->rules, text), Result<void>();
  for (const List& list : lists) {
    if (!text.starts_with(list.kind)) continue;
    const std::size_t rule = text.find_first_not_of(' ', list.kind.size());
    if (rule != std::string::npos && rule > list.kind.size() && std::erase(list.rules, text.substr(rule)) > 0) return {};
  }
  return Error(Code::kNotFound, "there is no rule " + belljar::quoted(text)).next("`belljar network ID` shows those in force");
}

Result<void> drop(NetworkRules& rules, const Json& dropped) {
  for (const Json& rule : dropped) BELLJAR_CHECK(drop_one(rules, rule.get<std::string>()));
  return {};
}

Result<NetworkRules> change(const Json& message, const KeptSandbox& kept) {
  const std::lock_guard lock(*kept.changing);
  session::LiveSandbox& sandbox = *kept.sandbox;
  NetworkRules rules = BELLJAR_TRY(sandbox.network_rules());
  const NetworkRules before = rules;
  if (message.at("reset").get<bool>() && sandbox.network_mode() != NetMode::kProxy)
    return Error(Code::kFailedPrecondition, "cannot change the hosts that may be reached")
        .reason("no proxy of ours serves this sandbox")
        .next("create it with --net proxy");
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

Json serve_network(const Json& message, const KeptSandbox& kept) {
  const auto rules = change(message, kept);
  if (!rules) return {{"error", to_message(rules.error())}};
  return {{"mode", to_string(kept.sandbox->network_mode())},
          {"allowed_domains", rules->allowed_domains},
          {"denied_domains", rules->denied_domains},
          {"allowed_requests", rules->allowed_requests}};
}

}  // namespace belljar::keeper
