// Two services share one backend, and the keys decide which is meant: an API key is AgentBay's, an MCP endpoint
// is a gateway's. Where both are set nothing is guessed, for a key that goes to the wrong service is a key
// given away.
#include "remote/aliyun/address.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/aliyun.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "remote/address.h"

namespace belljar::remote::aliyun {
namespace {

// Keys work in the region that made them only.
constexpr std::string_view kChina = "wuyingai.cn-shanghai.aliyuncs.com";
constexpr std::string_view kInternational = "wuyingai.ap-southeast-1.aliyuncs.com";

std::string api_key_of(const AliyunOptions& options, const Variables& environment) {
  return first_of(options.api_key, environment, {"AGENTBAY_API_KEY"});
}

std::string gateway_of(const AliyunOptions& options, const Variables& environment) {
  return first_of(options.mcp_endpoint, environment, {"ALIYUN_MCP_ENDPOINT"});
}

// What a header or a form takes as it is. No quoting would make a key of anything else.
Result<void> check_secret(std::string_view what, std::string_view secret) {
  const bool plain = std::ranges::all_of(secret, [](char letter) { return letter > ' ' && letter < '\x7f'; });
  if (plain) return {};
  return Error(Code::kInvalidArgument, format("cannot use {}", what)).reason("it holds letters that no key has");
}

bool is_region(std::string_view text) noexcept {
  return text.size() <= 64 && std::ranges::all_of(text, [](char letter) {
           return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || letter == '-';
         });
}

}  // namespace

Result<AliyunRoute> find_route(const AliyunOptions& options, const Variables& environment) {
  if (options.route) return *options.route;
  const bool key = !api_key_of(options, environment).empty();
  const bool gateway = !gateway_of(options, environment).empty();
  if (key && gateway)
    return Error(Code::kInvalidArgument, "cannot choose between AgentBay and a gateway")
        .reason("both an API key of AgentBay and an MCP endpoint are set")
        .next("drop one, or set route of AliyunOptions (--aliyun-route)");
  if (key) return AliyunRoute::kAgentBay;
  if (gateway) return AliyunRoute::kGateway;
  const bool access_key = !first_of(options.access_key, environment, {"ALIYUN_ACCESS_KEY_ID"}).empty();
  return Error(Code::kUnauthenticated, "cannot use the aliyun backend")
      .reason(access_key ? "AgentBay takes no access keys, and no MCP endpoint that does is set" : "there is no API key")
      .next("set AGENTBAY_API_KEY, or ALIYUN_MCP_ENDPOINT for a gateway that takes access keys");
}

Result<Address> find_address(const AliyunOptions& options, const Variables& environment) {
  Address address{.api_key = api_key_of(options, environment),
                  .url = first_of(options.endpoint, environment, {"AGENTBAY_ENDPOINT"}),
                  .region = first_of(options.region, environment, {"AGENTBAY_REGION_ID", "ALIYUN_REGION"})};
  if (address.api_key.empty())
    return Error(Code::kUnauthenticated, "cannot use the aliyun backend")
        .reason("there is no API key")
        .next("set AGENTBAY_API_KEY, or api_key of AliyunOptions");
  BELLJAR_CHECK(check_secret("the AgentBay API key", address.api_key));
  if (!is_region(address.region))
    return Error(Code::kInvalidArgument, format("cannot use the region {}", belljar::quoted(address.region)))
        .next("name one: cn-shanghai, ap-southeast-1");
  const bool abroad = !address.region.empty() && !address.region.starts_with("cn-");
  if (address.url.empty()) address.url = std::string(abroad ? kInternational : kChina);
  if (address.url.find("://") == std::string::npos) address.url.insert(0, "https://");
  while (address.url.ends_with('/')) address.url.pop_back();
  BELLJAR_CHECK(check_url("the AgentBay address (AGENTBAY_ENDPOINT)", address.url));
  return address;
}

Result<GatewayAddress> find_gateway(const AliyunOptions& options, const Variables& environment) {
  GatewayAddress address{.url = gateway_of(options, environment),
                         .key_id = first_of(options.access_key, environment, {"ALIYUN_ACCESS_KEY_ID"}),
                         .key_secret = first_of(options.secret_key, environment, {"ALIYUN_ACCESS_KEY_SECRET"}),
                         .token = first_of(options.security_token, environment, {"ALIYUN_SECURITY_TOKEN"})};
  const std::string what = "cannot use the aliyun backend";
  if (address.url.empty())
    return Error(Code::kFailedPrecondition, what)
        .reason("MCP endpoint is required")
        .next("set ALIYUN_MCP_ENDPOINT, or mcp_endpoint of AliyunOptions");
  BELLJAR_CHECK(check_url("the MCP endpoint (ALIYUN_MCP_ENDPOINT)", address.url));
  if (address.key_id.empty() || address.key_secret.empty())
    return Error(Code::kUnauthenticated, what)
        .reason("access credentials are required")
        .next("set ALIYUN_ACCESS_KEY_ID and ALIYUN_ACCESS_KEY_SECRET, or access_key and secret_key of AliyunOptions");
  for (const std::string* secret : {&address.key_id, &address.key_secret, &address.token})
    BELLJAR_CHECK(check_secret("the Aliyun access key", *secret));
  return address;
}

}  // namespace belljar::remote::aliyun
