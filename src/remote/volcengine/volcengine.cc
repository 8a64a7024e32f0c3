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

using remote::shell::ShellOptions;
using remote::shell::ShellSandbox;
namespace volcengine = remote::volcengine;

// Keys are looked for by the first call that needs one, so that a sandbox can be made, and told of, without them.
class Late final : public remote::shell::Service {
 public:
  using Made = Result<std::shared_ptr<const Service>>;
  Late(VolcengineOptions options, SandboxConfig config) : options_(std::move(options)), config_(std::move(config)) {}

  std::string_view name() const noexcept override { return "volcengine"; }
  std::string_view workspace() const noexcept override { return volcengine::kWorkspace; }
  std::string host() const override {
    const Made made = make();
    return made ? (*made)->host() : "";
  }
  Result<void> check_served(const Policy& policy) const override { return BELLJAR_TRY(make())->check_served(policy); }
  remote::shell::Holds holds(const Policy& policy, std::string_view clause) const override {
    const Made made = make();
    return made ? (*made)->holds(policy, clause) : remote::shell::Holds{};
  }
  Isolation isolation() const override {
    const Made made = make();
    return made ? (*made)->isolation() : Isolation::kNone;
  }
  Result<std::shared_ptr<const remote::shell::Machine>> create(const Policy& policy, const CancelToken& cancel) const override {
    return BELLJAR_TRY(make())->create(policy, cancel);
  }
  Result<std::shared_ptr<const remote::shell::Machine>> connect(const std::string& id, const CancelToken& cancel) const override {
    return BELLJAR_TRY(make())->connect(id, cancel);
  }
  Result<bool> kill(const std::string& id, const CancelToken& cancel) const override {
    return BELLJAR_TRY(make())->kill(id, cancel);
  }
  Result<void> pause(const std::string& id, const CancelToken& cancel) const override {
    return BELLJAR_TRY(make())->pause(id, cancel);
  }
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const override {
    return BELLJAR_TRY(make())->set_timeout(id, lifetime);
  }

 private:
  Made make() const {
    volcengine::Address address = BELLJAR_TRY(volcengine::find_address(options_, remote::caller_variables(config_)));
    if (!options_.aio_url.empty())
      return std::shared_ptr<const Service>(
          std::make_shared<volcengine::AioService>(http_, std::move(address), options_.request_timeout));
    volcengine::Control control(http_, std::move(address), options_.request_timeout);
    return std::shared_ptr<const Service>(
        std::make_shared<volcengine::VefaasService>(http_, std::move(control), options_, config_.policy));
  }

  http::Client http_;
  VolcengineOptions options_;
  SandboxConfig config_;
};

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
  return ShellSandbox::make(std::make_shared<Late>(options, config), config, shell);
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
