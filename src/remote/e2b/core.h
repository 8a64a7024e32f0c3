// What a started sandbox is for its commands and file calls: the daemon, the mark of its commands, their end.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "remote/e2b/envd.h"
#include "remote/search.h"

namespace belljar::remote::e2b {

class Run;

class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Envd envd, std::string workspace, std::string nonce)
      : envd_(std::move(envd)), workspace_(std::move(workspace)), nonce_(std::move(nonce)) {}

  const Envd& envd() const noexcept { return envd_; }
  const std::string& workspace() const noexcept { return workspace_; }
  std::string next_mark() { return nonce_ + "-" + std::to_string(++serial_) + "."; }
  const std::string& nonce() const noexcept { return nonce_; }

  // A command of ours inside, in the workspace: coreutils and sh, which every template has. Errors: as of a command that cannot be
  // started; kUnavailable, it was cut off; kDeadlineExceeded, it took longer.
  Result<Helped> help(std::vector<std::string> argv, std::string stdin_bytes = {},
                      std::chrono::milliseconds patience = std::chrono::seconds(60), const CancelToken& cancel = {},
                      std::uint64_t most = 16U << 20);
  // Signals whatever carries a mark that begins with `mark`. False: that could not be done.
  bool kill_marked(const std::string& mark, int signal, std::chrono::milliseconds patience = std::chrono::seconds(10),
                   const CancelToken& cancel = {});

  // Ends all commands with the sandbox's end as the reason.
  void end_commands();
  bool ending() const noexcept { return ending_.load(); }
  void add(const std::shared_ptr<Run>& run);

 private:
  Envd envd_;
  std::string workspace_, nonce_;
  std::atomic<unsigned> serial_{0};
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::vector<std::weak_ptr<Run>> runs_;  // guarded by mutex_
};

}  // namespace belljar::remote::e2b
