// The keys that configuration files use for this cloud, and what stands for those that belong elsewhere.
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "belljar/volcengine.h"
#include "remote/volcengine/address.h"

namespace belljar {
namespace remote::volcengine {
namespace {

struct ForeignKey {
  std::string_view key, use;
};
constexpr std::array kElsewhere = {
    ForeignKey{"access_key", "use access_key_id (access_key is Aliyun's word for it)"},
    ForeignKey{"secret_key", "use secret_access_key (secret_key is Aliyun's word for it)"},
    ForeignKey{"memory_limit", "use limits.memory of the policy"},
    ForeignKey{"cpu_limit", "use limits.cpus of the policy"},
    ForeignKey{"network_mode", "use network.mode of the policy"},
    ForeignKey{"disk_limit", "the service has no such limit; use limits.disk with a backend of this machine"},
    ForeignKey{"idle_timeout", "the service counts from the start, used or not; use timeout"},
    ForeignKey{"work_dir", "use workdir"},
    ForeignKey{"use_docker", "use the container backend"},
};

// The value is not repeated: it may be a key under a wrong name.
Error wrong(std::string_view key, std::string next) {
  return Error(Code::kInvalidArgument, format("cannot use the Volcengine setting {}", quoted(key))).next(std::move(next));
}

Error unknown(std::string_view key) {
  for (const ForeignKey& other : kElsewhere) {
    if (other.key == key) return wrong(key, std::string(other.use));
  }
  return wrong(key,
               "the settings are region, access_key_id, secret_access_key, session_token, function_id, endpoint, image, workdir, "
               "instance_type, timeout and auto_destroy");
}

}  // namespace

Result<void> set_option(VolcengineOptions& options, const std::string& key, const std::string& value) {
  std::string* const text = key == "region"              ? &options.region
                            : key == "access_key_id"     ? &options.access_key_id
                            : key == "secret_access_key" ? &options.secret_access_key
                            : key == "session_token"     ? &options.session_token
                            : key == "function_id"       ? &options.function_id
                            : key == "endpoint"          ? &options.endpoint
                            : key == "image"             ? &options.image
                                                         : nullptr;
  if (text != nullptr) {
    *text = value;
  } else if (key == "instance_type") {
    if (value != "standard" && value != "performance") return wrong(key, "use standard or performance");
    options.instance_type = value == "standard" ? VolcengineInstance::kStandard : VolcengineInstance::kPerformance;
  } else if (key == "timeout") {
    const auto lifetime = parse_duration(value);
    if (!lifetime) return wrong(key, "use seconds, or a time such as 10m");
    options.lifetime = *lifetime;
  } else if (key == "auto_destroy") {
    if (value != "true" && value != "false") return wrong(key, "use true or false");
    options.on_stop = value == "true" ? CloudOnStop::kKill : CloudOnStop::kLeave;
  } else {
    return unknown(key);
  }
  return {};
}

}  // namespace remote::volcengine

Result<SandboxConfig> volcengine_config_from(const std::map<std::string, std::string>& keys, VolcengineOptions options) {
  SandboxConfig config;
  config.backend = "volcengine";
  for (const auto& [key, value] : keys) {
    if (key == "workdir") config.workspace = value;
    else BELLJAR_CHECK(remote::volcengine::set_option(options, key, value));
  }
  config.factory = volcengine_backend(std::move(options));
  return config;
}

}  // namespace belljar
