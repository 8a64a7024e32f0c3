// A map of configuration, as agent frameworks have it, read into options and a policy.
#include <algorithm>
#include <chrono>
#include <iterator>
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
#include "belljar/units.h"
#include "policy/layer.h"
#include "policy/merge.h"
#include "policy/parse.h"

namespace belljar {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPolicyKeys[] = {"timeout", "memory_limit", "cpu_limit", "disk_limit", "network_mode"};

// What the document has beside them.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"cpu_request", "the service promises no share of a processor: leave it out, or use a backend of this machine"},
    {"memory_request", "the service keeps no memory free: leave it out, or use a backend of this machine"},
};

Error unknown(const std::string& key) {
  const auto other = std::ranges::find(kElsewhere, key, [](const auto& row) { return row.first; });
  if (other != std::end(kElsewhere))
    return Error(Code::kInvalidArgument, format("cannot use the Aliyun key {}", belljar::quoted(key)))
        .next(std::string(other->second));
  return Error(Code::kInvalidArgument, format("there is no Aliyun key {}", belljar::quoted(key)))
      .next(
          "use region, access_key, secret_key, security_token, endpoint, image, workdir, timeout, idle_timeout, memory_limit, "
          "disk_limit, cpu_limit or network_mode; AliyunOptions has the rest");
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

Result<std::chrono::milliseconds> idle_time(const std::string& text) {
  const auto time = parse_duration(text);
  if (time) return *time;
  return Error(Code::kInvalidArgument, "cannot use the Aliyun key `idle_timeout`").next("use seconds, or a time such as 10m");
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
    else if (key == "idle_timeout") options.idle_release = BELLJAR_TRY(idle_time(text));
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
