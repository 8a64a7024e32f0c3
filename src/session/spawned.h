// A command with a thread of its own that reads its output.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/owner.h"
#include "belljar/process.h"
#include "session/follower.h"
#include "session/live.h"
#include "session/running.h"

namespace belljar::session {

class SpawnedCommand {
 public:
  // `home`: where it is kept once it is detached, until it ends. The destructor waits for the command's end (follower.h).
  SpawnedCommand(std::shared_ptr<Running> running, std::shared_ptr<Core> core, bool terminal, const std::weak_ptr<Detached>& home);

  int pid() const noexcept { return pid_; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) { return follower_.wait(patience); }
  Result<void> signal(int number);
  Result<void> write(std::string_view bytes, std::chrono::milliseconds patience);
  Result<void> close_stdin();
  Result<void> resize(unsigned short rows, unsigned short columns);
  void cancel() noexcept { running_->cancel(); }
  void detach() noexcept { running_->detach(); }
  bool ended() const { return follower_.ended(); }
  bool runs(const Running& running) const noexcept { return running_.get() == &running; }

 private:
  std::shared_ptr<Running> running_;
  std::shared_ptr<Core> core_;
  bool terminal_;
  int pid_ = 0;
  std::mutex input_mutex_;  // around writes, which must not mix
  UniqueFd input_;          // guarded by input_mutex_
  Follower follower_;
};

// The handle that a caller holds.
class SpawnedProcess final : public Process {
 public:
  SpawnedProcess(std::shared_ptr<SpawnedCommand> command, std::weak_ptr<Detached> home)
      : command_(std::move(command)), home_(std::move(home)) {}
  ~SpawnedProcess() override;
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
    return command_->write(bytes, patience);
  }
  Result<void> close_stdin() override {
    BELLJAR_CHECK(owner_.check());
    return command_->close_stdin();
  }
  Result<void> resize(unsigned short rows, unsigned short columns) override {
    BELLJAR_CHECK(owner_.check());
    return command_->resize(rows, columns);
  }
  Result<void> detach() override;

 private:
  std::shared_ptr<SpawnedCommand> command_;
  std::weak_ptr<Detached> home_;
  std::atomic<bool> detached_{false};
  OwningProcess owner_;
};

}  // namespace belljar::session
