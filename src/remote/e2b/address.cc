// The daemon of a sandbox is reached by a host name of its own, "49983-ID.DOMAIN", or at the hosts of E2B
// itself by one shared name where a header names the sandbox. Id and domain come from the service and become
// part of a URL to which a token is sent, so both are checked to be names before: any other letter could lead
// elsewhere.
#include "remote/e2b/address.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/e2b.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "remote/address.h"

namespace belljar::remote::e2b {
namespace {

constexpr std::string_view kDomain = "e2b.app";
constexpr std::array<std::string_view, 4> kSharedHosts = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"};

bool is_name(std::string_view text, std::string_view more) noexcept {
  return !text.empty() && text.size() <= 253 && consists_of(text, more);
}

// As they go over the wire: what could end a header early would be another.
Result<std::vector<std::string>> headers_of(const E2bOptions& options, const std::string& api_key) {
  std::vector<std::string> headers = {(options.auth == E2bAuth::kBearer ? "Authorization: Bearer " : "X-API-KEY: ") + api_key};
  for (const auto& [name, text] : options.headers) {
    if (!is_name(name, "-_") || std::ranges::any_of(text, [](char c) { return c < ' ' || c == '\x7f'; }))
      return Error(Code::kInvalidArgument, format("cannot send the header {}", belljar::quoted(name)))
          .reason("its name or its text holds letters that none has")
          .next("give NAME=TEXT, without control characters");
    headers.push_back(format("{}: {}", name, text));
  }
  return headers;
}

}  // namespace

Result<Address> find_address(const E2bOptions& options, const std::map<std::string, std::string>& environment) {
  Address address{.api_key = first_of(options.api_key, environment, {"E2B_API_KEY"}),
                  .domain = first_of(options.domain, environment, {"E2B_DOMAIN"}),
                  .api_url = first_of(options.api_url, environment, {"E2B_API_URL"}),
                  .sandbox_url = first_of(options.sandbox_url, environment, {"E2B_SANDBOX_URL"})};
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
  address.headers = BELLJAR_TRY(headers_of(options, address.api_key));
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

}  // namespace belljar::remote::e2b
