// The adapter between the port for clouds with shell text (machine.h) and the sandbox that all clouds share
// (remote/sandbox.h). The service is asked for at each use (FindService) and not kept: for Volcengine options
// and environment are checked there, so a key that is missing is an error of the call that needs it.
#include "remote/shell/sandbox.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "belljar/cancel.h"
#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "remote/cloud.h"
#include "remote/paths.h"
#include "remote/report.h"
#include "remote/sandbox.h"
#include "remote/shell/files.h"
#include "remote/shell/machine.h"
#include "remote/shell/shell_instance.h"

namespace belljar::remote::shell {
namespace {

class ShellCloudInstance final : public CloudInstance {
 public:
  ShellCloudInstance(std::shared_ptr<const Service> service, std::shared_ptr<ShellInstance> instance)
      : service_(std::move(service)), instance_(std::move(instance)) {}

  const std::string& id() const noexcept override { return instance_->machine().id(); }
  Commands& commands() const noexcept override { return *instance_; }
  std::unique_ptr<Files> files(const CancelToken& end) const override { return std::make_unique<ShellFiles>(instance_, end); }
  Result<void> settle() override { return instance_->settle(); }
  void unsettle() override { instance_->clear(); }
  Error abandon(const Error& why) const override {
    if (service_->kill(id())) return why;
    const std::string next = format("end the sandbox {}, which could not be ended from here", belljar::quoted(id()));
    return Error(why.code(), why.what()).reason(why.reason()).next(next);
  }
  void clear(const CancelToken& end) const override { instance_->clear(end.fd()); }
  Result<void> pause(const CancelToken& end) const override { return service_->pause(id(), end); }
  Result<bool> kill(const CancelToken& end) const override { return service_->kill(id(), end); }
  Result<void> set_timeout(std::chrono::milliseconds lifetime) const override { return service_->set_timeout(id(), lifetime); }
  Result<void> health(const CancelToken& end) const override { return instance_->machine().health(end.fd()); }
  Result<std::uint64_t> count_processes(const CancelToken& end) const override { return instance_->count_marked(end.fd()); }

 private:
  const std::shared_ptr<const Service> service_;
  const std::shared_ptr<ShellInstance> instance_;
};

class ShellCloud final : public Cloud {
 public:
  ShellCloud(std::string_view name, FindService find, ShellOptions options)
      : name_(name), find_(std::move(find)), options_(std::move(options)) {}

  std::string_view name() const noexcept override { return name_; }
  CloudTraits traits(const SandboxConfig& config) const override {
    const auto service = find_();
    return {.backend = {},
            .options = options_.type,
            .image = "image",
            .host = {},
            .workspace = {},
            .isolation = service ? (*service)->isolation() : Isolation::kNone,
            .clock = "inside: TERM, then KILL of the command's tree, also when nobody looks any more; this client a while later",
            .holds = [service, &config](std::string_view clause) {
              return service ? (*service)->holds(config.policy, clause) : ClauseEnforcement{};
            }};
  }
  Result<std::string> check(const SandboxConfig& config) const override {
    const auto service = BELLJAR_TRY(find_());
    BELLJAR_CHECK(service->check_supported(config.policy));
    return service->host();
  }
  Result<std::shared_ptr<CloudInstance>> enter(const SandboxConfig& config, const std::string& workspace, const std::string& before,
                                               const CancelToken& end) const override {
    auto service = BELLJAR_TRY(find_());
    const auto machine = BELLJAR_TRY(before.empty() ? service->create(config.policy, end) : connect(*service, before, end));
    auto instance = std::make_shared<ShellInstance>(machine, workspace, random_hex(8), options_.request_timeout);
    return std::shared_ptr<CloudInstance>(std::make_shared<ShellCloudInstance>(std::move(service), std::move(instance)));
  }
  Result<void> check_spawn(const SpawnOptions& options) const override {
    if (!options.terminal) return {};
    return Error(Code::kUnimplemented, format("the {} backend does not serve terminals", name()))
        .reason("the service runs shell text, and has no terminal for it")
        .next("spawn it with a pipe, or by script(1) inside");
  }
  Result<bool> kill(const SandboxConfig& /*config*/, const std::string& id) const override {
    return BELLJAR_TRY(find_())->kill(id);
  }

 private:
  Result<std::shared_ptr<const Machine>> connect(const Service& service, const std::string& before,
                                                 const CancelToken& cancel) const {
    auto connected = service.connect(before, cancel);
    if (!connected && connected.error().code() == Code::kCanceled)
      return Error(connected.error())
          .next(format("it may have been resumed, and run on: pause or end {}", belljar::quoted(before)));
    auto machine = BELLJAR_TRY(std::move(connected));
    if (options_.lifetime) BELLJAR_CHECK(service.set_timeout(before, *options_.lifetime));
    return machine;
  }

  const std::string_view name_;
  const FindService find_;
  const ShellOptions options_;
};

}  // namespace

Result<std::shared_ptr<CloudSandbox>> ShellSandbox::make(const std::shared_ptr<const Service>& service, const SandboxConfig& config,
                                                         const ShellOptions& options) {
  return make(service->name(), service->workspace(), [service] { return service; }, config, options);
}

Result<std::shared_ptr<CloudSandbox>> ShellSandbox::make(std::string_view name, std::string_view workspace, FindService find,
                                                         const SandboxConfig& config, const ShellOptions& options) {
  std::string there = BELLJAR_TRY(workspace_elsewhere(config.workspace, workspace));
  BELLJAR_CHECK(check_lifetime(options.lifetime));
  BELLJAR_CHECK(check_request_timeout(options.request_timeout));
  return std::shared_ptr<CloudSandbox>(std::make_shared<RemoteSandbox<CloudSandbox>>(
      std::make_shared<ShellCloud>(name, std::move(find), options), config, std::move(there), options.sandbox_id, options.on_stop));
}

}  // namespace belljar::remote::shell
