// A command in a container with a thread of its own that reads its output, and the handle that a caller holds.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "belljar/process.h"
#include "session/contained.h"
#include "session/contained_run.h"

namespace belljar::session {

class ContainedCommand {
 public:
  explicit ContainedCommand(std::unique_ptr<ContainedRun> run);
  ~ContainedCommand();  // waits for the command's end
  ContainedCommand(const ContainedCommand&) = delete;
  ContainedCommand& operator=(const ContainedCommand&) = delete;

  int pid() const noexcept { return pid_; }
  ContainedRun& run() noexcept { return *run_; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience);
  Result<void> signal(int number);
  bool ended();

 private:
  void follow();

  std::unique_ptr<ContainedRun> run_;
  int pid_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ExecResult> result_;  // guarded by mutex_
  std::exception_ptr thrown_;         // guarded by mutex_
  std::thread thread_;
};

class ContainedProcess final : public Process {
 public:
  ContainedProcess(std::shared_ptr<ContainedCommand> command, std::weak_ptr<ContainedHome> home)
      : command_(std::move(command)), home_(std::move(home)) {}
  ~ContainedProcess() override;
  int pid() const noexcept override { return command_->pid(); }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override {
    return command_->wait(patience);
  }
  Result<void> signal(int number) override { return command_->signal(number); }
  Result<void> write_stdin(std::string_view bytes, std::chrono::milliseconds patience) override {
    const std::lock_guard lock(writing_);
    return command_->run().write(bytes, patience);
  }
  Result<void> close_stdin() override { return command_->run().close_input(); }
  Result<void> resize(unsigned short rows, unsigned short columns) override { return command_->run().resize(rows, columns); }
  Result<void> detach() override;

 private:
  std::shared_ptr<ContainedCommand> command_;
  std::weak_ptr<ContainedHome> home_;
  std::mutex writing_;  // writes must not mix
  std::atomic<bool> detached_{false};
};

}  // namespace belljar::session
