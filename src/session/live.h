// The Sandbox of every backend that can make a Plan: native, landlock, local.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "base/owner.h"
#include "belljar/sandbox.h"
#include "command/process.h"
#include "runtime/embed.h"
#include "session/lifecycle.h"
#include "session/live_command.h"
#include "session/live_instance.h"
#include "session/over_files.h"
#include "txn/store.h"

namespace belljar::session {

// A command whose streams somebody else serves.
struct SpawnedProcess {
  std::unique_ptr<Process> process;
  UniqueFd master;  // with a terminal: its other side
};

class LiveSandbox final : public OverFiles {
 public:
  // `cancel`: of start() alone.
  LiveSandbox(std::unique_ptr<backend::Backend> backend, std::shared_ptr<const backend::RealHost> host, runtime::Embedded embedded,
              Lifecycle lifecycle, CancelToken cancel);
  ~LiveSandbox() override;

  std::string_view backend() const noexcept override { return backend_->name(); }
  const std::string& id() const noexcept override { return id_; }
  const std::string& workspace() const noexcept override { return embedded_.place.workspace; }
  std::vector<std::string> roots() const override { return roots_of(embedded_.policy.filesystem); }
  EnforcementReport enforcement() const override;
  Result<void> start(const CallOptions& options) override;
  Result<void> stop(const CallOptions& options = {}) override;
  Result<void> health(const CallOptions& options = {}) override;
  // Cheaper than health(): its pid 1 serves, which is enough where nothing has run yet. Errors: kUnavailable.
  Result<void> answer();
  Result<SandboxStats> stats(const CallOptions& options = {}) override;
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override;
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override;
  // As spawn(), but the command gets `ends` as they are (an invalid one: /dev/null), and nothing of its output comes back here.
  // With options.terminal it gets a terminal, and `ends[2]`, when valid, as its stderr. Pipes only: what is handed in can be opened
  // anew inside (front/stdio.h).
  Result<SpawnedProcess> spawn_with_fds(const Command& command, const SpawnOptions& options, std::array<UniqueFd, 3> ends);
  // The rules for hosts in force, without what single commands opened. Errors: kFailedPrecondition, it does not run.
  Result<NetworkRules> network_rules() const;
  NetworkRules rules_of_policy() const;
  NetMode network_mode() const noexcept { return embedded_.policy.network.mode; }
  // The refusals and the proxy's records since the last command ended: of processes that run in the background.
  ExecResult take_seen();
  // Called when the sandbox has ended, by itself (idle, pid 1 killed) or by stop(), with what no result has told:
  // refusals that nobody took, and what went through the proxy. On any thread, and not to call back into it. To be set before
  // start().
  void on_end(std::function<void(const ExecResult&)> told) { on_end_ = std::move(told); }
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions& options) override;
  Result<void> set_network_rules(const NetworkRules& rules) override;
  Result<std::vector<txn::Change>> changes() override;
  Result<void> snapshot(const std::string& name) override;
  Result<void> rollback(const std::string& snapshot) override;

 private:
  // It counts as in use from before anybody else may change it.
  struct InUse {
    std::shared_ptr<LiveInstance> instance;
    std::unique_ptr<LiveInstance::Use> use;
  };
  Result<InUse> instance(const CallOptions& options = {}) const;
  // For a look that is no use of it.
  Result<std::shared_ptr<LiveInstance>> instance_to_inspect(const CallOptions& options = {}) const;
  // The next three with mutex_ held.
  Result<std::shared_ptr<LiveInstance>> running_instance() const;
  Result<std::shared_ptr<LiveInstance>> make_instance(const CancelToken& cancel);
  void leave_transaction() noexcept;
  // Ends the sandbox, does `act` to its transaction, starts it again. `check`: whether act can be done, beforehand.
  Result<void> change_layers(const std::function<Result<void>(const txn::Transaction&)>& check,
                             const std::function<Result<void>(txn::Transaction&)>& act);
  Result<std::shared_ptr<const Files>> files(const CallOptions& options) const override;

  std::unique_ptr<backend::Backend> backend_;
  std::shared_ptr<const backend::RealHost> host_;  // the backend refers to it; forgets after each start
  runtime::Embedded embedded_;
  Lifecycle lifecycle_;
  const CancelToken cancel_;
  std::string id_;
  OwningProcess owner_;  // of what was started
  std::function<void(const ExecResult&)> on_end_;
  std::shared_ptr<command::DetachedCommands> detached_ = std::make_shared<command::DetachedCommands>();
  std::atomic<std::uint64_t> execs_{0};
  std::mutex life_;  // start and stop, one at a time; before mutex_
  mutable std::mutex mutex_;
  std::shared_ptr<LiveInstance> instance_;       // guarded by mutex_; null: not started, or stopped
  std::optional<txn::Transaction> transaction_;  // guarded by mutex_; from start() to stop()
  EnforcementReport enforcement_;                // guarded by mutex_; of the last start
  UniqueFd volume_;                              // guarded by mutex_; locked while it runs (lifecycle.h)
  std::optional<NetworkRules> network_rules_;    // guarded by mutex_; until stop()
};

}  // namespace belljar::session
