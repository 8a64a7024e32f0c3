// What a policy says of one destination.
#include "base/format.h"
#include "policy/domains.h"
#include "policy/explain.h"
#include "policy/json.h"
#include "policy/tls_interception.h"

namespace belljar::policy {
namespace {

constexpr std::uint16_t kUsualPort = 443;

HostAnswer judge(const Effective& effective, const HostRules& rules, const Destination& destination) {
  HostVerdict verdict = decide_host(rules, destination);
  if (verdict.allowed() && destination.host.ip) verdict = decide_address(rules, destination, *destination.host.ip, false);
  const bool by_deny = verdict.reason == HostReason::kDenied;
  HostAnswer answer;
  answer.allowed = verdict.allowed();
  answer.reason = to_string(verdict.reason);
  answer.rule = verdict.rule;
  const bool by_request = verdict.reason == HostReason::kRequests;
  answer.origin = origin_of(effective, by_deny      ? "network.denied_domains"
                                       : by_request ? "network.allowed_requests"
                                                    : "network.allowed_domains");
  answer.text = explain_verdict(verdict, destination);
  answer.next = next_step(verdict, destination);
  return answer;
}

}  // namespace

Result<HostAnswer> explain_host(const Effective& effective, std::string_view host) {
  const Destination destination = BELLJAR_TRY(parse_destination(host, kUsualPort));
  const Network& network = effective.policy.network;
  HostAnswer answer;
  const bool open = network.mode == NetMode::kHost || effective.policy.mode == Mode::kDangerFullAccess ||
                    effective.policy.mode == Mode::kExternalSandbox;
  if (open) {
    answer.allowed = true;
    answer.reason = "mode-host";
    answer.origin = origin_of(effective, "network.mode");
    answer.text = format("{} is as reachable as from the host: the network is not filtered", to_string(destination));
  } else if (network.mode == NetMode::kNone) {
    answer.reason = "mode-none";
    answer.origin = origin_of(effective, "network.mode");
    answer.text = format("{} is out of reach: there is no network", to_string(destination));
    answer.next = is_localhost(destination.host) ? join_port(destination)
                                                 : format("--net proxy --allow-domain {} opens it", to_string(destination.host));
  } else {
    const HostRules rules = BELLJAR_TRY(make_host_rules(network));
    answer = judge(effective, rules, destination);
    const InterceptionVerdict interception = decide_interception(rules, BELLJAR_TRY(make_interception_rules(network)), destination);
    answer.intercepted = answer.allowed && interception.intercepts();
    if (answer.allowed) answer.interception = explain_interception(interception);
    // What cannot be looked into does not get where only requests may go.
    if (interception.why == InterceptionReason::kPassthrough && answer.reason == "requests")
      answer.interception += "; then only http:// gets there";
  }
  answer.destination = to_string(destination);
  return answer;
}

std::string to_text(const HostAnswer& answer) {
  std::string text = format("{}: {}\n  why:   {}\n", answer.destination, answer.allowed ? "allowed" : "refused", answer.text);
  if (!answer.rule.empty()) text += format("  rule:  {}  # {}\n", escaped(answer.rule), answer.origin);
  if (!answer.interception.empty()) text += format("  tls:   looked into: {}\n", escaped(answer.interception));
  if (answer.allowed && answer.reason == "allowed")
    text += "  note:  a name that leads to an address that is not public is refused when it is resolved\n";
  if (!answer.next.empty()) text += format("  next:  {}\n", answer.next);
  return text;
}

std::string to_json_text(const HostAnswer& answer) {
  return format(
      "{{\"destination\":{},\"allowed\":{},\"reason\":{},\"rule\":{},\"origin\":{},\"text\":{},\"next\":{},\"looked_into\":{},"
      "\"look\":{}}}\n",
      json_text(answer.destination), answer.allowed, json_text(answer.reason), json_text(answer.rule), json_text(answer.origin),
      json_text(answer.text), json_text(answer.next), answer.intercepted, json_text(answer.interception));
}

}  // namespace belljar::policy
