// Secrets in texts. shown() cuts, takes the keys out and escapes, in this order: cut to a bound first, so that
// the search is short; keys before the second cut, for a key that is cut in half would not be found; escaping
// last, since it changes letters of a key.
//
// A key is sent over https only, or to this machine. A URL with a user, a password or a query is refused
// without being repeated in the error, because it may hold a secret itself.
#include "remote/address.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"

namespace belljar::remote {
namespace {

constexpr std::size_t kMostText = 300;
constexpr std::string_view kRedacted = "[redacted]";

void replace_all(std::string& text, const std::string& secret) {
  if (secret.size() < 4) return;
  for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += kRedacted.size())
    text.replace(at, secret.size(), kRedacted);
}

}  // namespace

std::string first_of(const std::string& given, const std::map<std::string, std::string>& environment,
                     std::initializer_list<const char*> names) {
  if (!given.empty()) return given;
  for (const char* const name : names) {
    if (const auto found = environment.find(name); found != environment.end() && !found->second.empty()) return found->second;
  }
  return {};
}

bool consists_of(std::string_view text, std::string_view more) noexcept {
  return std::ranges::all_of(text, [more](char letter) { return is_alnum(letter) || more.find(letter) != std::string_view::npos; });
}

bool is_header(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
}

bool is_safe_url(const std::string& url) {
  const auto parts = http::parse_url(url);
  return parts && !parts->has_user && (parts->scheme == "https" || http::is_this_machine(parts->host));
}

Result<void> check_url(std::string_view what, const std::string& url, Query query) {
  const auto parts = http::parse_url(url);
  const bool asks = query == Query::kRefused && url.find_first_of("?#") != std::string::npos;
  // A URL that is wrong may hold a password; one with a query, somebody's key.
  if (!parts || parts->has_user || asks)
    return Error(Code::kInvalidArgument, format("cannot use {}", what))
        .reason(query == Query::kRefused ? "it is no URL of https, or it holds a user, a password or a query"
                                         : "it is no URL of https, or it holds a user or a password")
        .next("use https://HOST");
  if (is_safe_url(url)) return {};
  return Error(Code::kInvalidArgument, format("cannot use {} {}", what, belljar::quoted(url)))
      .reason("over plain http everybody on the way reads the key and what the commands do")
      .next("use https://, or an address of this machine");
}

std::string shown(std::string_view text, const std::vector<std::string>& secrets) {
  std::string clean(text.substr(0, 4096));
  for (const std::string& secret : secrets) replace_all(clean, secret);
  if (clean.size() > kMostText) clean = clean.substr(0, kMostText) + "...";
  return escaped(clean);
}

}  // namespace belljar::remote
