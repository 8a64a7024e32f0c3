// Which TLS connections are intercepted, and what a credential's text says.
//
// Interception is the exception: it needs a reason for the one destination, and the first of these counts: a
// credential for it, a rule that allows single requests only, network.methods = "limited". A rule of
// network.tls_passthrough wins over all of them; a host that is open to single requests only is then out of
// reach by TLS, since nobody could tell which request is made.
#include "policy/tls_interception.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/format.h"
#include "policy/host.h"
#include "policy/merge.h"
#include "policy/paths.h"

namespace belljar::policy {
namespace {

constexpr char kForm[] = "write NAME for HOST, NAME=env:VARIABLE for HOST or NAME=file:/PATH for HOST";

Error no_credential(std::string_view text, std::string reason) {
  return Error(Code::kInvalidArgument, format("{} is no credential", quoted(text))).reason(std::move(reason)).next(kForm);
}

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return is_letter(c) || c == '_'; };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// Variables that a placeholder would break: programs, the home, the loader and the way to the proxy are found by them.
bool is_of_the_system(std::string_view name) {
  constexpr std::string_view kNames[] = {"PATH", "HOME", "PWD", "SHELL", "TERM", "TMPDIR", "USER", "LOGNAME"};
  constexpr std::string_view kProxy = "_PROXY";
  const auto same = [](char a, char b) { return (a >= 'a' && a <= 'z' ? static_cast<char>(a - 'a' + 'A') : a) == b; };
  return std::ranges::find(kNames, name) != std::end(kNames) || name.starts_with("LD_") ||
         (name.size() > kProxy.size() && std::ranges::equal(name.substr(name.size() - kProxy.size()), kProxy, same));
}

std::vector<std::string_view> split_commas(std::string_view list) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = list.find(',');
    parts.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

Result<void> read_source(Credential& credential, std::string_view source) {
  constexpr std::string_view kVariable = "env:", kFile = "file:";
  if (source.starts_with(kVariable)) {
    credential.from = source.substr(kVariable.size());
    if (!is_name(credential.from))
      return no_credential(credential.text, format("{} is no variable's name", quoted(credential.from)));
    return {};
  }
  if (!source.starts_with(kFile)) return no_credential(credential.text, format("{} is no place for a value", quoted(source)));
  credential.source = Credential::Source::kFile;
  credential.from = source.substr(kFile.size());
  if (credential.from.starts_with('/') || credential.from.starts_with("~/")) return {};
  return no_credential(credential.text, "a file is named by a path from / or ~/");
}

Result<void> read_places(Credential& credential, std::string_view places) {
  credential.header = credential.basic = credential.query = false;
  for (const std::string_view place : split_commas(places)) {
    if (place == "header") credential.header = true;
    else if (place == "basic") credential.basic = true;
    else if (place == "query") credential.query = true;
    else return no_credential(credential.text, format("{} is no place of a request: header, basic, query", quoted(place)));
  }
  return {};
}

// Where the real value goes has to be named; "any public host" names nothing.
Result<void> read_hosts(Credential& credential, std::string_view hosts) {
  for (const std::string_view host : split_commas(hosts)) {
    DomainRule rule = BELLJAR_TRY(parse_domain_rule(host));
    if (rule.kind == DomainRule::Kind::kAny) return no_credential(credential.text, "`*` would send it to every host");
    if (rule.kind == DomainRule::Kind::kAddress && rule.range.bits != (rule.range.first.v6 ? 128 : 32))
      return no_credential(credential.text, "a range of addresses names no host");
    credential.hosts.push_back(std::move(rule));
  }
  return {};
}

bool covers(const std::vector<DomainRule>& rules, const Destination& destination, std::string* which) {
  const auto found = std::ranges::find_if(rules, [&](const DomainRule& rule) { return covers_destination(rule, destination); });
  if (found != rules.end() && which != nullptr) *which = found->text;
  return found != rules.end();
}

}  // namespace

