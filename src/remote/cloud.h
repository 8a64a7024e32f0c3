// The port that a cloud implements to be a Sandbox. It stands between sandbox.h, which holds its life, its commands and its file
// calls, and the folders of the clouds.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/cancel.h"
#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "remote/commands.h"
#include "remote/files.h"
#include "remote/report.h"

namespace belljar::remote {

// One sandbox that runs there. All methods from any thread.
class CloudInstance {
 public:
  CloudInstance() = default;
  virtual ~CloudInstance() = default;
  CloudInstance(const CloudInstance&) = delete;
  CloudInstance& operator=(const CloudInstance&) = delete;

  virtual const std::string& id() const noexcept = 0;  // the service's
  virtual Commands& commands() const noexcept = 0;
  // Its file calls, which give up when `end` is cancelled: kCanceled, within a second or two. glob and grep have a token of their
  // own.
  virtual std::unique_ptr<Files> files(const CancelToken& end) const = 0;

  // Makes the workspace, and what commands need. Errors: those of the service, kFailedPrecondition.
  virtual Result<void> settle() = 0;
  // It did not settle, and was there before: gives back what settle() made.
  virtual void unsettle() {}
  // The same, and it was made by us: ends it, or names it in the error.
  virtual Error abandon(const Error& why) const = 0;

  // Ends all its commands, as far as that is possible.
  virtual void clear(const CancelToken& end) const = 0;
  virtual Result<void> pause(const CancelToken& end) const = 0;
  virtual Result<bool> kill(const CancelToken& end) const = 0;  // false: there is none
  virtual Result<void> set_timeout(std::chrono::milliseconds lifetime) const = 0;
  virtual Result<void> health(const CancelToken& end) const = 0;
  virtual Result<std::uint64_t> count_processes(const CancelToken& end) const = 0;
};

// A control plane. All methods from any thread.
class Cloud {
 public:
  Cloud() = default;
  virtual ~Cloud() = default;
  Cloud(const Cloud&) = delete;
  Cloud& operator=(const Cloud&) = delete;

  virtual std::string_view name() const noexcept = 0;  // the backend's
  // How each clause of the policy is held there; the host is not filled in.
  virtual CloudTraits traits(const SandboxConfig& config) const = 0;
  // Refuses by name what other clouds would take and this one does not. Returns the host that it asks.
  virtual Result<std::string> check(const SandboxConfig& config) const = 0;
  // Connects to the sandbox `before`, or makes one where that is empty; gives up when `end` is cancelled.
  virtual Result<std::shared_ptr<CloudInstance>> enter(const SandboxConfig& config, const std::string& workspace,
                                                       const std::string& before, const CancelToken& end) const = 0;
  // Whether it serves such a command. Errors: kUnimplemented.
  virtual Result<void> check_spawn(const SpawnOptions& /*options*/) const { return {}; }
  // Ends one that nobody is connected to.
  virtual Result<bool> kill(const SandboxConfig& config, const std::string& id) const = 0;
};

}  // namespace belljar::remote
