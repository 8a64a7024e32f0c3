// Which TLS connections are intercepted (network.allowed_requests, methods, credentials, tls_passthrough),
// and the credentials that are put into requests. Pure values, for the proxy and for `policy explain --host`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/domains.h"

namespace belljar::policy {

// `NAME[=env:VARIABLE|=file:PATH] for HOST[,HOST...] [in header,basic,query]`; `@` may stand for ` for `.
struct Credential {
  enum class Source : std::uint8_t { kVariable, kFile };
  std::string name;  // of the variable inside that holds the placeholder
  Source source = Source::kVariable;
  std::string from;                                // the caller's variable, or a path (absolute, or from `~/`)
  std::vector<DomainRule> hosts;                   // where it is put in
  bool header = true, basic = true, query = true;  // and in which parts of a request
  std::string text;                                // as it was written
  bool operator==(const Credential&) const = default;
};
// Errors: kInvalidArgument with what is wrong; `*` and a range of addresses are refused: they name no host.
Result<Credential> parse_credential(std::string_view text);

struct InterceptionRules {
  std::vector<Credential> credentials;
  std::vector<DomainRule> passthrough;
  bool limited = false;
  bool operator==(const InterceptionRules&) const = default;
};
// Errors: as parse_credential and parse_domain_rule.
Result<InterceptionRules> make_interception_rules(const Network& network);

// Whether any destination can need interception under this policy. False for a policy that is wrong.
bool wants_interception(const Network& network);

enum class InterceptionReason : std::uint8_t { kNone, kRequests, kLimited, kCredential, kPassthrough };
struct InterceptionVerdict {
  InterceptionReason why = InterceptionReason::kNone;
  std::string rule;  // the rule that asks for it, or the one that exempts the host
  bool intercepts() const noexcept { return why != InterceptionReason::kNone && why != InterceptionReason::kPassthrough; }
};
// Whether `entry` ("NAME=value") is a variable that a credential's value comes from: it goes nowhere but to the proxy.
bool is_credential_source(const Network& network, std::string_view entry);
// For a destination that the rules for hosts allow.
InterceptionVerdict decide_interception(const HostRules& rules, const InterceptionRules& look, const Destination& destination);
// The credentials that may be put into a request to `destination`.
std::vector<const Credential*> credentials_for(const InterceptionRules& look, const Destination& destination);
// One sentence for `policy explain --host`.
std::string explain_interception(const InterceptionVerdict& verdict);

}  // namespace belljar::policy
