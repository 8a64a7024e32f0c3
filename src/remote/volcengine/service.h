// The services that volcengine.cc gives to remote/shell: Volcengine's control plane, and AIO containers that need none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "belljar/cancel.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/volcengine.h"
#include "http/client.h"
#include "remote/shell/machine.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/control.h"

namespace belljar::remote::volcengine {

inline constexpr char kWorkspace[] = "/home/gem";  // the home of AIO's user

class VefaasService final : public shell::Service {
 public:
  // `policy`: what a sandbox that is connected to is held against.
  VefaasService(const http::Client& http, Control control, VolcengineOptions options, Policy policy)
      : http_(http), control_(std::move(control)), options_(std::move(options)), policy_(std::move(policy)) {}

  std::string_view name() const noexcept override { return "volcengine"; }
  std::string_view workspace() const noexcept override { return kWorkspace; }
  std::string host() const override;
  Result<void> check_supported(const Policy& policy) const override;
  shell::ClauseEnforcement holds(const Policy& policy, std::string_view clause) const override;
  Result<std::shared_ptr<const shell::Machine>> create(const Policy& policy, const CancelToken& cancel) const override;
  Result<std::shared_ptr<const shell::Machine>> connect(const std::string& id, const CancelToken& cancel) const override;
  Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const override { return control_.kill(id, cancel); }
  Result<void> pause(const std::string& id, const CancelToken& cancel = {}) const override { return control_.pause(id, cancel); }
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const override;

 private:
  enum class Fresh { kNo, kYes };
  Result<Description> await_ready(const std::string& id, http::Clock::time_point until, Fresh fresh,
                                  const CancelToken& cancel) const;
  Result<std::shared_ptr<const shell::Machine>> enter(const std::string& id, const std::string& endpoint, Fresh fresh,
                                                      const CancelToken& cancel) const;

  http::Client http_;
  Control control_;
  VolcengineOptions options_;
  Policy policy_;
};

class AioService final : public shell::Service {
 public:
  AioService(const http::Client& http, Address address, std::chrono::milliseconds patience)
      : http_(http), address_(std::move(address)), patience_(patience) {}

  std::string_view name() const noexcept override { return "volcengine"; }
  std::string_view workspace() const noexcept override { return kWorkspace; }
  std::string host() const override { return authority_of(address_.endpoint); }
  Result<void> check_supported(const Policy& policy) const override;
  shell::ClauseEnforcement holds(const Policy& policy, std::string_view clause) const override;
  Isolation isolation() const override { return Isolation::kNone; }  // somebody's own, and nothing asks it
  Result<std::shared_ptr<const shell::Machine>> create(const Policy& policy, const CancelToken& cancel) const override;
  Result<std::shared_ptr<const shell::Machine>> connect(const std::string& id, const CancelToken& cancel) const override;
  Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> pause(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const override;

 private:
  http::Client http_;
  Address address_;
  std::chrono::milliseconds patience_;
};

// The shortest and the longest life that the service gives. Errors: kInvalidArgument.
Result<void> check_lifetime(std::chrono::milliseconds lifetime);

// Fills in the size that follows from instance type and policy. Errors: kUnimplemented, less than the service's smallest.
Result<void> size(CreateRequest& wanted, VolcengineInstance type, const Limits& limits);

// Errors: kFailedPrecondition, it may do more than the policy says, and the policy does not accept that.
Result<void> check_found(const Description& found, const Policy& policy);

}  // namespace belljar::remote::volcengine
