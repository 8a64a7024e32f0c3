// A private gateway: JSON-RPC tools/call with access keys in headers, as agent frameworks of the "aliyun" kind speak it. One
// machine that is there already: it is neither made nor ended from here.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "belljar/cancel.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/tools.h"
#include "remote/aliyun/wire.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {

// `result` of a JSON-RPC reply. Errors: kUnavailable, kUnauthenticated, kPermissionDenied, kResourceExhausted, "http error: ...";
// kUnavailable, "mcp error: ...", of a tool that may have begun; kDataLoss.
Result<Json> parse_rpc(long status, const std::string& body, const GatewayAddress& address);

class GatewayTools final : public Tools {
 public:
  GatewayTools(http::Client http, GatewayAddress address) : http_(std::move(http)), address_(std::move(address)) {}
  const GatewayAddress& address() const noexcept { return address_; }
  Result<Content> call(const std::string& tool, const Json& arguments, std::chrono::milliseconds patience,
                       int cancel_fd) const override;
  // Whether `shell` is among its tools. Errors: kUnimplemented, it is not; as call().
  Result<void> find_shell(std::chrono::milliseconds patience, int cancel_fd = -1) const;

 private:
  Result<Json> ask(const char* method, Json params, std::chrono::milliseconds patience, int cancel_fd) const;

  http::Client http_;
  GatewayAddress address_;
};

class Gateway final : public shell::Service {
 public:
  Gateway(GatewayTools tools, std::chrono::milliseconds patience)
      : tools_(std::make_shared<const GatewayTools>(std::move(tools))), patience_(patience) {}

  std::string_view name() const noexcept override { return "aliyun"; }
  std::string_view workspace() const noexcept override { return "/workspace"; }
  std::string host() const override;
  Result<void> check_supported(const Policy& policy) const override;
  shell::ClauseEnforcement holds(const Policy& policy, std::string_view clause) const override;
  Isolation isolation() const override { return Isolation::kNone; }  // somebody's own, and nothing asks it
  Result<std::shared_ptr<const shell::Machine>> create(const Policy& policy, const CancelToken& cancel) const override;
  Result<std::shared_ptr<const shell::Machine>> connect(const std::string& id, const CancelToken& cancel) const override;
  Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> pause(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const override;

 private:
  std::shared_ptr<const GatewayTools> tools_;
  std::chrono::milliseconds patience_;
};

}  // namespace belljar::remote::aliyun
