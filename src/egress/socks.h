// SOCKS5 (RFC 1928, RFC 1929) as far as it is served: CONNECT by name or address, no credential or user and password. Pure: bytes
// in, what they say out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "policy/host.h"

namespace belljar::egress {

enum class Parse { kMore, kBad, kDone };

struct SocksGreeting {
  Parse parse = Parse::kMore;
  std::size_t taken = 0;
  bool no_credential = false, password = false;  // methods the client offers
};
SocksGreeting read_socks_greeting(std::string_view data);

struct SocksPassword {
  Parse parse = Parse::kMore;
  std::size_t taken = 0;
  std::string credential;  // "user:password"
};
SocksPassword read_socks_password(std::string_view data);

enum class SocksReply : std::uint8_t {
  kDone = 0,
  kFailed = 1,
  kNotAllowed = 2,
  kNetworkUnreachable = 3,
  kHostUnreachable = 4,
  kRefused = 5,
  kTimedOut = 6,
  kBadCommand = 7,
  kBadAddress = 8,
};

struct SocksRequest {
  Parse parse = Parse::kMore;
  std::size_t taken = 0;
  SocksReply reply = SocksReply::kDone;  // kBad: what to answer
  std::string reason;                    // kBad: one sentence
  policy::Destination destination;       // kBad: empty, or a name that no host has, escaped for records
};
SocksRequest read_socks_request(std::string_view data);

std::string socks_reply(SocksReply reply);

}  // namespace belljar::egress
