// The commands of one started sandbox elsewhere: ours among them, and the end of all.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/result.h"
#include "command/running_command.h"
#include "remote/search.h"

namespace belljar::remote {

class Commands {
 public:
  // `nonce`: begins the marks of its commands (marked.h). `image`: what a program is missing from, for people: "template".
  Commands(std::string workspace, std::string nonce, std::string_view image)
      : workspace_(std::move(workspace)), nonce_(std::move(nonce)), image_(image) {}
  virtual ~Commands() = default;
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  const std::string& workspace() const noexcept { return workspace_; }
  const std::string& nonce() const noexcept { return nonce_; }

  // Errors: kResourceExhausted; of what the service cannot take.
  virtual Result<std::shared_ptr<command::RunningCommand>> start(command::Request request) = 0;
  // A command of ours inside: coreutils and sh. Errors: as of a command that cannot be started; kUnavailable, it was cut off;
  // kDeadlineExceeded, it took longer; kCanceled: it is told to end.
  Result<HelperResult> help(std::vector<std::string> argv, std::string stdin_bytes = {},
                            std::chrono::milliseconds patience = std::chrono::seconds(60), const CancelToken& cancel = {},
                            std::uint64_t most = 16U << 20);

  // Ends all commands with the sandbox's end as the reason.
  void end_commands();
  bool ending() const noexcept { return ending_.load(); }

 protected:
  void add(const std::shared_ptr<command::RunningCommand>& run);

 private:
  const std::string workspace_, nonce_;
  const std::string_view image_;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::vector<std::weak_ptr<command::RunningCommand>> runs_;  // guarded by mutex_
};

}  // namespace belljar::remote
