// The egress decision: questions to the policy's rules, put together. decision.h has the order and why it is
// so.
//
// Nothing here begins or ends anything, for the same questions are asked twice: when a request arrives, and
// by find_refusal() when the rules change, or when a server that was dialled ahead is about to be used. An
// answer that depended on what was done before could differ between the two.
//
// A request is allowed only if every reading of it is. Servers and frameworks take the method and the path
// from fields as well (X-HTTP-Method-Override, X-Original-URL), so each method with each path must match a
// rule of network.allowed_requests.
#include "egress/decision.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/units.h"
#include "egress/context.h"
#include "egress/credentials.h"
#include "egress/http.h"
#include "egress/phase.h"
#include "egress/proxy.h"
#include "egress/upstream.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/ip.h"
#include "policy/tls_interception.h"

namespace belljar::egress {
namespace {

bool only_reads(const std::string& method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

policy::HostVerdict decide_asked(const ConnectionState& state) {
  return policy::decide_host(state.context.options.rules, state.asked.destination);
}

// The rule that lets the request through in every way that a server may read it; nullptr where one of them is not let through.
const policy::RequestRule* find_request_rule(const ConnectionState& state) {
  const ProxyRequest& asked = state.asked;
  const auto find = [&](const std::string& method, const std::string& path) {
    return policy::find_request(state.context.options.rules, asked.destination, method, path);
  };
  const auto found = [&](const std::string& method) {
    return find(method, asked.path) != nullptr &&
           std::ranges::all_of(asked.other_paths, [&](const std::string& path) { return find(method, path) != nullptr; });
  };
  if (!found(asked.method) || !std::ranges::all_of(asked.other_methods, found)) return nullptr;
  return find(asked.method, asked.path);
}

// network.allowed_requests, of a host that is open to some.
std::optional<Problem> judge_request(ConnectionState& state) {
  const ProxyRequest& asked = state.asked;
  const bool seen = state.is_request() && !asked.upgrade;
  const policy::RequestRule* const rule = seen ? find_request_rule(state) : nullptr;
  if (rule != nullptr) return state.record.rule = rule->text, std::nullopt;
  const bool overridden = !asked.other_methods.empty() || !asked.other_paths.empty();
  const std::string what = !seen ? "what cannot be looked into is"
                           : overridden
                               ? "what fields ask for instead (X-HTTP-Method-Override, X-Original-URL) or the request itself is"
                               : format("{} of that path is", escaped(asked.method));
  return denied("request", "network.allowed_requests",
                format("{} not among the requests that may go to {}", what, to_string(asked.destination)),
                seen            ? "network.allowed_requests names them"
                : asked.upgrade ? "--allow-domain opens the host wholly"
                                : "use http://, or --allow-domain");
}

// network.methods = "limited".
std::optional<Problem> judge_limited(const ConnectionState& state) {
  const ProxyRequest& asked = state.asked;
  if (asked.upgrade || (asked.connect && !can_intercept(state)))
    return denied("method", "network.methods",
                  format("{} is refused: with network.methods = \"limited\" nothing may pass that cannot be looked at",
                         asked.connect ? "CONNECT" : "an upgrade"),
                  asked.connect ? "use http://, or network.methods = \"full\"" : "network.methods = \"full\" lets it pass");
  if (asked.connect) return {};
  const auto other = std::ranges::find_if_not(asked.other_methods, only_reads);
  const std::string* const wrong = !only_reads(asked.method)            ? &asked.method
                                   : other != asked.other_methods.end() ? &*other
                                                                        : nullptr;
  if (wrong != nullptr)
    return denied("method", "network.methods", format("the method {} is refused: network.methods is \"limited\"", escaped(*wrong)),
                  "GET, HEAD and OPTIONS pass; network.methods = \"full\" opens the rest", 405);
  // Also one that turns out to be empty: what it was for is not known before.
  if (!state.request->done())
    return denied("body", "network.methods",
                  format("a {} with a body is refused: network.methods is \"limited\"", escaped(asked.method)),
                  "network.methods = \"full\" lets bodies pass", 413);
  return {};
}

}  // namespace

std::optional<Problem> judge_message(const ConnectionState& state) {
  const bool to_proxy = state.client_kind == ClientKind::kProxy && !state.tunnel;
  if (to_proxy && wrong_credential(state.context, basic_credential(state.asked.authorization).value_or("")))
    return Problem{"credential",
                   {407, "http_request_denied", "the proxy credential of this sandbox is missing or wrong",
                    "use the URL in HTTPS_PROXY as it is"}};
  return state.is_limited() ? judge_limited(state) : std::nullopt;
}

std::optional<Problem> judge_credentials(const ConnectionState& state, const HttpHead& head) {
  const Credentials& credentials = state.context.options.credentials;
  const Credential* const wrong = credentials.empty() ? nullptr : credentials.find_misplaced(head, state.asked);
  if (wrong == nullptr) return {};
  const std::string place = to_string(state.asked.destination);
  const std::string where = state.asked.secure ? place : format("{} in the clear", place);
  Problem problem = denied("credential", "network.credentials", format("the credential {} is not for {}", wrong->rule.name, where),
                           state.asked.secure ? "network.credentials names its hosts" : "use https://");
  problem.rule = wrong->rule.text;
  return problem;
}

std::optional<Problem> judge(ConnectionState& state) {
  const policy::HostVerdict verdict = decide_asked(state);
  state.record.rule = verdict.rule;
  if (!verdict.allowed()) return problem_of(verdict, state.asked.destination);
  if (state.context.passed > state.context.options.max_bytes) return spent_problem();
  // A tunnel that is looked into carries requests, and those are judged one by one.
  const bool later = !state.is_request() && can_intercept(state);
  return verdict.reason == policy::HostReason::kRequests && !later ? judge_request(state) : std::nullopt;
}

// What the rules say of what this connection is about now: of its host, of the address it has, of the request under way.
std::optional<policy::HostVerdict> find_refusal(const ConnectionState& state) {
  policy::HostVerdict verdict = decide_asked(state);
  if (!verdict.allowed()) return verdict;
  const auto address = by_upstream(state) ? std::nullopt : policy::parse_ip(state.record.address);
  if (address) {
    policy::HostVerdict there = may_dial(state, *address);
    if (!there.allowed()) return there;
  }
  if (verdict.reason != policy::HostReason::kRequests) return {};
  if (state.tunnelled) return verdict;  // nobody looks into it
  const bool passes = state.is_request() ? !state.asked.upgrade && find_request_rule(state) != nullptr : can_intercept(state);
  return passes ? std::nullopt : std::optional(verdict);
}

std::optional<std::chrono::milliseconds> charge_heads(ConnectionState& state) {
  Context& context = state.context;
  if (!state.is_limited()) return std::chrono::milliseconds(0);
  const auto [budget, fresh] = context.heads.try_emplace(state.record.rule, context.options.max_heads);
  // Which port is chosen says something as well, whatever is sent there.
  static const HttpHead kCarrier{.method = "CONNECT"};
  const HttpHead& head = state.is_request() ? state.request->head() : kCarrier;
  return budget->second.take(to_string(state.asked.destination), head, ConnectionState::Clock::now());
}

policy::HostVerdict may_dial(const ConnectionState& state, const policy::Ip& ip) {
  return policy::decide_address(state.context.options.rules, state.asked.destination, ip, state.context.is_own(ip));
}

bool wrong_credential(const Context& context, const std::string& given) {
  const std::string& wanted = context.options.credential;
  if (wanted.empty()) return false;
  unsigned differs = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) differs |= static_cast<unsigned>(given[i] ^ wanted[i % wanted.size()]);
  return differs != 0;
}

bool can_intercept(const ConnectionState& state) {
  const auto& options = state.context.options;
  if (options.interceptor == nullptr || !state.leaves()) return false;
  return policy::decide_interception(options.rules, options.interception, state.asked.destination).intercepts();
}

bool is_passed_through(const ConnectionState& state) {
  const auto& passthrough = state.context.options.interception.passthrough;
  return std::ranges::any_of(
      passthrough, [&](const policy::DomainRule& rule) { return policy::covers_destination(rule, state.asked.destination); });
}

// Nothing but a credential asks for the look: what no credential can be put into may pass as it is.
bool may_pass_through(const ConnectionState& state) {
  const auto& options = state.context.options;
  return !options.interception.limited && policy::decide_host(options.rules, *state.tunnel).reason == policy::HostReason::kAllowed;
}

bool by_upstream(const ConnectionState& state) {
  const auto& upstream = state.context.options.upstream;
  return upstream && state.leaves() && !leaves_without(*upstream, state.asked.destination);
}

bool asks_upstream(const ConnectionState& state) {
  return by_upstream(state) && !state.asked.secure && !state.tunnel &&
         state.context.options.upstream->kind == Upstream::Kind::kHttp;
}

Problem denied(std::string reason, std::string rule_key, std::string text, std::string next, int status) {
  return {.reason = std::move(reason),
          .refusal = {status, "http_request_denied", std::move(text), std::move(next)},
          .violation = true,
          .rule_key = std::move(rule_key)};
}

Problem problem_of(const policy::HostVerdict& verdict, const policy::Destination& destination) {
  using policy::HostReason;
  const bool request = verdict.reason == HostReason::kRequests;
  Problem problem = denied(request ? "request" : std::string(policy::to_string(verdict.reason)),
                           request                                 ? "network.allowed_requests"
                           : verdict.reason == HostReason::kDenied ? "network.denied_domains"
                                                                   : "network.allowed_domains",
                           policy::explain_verdict(verdict, destination), policy::next_step(verdict, destination));
  if (verdict.reason == HostReason::kNotPublic || verdict.reason == HostReason::kOwnAddress)
    problem.refusal.error = "destination_ip_prohibited";
  problem.rule = verdict.rule;
  return problem;
}

Problem heads_problem(const ConnectionState& state) {
  return denied("egress_heads", "limits.egress_heads",
                format("URLs and fields have used up the {} a minute that may go to the hosts of {}",
                       belljar::to_string(Bytes{state.context.options.max_heads}), state.record.rule),
                "wait, or raise limits.egress_heads", 429);
}

Problem spent_problem() {
  return denied("egress_bytes", "limits.egress_bytes", "the sandbox has used up its bytes of egress", "raise limits.egress_bytes");
}

}  // namespace belljar::egress
