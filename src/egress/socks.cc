#include "egress/socks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"

namespace belljar::egress {
namespace {

constexpr std::uint8_t kVersion = 5, kPasswordVersion = 1, kConnect = 1, kBind = 2, kUdp = 3;
constexpr std::uint8_t kIpv4 = 1, kName = 3, kIpv6 = 4;

std::uint8_t byte_at(std::string_view data, std::size_t at) { return static_cast<std::uint8_t>(data[at]); }

SocksRequest bad(SocksReply reply, std::string reason) {
  return {.parse = Parse::kBad, .taken = 0, .reply = reply, .reason = std::move(reason), .destination = {}};
}

}  // namespace

SocksGreeting read_socks_greeting(std::string_view data) {
  SocksGreeting greeting;
  if (data.size() < 2) return greeting;
  const std::size_t count = byte_at(data, 1);
  if (byte_at(data, 0) != kVersion || count == 0) return greeting.parse = Parse::kBad, greeting;
  if (data.size() < 2 + count) return greeting;
  greeting.parse = Parse::kDone;
  greeting.taken = 2 + count;
  for (std::size_t i = 0; i < count; ++i) {
    if (byte_at(data, 2 + i) == 0) greeting.no_credential = true;
    if (byte_at(data, 2 + i) == 2) greeting.password = true;
  }
  return greeting;
}

SocksPassword read_socks_password(std::string_view data) {
  SocksPassword result;
  if (data.size() < 2) return result;
  if (byte_at(data, 0) != kPasswordVersion) return result.parse = Parse::kBad, result;
  const std::size_t user = byte_at(data, 1);
  if (data.size() < 3 + user) return result;
  const std::size_t password = byte_at(data, 2 + user);
  if (data.size() < 3 + user + password) return result;
  result.credential = std::string(data.substr(2, user)) + ":" + std::string(data.substr(3 + user, password));
  result.taken = 3 + user + password;
  result.parse = Parse::kDone;
  return result;
}

SocksRequest read_socks_request(std::string_view data) {
  SocksRequest request;
  if (data.size() < 5) return request;
  if (byte_at(data, 0) != kVersion) return bad(SocksReply::kFailed, "the request is not of SOCKS5");
  const std::uint8_t command = byte_at(data, 1), type = byte_at(data, 3);
  if (command == kUdp) return bad(SocksReply::kBadCommand, "SOCKS5 UDP is not served: only TCP leaves the sandbox");
  if (command == kBind) return bad(SocksReply::kBadCommand, "SOCKS5 BIND is not served: nothing may connect from outside");
  if (command != kConnect) return bad(SocksReply::kBadCommand, "the SOCKS5 command is unknown");
  const std::size_t size = type == kIpv4 ? 4 : type == kIpv6 ? 16 : type == kName ? 1U + byte_at(data, 4) : 0;
  if (size == 0) return bad(SocksReply::kBadAddress, "the SOCKS5 address type is unknown");
  if (data.size() < 4 + size + 2) return request;
  const std::string_view address = data.substr(4, size);
  const auto port = static_cast<std::uint16_t>(byte_at(data, 4 + size) << 8 | byte_at(data, 5 + size));
  policy::Host host;
  if (type == kName) {
    auto parsed = policy::parse_host(address.substr(1));
    if (!parsed) {
      request = bad(SocksReply::kNotAllowed, parsed.error().what() + ": " + parsed.error().reason());
      request.destination = {{.name = escaped(address.substr(1)), .ip = {}}, port};
      return request;
    }
    host = *std::move(parsed);
  } else {
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(address, i);
    host.ip = type == kIpv6 ? policy::ipv6(bytes) : policy::Ip{.v6 = false, .bytes = bytes};
  }
  if (port == 0) return bad(SocksReply::kNotAllowed, "port 0 is no port");
  request.parse = Parse::kDone;
  request.taken = 4 + size + 2;
  request.destination = {std::move(host), port};
  return request;
}

// The bound address says nothing to clients: zeros.
std::string socks_reply(SocksReply reply) {
  return {static_cast<char>(kVersion), static_cast<char>(reply), 0, static_cast<char>(kIpv4), 0, 0, 0, 0, 0, 0};
}

}  // namespace belljar::egress
