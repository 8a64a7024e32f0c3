// The egress decision: what the policy's rules say about a request, a tunnel or a connection. These functions
// only answer; the caller acts on the answer.
//
// The order for a request: the message itself (judge_message); a credential that is not for this host
// (judge_credentials); the host, the bytes that are left, and method and path (judge); how much its head may
// say in a minute (charge_heads); and each address that the name has (may_dial). A tunnel or a direct
// connection is asked the same, without what only a request has. A server that was dialled ahead is asked
// about again, and so is every connection when the rules change (find_refusal).
//
// Cheap questions come first. The lookup of the name comes last, since the question itself carries data
// (CVE-2025-55284).
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

// Charges the head to its budget. Returns how long it must wait until that is paid; nullopt: too long, nothing was charged.
std::optional<std::chrono::milliseconds> charge_heads(ConnectionState& state);
policy::HostVerdict may_dial(const ConnectionState& state, const policy::Ip& ip);
bool wrong_credential(const Context& context, const std::string& given);  // the proxy's own

bool can_intercept(const ConnectionState& state);      // the TLS of the destination that was asked for
bool is_passed_through(const ConnectionState& state);  // by network.tls_passthrough
bool may_pass_through(const ConnectionState& state);
bool by_upstream(const ConnectionState& state);
bool asks_upstream(const ConnectionState& state);  // the request itself goes to another proxy, as HTTP and not in a tunnel

// A refusal by the rules of `rule_key`, which is a violation.
Problem denied(std::string reason, std::string rule_key, std::string text, std::string next, int status = 403);
Problem problem_of(const policy::HostVerdict& verdict, const policy::Destination& destination);
Problem heads_problem(const ConnectionState& state);
Problem spent_problem();

}  // namespace belljar::egress
