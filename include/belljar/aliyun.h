// Sandboxes of Aliyun: sessions of Wuying AgentBay, or a private gateway that serves the same tools to access keys. A library of
// its own, belljar::aliyun (needs libcurl).
//
//   SandboxConfig config;
//   config.policy.network.mode = NetMode::kHost;                                // AgentBay cannot be told to have none
//   auto sandbox = BELLJAR_TRY(AliyunSandbox::create({}, config));              // started; $AGENTBAY_API_KEY
//   ExecResult result = BELLJAR_TRY(sandbox->exec("make test"));
//
// Or in place of any other backend, in one line:
//
//   config.factory = aliyun_backend();
//   auto sandbox = BELLJAR_TRY(make_sandbox(config));
//
// Nothing of this machine is there: `config.workspace` names a directory of the sandbox (empty: /home/wuying, or /workspace of a
// code image and of a gateway), files go there by write_file, and of the environment only what the policy sets, includes or passes
// by name. docs/design/aliyun.md says which clause of a policy is held by what, and what is refused.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "belljar/cloud.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"

namespace belljar {

enum class AliyunRoute {
  kAgentBay,  // the service: sessions, an API key
  kGateway,   // tools/call at mcp_endpoint: one machine that is there already, access keys
};

// A persistent context (storage of the account) that a new session finds at `path`.
struct AliyunContext {
  std::string context_id, path;
  std::string sync_policy;  // JSON, as the service defines it; empty: its own default
  bool operator==(const AliyunContext&) const = default;
};

struct AliyunOptions {
  // Unset: the gateway where mcp_endpoint is known and no API key is. Both known is an error that asks for this one.
  std::optional<AliyunRoute> route;

  // AgentBay. Unset ones are taken from AGENTBAY_API_KEY, AGENTBAY_ENDPOINT, and AGENTBAY_REGION_ID or ALIYUN_REGION of the
  // caller's environment. https only, but for addresses of this machine.
  std::string api_key;
  std::string region;    // "cn-..." asks the service in China, another the international one; sent as the login region
  std::string endpoint;  // a host or a URL, instead of the region's: wuyingai.cn-shanghai.aliyuncs.com
  std::string image_id = "linux_latest";
  // The service ends a session that was not used for this long; one minute at least. A command that runs is a use.
  std::chrono::milliseconds idle_release = std::chrono::minutes(10);
  std::map<std::string, std::string> labels;
  std::string policy_id, network_id;  // a policy and a network of the account, by id
  std::vector<AliyunContext> contexts;
  std::string session_id;                                               // an existing one to connect to, instead of a new one
  std::optional<CloudOnStop> on_stop;                                   // unset: kKill; kLeave for what was there already
  std::chrono::milliseconds settle_timeout = std::chrono::minutes(10);  // for contexts to load, a session to pause, resume, end

  // The gateway. Unset ones are taken from ALIYUN_MCP_ENDPOINT, ALIYUN_ACCESS_KEY_ID, ALIYUN_ACCESS_KEY_SECRET and
  // ALIYUN_SECURITY_TOKEN.
  std::string mcp_endpoint, access_key, secret_key, security_token;

  std::chrono::milliseconds request_timeout = std::chrono::seconds(60);  // for one answer, beyond what a command may last
};

struct AliyunSandbox {
  // Creates one and starts it. Its set_timeout() takes idle_release only, and begins it anew: the service knows no other.
  // Errors: kUnauthenticated, no key or a wrong one; kNotFound, no such image; kUnavailable; kResourceExhausted, the account's
  // limits; else as make_sandbox() and start().
  static Result<std::shared_ptr<CloudSandbox>> create(AliyunOptions options = {}, const SandboxConfig& config = {});
  // To one that exists, running or paused.
  static Result<std::shared_ptr<CloudSandbox>> connect(const std::string& session_id, AliyunOptions options = {},
                                                       const SandboxConfig& config = {});
};

SandboxFactory aliyun_backend(AliyunOptions options = {});

// What a map of configuration says: region, access_key, secret_key, security_token, endpoint, image, workdir, idle_timeout
// (seconds; idle_release); timeout (seconds), memory_limit and disk_limit (megabytes), cpu_limit (cores), network_mode (full,
// restricted, none) as the policy files name them. `options` has what the map has not. Errors: kInvalidArgument, an unknown key or
// a value that is none.
Result<SandboxConfig> aliyun_config_from(const std::map<std::string, std::string>& keys, AliyunOptions options = {});

}  // namespace belljar
