// Canonical request, then string to sign, then a chain of four keys: secret, day, region, service, "request".
// Each key is the HMAC-SHA256 (RFC 2104) of the next word under the one before. A key of the chain is therefore
// good for one day, region and service only.
//
// What is easy to get wrong: the query is sorted by name and escaped with upper-case hex; header names are in
// small letters, sorted, and the same list appears twice; the host is without a default port, as it is in the
// Host header; the hash of the body is a header and is signed; the token of a temporary key is signed as well,
// and added to the list only where there is one.
//
// Every step is kept in Signature, so that a test can say which one is wrong (VolcengineSign.*).
#include "remote/volcengine/sign.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/format.h"
#include "http/client.h"

namespace belljar::remote::volcengine {
namespace {

std::string stamp(std::chrono::system_clock::time_point now) {
  const std::time_t time = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  std::array<char, 20> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &utc)};
}

// As the Host header has it: a default port is not told.
std::string host_of(std::string_view authority) {
  for (const std::string_view port : {":80", ":443"}) {
    if (authority.ends_with(port)) authority.remove_suffix(port.size());
  }
  return std::string(authority);
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ";") + std::string(name);
  return all;
}

}  // namespace

std::string canonical_query(std::vector<std::pair<std::string, std::string>> query) {
  std::ranges::sort(query);
  std::string text;
  for (const auto& [name, value] : query) text += (text.empty() ? "" : "&") + percent_encoded(name) + "=" + percent_encoded(value);
  return text;
}

Signature sign(const Call& call, const Keys& keys, const std::vector<std::string_view>& names) {
  Signature made;
  made.date = stamp(call.now);
  made.body_hash = to_hex(sha256(call.body));
  const auto text_of = [&](std::string_view name) -> std::string {
    if (name == "content-type") return call.content_type;
    if (name == "host") return host_of(call.authority);
    if (name == "x-content-sha256") return made.body_hash;
    return name == "x-date" ? made.date : keys.token;
  };
  made.canonical = "POST\n/\n" + canonical_query(call.query) + "\n";
  for (const std::string_view name : names) made.canonical += std::string(name) + ":" + text_of(name) + "\n";
  made.canonical += "\n" + joined(names) + "\n" + made.body_hash;
  made.canonical_hash = to_hex(sha256(made.canonical));
  const std::string day = made.date.substr(0, 8);
  made.scope = day + "/" + call.region + "/" + call.service + "/request";

  const std::string key_date = hmac_sha256(keys.secret, day);
  const std::string key_region = hmac_sha256(key_date, call.region);
  const std::string key_service = hmac_sha256(key_region, call.service);
  const std::string key_signing = hmac_sha256(key_service, "request");
  made.key_date = to_hex(key_date);
  made.key_region = to_hex(key_region);
  made.key_service = to_hex(key_service);
  made.key_signing = to_hex(key_signing);
  made.signature = to_hex(hmac_sha256(key_signing, "HMAC-SHA256\n" + made.date + "\n" + made.scope + "\n" + made.canonical_hash));

  made.headers = {"Content-Type: " + call.content_type, "X-Date: " + made.date, "X-Content-Sha256: " + made.body_hash,
                  "Authorization: HMAC-SHA256 Credential=" + keys.id + "/" + made.scope + ", SignedHeaders=" + joined(names) +
                      ", Signature=" + made.signature};
  if (!keys.token.empty()) made.headers.push_back("X-Security-Token: " + keys.token);
  return made;
}

Signature sign(const Call& call, const Keys& keys) {
  std::vector<std::string_view> names = {"content-type", "host", "x-content-sha256", "x-date"};
  if (!keys.token.empty()) names.emplace_back("x-security-token");
  return sign(call, keys, names);
}

}  // namespace belljar::remote::volcengine
