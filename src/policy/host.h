// The one spelling of a destination, made before anything is compared (docs/design/egress.md).
//
// Follows the host parser of the WHATWG URL standard where that accepts less, since clients differ in the rest: `127.1`,
// `0x7f.1` and `2130706433` are 127.0.0.1 to curl and names to others, so they become the address here. Every later step (rules,
// resolver, dial, records) sees this value only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/result.h"
#include "policy/ip.h"

namespace belljar::policy {

inline constexpr std::uint16_t kHttpPort = 80, kHttpsPort = 443;

struct Host {
  std::string name;      // lower case, no trailing dot; empty when `ip` is set
  std::optional<Ip> ip;  // an address was written
  auto operator<=>(const Host&) const = default;
};

struct Destination {
  Host host;
  std::uint16_t port = 0;
  auto operator<=>(const Destination&) const = default;
};

// A name (letters, digits, `-`, `_`, dots), an IPv4 address in any spelling, an IPv6 address with or without brackets.
// Errors: kInvalidArgument: empty, longer than 253 bytes, an empty or too long label, a number that is no address, and every other
// byte: NUL, CR, LF, space, `%` (also an IPv6 zone), `@`, `/`, and letters beyond ASCII (to be written as `xn--...`).
Result<Host> parse_host(std::string_view text);
// `host` or `host:port`; an IPv6 address with a port needs brackets. Without a port and without `fallback` (0) an error.
Result<Destination> parse_destination(std::string_view text, std::uint16_t fallback = 0);
// A URL, or what stands where a host is wanted, with `***` for its user and password: it is shown in errors.
std::string without_user(std::string_view text);
// What stands behind a URL's scheme and user: "host[:port][/path]". Text that is no URL is given back.
std::string_view place_in_url(std::string_view text) noexcept;
// Names the machine that asks (RFC 6761 section 6.3, 127.0.0.0/8, ::1): inside a sandbox that is the sandbox.
bool is_localhost(const Host& host) noexcept;
// A decimal port from 1 to 65535 without sign or spaces.
std::optional<std::uint16_t> parse_port(std::string_view text) noexcept;

std::string to_string(const Host& host);                // an IPv6 address without brackets
std::string to_string(const Destination& destination);  // "host:port", "[v6]:port"

}  // namespace belljar::policy
