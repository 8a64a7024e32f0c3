// What belljar/volcengine.h promises, made of the service here and the sandbox of remote/shell.
#include "belljar/volcengine.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "belljar/cancel.h"
#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "http/client.h"
#include "remote/environment.h"
#include "remote/shell/machine.h"
#include "remote/shell/sandbox.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/control.h"
#include "remote/volcengine/service.h"

namespace belljar {
namespace {

using remote::shell::Service;
using remote::shell::ShellOptions;
using remote::shell::ShellSandbox;
namespace volcengine = remote::volcengine;

Result<std::shared_ptr<const Service>> find_service(const http::Client& http, const VolcengineOptions& options,
                                                    const SandboxConfig& config) {
  volcengine::Address address = BELLJAR_TRY(volcengine::find_address(options, remote::caller_variables(config)));
  if (!options.aio_url.empty())
    return std::shared_ptr<const Service>(
        std::make_shared<volcengine::AioService>(http, std::move(address), options.request_timeout));
  volcengine::Control control(http, std::move(address), options.request_timeout);
  return std::shared_ptr<const Service>(
      std::make_shared<volcengine::VefaasService>(http, std::move(control), options, config.policy));
}

Error wrong_with_aio(std::string_view what, std::string next) {
  return Error(Code::kInvalidArgument, std::string("cannot use ") + std::string(what) + " together with aio_url")
      .reason("a container that runs already is neither made nor ended from here")
      .next(std::move(next));
}

Result<void> check(const VolcengineOptions& options) {
  if (options.ready_interval.count() <= 0 || options.ready_within.count() <= 0)
    return Error(Code::kInvalidArgument, "ready_interval and ready_within must be positive");
  if (options.aio_url.empty()) return volcengine::check_lifetime(options.lifetime);
  if (!options.sandbox_id.empty()) return wrong_with_aio("sandbox_id", "drop one of them");
  if (options.on_stop && options.on_stop != CloudOnStop::kLeave) return wrong_with_aio("on_stop kill or pause", "leave it alive");
  if (!options.image.empty()) return wrong_with_aio("image", "drop one of them");
  if (options.instance_type != VolcengineInstance::kDefault) return wrong_with_aio("instance_type", "drop one of them");
  if (!options.envs.empty() || !options.metadata.empty()) return wrong_with_aio("envs and metadata", "drop them");
  return {};
}

Result<std::shared_ptr<CloudSandbox>> make(const SandboxConfig& config, const VolcengineOptions& options) {
  BELLJAR_CHECK(check(options));
  // One that is there already; what was made here is given its whole life anew by every start.
  const bool contained = !options.aio_url.empty();
  ShellOptions shell{.type = "VolcengineOptions",
                     .sandbox_id = contained ? volcengine::authority_of(options.aio_url) : options.sandbox_id,
                     .lifetime = {},
                     .on_stop = options.on_stop,
                     .request_timeout = options.request_timeout};
  if (!contained && options.sandbox_id.empty()) shell.lifetime = options.lifetime;
  return ShellSandbox::make(
      "volcengine", volcengine::kWorkspace,
      [http = http::Client(), options, config] { return find_service(http, options, config); }, config, shell);
}

Result<std::shared_ptr<CloudSandbox>> started(const SandboxConfig& config, const VolcengineOptions& options) {
  auto sandbox = BELLJAR_TRY(make(config, options));
  BELLJAR_CHECK(sandbox->start());
  return sandbox;
}

}  // namespace

Result<std::shared_ptr<CloudSandbox>> VolcengineSandbox::create(std::chrono::milliseconds lifetime, VolcengineOptions options,
                                                                const SandboxConfig& config) {
  options.lifetime = lifetime;
  options.sandbox_id.clear();
  return started(config, options);
}

Result<std::shared_ptr<CloudSandbox>> VolcengineSandbox::connect(const std::string& sandbox_id, VolcengineOptions options,
                                                                 const SandboxConfig& config) {
  if (sandbox_id.empty()) return Error(Code::kInvalidArgument, "cannot connect to a sandbox without its id");
  options.sandbox_id = sandbox_id;
  return started(config, options);
}

SandboxFactory volcengine_backend(VolcengineOptions options) {
  return [options = std::move(options)](const SandboxConfig& config) -> Result<std::shared_ptr<Sandbox>> {
    return std::shared_ptr<Sandbox>(BELLJAR_TRY(make(config, options)));
  };
}

}  // namespace belljar