Result<Credential> parse_credential(std::string_view text) {
  constexpr std::string_view kFor = " for ", kIn = " in ";
  Credential credential;
  credential.text = text;
  std::size_t middle = text.find(kFor), width = kFor.size();
  if (middle == std::string_view::npos) middle = text.rfind('@'), width = 1;
  if (middle == std::string_view::npos) return no_credential(text, "it names no host");
  std::string_view what = text.substr(0, middle), where = text.substr(middle + width);
  const std::size_t equals = what.find('=');
  credential.name = credential.from = what.substr(0, equals);
  if (!is_name(credential.name)) return no_credential(text, format("{} is no variable's name", quoted(credential.name)));
  if (is_of_the_system(credential.name))
    return no_credential(text, format("{} is read by every program, which would find a placeholder in it", credential.name));
  if (equals != std::string_view::npos) BELLJAR_CHECK(read_source(credential, what.substr(equals + 1)));
  if (const std::size_t in = where.find(kIn); in != std::string_view::npos) {
    BELLJAR_CHECK(read_places(credential, where.substr(in + kIn.size())));
    where = where.substr(0, in);
  }
  BELLJAR_CHECK(read_hosts(credential, where));
  return credential;
}

Result<InterceptionRules> make_interception_rules(const Network& network) {
  InterceptionRules rules;
  rules.limited = network.methods == NetMethods::kLimited;
  for (const std::string& text : network.credentials) rules.credentials.push_back(BELLJAR_TRY(parse_credential(text)));
  for (const std::string& text : network.tls_passthrough) rules.passthrough.push_back(BELLJAR_TRY(parse_domain_rule(text)));
  return rules;
}

bool wants_interception(const Network& network) {
  if (network.mode != NetMode::kProxy) return false;
  const auto rules = make_host_rules(network);
  const auto interception = make_interception_rules(network);
  if (!rules || !interception) return false;
  const auto secure = [](const RequestRule& rule) { return rule.host.port != kHttpPort; };
  const bool all_pass = std::ranges::any_of(
      interception->passthrough, [](const DomainRule& rule) { return rule.kind == DomainRule::Kind::kAny && !rule.port; });
  if (!interception->credentials.empty()) return true;
  return !all_pass && (interception->limited || std::ranges::any_of(rules->requests, secure));
}

bool is_credential_source(const Network& network, std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::ranges::any_of(network.credentials, [&](const std::string& text) {
    const auto credential = parse_credential(text);
    return credential && credential->source == Credential::Source::kVariable && credential->from == name;
  });
}

InterceptionVerdict decide_interception(const HostRules& rules, const InterceptionRules& interception,
                                        const Destination& destination) {
  InterceptionVerdict verdict;
  const HostVerdict host = decide_host(rules, destination);
  const auto credentials = credentials_for(interception, destination);
  if (!credentials.empty()) verdict = {InterceptionReason::kCredential, credentials[0]->text};
  else if (host.reason == HostReason::kRequests) verdict = {InterceptionReason::kRequests, host.rule};
  else if (interception.limited) verdict = {InterceptionReason::kLimited, "network.methods"};
  std::string except;
  if (verdict.intercepts() && covers(interception.passthrough, destination, &except))
    return {InterceptionReason::kPassthrough, except};
  return verdict;
}

std::vector<const Credential*> credentials_for(const InterceptionRules& interception, const Destination& destination) {
  std::vector<const Credential*> found;
  for (const Credential& credential : interception.credentials) {
    if (covers(credential.hosts, destination, nullptr)) found.push_back(&credential);
  }
  return found;
}

std::string explain_interception(const InterceptionVerdict& verdict) {
  switch (verdict.why) {
    case InterceptionReason::kNone:
      return "no: what TLS carries is relayed as it is";
    case InterceptionReason::kRequests:
      return format("yes: only the requests of {} may pass", verdict.rule);
    case InterceptionReason::kLimited:
      return "yes: network.methods is \"limited\"";
    case InterceptionReason::kCredential:
      return format("yes: a credential is put in ({})", verdict.rule);
    case InterceptionReason::kPassthrough:
      return format("no: {} in network.tls_passthrough keeps it whole", verdict.rule);
  }
  return {};
}

void hide_credentials(std::vector<FsEntry>& entries, const Network& network, const std::string& home) {
  for (const std::string& text : network.credentials) {
    const auto credential = parse_credential(text);
    if (!credential || credential->source != Credential::Source::kFile) continue;
    const std::string path = normal(credential->from.starts_with("~/") ? home + credential->from.substr(1) : credential->from);
    if (std::ranges::any_of(entries, [&](const FsEntry& e) { return !e.glob && e.path == path && e.access == Access::kNone; }))
      continue;
    std::erase_if(entries, [&](const FsEntry& entry) { return !entry.glob && entry.path == path; });
    entries.push_back({path, false, Access::kNone, {"network.credentials", "", 0}});
  }
}

}  // namespace belljar::policy
