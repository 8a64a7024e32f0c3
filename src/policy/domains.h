// Rules for destinations, and the verdict on one. Pure values, for the proxy and for `policy explain --host`.
//
//   example.com        that name            192.0.2.7          that address
//   *.example.com      names below it only  10.0.0.0/8         a range
//   **.example.com     both                 [fd00::1]:8080     an address with a port; fd00::/8 and [fd00::]/8:443 are ranges
//   *                  any public host      each with an optional :PORT
//
// Deny wins. A rule for names never opens an address that is not public: that needs a rule for the address or
// its range, no matter whether the client named the address or a name led to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/host.h"

namespace belljar::policy {

struct DomainRule {
  enum class Kind { kAny, kName, kAddress };
  Kind kind = Kind::kName;
  bool self = true;    // kName: covers the name itself
  bool below = false;  // kName: covers names below it
  std::string name;    // kName: canonical
  IpRange range;       // kAddress
  std::optional<std::uint16_t> port;
  std::string text;  // as it was written
  bool operator==(const DomainRule&) const = default;
};

// Errors: kInvalidArgument with what is wrong; a path (`example.com/x`) is refused by name.
Result<DomainRule> parse_domain_rule(std::string_view text);

// Whether every destination that `wanted` covers is covered by `have`; for a project file that may only narrow. Text that is no
// rule covers nothing.
bool domain_covers(std::string_view have, std::string_view wanted);

// Whether `rule` covers exactly this destination, as it stands.
bool covers_destination(const DomainRule& rule, const Destination& destination) noexcept;

// `GET,HEAD example.com:8080/path`: requests to a host that the other rules do not open, in the clear or in
// intercepted TLS (tls_interception.h). Traffic that cannot be read (a protocol other than HTTP, an upgrade,
// network.tls_passthrough) does not get there.
struct RequestRule {
  DomainRule host;
  std::vector<std::string> methods;  // empty: every one (`*`)
  std::string path;                  // begins with `/`; covers itself and what is below
  std::string text;
  bool operator==(const RequestRule&) const = default;
};
// Errors: kInvalidArgument with what is wrong.
Result<RequestRule> parse_request_rule(std::string_view text);

struct HostRules {
  std::vector<DomainRule> allowed, denied;
  std::vector<RequestRule> requests;
  bool operator==(const HostRules&) const = default;
};
// Errors: as parse_domain_rule.
Result<HostRules> make_host_rules(const Network& network);

enum class HostReason { kAllowed, kRequests, kDenied, kNotListed, kNotPublic, kOwnAddress };
std::string_view to_string(
    HostReason reason) noexcept;  // "allowed", "requests", "denied", "not-listed", "not-public", "own-address"

struct HostVerdict {
  HostReason reason = HostReason::kNotListed;
  std::string rule;    // the rule that decided, as written; empty for kNotListed and for an address nobody listed
  std::string detail;  // kNotPublic: "private", "loopback", ...
  // kRequests: the host may be reached, and decide_request() says with what.
  bool allowed() const noexcept { return reason == HostReason::kAllowed || reason == HostReason::kRequests; }
};

// Before anything is looked up: may this destination be tried at all? A name that is refused is never resolved (the question
// itself carries data, CVE-2025-55284).
HostVerdict decide_host(const HostRules& rules, const Destination& destination);
// Of a host that decide_host() answers kRequests for: the rule that lets this request through, or nothing. `path` as it stands in
// the request; one that could be read in two ways (`..`, `//`, `\`, an encoded dot or slash) is covered by no rule but of path `/`.
const RequestRule* find_request(const HostRules& rules, const Destination& destination, std::string_view method,
                                std::string_view path);
// May `name` be resolved for a program that has not said a port: some port of it is allowed, and not every port denied.
bool may_resolve(const HostRules& rules, const Host& name);
// After it: may this address be dialled for `destination`? `own` says that it is an address of this machine. Asked for each
// address that a name resolved to, and for an address the client gave.
HostVerdict decide_address(const HostRules& rules, const Destination& destination, const Ip& ip, bool own);

// One sentence for the client, the violation and `policy explain`: "example.com:443 is not on the list of allowed hosts".
std::string explain_verdict(const HostVerdict& verdict, const Destination& destination);
// What would be allowed instead, how to ask.
std::string next_step(const HostVerdict& verdict, const Destination& destination);
// How a server of this machine is reached by its own name: the name means the sandbox inside, and no rule for hosts changes that.
std::string join_port(const Destination& destination);

}  // namespace belljar::policy
