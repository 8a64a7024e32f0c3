// IP addresses as values: text both ways, ranges, and which addresses are public. No system calls.
//
// An IPv4 address in IPv6 clothes (::ffff:10.0.0.1) is the IPv4 address: it is the same destination to the kernel. Forms that
// carry an IPv4 address through a translator or a tunnel (NAT64, 6to4, Teredo) stay what they are, and are judged by both.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belljar::policy {

struct Ip {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};  // network order; IPv4 uses the first four
  auto operator<=>(const Ip&) const = default;
};

// IPv4 from the four bytes as one number: 0x7F000001 is 127.0.0.1.
Ip ipv4(std::uint32_t number) noexcept;
std::uint32_t ipv4_number(const Ip& ip) noexcept;
// Sixteen bytes; ::ffff:0:0/96 becomes IPv4.
Ip ipv6(const std::array<std::uint8_t, 16>& bytes) noexcept;

// Dotted decimal with four parts and no leading zero, or IPv6 without brackets and without a zone. Odd spellings are host.h's.
std::optional<Ip> parse_ip(std::string_view text) noexcept;
std::string to_string(const Ip& ip);

struct IpRange {
  Ip first;
  int bits = 0;  // of the prefix
  bool operator==(const IpRange&) const = default;
};
bool contains(const IpRange& range, const Ip& ip) noexcept;

// The IPv4 address that a translator or tunnel would make of it: NAT64 (64:ff9b::/96, RFC 6052), 6to4 (RFC 3056), Teredo
// (RFC 4380), IPv4-compatible (RFC 4291).
std::optional<Ip> embedded_ipv4(const Ip& ip) noexcept;

// Why `ip` is no public destination ("private", "loopback", "link-local", ...); empty when it is one. The list is IANA's special
// purpose registries (RFC 6890 and updates) plus multicast, and the cloud address that lies in public space. NAT64 is judged by
// what it carries; 6to4 and Teredo are never public.
std::string_view why_not_public(const Ip& ip) noexcept;

}  // namespace belljar::policy
