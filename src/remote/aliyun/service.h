// AgentBay's sessions: made, found, paused, ended.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "belljar/aliyun.h"
#include "belljar/cancel.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "remote/aliyun/rpc.h"
#include "remote/aliyun/session.h"
#include "remote/aliyun/wire.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {

// Errors: kInvalidArgument, what the service would not take.
Result<void> check_options(const AliyunOptions& options);

class AgentBay final : public shell::Service {
 public:
  AgentBay(Rpc rpc, AliyunOptions options) : rpc_(std::move(rpc)), options_(std::move(options)) {}

  std::string_view name() const noexcept override { return "aliyun"; }
  std::string_view workspace() const noexcept override;
  std::string host() const override;
  Result<void> check_supported(const Policy& policy) const override;
  shell::ClauseEnforcement holds(const Policy& policy, std::string_view clause) const override;
  Result<std::shared_ptr<const shell::Machine>> create(const Policy& policy, const CancelToken& cancel) const override;
  Result<std::shared_ptr<const shell::Machine>> connect(const std::string& id, const CancelToken& cancel) const override;
  Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> pause(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const override;

 private:
  Fields wanted(const std::string& tag) const;
  Result<SessionAccess> made(const Answer& answer) const;
  Result<void> await_contexts(const std::string& id, const CancelToken& cancel) const;
  // Ends what was made and cannot be used: `why`, and where it lives on, its id as well.
  Error abandon(const std::string& id, const Error& why) const;
  // After a create whose answer is lost: ends what carries its tag. `why`, and where nobody can say, the tag as well.
  Error sweep(const std::string& tag, const Error& why) const;
  Result<Answer> find(const std::string& id, const std::string& what, int cancel_fd = -1) const;
  // Until the session is `wanted`, while it is `meanwhile`: what the service says of it then.
  Result<Answer> await_status(const std::string& id, std::string_view wanted, std::string_view meanwhile, const std::string& what,
                              const CancelToken& cancel) const;
  Result<Answer> resume(const std::string& id, const std::string& what, const CancelToken& cancel) const;

  Rpc rpc_;
  AliyunOptions options_;
};

}  // namespace belljar::remote::aliyun
