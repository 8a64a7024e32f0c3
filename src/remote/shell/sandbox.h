// The Sandbox of a cloud where only shell text runs: what aliyun.h and volcengine.h make of their services.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/owner.h"
#include "belljar/cloud.h"
#include "remote/shell/core.h"
#include "remote/shell/files.h"
#include "remote/shell/machine.h"
#include "remote/shell/run.h"

namespace belljar::remote::shell {

struct ShellOptions {
  std::string_view type;                                                 // of the options of the cloud, for people: "AliyunOptions"
  std::string sandbox_id;                                                // an existing one to connect to, instead of a new one
  std::optional<std::chrono::milliseconds> lifetime;                     // of one that is connected to; a new one has the service's
  std::optional<CloudOnStop> on_stop;                                    // unset: kKill, and kLeave for one that was connected to
  std::chrono::milliseconds request_timeout = std::chrono::seconds(60);  // for one answer of the service
};

class ShellSandbox : public CloudSandbox {
 public:
  // Asks nobody yet. Errors: kInvalidArgument, a workspace that is not absolute, a time that is not positive.
  static Result<std::shared_ptr<ShellSandbox>> make(std::shared_ptr<Service> service, const SandboxConfig& config,
                                                    ShellOptions options);
  ~ShellSandbox() override;

  std::string_view backend() const noexcept override { return service_->name(); }
  const std::string& id() const noexcept override { return id_; }
  const std::string& workspace() const noexcept override { return workspace_; }
  EnforcementReport enforcement() const override;
  Result<void> start() override;
  Result<void> stop(const CallOptions& options) override;
  Result<void> health(const CallOptions& options) override;
  Result<SandboxStats> stats(const CallOptions& options) override;
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override;
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override;
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override;
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override;
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override;
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override;
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override;
  Result<void> remove(const std::string& path, const RemoveOptions& options) override;
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override;
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override;

  std::string sandbox_id() const override;
  Result<void> set_timeout(std::chrono::milliseconds lifetime) override;
  Result<bool> kill() override;

 private:
  struct Running {
    std::shared_ptr<Core> core;
    ShellFiles files;
  };
  using RunningPtr = std::shared_ptr<const Running>;

  ShellSandbox(std::shared_ptr<Service> service, SandboxConfig config, ShellOptions options, std::string workspace);
  Result<void> check();
  Result<std::shared_ptr<const Machine>> enter() const;
  Error abandon(const std::string& remote, Error error) const;
  Result<RunningPtr> running() const;
  Result<command::Request> elsewhere(const RunningPtr& alive, command::Request request) const;
  Result<void> leave_it(const CancelToken& end);
  RunningPtr leave();  // ends the commands; null: it does not run

  std::shared_ptr<Service> service_;
  SandboxConfig config_;
  ShellOptions options_;
  std::string id_, workspace_;
  std::map<std::string, std::string> variables_;  // of every command
  std::atomic<std::uint64_t> execs_{0}, written_{0};
  std::mutex starting_;  // start, stop and kill, one at a time; before mutex_
  RunningPtr unended_;   // guarded by starting_; stop() failed, and the next one tries again
  mutable std::mutex mutex_;
  RunningPtr running_;             // guarded by mutex_
  std::string remote_id_;          // guarded by mutex_; what start() goes back to
  EnforcementReport enforcement_;  // guarded by mutex_
  const OwningProcess owner_;
};

}  // namespace belljar::remote::shell
