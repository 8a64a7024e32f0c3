// The Sandbox of a cloud where only shell text runs: what aliyun.h and volcengine.h make of their services.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/cloud.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "remote/shell/machine.h"

namespace belljar::remote::shell {

struct ShellOptions {
  std::string_view type;                                                 // of the options of the cloud, for people: "AliyunOptions"
  std::string sandbox_id;                                                // an existing one to connect to, instead of a new one
  std::optional<std::chrono::milliseconds> lifetime;                     // of one that is connected to; a new one has the service's
  std::optional<CloudOnStop> on_stop;                                    // unset: kKill, and kLeave for one that was connected to
  std::chrono::milliseconds request_timeout = std::chrono::seconds(60);  // for one answer of the service
};

// Finds the service, with its keys. Errors: those of the keys and addresses.
using FindService = std::function<Result<std::shared_ptr<const Service>>()>;

struct ShellSandbox {
  // Asks nobody yet. Errors: kInvalidArgument, a workspace that is not absolute, a time that is not positive.
  static Result<std::shared_ptr<CloudSandbox>> make(const std::shared_ptr<const Service>& service, const SandboxConfig& config,
                                                    const ShellOptions& options);
  // The same, of the service `name` that works in `workspace`: found by the first call that needs it, so that a sandbox can be
  // made, and told of, without keys.
  static Result<std::shared_ptr<CloudSandbox>> make(std::string_view name, std::string_view workspace, FindService find,
                                                    const SandboxConfig& config, const ShellOptions& options);
};

}  // namespace belljar::remote::shell
