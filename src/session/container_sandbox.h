// The Sandbox of the container backend. Commands run in an engine's containers (backend/container); files are reached on this
// machine, through the directory that the container shows as its workspace, by the same code and the same rules as on every other
// backend.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/container/engine.h"
#include "backend/container/shown_dir.h"
#include "backend/container/spec.h"
#include "base/owner.h"
#include "belljar/container.h"
#include "belljar/sandbox.h"
#include "command/process.h"
#include "command/request.h"
#include "runtime/embed.h"
#include "session/container_command.h"
#include "session/files.h"
#include "session/lifecycle.h"
#include "session/networked_container.h"
#include "session/over_files.h"

namespace belljar::session {

class ContainerSandbox final : public OverFiles {
 public:
  ContainerSandbox(runtime::Embedded embedded, ContainerOptions options, Lifecycle lifecycle, CancelToken cancel);
  ~ContainerSandbox() override;

  std::string_view backend() const noexcept override { return "container"; }
  const std::string& id() const noexcept override { return id_; }
  const std::string& workspace() const noexcept override { return shown_at_; }
  // Our calls look on the host: not what is there under another name, or the container's own.
  std::vector<std::string> roots() const override;
  EnforcementReport enforcement() const override;
  Result<void> start(const CallOptions& options) override;
  Result<void> stop(const CallOptions& options) override;
  Result<void> health(const CallOptions& options) override;
  Result<SandboxStats> stats(const CallOptions& options) override;
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override;
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override;
  Result<void> set_network_rules(const NetworkRules& rules) override;

 private:
  using ContainerPtr = std::shared_ptr<NetworkedContainer>;

  // The state of a running sandbox. It is replaced as a whole, so that a call goes on with what it began with.
  struct Instance {
    backend::container::Engine engine;
    backend::container::Spec spec;
    Files files;
    LiveEgressOptions egress;
    std::shared_ptr<const backend::container::ShownDir> shown;  // what the spec binds of ours; null: nothing
    ContainerPtr container;                                     // null in per-command mode
    std::shared_ptr<SpentTime> spent;                           // of single commands
    std::shared_ptr<void> living;                               // what tells others that it lives
  };

  // The part of it that stop() takes, and keeps where its caller ended the wait.
  struct PendingStop {
    std::shared_ptr<const Instance> running;
    std::vector<std::weak_ptr<NetworkedContainer>> containers;
    UniqueFd volume;  // let go when all have ended
    Result<void> finish(const CancelToken& cancel) const;
  };

  Result<std::shared_ptr<const Instance>> running(const CallOptions& options = {}) const;
  Result<Instance> make_instance(const CancelToken& cancel);
  Result<backend::container::ContainerPlan> plan(const Policy& policy, const backend::Workplace& place,
                                                 const backend::container::Engine& engine, const CancelToken& cancel);
  Result<Files> open_files(const backend::container::ContainerPlan& planned) const;
  ContainerPtr make_container(const Instance& running) const;  // with mutex_ held
  Result<ContainerPtr> container_for_command(const Instance& running);
  Result<backend::container::ContainerStats> usage(
      const Instance& running, const CancelToken& cancel);  // of the session's container, or of all that there are
  Result<std::shared_ptr<ContainerCommand>> begin(command::Request request);
  // A caller's path (of the inside, where absolute) as the files on this machine know it.
  Result<std::string> on_host(const std::string& path) const override;
  Result<std::shared_ptr<const Files>> files(const CallOptions& options) const override;

  runtime::Embedded embedded_;
  ContainerOptions options_;
  Lifecycle lifecycle_;
  CancelToken cancel_;
  std::string id_, shown_at_;
  OwningProcess owner_;  // of what was started
  std::shared_ptr<command::DetachedCommands> home_ = std::make_shared<command::DetachedCommands>();
  std::atomic<std::uint64_t> execs_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const Instance> running_;                    // guarded by mutex_; null: not started, or stopped
  std::vector<std::weak_ptr<NetworkedContainer>> containers_;  // guarded by mutex_; of single commands
  PendingStop unended_;                                        // guarded by mutex_; a stop() that was not waited for
  EnforcementReport enforcement_;                              // guarded by mutex_; of the last start
  std::optional<NetworkRules> network_rules_;                  // guarded by mutex_; until stop()
  UniqueFd volume_;                                            // guarded by mutex_; locked while it runs (lifecycle.h)
};

}  // namespace belljar::session
