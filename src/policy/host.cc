// The one spelling of a host, so that rules compare equal what resolvers would treat as equal.
//
// `127.1`, `0x7f.1` and `2130706433` are all 127.0.0.1 to inet_aton(3), and so to many clients. As in the
// WHATWG URL standard, a name whose last label is a number is an IPv4 address or an error, never a name:
// otherwise a deny rule for 127.0.0.0/8 could be passed by in another spelling. Names are compared in lower
// case and without the last dot. Letters beyond ASCII are refused: which ASCII name they mean depends on the
// version of IDNA that a client has.
#include "policy/host.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"

namespace belljar::policy {
namespace {

constexpr std::string_view kSchemeEnd = "://";

Error no_host(std::string_view text, std::string reason, std::string next = "give a host name, or an address") {
  constexpr std::size_t kLongestShown = 100;
  const std::string shown = without_user(text);
  return Error(Code::kInvalidArgument, format("{} is no host", quoted(std::string_view(shown).substr(0, kLongestShown))))
      .reason(std::move(reason))
      .next(std::move(next));
}

bool is_name_byte(char c) noexcept { return is_alnum(c) || c == '-' || c == '_' || c == '.'; }

// One part of an IPv4 address as inet_aton(3) reads it: 0x hexadecimal, 0 octal, else decimal.
std::optional<std::uint64_t> number_part(std::string_view text) noexcept {
  unsigned base = 10;
  if (text.size() >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) base = 16, text.remove_prefix(2);
  else if (text.size() >= 2 && text[0] == '0') base = 8, text.remove_prefix(1);
  std::uint64_t value = 0;
  if (text.size() > 16) text = text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
  for (const char c : text) {
    const auto digit = static_cast<unsigned>(hex_digit(c));
    if (digit >= base || value > 0xFFFFFFFF) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

// WHATWG "ends in a number": then it is an address or nothing.
bool ends_in_number(std::string_view name) noexcept {
  const std::string_view last = name.substr(name.rfind('.') + 1);  // npos + 1 is 0
  return is_number(last) || (last.size() >= 2 && last[0] == '0' && (last[1] == 'x' || last[1] == 'X') && number_part(last));
}

std::optional<Ip> odd_ipv4(std::string_view text) noexcept {
  std::uint64_t parts[4];
  std::size_t count = 0;
  for (;;) {
    if (count == 4) return std::nullopt;
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    const auto value = part.empty() ? std::nullopt : number_part(part);
    if (!value) return std::nullopt;
    parts[count++] = *value;
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  std::uint64_t address = 0;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (parts[i] > 255) return std::nullopt;
    address |= parts[i] << (24 - 8 * i);
  }
  if (parts[count - 1] >= std::uint64_t{1} << (8 * (5 - count))) return std::nullopt;
  return ipv4(static_cast<std::uint32_t>(address | parts[count - 1]));
}

Result<void> check_bytes(std::string_view text) {
  for (const char c : text) {
    if (is_name_byte(c)) continue;
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) return no_host(text, "it has letters beyond ASCII", "write it in its ASCII form: xn--...");
    if (c == '@') return no_host(text, "it carries a user name", "leave out everything up to the `@`");
    return no_host(text, format("byte 0x{:02x} may not stand in a host name", byte));
  }
  return {};
}

Result<void> check_labels(std::string_view text, std::string_view name) {
  constexpr std::size_t kLongestLabel = 63;  // RFC 1035 section 2.3.4
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view label = name.substr(0, dot);
    if (label.empty()) return no_host(text, "there is nothing between two dots");
    if (label.size() > kLongestLabel) return no_host(text, "a part is longer than 63 bytes");
    if (dot == std::string_view::npos) return {};
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

Result<Host> parse_host(std::string_view text) {
  constexpr std::size_t kLongest = 253;
  std::string_view name = text;
  if (name.starts_with('[') || name.find(':') != std::string_view::npos) {
    if (name.starts_with('[')) {
      if (!name.ends_with(']')) return no_host(text, "the bracket is not closed");
      name = name.substr(1, name.size() - 2);
    }
    const auto ip = name.find(':') == std::string_view::npos ? std::nullopt : parse_ip(name);
    if (!ip)
      return no_host(text, name.find('%') != std::string_view::npos ? "an address with a zone means another interface each time"
                                                                    : "it is no IPv6 address");
    return Host{.name = {}, .ip = ip};
  }
  BELLJAR_CHECK(check_bytes(name));
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) return no_host(text, "it is empty");
  if (name.size() > kLongest) return no_host(text, "it is longer than 253 bytes");
  BELLJAR_CHECK(check_labels(text, name));
  if (ends_in_number(name)) {
    const auto ip = odd_ipv4(name);
    if (!ip) return no_host(text, "it ends in a number and is no IPv4 address");
    return Host{.name = {}, .ip = ip};
  }
  return Host{.name = lower_case(name), .ip = {}};
}

std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
  if (!is_number(text) || text.size() > 5) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) value = value * 10 + static_cast<unsigned>(c - '0');
  return value >= 1 && value <= 65535 ? std::optional(static_cast<std::uint16_t>(value)) : std::nullopt;
}

std::string without_user(std::string_view text) {
  const std::size_t scheme = text.find(kSchemeEnd);
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + kSchemeEnd.size();
  const std::size_t at = text.substr(0, text.find('/', begin)).rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(text);
  return std::string(text.substr(0, begin)).append("***").append(text.substr(at));
}

std::string_view place_in_url(std::string_view text) noexcept {
  if (const std::size_t scheme = text.find(kSchemeEnd); scheme != std::string_view::npos)
    text.remove_prefix(scheme + kSchemeEnd.size());
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  const std::size_t at = text.substr(0, end).rfind('@');
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

bool is_localhost(const Host& host) noexcept {
  return host.ip ? why_not_public(*host.ip) == "loopback" : host.name == "localhost" || host.name.ends_with(".localhost");
}

Result<Destination> parse_destination(std::string_view text, std::uint16_t fallback) {
  if (text.find(kSchemeEnd) != std::string_view::npos) {
    const std::string_view place = place_in_url(text);
    return no_host(text, "it is a URL", format("write the host, or HOST:PORT: {}", place.substr(0, place.find_first_of("/?#"))));
  }
  if (text.find('@') != std::string_view::npos)
    return no_host(text, "it carries a user name", "leave out everything up to the `@`");
  std::string_view host = text;
  std::uint16_t port = fallback;
  const std::size_t colon = text.rfind(':');
  const bool bare_v6 = !text.starts_with('[') && colon != text.find(':');
  if (colon != std::string_view::npos && !bare_v6 && !text.ends_with(']')) {
    const auto number = parse_port(text.substr(colon + 1));
    if (!number) return no_host(text, "what follows the colon is no port (1 to 65535)", "write HOST:PORT");
    port = *number;
    host = text.substr(0, colon);
  }
  if (port == 0) return no_host(text, "it has no port", "write HOST:PORT");
  return Destination{BELLJAR_TRY(parse_host(host)), port};
}

std::string to_string(const Host& host) { return host.ip ? to_string(*host.ip) : host.name; }

std::string to_string(const Destination& destination) {
  const bool brackets = destination.host.ip && destination.host.ip->v6;
  return format("{}{}{}:{}", brackets ? "[" : "", to_string(destination.host), brackets ? "]" : "", destination.port);
}

}  // namespace belljar::policy
