// Rules for hosts and requests: parsed, and asked.
//
// A destination is decided twice. decide_host() is asked before a name is looked up and knows only what the
// client said; decide_address() is asked for each address that the name led to. Neither replaces the other:
// the first keeps questions about refused names from the name servers, the second keeps an allowed name from
// leading to 127.0.0.1 or 10.0.0.1.
//
// Deny wins over every other rule, and a denied range covers addresses in IPv6 that carry one of its IPv4
// addresses (mapped, NAT64, 6to4, Teredo). An address that is not public needs a rule for that address or
// range. A rule for a name is not enough, for the owner of the name decides where it leads.
//
// Paths of requests are compared as they stand. To normalise them would be to guess how the server does, and
// servers differ: in what `..`, `//`, `;` and backslashes mean, how often they decode, and which letters they
// fold (`%u002e` is a dot to some). So a path that could be read in two ways matches only rules that open the
// whole host (is_ambiguous).
#include "policy/domains.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/host.h"
#include "policy/ip.h"
#include "policy/permit.h"

namespace belljar::policy {
namespace {

Error bad_rule(std::string_view text, std::string reason, std::string next) {
  return Error(Code::kInvalidArgument, format("{} is no rule for hosts", quoted(without_user(text))))
      .reason(std::move(reason))
      .next(std::move(next));
}

constexpr char kForms[] =
    "write example.com, *.example.com, **.example.com, an address or a range (10.0.0.0/8), each with an optional :PORT";

Error rule_by_path(std::string_view text) {
  return bad_rule(text, "it has a path, and rules for hosts name hosts only",
                  format("name the host only; single paths are opened by --allow-request {} (network.allowed_requests)",
                         shell_word(format("GET {}", text))));
}

// What people write where a rule for hosts belongs, each with the form that means it.
Result<void> check_is_one_rule(std::string_view text) {
  if (text.find("://") != std::string_view::npos) {
    const std::string_view place = place_in_url(text);
    return bad_rule(text, "it is a URL, and rules name hosts",
                    format("leave out the scheme and the path: {}", place.substr(0, place.find_first_of("/?#"))));
  }
  if (text.find('@') != std::string_view::npos)
    return bad_rule(text, "it carries a user name", "leave out everything up to the `@`");
  if (text.find_first_of(", ") != std::string_view::npos)
    return bad_rule(text, "a rule names one host", "write a rule for each: an option for each, or items of the list");
  const std::size_t stars = std::min(text.find_first_not_of('*'), text.size());
  const std::string_view name = text.substr(stars);
  const bool bare_dot = stars == 0 && name.size() > 1 && name[0] == '.' && name[1] != '.';
  const bool bare_star = stars > 0 && !name.empty() && name.find_first_of(".:/*") != 0;
  if (bare_dot || bare_star) {
    const std::string_view zone = name.substr(bare_dot ? 1 : 0);
    return bad_rule(text, bare_dot ? "it begins with a dot" : "a star stands for whole names",
                    format("write **.{} for the names below it and itself, *.{} for those below only", zone, zone));
  }
  return {};
}

// The parts of a rule as text. An address in brackets may have a prefix length and a port behind it.
struct RuleParts {
  std::string_view host, prefix, port;
  bool has_prefix = false, has_port = false;
};

RuleParts split_rule(std::string_view text) {
  RuleParts parts;
  const bool bracket = text.starts_with('[');
  const std::size_t after = bracket ? std::min(text.find(']'), text.size()) : 0;
  const bool bare_v6 = !bracket && std::ranges::count(text, ':') > 1;
  if (const std::size_t colon = text.rfind(':'); !bare_v6 && colon != std::string_view::npos && colon >= after) {
    parts.port = text.substr(colon + 1);
    parts.has_port = true;
    text = text.substr(0, colon);
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    parts.prefix = text.substr(slash + 1);
    parts.has_prefix = true;
    text = text.substr(0, slash);
  }
  parts.host = text;
  return parts;
}

Result<void> set_range(DomainRule& rule, const RuleParts& parts, const Ip& ip) {
  const int most = ip.v6 ? 128 : 32;
  rule.kind = DomainRule::Kind::kAddress;
  rule.range = {ip, most};
  if (!parts.has_prefix) return {};
  int bits = 0;
  const bool digits = parts.prefix.size() <= 3 && is_number(parts.prefix);
  for (const char c : digits ? parts.prefix : std::string_view()) bits = bits * 10 + (c - '0');
  if (!digits || bits > most) return bad_rule(rule.text, format("a prefix length is a number from 0 to {}", most), kForms);
  rule.range.bits = bits;
  for (int bit = bits; bit < most; ++bit) {
    if ((rule.range.first.bytes[static_cast<std::size_t>(bit / 8)] & (0x80U >> (bit % 8))) != 0)
      return bad_rule(rule.text, format("the address has bits beyond its prefix of {}", bits),
                      "write the first address of the range");
  }
  return {};
}

bool is_below(std::string_view name, std::string_view zone) noexcept {
  return name.size() > zone.size() + 1 && name[name.size() - zone.size() - 1] == '.' && name.ends_with(zone);
}

// Letters that compatibility forms (UAX 15, NFKC) and best-fit tables make a dot, a slash, a backslash, a percent or a semicolon
// of: one and two dot leaders, the ellipsis, fullwidth and small forms, the slashes of fractions and divisions, `a/c`.
constexpr std::uint32_t kLikeSteps[] = {0xCDBE,   0xE280A4, 0xE280A5, 0xE280A6, 0xE28184, 0xE28480, 0xE28481, 0xE28485,
                                        0xE28486, 0xE28895, 0xE38082, 0xEFB899, 0xEFB8B0, 0xEFB992, 0xEFB994, 0xEFB9A8,
                                        0xEFB9AA, 0xEFBC85, 0xEFBC8E, 0xEFBC8F, 0xEFBC9B, 0xEFBCBC, 0xEFBDA1};

// `rest` follows a percent sign: whether one of those letters begins there, as UTF-8 in escapes.
bool is_like_step(std::string_view rest) {
  std::uint32_t letter = 0;
  for (int i = 0; i < 3; ++i) {
    const int byte = hex_byte(rest);
    if (byte < 0) return false;
    letter = letter << 8 | static_cast<std::uint32_t>(byte);
    if (std::ranges::find(kLikeSteps, letter) != std::end(kLikeSteps)) return true;
    if (rest.substr(2, 1) != "%") return false;
    rest.remove_prefix(3);
  }
  return false;
}

// What one space of a path may be: Windows drops those at the end of a name, as it does dots. Beside them letters without a shape,
// which whoever folds names drops (soft hyphen, joiners, byte order mark).
std::size_t space_size(std::string_view text) {
  for (const std::string_view space : {"%20", "%09", "+", "%c2%a0", "%e3%80%80", "%c2%ad", "%cd%8f", "%e2%80%8b", "%e2%80%8c",
                                       "%e2%80%8d", "%e2%80%8e", "%e2%80%8f", "%e2%81%a0", "%e1%a0%8e", "%ef%bb%bf"}) {
    if (iequals(text.substr(0, space.size()), space)) return space.size();
  }
  return 0;
}

// Whether some server may take the step for `.` or `..`: dots among spaces, or two dots before what is no letter of a name.
bool is_odd_step(std::string_view step) {
  while (const std::size_t space = space_size(step)) step.remove_prefix(space);
  if (!step.starts_with('.')) return false;
  const auto of_name = [](char c) { return is_alnum(c) || c == '_' || c == '-'; };
  if (step.starts_with("..") && (step.size() == 2 || !of_name(step[2]))) return true;
  while (!step.empty()) {
    const std::size_t size = step[0] == '.' ? 1 : space_size(step);
    if (size == 0) return false;
    step.remove_prefix(size);
  }
  return true;
}

// `rest` follows a percent sign. Refused: what is no escape (%u002e, too, is one to some), controls, what separates or steps once
// it is decoded.
bool is_ambiguous_escape(std::string_view rest) {
  const int byte = hex_byte(rest);
  constexpr int kDelete = 0x7F;
  if (byte < ' ' || byte == kDelete) return true;
  return byte < kDelete && std::string_view("./\\%;").find(static_cast<char>(byte)) != std::string_view::npos;
}

// Servers differ in what they make of it. A letter beyond ASCII is escaped in a path (RFC 3986); as it is it may be an overlong
// dot.
bool is_ambiguous(std::string_view path) {
  path = path.substr(0, path.find('?'));
  if (std::ranges::any_of(path, [](char c) { return static_cast<unsigned char>(c) > 0x7F; })) return true;
  if (path.find_first_of("\\;") != std::string_view::npos || path.find("//") != std::string_view::npos) return true;
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    if (is_ambiguous_escape(path.substr(at + 1)) || is_like_step(path.substr(at + 1))) return true;
  }
  // What is no UTF-8 some servers drop, and others take for a dot.
  if (const auto decoded = percent_decoded(path); !decoded || !is_utf8(*decoded)) return true;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (is_odd_step(path.substr(0, end))) return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

bool is_at_or_below(std::string_view path, std::string_view rule) {
  path = path.substr(0, path.find('?'));
  if (!path.starts_with(rule)) return false;
  return rule.ends_with('/') || path.size() == rule.size() || path[rule.size()] == '/';
}

bool covers_port(const DomainRule& rule, std::uint16_t port) noexcept { return !rule.port || *rule.port == port; }

bool covers_name(const DomainRule& rule, std::string_view name) noexcept {
  if (rule.kind == DomainRule::Kind::kAny) return true;
  if (rule.kind != DomainRule::Kind::kName) return false;
  return (rule.self && name == rule.name) || (rule.below && is_below(name, rule.name));
}

bool covers_ip(const DomainRule& rule, const Ip& ip) noexcept {
  return rule.kind == DomainRule::Kind::kAddress && contains(rule.range, ip);
}

bool covers_host(const DomainRule& rule, const Host& host) noexcept {
  return host.ip ? covers_ip(rule, *host.ip) || rule.kind == DomainRule::Kind::kAny : covers_name(rule, host.name);
}

// The address itself or the one inside of it: a range that is denied is denied in every spelling.
bool denies_ip(const DomainRule& rule, const Ip& ip) noexcept {
  if (rule.kind == DomainRule::Kind::kAny || covers_ip(rule, ip)) return true;
  const auto inner = embedded_ipv4(ip);
  return inner && covers_ip(rule, *inner);
}

template <class Covers>
const DomainRule* find(const std::vector<DomainRule>& rules, std::uint16_t port, Covers covers) {
  const auto found = std::ranges::find_if(rules, [&](const DomainRule& rule) { return covers_port(rule, port) && covers(rule); });
  return found == rules.end() ? nullptr : &*found;
}

bool covers_rule(const DomainRule& have, const DomainRule& wanted) {
  if (have.port && have.port != wanted.port) return false;
  if (have.kind == DomainRule::Kind::kAny) return wanted.kind != DomainRule::Kind::kAddress;
  if (have.kind != wanted.kind) return false;
  if (have.kind == DomainRule::Kind::kAddress)
    return have.range.bits <= wanted.range.bits && contains(have.range, wanted.range.first);
  if (is_below(wanted.name, have.name)) return have.below;
  return wanted.name == have.name && (!wanted.self || have.self) && (!wanted.below || have.below);
}

Result<std::vector<DomainRule>> parse_all(const std::vector<std::string>& texts) {
  std::vector<DomainRule> rules;
  rules.reserve(texts.size());
  for (const std::string& text : texts) rules.push_back(BELLJAR_TRY(parse_domain_rule(text)));
  return rules;
}

}  // namespace

Result<DomainRule> parse_domain_rule(std::string_view text) {
  DomainRule rule;
  rule.text = text;
  BELLJAR_CHECK(check_is_one_rule(text));
  RuleParts parts = split_rule(text);
  if (parts.has_port) {
    rule.port = parse_port(parts.port);
    if (!rule.port) return bad_rule(text, "what follows the colon is no port (1 to 65535)", kForms);
  }
  if (parts.host == "*") {
    if (parts.has_prefix) return rule_by_path(text);
    rule.kind = DomainRule::Kind::kAny;
    return rule;
  }
  if (parts.host.starts_with("**.")) rule.below = true, parts.host.remove_prefix(3);
  else if (parts.host.starts_with("*.")) rule.below = true, rule.self = false, parts.host.remove_prefix(2);
  if (parts.host.find('*') != std::string_view::npos)
    return bad_rule(text, "a star stands for whole names at the front only", kForms);
  auto host = parse_host(parts.host);
  if (!host) return bad_rule(text, host.error().reason(), host.error().next().starts_with("give") ? kForms : host.error().next());
  if (host->ip) {
    if (rule.below) return bad_rule(text, "an address has no names below it", kForms);
    BELLJAR_CHECK(set_range(rule, parts, *host->ip));
    return rule;
  }
  if (parts.has_prefix) return rule_by_path(text);
  rule.name = std::move(host->name);
  return rule;
}

bool covers_destination(const DomainRule& rule, const Destination& destination) noexcept {
  return covers_port(rule, destination.port) && covers_host(rule, destination.host);
}

Result<RequestRule> parse_request_rule(std::string_view text) {
  constexpr char kForm[] = "write METHODS HOST[:PORT][/PATH]: `GET,HEAD example.com/docs`, `* example.com`";
  const std::size_t space = text.find(' ');
  if (space == 0 || space == std::string_view::npos) return bad_rule(text, "it needs methods, a space and a host", kForm);
  RequestRule rule;
  rule.text = text;
  std::string_view methods = text.substr(0, space), place = text.substr(space + 1);
  if (methods.ends_with(',')) return bad_rule(text, "methods are separated by a comma alone", kForm);
  if (place.find(' ') < place.find('/')) return bad_rule(text, "it has more than one space", kForm);
  while (methods != "*" && !methods.empty()) {
    const std::string_view one = methods.substr(0, methods.find(','));
    const bool letters = !one.empty() && std::ranges::all_of(one, is_upper);
    if (!letters || one == "CONNECT") return bad_rule(text, format("{} is no method of a request", quoted(one)), kForm);
    rule.methods.emplace_back(one);
    methods.remove_prefix(std::min(one.size() + 1, methods.size()));
  }
  if (place.substr(0, place.find_first_of("?#")).find("://") != std::string_view::npos)
    return bad_rule(text, "it names a URL where a host belongs", format("write {} {}", text.substr(0, space), place_in_url(place)));
  const std::size_t slash = std::min(place.find('/'), place.size());
  rule.path = slash < place.size() ? place.substr(slash) : "/";
  if (is_ambiguous(rule.path) || rule.path.find_first_of("?#* ") != std::string::npos)
    return bad_rule(text, "a path has no query, no star, no space and nothing that can be read in two ways", kForm);
  rule.host = BELLJAR_TRY(parse_domain_rule(place.substr(0, slash)));
  return rule;
}

bool domain_covers(std::string_view have, std::string_view wanted) {
  const auto outer = parse_domain_rule(have), inner = parse_domain_rule(wanted);
  return outer && inner && covers_rule(*outer, *inner);
}

Result<HostRules> make_host_rules(const Network& network) {
  HostRules rules;
  rules.allowed = BELLJAR_TRY(parse_all(network.allowed_domains));
  rules.denied = BELLJAR_TRY(parse_all(network.denied_domains));
  for (const std::string& text : network.allowed_requests) rules.requests.push_back(BELLJAR_TRY(parse_request_rule(text)));
  return rules;
}

std::string_view to_string(HostReason reason) noexcept {
  constexpr std::string_view kNames[] = {"allowed", "requests", "denied", "not-listed", "not-public", "own-address"};
  return kNames[static_cast<std::size_t>(reason)];
}

HostVerdict decide_host(const HostRules& rules, const Destination& destination) {
  const Host& host = destination.host;
  const auto denies = [&](const DomainRule& rule) { return host.ip ? denies_ip(rule, *host.ip) : covers_name(rule, host.name); };
  if (const DomainRule* rule = find(rules.denied, destination.port, denies)) return {HostReason::kDenied, rule->text, {}};
  const auto allows = [&](const DomainRule& rule) { return covers_host(rule, host); };
  if (const DomainRule* rule = find(rules.allowed, destination.port, allows)) return {HostReason::kAllowed, rule->text, {}};
  for (const RequestRule& rule : rules.requests) {
    if (covers_port(rule.host, destination.port) && allows(rule.host)) return {HostReason::kRequests, rule.text, {}};
  }
  return {HostReason::kNotListed, {}, {}};
}

const RequestRule* find_request(const HostRules& rules, const Destination& destination, std::string_view method,
                                std::string_view path) {
  const bool odd = is_ambiguous(path);
  const auto covers = [&](const RequestRule& rule) {
    const bool place = covers_port(rule.host, destination.port) && covers_host(rule.host, destination.host);
    const bool verb = rule.methods.empty() || std::ranges::find(rule.methods, method) != rule.methods.end();
    return place && verb && (rule.path == "/" || (!odd && is_at_or_below(path, rule.path)));
  };
  const auto found = std::ranges::find_if(rules.requests, covers);
  return found == rules.requests.end() ? nullptr : &*found;
}

bool may_resolve(const HostRules& rules, const Host& name) {
  const auto covers = [&](const DomainRule& rule) { return covers_name(rule, name.name); };
  const auto denies = [&](const DomainRule& rule) { return !rule.port && covers(rule); };
  const auto opens = [&](const RequestRule& rule) { return covers(rule.host); };
  return std::ranges::none_of(rules.denied, denies) &&
         (std::ranges::any_of(rules.allowed, covers) || std::ranges::any_of(rules.requests, opens));
}

HostVerdict decide_address(const HostRules& rules, const Destination& destination, const Ip& ip, bool own) {
  const auto denies = [&](const DomainRule& rule) { return rule.kind == DomainRule::Kind::kAddress && denies_ip(rule, ip); };
  if (const DomainRule* rule = find(rules.denied, destination.port, denies)) return {HostReason::kDenied, rule->text, {}};
  if (const DomainRule* rule = find(rules.allowed, destination.port, [&](const DomainRule& r) { return covers_ip(r, ip); }))
    return {HostReason::kAllowed, rule->text, {}};
  for (const RequestRule& rule : rules.requests) {
    const bool named = destination.host.ip && covers_port(rule.host, destination.port) && covers_ip(rule.host, ip);
    if (named) return {HostReason::kAllowed, rule.text, {}};
  }
  if (const std::string_view why = why_not_public(ip); !why.empty()) return {HostReason::kNotPublic, {}, std::string(why)};
  if (own) return {HostReason::kOwnAddress, {}, {}};
  return {HostReason::kAllowed, {}, {}};
}

std::string explain_verdict(const HostVerdict& verdict, const Destination& destination) {
  std::string where = to_string(destination);
  switch (verdict.reason) {
    case HostReason::kAllowed:
      return format("{} is allowed by {}", where, verdict.rule);
    case HostReason::kRequests:
      return format("only requests that network.allowed_requests names may go to {}", where);
    case HostReason::kDenied:
      return format("{} is denied by the rule {}", where, verdict.rule);
    case HostReason::kNotListed:
      return format("{} is not on the list of allowed hosts", where);
    case HostReason::kNotPublic:
      return destination.host.ip ? format("{} is not public ({})", where, verdict.detail)
                                 : format("{} resolves to an address that is not public ({})", where, verdict.detail);
    case HostReason::kOwnAddress:
      return format("{} is an address of this machine", where);
  }
  return where;
}

std::string join_port(const Destination& destination) {
  const std::string port = destination.port == 0 ? "PORT" : format("{}", destination.port);
  return format("inside, {} is the sandbox itself; --host-port {} joins that port with this machine's", to_string(destination.host),
                port);
}

std::string next_step(const HostVerdict& verdict, const Destination& destination) {
  switch (verdict.reason) {
    case HostReason::kAllowed:
      return {};
    case HostReason::kRequests:
      return format("--allow-domain {} opens it wholly", to_string(destination.host));
    case HostReason::kDenied:
      return format("take {} out of network.denied_domains", verdict.rule);
    case HostReason::kNotListed:
      if (is_localhost(destination.host)) return join_port(destination);
      return format("--allow-domain {} opens it", to_string(destination.host));
    case HostReason::kNotPublic:
    case HostReason::kOwnAddress:
      return "a rule for the address or its range opens it: --allow-domain ADDRESS[/BITS][:PORT]";
  }
  return {};
}

}  // namespace belljar::policy
