// E2B as a cloud of ours (remote/cloud.h), and what belljar/e2b.h makes of it.
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "belljar/cancel.h"
#include "belljar/e2b.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "http/client.h"
#include "remote/cloud.h"
#include "remote/e2b/address.h"
#include "remote/e2b/control.h"
#include "remote/e2b/e2b_instance.h"
#include "remote/e2b/envd.h"
#include "remote/e2b/files.h"
#include "remote/environment.h"
#include "remote/paths.h"
#include "remote/report.h"
#include "remote/sandbox.h"
#include "runtime/json.h"

namespace belljar::remote::e2b {
namespace {

using Json = nlohmann::json;

class E2bCloudInstance final : public CloudInstance {
 public:
  E2bCloudInstance(Control control, std::string id, std::shared_ptr<E2bInstance> instance)
      : control_(std::move(control)), id_(std::move(id)), instance_(std::move(instance)) {}

  const std::string& id() const noexcept override { return id_; }
  Commands& commands() const noexcept override { return *instance_; }
  std::unique_ptr<Files> files(const CancelToken& end) const override { return std::make_unique<RemoteFiles>(instance_, end); }
  Result<void> settle() override { return RemoteFiles(instance_, {}).make_workspace(); }
  Error abandon(const Error& why) const override { return control_.abandon(id_, why); }
  void clear(const CancelToken& end) const override {
    (void)instance_->kill_marked(instance_->nonce() + "-", SIGKILL, std::chrono::seconds(10), end);
  }
  Result<void> pause(const CancelToken& end) const override {
    return control_.pause(id_, end).map([](bool) {});
  }
  Result<bool> kill(const CancelToken& end) const override { return control_.kill(id_, end); }
  Result<void> set_timeout(std::chrono::milliseconds lifetime) const override { return control_.set_timeout(id_, lifetime); }
  Result<void> health(const CancelToken& end) const override { return instance_->envd().health(end.fd()); }
  Result<std::uint64_t> count_processes(const CancelToken& end) const override {
    const Envd& envd = instance_->envd();
    const std::string reply = BELLJAR_TRY(envd.call("process.Process/List", "{}", kNoLook, envd.patience(), end.fd()));
    const Json json = Json::parse(reply, nullptr, false);
    if (!json.is_object() || !json.contains("processes") || !json["processes"].is_array()) return std::uint64_t{0};
    return std::uint64_t{json["processes"].size()};
  }

 private:
  const Control control_;
  const std::string id_;
  const std::shared_ptr<E2bInstance> instance_;
};

class E2bCloud final : public Cloud {
 public:
  explicit E2bCloud(E2bOptions options) : options_(std::move(options)) {}

  std::string_view name() const noexcept override { return "e2b"; }
  CloudTraits traits(const SandboxConfig& /*config*/) const override {
    return {.backend = {},
            .options = "E2bOptions",
            .image = "template",
            .host = {},
            .workspace = {},
            .isolation = Isolation::kVm,
            .clock = "this client: TERM, then KILL of the command's tree; the daemon kills exec's command later by itself",
            .holds = held};
  }
  Result<std::string> check(const SandboxConfig& config) const override {
    const auto url = http::parse_url(BELLJAR_TRY(address(config)).api_url);
    return url ? url->host : std::string();
  }
  Result<std::shared_ptr<CloudInstance>> enter(const SandboxConfig& config, const std::string& workspace, const std::string& before,
                                               const CancelToken& end) const override {
    Control control = BELLJAR_TRY(this->control(config));
    SandboxAccess access =
        BELLJAR_TRY(before.empty() ? create(control, config, end) : control.connect(before, options_.lifetime, end));
    std::string id = access.id;
    auto instance = std::make_shared<E2bInstance>(
        Envd(http_, std::move(access), control.address().api_key, options_.user, options_.request_timeout), workspace,
        random_hex(8));
    return std::shared_ptr<CloudInstance>(
        std::make_shared<E2bCloudInstance>(std::move(control), std::move(id), std::move(instance)));
  }
  Result<bool> kill(const SandboxConfig& config, const std::string& id) const override {
    return BELLJAR_TRY(control(config)).kill(id);
  }

 private:
  static ClauseEnforcement held(std::string_view clause) {
    if (clause != "network") return {};
    return {.enforced = Enforced::kPartial,
            .mechanism = "allow_internet_access = false, network.allowPublicTraffic = false",
            .detail = "the service holds both, and nothing here checks"};
  }
  Result<Address> address(const SandboxConfig& config) const { return find_address(options_, caller_variables(config)); }
  Result<Control> control(const SandboxConfig& config) const {
    return Control(http_, BELLJAR_TRY(address(config)), options_.request_timeout, options_.least_lifetime);
  }
  Result<SandboxAccess> create(const Control& control, const SandboxConfig& config, const CancelToken& end) const {
    return control.create({.template_id = options_.template_id,
                           .lifetime = options_.lifetime,
                           .metadata = options_.metadata,
                           .variables = {},
                           .internet = config.policy.network.mode != NetMode::kNone,
                           .cancel = end});
  }

  const E2bOptions options_;
  const http::Client http_;
};

Result<std::shared_ptr<E2bSandbox>> make(const SandboxConfig& config, const E2bOptions& options) {
  std::string workspace = BELLJAR_TRY(workspace_elsewhere(config.workspace, "/home/user"));
  if (runtime::to_utf8(workspace).replaced > 0)
    return Error(Code::kUnimplemented, format("cannot use workspace {}", belljar::quoted(workspace)))
        .reason("it is no UTF-8, and E2B takes names as JSON")
        .next("name another");
  BELLJAR_CHECK(check_lifetime(options.lifetime));
  BELLJAR_CHECK(check_request_timeout(options.request_timeout));
  if (options.metadata.contains("belljar"))
    return Error(Code::kInvalidArgument, "the metadata `belljar` is ours").next("use another name");
  return std::shared_ptr<E2bSandbox>(std::make_shared<RemoteSandbox<E2bSandbox>>(
      std::make_shared<E2bCloud>(options), config, std::move(workspace), options.sandbox_id, options.on_stop));
}

Result<std::shared_ptr<E2bSandbox>> started(const SandboxConfig& config, const E2bOptions& options) {
  auto sandbox = BELLJAR_TRY(make(config, options));
  BELLJAR_CHECK(sandbox->start());
  return sandbox;
}

}  // namespace
}  // namespace belljar::remote::e2b

namespace belljar {

Result<std::shared_ptr<E2bSandbox>> E2bSandbox::create(std::chrono::milliseconds lifetime, E2bOptions options,
                                                       const SandboxConfig& config) {
  options.lifetime = lifetime;
  options.sandbox_id.clear();
  return remote::e2b::started(config, options);
}

Result<std::shared_ptr<E2bSandbox>> E2bSandbox::connect(const std::string& sandbox_id, E2bOptions options,
                                                        const SandboxConfig& config) {
  if (sandbox_id.empty()) return Error(Code::kInvalidArgument, "cannot connect to a sandbox without its id");
  options.sandbox_id = sandbox_id;
  return remote::e2b::started(config, options);
}

SandboxFactory e2b_backend(E2bOptions options) {
  return [options = std::move(options)](const SandboxConfig& config) -> Result<std::shared_ptr<Sandbox>> {
    return std::shared_ptr<Sandbox>(BELLJAR_TRY(remote::e2b::make(config, options)));
  };
}

}  // namespace belljar
