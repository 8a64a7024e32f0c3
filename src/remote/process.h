// A command in the cloud with a thread of its own that reads its output, and the handle that a caller holds.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/owner.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "session/follower.h"

namespace belljar::remote {

// One command as its cloud runs it. The waiter calls await_start() and finish(), the rest may come from any thread.
class Followed {
 public:
  virtual ~Followed() = default;

  // Blocks until it is known whether the command was started; its pid inside, or 0.
  virtual int await_start() = 0;
  // Blocks until the end. What a callback threw comes out of here. Errors: kUnavailable, kUnauthenticated ...: the command was
  // never started.
  virtual Result<ExecResult> finish() = 0;

  virtual void cancel() noexcept = 0;
  virtual void detach() noexcept = 0;
  virtual Result<void> write(std::string_view bytes, std::chrono::milliseconds patience) = 0;
  virtual Result<void> close_input() = 0;
  virtual Result<void> resize(unsigned short rows, unsigned short columns) = 0;
  virtual Result<void> signal(int number) = 0;
};

class RemoteProcess final : public Process {
 public:
  explicit RemoteProcess(std::shared_ptr<Followed> run);
  ~RemoteProcess() override;
  int pid() const noexcept override { return pid_; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override {
    BELLJAR_CHECK(owner_.check());
    return follower_->wait(patience);
  }
  Result<void> signal(int number) override;
  Result<void> write_stdin(std::string_view bytes, std::chrono::milliseconds patience) override;
  Result<void> close_stdin() override {
    BELLJAR_CHECK(owner_.check());
    return run_->close_input();
  }
  Result<void> resize(unsigned short rows, unsigned short columns) override {
    BELLJAR_CHECK(owner_.check());
    return run_->resize(rows, columns);
  }
  Result<void> detach() override;

 private:
  std::shared_ptr<Followed> run_;
  int pid_ = 0;
  std::atomic<bool> detached_{false};
  std::mutex writing_;  // writes must not mix
  std::unique_ptr<session::Follower> follower_;
  const OwningProcess owner_;
};

}  // namespace belljar::remote
