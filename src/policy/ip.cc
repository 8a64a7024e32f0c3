// Addresses: text, ranges, and which of them are public.
//
// Public is what may be reached by a rule for names; the tables are IANA's special-purpose registries (RFC
// 6890). In IPv6 only 2000::/3 is handed out, so everything outside of it is refused without being listed. An
// address that carries an IPv4 address (NAT64, RFC 6052) is as public as that one: a gateway would deliver it
// there.
#include "policy/ip.h"

#include <algorithm>
#include <cstddef>

#include "base/encoding.h"
#include "base/format.h"

namespace belljar::policy {
namespace {

// Decimal, at most three digits, no leading zero.
std::optional<unsigned> octet(std::string_view text) noexcept {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value <= 255 ? std::optional(value) : std::nullopt;
}

std::optional<std::uint32_t> parse_v4(std::string_view text) noexcept {
  std::uint32_t number = 0;
  for (int part = 0; part < 4; ++part) {
    const std::size_t dot = text.find('.');
    if ((dot == std::string_view::npos) != (part == 3)) return std::nullopt;
    const auto value = octet(text.substr(0, dot));
    if (!value) return std::nullopt;
    number = number << 8 | *value;
    if (part < 3) text.remove_prefix(dot + 1);
  }
  return number;
}

std::optional<unsigned> hex_group(std::string_view text) noexcept {
  if (text.empty() || text.size() > 4) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<unsigned>(digit);
  }
  return value;
}

// The groups of one side of `::`, RFC 4291 section 2.2; the last may be dotted decimal. Returns how many, -1 when it is none.
int parse_groups(std::string_view text, bool dotted, std::array<unsigned, 8>& groups) noexcept {
  int count = 0;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (dotted && colon == std::string_view::npos && group.find('.') != std::string_view::npos) {
      const auto v4 = parse_v4(group);
      if (!v4 || count > 6) return -1;
      groups[static_cast<std::size_t>(count)] = *v4 >> 16;
      groups[static_cast<std::size_t>(count) + 1] = *v4 & 0xFFFF;
      return count + 2;
    }
    const auto value = hex_group(group);
    if (!value || count > 7) return -1;
    groups[static_cast<std::size_t>(count++)] = *value;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
    if (text.empty()) return -1;
  }
  return count;
}

std::optional<Ip> parse_v6(std::string_view text) noexcept {
  std::array<unsigned, 8> head{}, tail{};
  const std::size_t gap = text.find("::");
  const bool short_form = gap != std::string_view::npos;
  const int before = parse_groups(text.substr(0, gap), !short_form, head);
  const int after = short_form ? parse_groups(text.substr(gap + 2), true, tail) : 0;
  if (before < 0 || after < 0 || (short_form ? before + after > 7 : before != 8)) return std::nullopt;
  std::copy_n(tail.begin(), after, head.end() - after);
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[2 * i] = static_cast<std::uint8_t>(head[i] >> 8);
    bytes[2 * i + 1] = static_cast<std::uint8_t>(head[i]);
  }
  return ipv6(bytes);
}

struct Special {
  IpRange range;
  std::string_view why;
};

constexpr Ip v4_at(std::uint32_t number) noexcept {
  Ip ip;
  for (std::size_t i = 0; i < 4; ++i) ip.bytes[i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  return ip;
}
constexpr Ip v6_at(unsigned a, unsigned b = 0, unsigned c = 0) noexcept {
  Ip ip{.v6 = true};
  const unsigned groups[] = {a, b, c};
  for (std::size_t i = 0; i < 3; ++i) {
    ip.bytes[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8);
    ip.bytes[2 * i + 1] = static_cast<std::uint8_t>(groups[i]);
  }
  return ip;
}

constexpr Special kSpecial4[] = {
    {{v4_at(0x00000000), 8}, "unspecified"},        {{v4_at(0x0A000000), 8}, "private"},
    {{v4_at(0x64400000), 10}, "carrier-grade NAT"}, {{v4_at(0x7F000000), 8}, "loopback"},
    {{v4_at(0xA9FE0000), 16}, "link-local"},        {{v4_at(0xAC100000), 12}, "private"},
    {{v4_at(0xC0000000), 24}, "reserved"},          {{v4_at(0xC0000200), 24}, "documentation"},
    {{v4_at(0xC01FC400), 24}, "reserved"},          {{v4_at(0xC034C100), 24}, "reserved"},
    {{v4_at(0xC0586300), 24}, "6to4 relay"},        {{v4_at(0xC0A80000), 16}, "private"},
    {{v4_at(0xC0AF3000), 24}, "reserved"},          {{v4_at(0xC6120000), 15}, "benchmarking"},
    {{v4_at(0xC6336400), 24}, "documentation"},     {{v4_at(0xCB007100), 24}, "documentation"},
    {{v4_at(0xE0000000), 4}, "multicast"},          {{v4_at(0xF0000000), 4}, "reserved"},
    {{v4_at(0xA83F8110), 32}, "cloud metadata"},  // 168.63.129.16, Azure's wire server
};
// Inside 2000::/3, the only space that is handed out; everything outside of it is named first.
constexpr Special kSpecial6[] = {
    {{v6_at(0xFE80), 10}, "link-local"},
    {{v6_at(0xFEC0), 10}, "site-local"},
    {{v6_at(0xFC00), 7}, "private"},
    {{v6_at(0xFF00), 8}, "multicast"},
    {{v6_at(0x0064, 0xFF9B, 1), 48}, "local NAT64"},
    {{v6_at(0x0100), 64}, "discard"},
    {{v6_at(0x2001, 0), 32}, "Teredo"},
    {{v6_at(0x2001, 0x0DB8), 32}, "documentation"},
    {{v6_at(0x2001, 0), 23}, "reserved"},
    {{v6_at(0x2002), 16}, "6to4"},
    {{v6_at(0x3FFE), 16}, "reserved"},
    {{v6_at(0x3FFF), 20}, "documentation"},
    {{v6_at(0x2620, 0x004F, 0x8000), 48}, "reserved"},
};
constexpr IpRange kGlobalUnicast{v6_at(0x2000), 3};
constexpr IpRange kNat64{v6_at(0x0064, 0xFF9B), 96};

std::uint32_t number_at(const Ip& ip, std::size_t at) noexcept {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | ip.bytes[at + i];
  return number;
}

}  // namespace

