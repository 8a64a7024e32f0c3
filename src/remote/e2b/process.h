// A command in the cloud with a thread of its own that reads its output, and the handle that a caller holds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "belljar/process.h"
#include "remote/e2b/run.h"

namespace belljar::remote::e2b {

class RemoteProcess final : public Process {
 public:
  explicit RemoteProcess(std::shared_ptr<Run> run);
  ~RemoteProcess() override;
  int pid() const noexcept override { return pid_; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override;
  Result<void> signal(int number) override;
  Result<void> write_stdin(std::string_view bytes, std::chrono::milliseconds patience) override;
  Result<void> close_stdin() override { return run_->close_input(); }
  Result<void> resize(unsigned short rows, unsigned short columns) override { return run_->resize(rows, columns); }
  Result<void> detach() override;

 private:
  void follow();

  std::shared_ptr<Run> run_;
  int pid_ = 0;
  std::atomic<bool> detached_{false};
  std::mutex writing_;  // writes must not mix
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<ExecResult>> result_;  // guarded by mutex_
  std::exception_ptr thrown_;                 // guarded by mutex_
  std::thread thread_;                        // last
};

}  // namespace belljar::remote::e2b
