// One of several backends: the first that starts. Before the first start the first of the list answers, which says that it does not
// run.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "belljar/sandbox.h"

namespace belljar::session {

class ChosenSandbox final : public Sandbox {
 public:
  struct Candidate {
    std::string backend;
    Result<std::shared_ptr<Sandbox>> sandbox;
  };
  // At least one candidate that was made.
  explicit ChosenSandbox(std::vector<Candidate> candidates);

  std::string_view backend() const noexcept override { return use().backend(); }
  const std::string& id() const noexcept override { return use().id(); }
  const std::string& workspace() const noexcept override { return use().workspace(); }
  std::vector<std::string> roots() const override { return use().roots(); }
  EnforcementReport enforcement() const override { return use().enforcement(); }
  Result<void> start(const CallOptions& options) override;
  Result<void> stop(const CallOptions& options) override;
  Result<void> health(const CallOptions& options) override { return use().health(options); }
  Result<SandboxStats> stats(const CallOptions& options) override { return use().stats(options); }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override;
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    return use().spawn(command, options);
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    return use().read_file(path, options);
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return use().write_file(path, bytes, options);
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    return use().list(path, options);
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override { return use().stat(path, options); }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override { return use().make_dir(path, options); }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return use().rename(from, to, options);
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override { return use().remove(path, options); }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override { return use().glob(pattern, options); }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override { return use().grep(text, options); }
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions& options) override {
    return use().watch(path, options);
  }
  Result<void> set_network_rules(const NetworkRules& rules) override { return use().set_network_rules(rules); }
  Result<std::vector<txn::Change>> changes() override { return use().changes(); }
  Result<void> snapshot(const std::string& name) override { return use().snapshot(name); }
  Result<void> rollback(const std::string& snapshot) override { return use().rollback(snapshot); }

 private:
  // All of them live as long as this: callers hold references into the one that was in use before.
  Sandbox& use() const noexcept { return **candidates_[in_use_.load()].sandbox; }

  const std::vector<Candidate> candidates_;
  std::atomic<std::size_t> in_use_{0};
  mutable std::mutex mutex_;
  bool chosen_ = false;              // guarded by mutex_; one was started and not stopped
  std::vector<TriedBackend> tried_;  // guarded by mutex_; of the last start
};

}  // namespace belljar::session
