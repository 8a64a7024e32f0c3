#include "remote/aliyun/make.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/aliyun.h"
#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "http/client.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/gateway.h"
#include "remote/aliyun/rpc.h"
#include "remote/aliyun/service.h"
#include "remote/environment.h"
#include "remote/shell/machine.h"
#include "remote/shell/sandbox.h"

namespace belljar {
namespace {

using remote::aliyun::find_route;
using remote::shell::ShellOptions;
using remote::shell::ShellSandbox;

Result<std::shared_ptr<CloudSandbox>> make_aliyun(const SandboxConfig& config, const AliyunOptions& options) {
  const auto variables = remote::caller_variables(config);
  auto service = BELLJAR_TRY(remote::aliyun::make_service(options, variables));
  ShellOptions shell{.type = "AliyunOptions", .sandbox_id = options.session_id, .lifetime = {}, .on_stop = options.on_stop};
  shell.request_timeout = options.request_timeout;
  // Behind a gateway is nothing that we made.
  if (BELLJAR_TRY(find_route(options, variables)) == AliyunRoute::kGateway) shell.on_stop = CloudOnStop::kLeave;
  return ShellSandbox::make(std::move(service), config, shell);
}

Result<std::shared_ptr<CloudSandbox>> make_started(const SandboxConfig& config, const AliyunOptions& options) {
  std::shared_ptr<CloudSandbox> sandbox = BELLJAR_TRY(make_aliyun(config, options));
  BELLJAR_CHECK(sandbox->start());
  return sandbox;
}

}  // namespace

Result<std::shared_ptr<CloudSandbox>> AliyunSandbox::create(AliyunOptions options, const SandboxConfig& config) {
  options.session_id.clear();
  return make_started(config, options);
}

Result<std::shared_ptr<CloudSandbox>> AliyunSandbox::connect(const std::string& session_id, AliyunOptions options,
                                                             const SandboxConfig& config) {
  if (session_id.empty()) return Error(Code::kInvalidArgument, "cannot connect to a session without an id");
  options.session_id = session_id;
  return make_started(config, options);
}

SandboxFactory aliyun_backend(AliyunOptions options) {
  return [options = std::move(options)](const SandboxConfig& config) -> Result<std::shared_ptr<Sandbox>> {
    return std::shared_ptr<Sandbox>(BELLJAR_TRY(make_aliyun(config, options)));
  };
}

}  // namespace belljar

namespace belljar::remote::aliyun {
namespace {

Error not_for(std::string_view what, std::string_view route, std::string next) {
  return Error(Code::kInvalidArgument, format("{} takes no {}", route, what)).next(std::move(next));
}

Result<void> check_gateway(const AliyunOptions& options) {
  const AliyunOptions plain;
  const auto refuse = [](std::string_view what) {
    return not_for(what, "a gateway", "drop it, or use AgentBay: what is behind an MCP endpoint is its owner's choice");
  };
  if (!options.api_key.empty()) return refuse("API key");
  if (!options.region.empty()) return refuse("region");
  if (!options.endpoint.empty()) return refuse("endpoint of AgentBay");
  if (options.image_id != plain.image_id) return refuse("image");
  if (options.idle_release != plain.idle_release) return refuse("idle release");
  if (!options.labels.empty()) return refuse("labels");
  if (!options.policy_id.empty() || !options.network_id.empty()) return refuse("policy or network of the account");
  if (!options.contexts.empty()) return refuse("contexts");
  if (!options.session_id.empty()) return refuse("session");
  if (options.on_stop && *options.on_stop != CloudOnStop::kLeave) return refuse("on_stop but kLeave");
  if (options.request_timeout.count() <= 0) return Error(Code::kInvalidArgument, "the request timeout must be positive");
  return {};
}

Result<void> check_agentbay(const AliyunOptions& options) {
  if (!options.mcp_endpoint.empty()) return not_for("MCP endpoint", "AgentBay", "drop it, or set route to the gateway");
  if (!options.access_key.empty() || !options.secret_key.empty() || !options.security_token.empty())
    return not_for("access keys", "AgentBay",
                   "use an API key (AGENTBAY_API_KEY); access keys are for a gateway (ALIYUN_MCP_ENDPOINT)");
  return check_options(options);
}

}  // namespace

Result<std::shared_ptr<shell::Service>> make_service(const AliyunOptions& options, const Variables& environment) {
  if (BELLJAR_TRY(find_route(options, environment)) == AliyunRoute::kGateway) {
    GatewayAddress address = BELLJAR_TRY(find_gateway(options, environment));
    BELLJAR_CHECK(check_gateway(options));
    return std::make_shared<Gateway>(GatewayTools({}, std::move(address)), options.request_timeout);
  }
  Address address = BELLJAR_TRY(find_address(options, environment));
  BELLJAR_CHECK(check_agentbay(options));
  return std::make_shared<AgentBay>(Rpc({}, std::move(address), options.request_timeout), options);
}

}  // namespace belljar::remote::aliyun
