// The Sandbox over the wire: made by belljar/e2b.h.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/owner.h"
#include "belljar/e2b.h"
#include "http/client.h"
#include "remote/e2b/control.h"
#include "remote/e2b/core.h"
#include "remote/e2b/files.h"
#include "remote/e2b/run.h"

namespace belljar::remote::e2b {

class RemoteSandbox final : public E2bSandbox {
 public:
  RemoteSandbox(SandboxConfig config, E2bOptions options, std::string workspace);
  ~RemoteSandbox() override;

  std::string_view backend() const noexcept override { return "e2b"; }
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
    Control control;
    std::shared_ptr<Core> core;
    RemoteFiles files;
  };
  using RunningPtr = std::shared_ptr<const Running>;

  Result<RunningPtr> running() const;
  Result<Control> find_service();
  Result<Granted> enter(const Control& control);
  Result<command::Request> elsewhere(const RunningPtr& alive, command::Request request) const;
  Result<void> leave_it(const CancelToken& end);
  RunningPtr leave();  // ends the commands; null: it does not run

  SandboxConfig config_;
  E2bOptions options_;
  std::string id_, workspace_;
  std::map<std::string, std::string> variables_;  // of every command
  http::Client http_;
  std::atomic<std::uint64_t> execs_{0}, written_{0};
  std::mutex starting_;  // start, stop and kill, one at a time; before mutex_
  RunningPtr unended_;   // guarded by starting_; stop() failed, and the next one tries again
  mutable std::mutex mutex_;
  RunningPtr running_;             // guarded by mutex_
  std::string remote_id_;          // guarded by mutex_; what start() goes back to
  EnforcementReport enforcement_;  // guarded by mutex_
  const OwningProcess owner_;
};

}  // namespace belljar::remote::e2b
