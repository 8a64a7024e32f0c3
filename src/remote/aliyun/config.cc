// A map of configuration, as agent frameworks have it, read into options and a policy.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/aliyun.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "policy/layer.h"
#include "policy/merge.h"
#include "policy/parse.h"

namespace belljar {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPolicyKeys[] = {"timeout", "memory_limit", "cpu_limit", "disk_limit", "network_mode"};

Error unknown(const std::string& key) {
  return Error(Code::kInvalidArgument, format("there is no Aliyun key {}", belljar::quoted(key)))
      .next(
          "use region, access_key, secret_key, security_token, endpoint, image, workdir, timeout, memory_limit, disk_limit, "
          "cpu_limit or network_mode; AliyunOptions has the rest");
}

// A number as the policy files have it, where it is one: 1024 is megabytes there, "1024" is not.
Json as_value(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_number() ? value : Json(text);
}

void set_option(const std::string& key, const std::string& text, bool gateway, AliyunOptions& options, SandboxConfig& config) {
  if (key == "region") options.region = text;
  if (key == "access_key") options.access_key = text;
  if (key == "secret_key") options.secret_key = text;
  if (key == "security_token") options.security_token = text;
  if (key == "image") options.image_id = text;
  if (key == "workdir") config.workspace = text;
  if (key == "endpoint") (gateway ? options.mcp_endpoint : options.endpoint) = text;
}

}  // namespace

Result<SandboxConfig> aliyun_config_from(const std::map<std::string, std::string>& keys, AliyunOptions options) {
  constexpr std::string_view kOptionKeys[] = {"region",   "access_key", "secret_key", "security_token",
                                              "endpoint", "image",      "workdir"};
  SandboxConfig config;
  // An endpoint that is given access keys is a gateway's: AgentBay takes none.
  const bool gateway = keys.contains("access_key") || keys.contains("secret_key") || options.route == AliyunRoute::kGateway;
  Json rules = Json::object();
  for (const auto& [key, text] : keys) {
    if (std::ranges::find(kPolicyKeys, key) != std::end(kPolicyKeys)) rules[key] = as_value(text);
    else if (std::ranges::find(kOptionKeys, key) != std::end(kOptionKeys)) set_option(key, text, gateway, options, config);
    else return unknown(key);
  }
  if (!rules.empty()) {
    const std::vector<policy::Layer> layers = {BELLJAR_TRY(policy::parse_json(rules.dump(), "the Aliyun configuration", "user"))};
    config.policy = BELLJAR_TRY(policy::merge(layers, {.workspace = config.workspace})).policy;
  }
  config.backend = "aliyun";
  config.factory = aliyun_backend(std::move(options));
  return config;
}

}  // namespace belljar
