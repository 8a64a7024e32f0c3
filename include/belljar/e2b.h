// Sandboxes of a cloud that speaks E2B's API: E2B itself, or what is compatible with it. A library of its own, belljar::e2b (needs
// libcurl).
//
//   auto sandbox = BELLJAR_TRY(E2bSandbox::create());          // started; $E2B_API_KEY; ten minutes
//   ExecResult result = BELLJAR_TRY(sandbox->exec("make test"));
//
// Or in place of any other backend, in one line:
//
//   config.factory = e2b_backend();
//   auto sandbox = BELLJAR_TRY(make_sandbox(config));
//
// Nothing of this machine is there: `config.workspace` names a directory of the sandbox (empty: /home/user), files go there by
// write_file, and of the environment only what the policy sets, includes or passes by name. docs/design/e2b.md says which clause of
// a policy is held by what, and what is refused.
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

using E2bOnStop = CloudOnStop;
enum class E2bAuth { kApiKey, kBearer };  // X-API-Key, or Authorization: Bearer, as some compatible services want it

struct E2bOptions {
  // Unset ones are taken from E2B_API_KEY, E2B_DOMAIN, E2B_API_URL and E2B_SANDBOX_URL of the caller's environment. https only, but
  // for addresses of this machine.
  std::string api_key;
  std::string domain;       // "e2b.app"
  std::string api_url;      // https://api.DOMAIN
  std::string sandbox_url;  // one address for all sandboxes; by the domain otherwise
  std::string template_id = "base";
  // From start() to its end, used or not; set_timeout() moves the end.
  std::chrono::milliseconds lifetime = std::chrono::minutes(10);
  std::string sandbox_id;                       // an existing one to connect to, instead of a new one
  std::string user;                             // of commands and files; empty: the template's own
  std::map<std::string, std::string> metadata;  // `belljar` is ours: by it a sandbox is found whose making was not answered
  // For services that are compatible: how the key is sent, further headers of the control plane, and the shortest lifetime that it
  // takes (shorter ones are made that long). It is asked at /sandboxes, and where it does not know that, at /v2/sandboxes.
  E2bAuth auth = E2bAuth::kApiKey;
  std::map<std::string, std::string> headers;
  std::chrono::milliseconds least_lifetime{0};
  std::optional<E2bOnStop> on_stop;                                      // unset: kKill, and kLeave for one that was connected to
  std::chrono::milliseconds request_timeout = std::chrono::seconds(60);  // for one answer of the service
};

class E2bSandbox : public CloudSandbox {
 public:
  // Creates one and starts it. Errors: kUnauthenticated, no key or a wrong one; kNotFound, no such template; kUnavailable;
  // kResourceExhausted, the account's limits; else as make_sandbox() and start().
  static Result<std::shared_ptr<E2bSandbox>> create(std::chrono::milliseconds lifetime = std::chrono::minutes(10),
                                                    E2bOptions options = {}, const SandboxConfig& config = {});
  // To one that exists, running or paused; its time is made longer to `lifetime` where it is shorter.
  static Result<std::shared_ptr<E2bSandbox>> connect(const std::string& sandbox_id, E2bOptions options = {},
                                                     const SandboxConfig& config = {});
};

SandboxFactory e2b_backend(E2bOptions options = {});

}  // namespace belljar
