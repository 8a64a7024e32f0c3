// The signature "HMAC-SHA256" of Volcengine's OpenAPI: a chain of keys as in AWS Signature Version 4, with names of its own
// (https://www.volcengine.com/docs/6369/67269). Values; no I/O, no clock.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belljar::remote::volcengine {

struct Keys {
  std::string id, secret, token;  // token: of a temporary key (STS); empty: none
};

// The parts of a request that are signed. The path is always "/".
struct Call {
  std::string service, region;
  std::string authority;                                   // host[:port] of the URL
  std::vector<std::pair<std::string, std::string>> query;  // unescaped
  std::string content_type, body;
  std::chrono::system_clock::time_point now;
};

// Every step, so that a test can say which one is wrong. Hex where it is bytes.
struct Signature {
  std::string date;       // X-Date
  std::string body_hash;  // X-Content-Sha256
  std::string canonical, canonical_hash, scope;
  std::string key_date, key_region, key_service, key_signing;
  std::string signature;
  std::vector<std::string> headers;  // to be sent, "Name: text"
};

// `names`: the headers that are signed, sorted, in small letters: content-type, host, x-content-sha256, x-date, x-security-token.
Signature sign(const Call& call, const Keys& keys, const std::vector<std::string_view>& names);
// The ones above; the token's where there is a token.
Signature sign(const Call& call, const Keys& keys);

std::string canonical_query(std::vector<std::pair<std::string, std::string>> query);

}  // namespace belljar::remote::volcengine