Ip ipv4(std::uint32_t number) noexcept { return v4_at(number); }

std::uint32_t ipv4_number(const Ip& ip) noexcept { return number_at(ip, 0); }

Ip ipv6(const std::array<std::uint8_t, 16>& bytes) noexcept {
  const Ip ip{.v6 = true, .bytes = bytes};
  const bool mapped =
      std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) && bytes[10] == 0xFF && bytes[11] == 0xFF;
  return mapped ? ipv4(number_at(ip, 12)) : ip;
}

std::optional<Ip> parse_ip(std::string_view text) noexcept {
  if (text.find(':') != std::string_view::npos) return parse_v6(text);
  const auto number = parse_v4(text);
  return number ? std::optional(ipv4(*number)) : std::nullopt;
}

// RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups as `::`.
std::string to_string(const Ip& ip) {
  if (!ip.v6) return format("{}.{}.{}.{}", ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]);
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) groups[i] = static_cast<unsigned>(ip.bytes[2 * i]) << 8 | ip.bytes[2 * i + 1];
  std::size_t best = 8, longest = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > longest) best = i, longest = end - i;
  }
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      text += "::";
      i += longest - 1;
      continue;
    }
    if (!text.empty() && !text.ends_with(':')) text += ':';
    text += format("{:x}", groups[i]);
  }
  return text;
}

bool contains(const IpRange& range, const Ip& ip) noexcept {
  if (range.first.v6 != ip.v6) return false;
  const auto whole = static_cast<std::size_t>(range.bits / 8);
  if (!std::equal(ip.bytes.begin(), ip.bytes.begin() + static_cast<std::ptrdiff_t>(whole), range.first.bytes.begin())) return false;
  const int rest = range.bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<unsigned>(0xFF << (8 - rest) & 0xFF);
  return ((static_cast<unsigned>(ip.bytes[whole]) ^ range.first.bytes[whole]) & mask) == 0;
}

std::optional<Ip> embedded_ipv4(const Ip& ip) noexcept {
  if (!ip.v6) return std::nullopt;
  if (contains(kNat64, ip)) return ipv4(number_at(ip, 12));
  if (ip.bytes[0] == 0x20 && ip.bytes[1] == 0x02) return ipv4(number_at(ip, 2));
  if (number_at(ip, 0) == 0x20010000) return ipv4(~number_at(ip, 12));  // Teredo writes the client's address inverted
  const bool compatible = number_at(ip, 0) == 0 && number_at(ip, 4) == 0 && number_at(ip, 8) == 0 && number_at(ip, 12) > 1;
  return compatible ? std::optional(ipv4(number_at(ip, 12))) : std::nullopt;
}

std::string_view why_not_public(const Ip& ip) noexcept {
  if (!ip.v6) {
    for (const Special& special : kSpecial4) {
      if (contains(special.range, ip)) return special.why;
    }
    return {};
  }
  if (contains(kNat64, ip)) return why_not_public(ipv4(number_at(ip, 12)));
  for (const Special& special : kSpecial6) {
    if (contains(special.range, ip)) return special.why;
  }
  if (contains(kGlobalUnicast, ip)) return {};
  const bool low = number_at(ip, 0) == 0 && number_at(ip, 4) == 0 && number_at(ip, 8) == 0;
  if (low && number_at(ip, 12) == 0) return "unspecified";
  return low && number_at(ip, 12) == 1 ? "loopback" : "reserved";
}

}  // namespace belljar::policy
