// Sandboxes of Volcengine's function service (veFaaS), or of any AIO container. A library of its own, belljar::volcengine (needs
// libcurl).
//
//   auto sandbox = BELLJAR_TRY(VolcengineSandbox::create());   // started; keys and application from the environment; ten minutes
//   ExecResult result = BELLJAR_TRY(sandbox->exec("make test"));
//
// Or in place of any other backend, in one line:
//
//   config.factory = volcengine_backend();
//   auto sandbox = BELLJAR_TRY(make_sandbox(config));
//
// Nothing of this machine is there: `config.workspace` names a directory of the sandbox (empty: /home/gem), files go there by
// write_file, and of the environment only what the policy sets, includes or passes by name. docs/design/volcengine.md says which
// clause of a policy is held by what, and what is refused.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "belljar/cloud.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"

namespace belljar {

enum class VolcengineInstance { kDefault, kStandard, kPerformance };  // the service's own; 1 CPU, 2 GiB; 4 CPUs, 8 GiB
// Which of Volcengine's hosts is asked: open.volcengineapi.com; SERVICE.REGION.volcengineapi.com;
// SERVICE.REGION.volcengine-api.com, with IPv6.
enum class VolcengineHosts { kCentral, kRegional, kDualStack };

struct VolcengineOptions {
  // Unset ones are taken from the caller's environment, where any of the names in use will do; id and secret always together:
  // VOLC_ACCESS_KEY_ID and VOLC_SECRET_ACCESS_KEY, VOLC_ACCESS_KEY and VOLC_SECRET_KEY, VOLC_ACCESSKEY and VOLC_SECRETKEY,
  // VOLCENGINE_ACCESS_KEY and VOLCENGINE_SECRET_KEY. The token of a temporary key: VOLC_SESSION_TOKEN or VOLCENGINE_SESSION_TOKEN.
  std::string access_key_id, secret_access_key, session_token;
  std::string region;       // VEFAAS_REGION, VOLC_REGION, VOLCENGINE_REGION; "cn-beijing"
  std::string function_id;  // the sandbox application: SANDBOX_APP_ID, VEFAAS_FUNCTION_ID
  // Where its sandboxes answer: SANDBOX_ENDPOINT; else the service is asked (ListTriggers, ListRoutes). https only, but for
  // addresses of this machine.
  std::string endpoint;
  std::string gateway_authorization;  // the Authorization header that the endpoint wants, whole: SANDBOX_AUTHORIZATION
  std::string aio_api_key;            // SANDBOX_API_KEY, where the AIO server was given one
  // An AIO container that runs already, on this machine or elsewhere: no account, no key, no application. It is left as it is, and
  // of the policy nothing but the timeouts holds.
  std::string aio_url;
  VolcengineHosts hosts = VolcengineHosts::kCentral;
  std::string api_url;  // one address instead of `hosts`: VOLCENGINE_API_URL

  // policy.limits.cpus and memory win over it.
  VolcengineInstance instance_type = VolcengineInstance::kDefault;
  std::string image;  // of the sandbox, instead of the application's
  // From start() to its end, used or not; three minutes to a day, which is what the service takes. set_timeout() moves the end.
  std::chrono::milliseconds lifetime = std::chrono::minutes(10);
  std::string sandbox_id;                       // an existing one to connect to, instead of a new one
  std::map<std::string, std::string> metadata;  // beside made_by and session, by which what was left over is found
  std::map<std::string, std::string> envs;      // of the whole sandbox
  std::optional<CloudOnStop> on_stop;           // unset: kKill, and kLeave for one that was connected to and for `aio_url`
  std::chrono::milliseconds request_timeout = std::chrono::seconds(60);  // for one answer of the service
  // A new sandbox is asked for its state this often, and is given this long.
  std::chrono::milliseconds ready_interval = std::chrono::seconds(2), ready_within = std::chrono::minutes(2);
};

struct VolcengineSandbox {
  // Creates one and starts it. Errors: kUnauthenticated, no key or a wrong one; kNotFound, no such application; kUnavailable;
  // kResourceExhausted, the account's limits; else as make_sandbox() and start().
  static Result<std::shared_ptr<CloudSandbox>> create(std::chrono::milliseconds lifetime = std::chrono::minutes(10),
                                                      VolcengineOptions options = {}, const SandboxConfig& config = {});
  // To one that exists, running or paused. kFailedPrecondition: it may do more than the policy says (network, memory, CPUs).
  static Result<std::shared_ptr<CloudSandbox>> connect(const std::string& sandbox_id, VolcengineOptions options = {},
                                                       const SandboxConfig& config = {});
};

SandboxFactory volcengine_backend(VolcengineOptions options = {});

// What a map of configuration says: region, access_key_id, secret_access_key, instance_type (standard, performance), timeout (of
// the sandbox: seconds, or "10m"), auto_destroy (true, false), workdir; and session_token, function_id, endpoint, image. `options`
// has what the map has not. Errors: kInvalidArgument, any other key, by name and with what to use instead; a value that is none.
Result<SandboxConfig> volcengine_config_from(const std::map<std::string, std::string>& keys, VolcengineOptions options = {});

}  // namespace belljar
