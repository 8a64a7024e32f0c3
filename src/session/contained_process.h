// A command in a container with a thread of its own that reads its output, and the handle that a caller holds.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/owner.h"
#include "belljar/process.h"
#include "session/contained.h"
#include "session/contained_run.h"
#include "session/follower.h"

namespace belljar::session {

class ContainedCommand {
 public:
  // `home`: where it is kept once it is detached, until it ends. The destructor waits for the command's end (follower.h).
  ContainedCommand(std::shared_ptr<ContainedRun> run, const std::weak_ptr<ContainedHome>& home);

  int pid() const noexcept { return pid_; }
  ContainedRun& run() const noexcept { return *run_; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) { return follower_.wait(patience); }
  Result<void> signal(int number);
  bool ended() const { return follower_.ended(); }

 private:
  std::shared_ptr<ContainedRun> run_;
  int pid_ = 0;
  Follower follower_;
};

class ContainedProcess final : public Process {
 public:
  ContainedProcess(std::shared_ptr<ContainedCommand> command, std::weak_ptr<ContainedHome> home)
      : command_(std::move(command)), home_(std::move(home)) {}
  ~ContainedProcess() override;
  int pid() const noexcept override { return command_->pid(); }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override {
    BELLJAR_CHECK(owner_.check());
    return command_->wait(patience);
  }
  Result<void> signal(int number) override {
    BELLJAR_CHECK(owner_.check());
    return command_->signal(number);
  }
  Result<void> write_stdin(std::string_view bytes, std::chrono::milliseconds patience) override {
    BELLJAR_CHECK(owner_.check());
    const std::lock_guard lock(writing_);
    return command_->run().write(bytes, patience);
  }
  Result<void> close_stdin() override {
    BELLJAR_CHECK(owner_.check());
    return command_->run().close_input();
  }
  Result<void> resize(unsigned short rows, unsigned short columns) override {
    BELLJAR_CHECK(owner_.check());
    return command_->run().resize(rows, columns);
  }
  Result<void> detach() override;

 private:
  std::shared_ptr<ContainedCommand> command_;
  std::weak_ptr<ContainedHome> home_;
  std::mutex writing_;  // writes must not mix
  std::atomic<bool> detached_{false};
  OwningProcess owner_;
};

}  // namespace belljar::session
