#include "remote/e2b/address.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/e2b.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "remote/http.h"

namespace belljar::remote::e2b {
namespace {

constexpr std::string_view kDomain = "e2b.app";
constexpr std::array<std::string_view, 4> kSharedHosts = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"};
constexpr std::size_t kMostText = 300;

bool is_name(std::string_view text, std::string_view more) noexcept {
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, [more](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           more.find(letter) != std::string_view::npos;
  });
}

Result<void> check_url(std::string_view what, const std::string& url) {
  const auto parts = parse_url(url);
  // A URL that is wrong may hold a password.
  if (!parts)
    return Error(Code::kInvalidArgument, format("cannot use {}", what))
        .reason("it is no URL of https, or it holds a user or a password")
        .next("use https://HOST");
  if (parts->scheme == "https" || is_this_machine(parts->host)) return {};
  return Error(Code::kInvalidArgument, format("cannot use {} {}", what, belljar::quoted(url)))
      .reason("over plain http everybody on the way reads the key and what the commands do")
      .next("use https://, or an address of this machine");
}

void replace_all(std::string& text, const std::string& secret) {
  if (secret.size() < 4) return;
  for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos;) text.replace(at, secret.size(), "[redacted]");
}

}  // namespace

Result<Address> find_address(const E2bOptions& options, const std::map<std::string, std::string>& environment) {
  const auto choose = [&](const std::string& given, const char* name) {
    const auto found = given.empty() ? environment.find(name) : environment.end();
    return found == environment.end() ? given : found->second;
  };
  Address address{.api_key = choose(options.api_key, "E2B_API_KEY"),
                  .domain = choose(options.domain, "E2B_DOMAIN"),
                  .api_url = choose(options.api_url, "E2B_API_URL"),
                  .sandbox_url = choose(options.sandbox_url, "E2B_SANDBOX_URL")};
  if (address.domain.empty()) address.domain = kDomain;
  if (!is_name(address.domain, ".-:"))
    return Error(Code::kInvalidArgument, format("cannot use the domain {}", belljar::quoted(address.domain)))
        .next("name a host: e2b.app");
  if (address.api_url.empty()) address.api_url = "https://api." + address.domain;
  for (std::string* url : {&address.api_url, &address.sandbox_url}) {
    while (url->ends_with('/')) url->pop_back();
  }
  BELLJAR_CHECK(check_url("the E2B address (E2B_API_URL)", address.api_url));
  if (!address.sandbox_url.empty()) BELLJAR_CHECK(check_url("the address of E2B sandboxes (E2B_SANDBOX_URL)", address.sandbox_url));
  if (address.api_key.empty())
    return Error(Code::kUnauthenticated, "cannot use the e2b backend")
        .reason("there is no API key")
        .next("set E2B_API_KEY, or api_key of E2bOptions");
  if (!is_name(address.api_key, "_-.~+/="))
    return Error(Code::kInvalidArgument, "cannot use the E2B API key").reason("it holds letters that no key has");
  return address;
}

Result<std::string> sandbox_address(const Address& address, std::string_view id, std::string_view domain) {
  const auto wrong = [](std::string_view what, std::string_view text) {
    return Error(Code::kDataLoss, "the E2B service answered with nonsense")
        .reason(format("{} {}", what, belljar::quoted(text.substr(0, 80))));
  };
  if (!is_name(id, "-_")) return wrong("no sandbox has the id", id);
  if (!address.sandbox_url.empty()) return address.sandbox_url;
  const std::string_view at = domain.empty() ? std::string_view(address.domain) : domain;
  if (!is_name(at, ".-:")) return wrong("there is no domain", at);
  if (std::ranges::find(kSharedHosts, at) != kSharedHosts.end()) return format("https://sandbox.{}", at);
  return format("https://49983-{}.{}", id, at);
}

std::string shown(std::string_view text, const std::string& key, const std::string& token) {
  std::string clean(text.substr(0, 4096));
  replace_all(clean, key);
  replace_all(clean, token);
  if (clean.size() > kMostText) clean = clean.substr(0, kMostText) + "...";
  return escaped(clean);
}

}  // namespace belljar::remote::e2b
