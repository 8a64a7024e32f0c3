// Any bytes as a host, a destination and a rule: no crash; what is accepted reads back as itself, and no two spellings differ.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "policy/domains.h"

using namespace belljar::policy;

namespace {

void require(bool fact) {
  if (!fact) std::abort();
}

void check_host(std::string_view text) {
  const auto host = parse_host(text);
  if (!host) {
    require(!host.error().what().empty() && !host.error().reason().empty());
    return;
  }
  const std::string canonical = to_string(*host);
  const auto again = parse_host(canonical);
  require(again && *again == *host);
  for (const char c : canonical) require(c > 0x20 && c < 0x7F && c != '%' && c != '@' && c != '/');
  if (host->ip) require(parse_ip(canonical) == host->ip);
}

void check_rule(std::string_view text) {
  const auto rule = parse_domain_rule(text);
  if (!rule) return;
  require(domain_covers(text, text));
  if (rule->kind != DomainRule::Kind::kName || !rule->self) return;
  HostRules rules;
  rules.allowed.push_back(*rule);
  const Destination to{{.name = rule->name, .ip = {}}, rule->port.value_or(443)};
  require(decide_host(rules, to).allowed());
  rules.denied.push_back(*rule);
  require(!decide_host(rules, to).allowed());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_host(text);
  check_rule(text);
  if (const auto destination = parse_destination(text)) require(parse_destination(to_string(*destination)).value() == *destination);
  return 0;
}
