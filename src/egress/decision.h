// What the rules say of what is asked. Here nothing begins and nobody is told: who asks acts on the answer.
//
// The order of a request: what it says of itself (judge_message); a credential that is not for its host (judge_credentials); then
// its host, the bytes that are left and the request as a whole (judge); what heads may say in a minute (charge_heads); and once the
// name has an address, that (may_dial). A tunnel or a direct connection is asked the same without what only a request has. A server
// that was dialled ahead, and whoever is served when the rules change, is asked again (find_refusal).
//
// What costs nothing comes first, and the name is looked up last: the question itself carries data (CVE-2025-55284).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "egress/http.h"
#include "egress/phase.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/ip.h"

namespace belljar::egress {

// nullopt: no objection.
std::optional<Problem> judge_message(const ConnectionState& state);
std::optional<Problem> judge_credentials(const ConnectionState& state, const HttpHead& head);
std::optional<Problem> judge(ConnectionState& state);  // writes the rule into the record
std::optional<policy::HostVerdict> find_refusal(const ConnectionState& state);

// How long the head has to wait for its budget; its bytes are taken. nullopt: too long.
std::optional<std::chrono::milliseconds> charge_heads(ConnectionState& state);
policy::HostVerdict may_dial(const ConnectionState& state, const policy::Ip& ip);
bool wrong_credential(const Context& context, const std::string& given);  // the proxy's own

bool can_intercept(const ConnectionState& state);      // into the TLS of what is asked
bool is_passed_through(const ConnectionState& state);  // by network.tls_passthrough
bool may_pass_through(const ConnectionState& state);
bool by_upstream(const ConnectionState& state);
bool asks_upstream(const ConnectionState& state);  // in words of HTTP, and not for a tunnel

// By the rules of `rule_key`.
Problem denied(std::string reason, std::string rule_key, std::string text, std::string next, int status = 403);
Problem problem_of(const policy::HostVerdict& verdict, const policy::Destination& destination);
Problem heads_problem(const ConnectionState& state);
Problem spent_problem();

}  // namespace belljar::egress
