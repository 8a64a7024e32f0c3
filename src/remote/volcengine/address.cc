// Keys come in pairs and never half from one place and half from another: an id with somebody else's secret
// fails as a wrong signature, which tells nothing. The first pair of names with anything set decides, and its
// other half must be there.
//
// What is signed has the path / and a host in small letters, so a URL with a path or capitals is refused here.
#include "remote/volcengine/address.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/environment.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/volcengine.h"
#include "remote/address.h"
#include "remote/volcengine/sign.h"

namespace belljar::remote::volcengine {
namespace {

using Environment = std::map<std::string, std::string>;

// The names of the product's own documents, of its cookbook, of its npm package, of its sandbox examples.
constexpr std::array<std::pair<const char*, const char*>, 4> kKeyNames = {{{"VOLC_ACCESS_KEY_ID", "VOLC_SECRET_ACCESS_KEY"},
                                                                           {"VOLC_ACCESS_KEY", "VOLC_SECRET_KEY"},
                                                                           {"VOLC_ACCESSKEY", "VOLC_SECRETKEY"},
                                                                           {"VOLCENGINE_ACCESS_KEY", "VOLCENGINE_SECRET_KEY"}}};

Error half_a_key(std::string_view there, std::string_view missing) {
  return Error(Code::kInvalidArgument, "cannot use the Volcengine access key")
      .reason(format("there is {}, and no {}", there, missing))
      .next("an id and its secret belong together: set both in one place");
}

Result<Keys> find_keys(const VolcengineOptions& options, const Environment& environment) {
  Keys keys{.id = options.access_key_id, .secret = options.secret_access_key, .token = options.session_token};
  if (keys.id.empty() != keys.secret.empty())
    return keys.secret.empty() ? half_a_key("access_key_id", "secret_access_key")
                               : half_a_key("secret_access_key", "access_key_id");
  for (std::size_t i = 0; i < kKeyNames.size() && keys.id.empty(); ++i) {
    const auto& [id, secret] = kKeyNames.at(i);
    keys.id = variable_of(environment, id);
    keys.secret = variable_of(environment, secret);
    if (keys.id.empty() != keys.secret.empty()) return keys.id.empty() ? half_a_key(secret, id) : half_a_key(id, secret);
    if (!keys.id.empty())
      keys.token = first_of(options.session_token, environment, {"VOLC_SESSION_TOKEN", "VOLCENGINE_SESSION_TOKEN"});
  }
  if (keys.id.empty())
    return Error(Code::kUnauthenticated, "cannot use the volcengine backend")
        .reason("there is no access key")
        .next(
            "set VOLC_ACCESS_KEY_ID and VOLC_SECRET_ACCESS_KEY, or both in VolcengineOptions; or aio_url for a container that "
            "runs");
  for (const std::string& key : {keys.id, keys.secret, keys.token}) {
    if (!consists_of(key, "_-.~+/="))
      return Error(Code::kInvalidArgument, "cannot use the Volcengine access key").reason("it holds letters that no key has");
  }
  return keys;
}

// The gateway of AgentSDK, a private convention: it sends id and secret as headers, unsigned, to whatever is named.
bool names_a_legacy_gateway(const Environment& environment) { return !variable_of(environment, "VOLCENGINE_ENDPOINT").empty(); }

Result<std::string> find_function(const VolcengineOptions& options, const Environment& environment) {
  std::string id = first_of(options.function_id, environment, {"SANDBOX_APP_ID", "VEFAAS_FUNCTION_ID"});
  if (id.empty() && names_a_legacy_gateway(environment))
    return Error(Code::kUnimplemented, "cannot use the gateway of VOLCENGINE_ENDPOINT")
        .reason(
            "it is for AgentSDK's computer_* tools, which no service of Volcengine is known to have, and it is sent the secret key")
        .next("set SANDBOX_APP_ID to the sandbox application's id, and SANDBOX_ENDPOINT to its address");
  if (id.empty())
    return Error(Code::kFailedPrecondition, "cannot use the volcengine backend")
        .reason("there is no sandbox application")
        .next("set SANDBOX_APP_ID, or function_id of VolcengineOptions, to its id");
  if (!is_id(id)) return Error(Code::kInvalidArgument, format("no sandbox application has the id {}", belljar::quoted(id)));
  return id;
}

}  // namespace

bool is_id(std::string_view text) noexcept { return !text.empty() && text.size() <= 128 && consists_of(text, "-_"); }

std::string authority_of(const std::string& url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string::npos) return {};
  return lower_case(url.substr(begin + 3, url.find_first_of("/?#", begin + 3) - begin - 3));
}

Result<std::string> check_url(std::string_view what, std::string url) {
  while (url.ends_with('/')) url.pop_back();
  BELLJAR_CHECK(remote::check_url(what, url, Query::kRefused));
  return url;
}

std::string Address::url_of(std::string_view service) const {
  if (!api_url.empty()) return api_url;
  if (hosts == VolcengineHosts::kCentral) return "https://open.volcengineapi.com";
  return format("https://{}.{}.{}", service, region,
                hosts == VolcengineHosts::kRegional ? "volcengineapi.com" : "volcengine-api.com");
}

std::vector<std::string> Address::secrets() const {
  std::vector<std::string> all = {keys.secret, keys.token, keys.id, authorization, aio_key};
  // A service may repeat the key without the word before it.
  if (const std::size_t space = authorization.rfind(' '); space != std::string::npos)
    all.push_back(authorization.substr(space + 1));
  return all;
}

Result<Address> find_address(const VolcengineOptions& options, const std::map<std::string, std::string>& environment) {
  Address address;
  address.hosts = options.hosts;
  address.authorization = first_of(options.gateway_authorization, environment, {"SANDBOX_AUTHORIZATION"});
  address.aio_key = first_of(options.aio_api_key, environment, {"SANDBOX_API_KEY"});
  if (!is_header(address.authorization) || !is_header(address.aio_key))
    return Error(Code::kInvalidArgument, "cannot use the key of the sandbox's endpoint")
        .reason("it holds letters that no header has");
  if (!options.aio_url.empty()) {
    address.endpoint = BELLJAR_TRY(check_url("the address of the AIO container", options.aio_url));
    return address;
  }
  address.keys = BELLJAR_TRY(find_keys(options, environment));
  address.function_id = BELLJAR_TRY(find_function(options, environment));
  address.region = first_of(options.region, environment, {"VEFAAS_REGION", "VOLC_REGION", "VOLCENGINE_REGION"});
  if (address.region.empty()) address.region = "cn-beijing";
  if (!is_id(address.region))
    return Error(Code::kInvalidArgument, format("cannot use the region {}", belljar::quoted(address.region)))
        .next("name one: cn-beijing");
  address.api_url = first_of(options.api_url, environment, {"VOLCENGINE_API_URL"});
  if (!address.api_url.empty()) {
    address.api_url = BELLJAR_TRY(check_url("the address of Volcengine (VOLCENGINE_API_URL)", std::move(address.api_url)));
    if (!address.api_url.ends_with("://" + authority_of(address.api_url)))
      return Error(Code::kInvalidArgument, format("cannot use the address of Volcengine {}", belljar::quoted(address.api_url)))
          .reason("what is signed has the path / and a host in small letters")
          .next("use https://host");
  }
  address.endpoint = first_of(options.endpoint, environment, {"SANDBOX_ENDPOINT"});
  if (!address.endpoint.empty())
    address.endpoint = BELLJAR_TRY(check_url("the address of the sandboxes (SANDBOX_ENDPOINT)", std::move(address.endpoint)));
  return address;
}

}  // namespace belljar::remote::volcengine
