#include "remote/process.h"

#include <signal.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/patience.h"
#include "base/thread.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar::remote {

RemoteProcess::RemoteProcess(std::shared_ptr<Followed> run) : run_(std::move(run)), pid_(run_->await_start()) {
  thread_ = start_thread([this] { follow(); });
}

RemoteProcess::~RemoteProcess() {
  if (!detached_.load()) run_->cancel();
  thread_.join();
}

void RemoteProcess::follow() {
  std::optional<Result<ExecResult>> result;
  std::exception_ptr thrown;
  try {
    result = run_->finish();
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  result_ = std::move(result);
  thrown_ = thrown;
  changed_.notify_all();
}

Result<std::optional<ExecResult>> RemoteProcess::wait(std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return result_ || thrown_; };
  if (!patience) changed_.wait(lock, over);
  else if (!changed_.wait_for(lock, bounded(*patience), over)) return std::optional<ExecResult>();
  if (thrown_) std::rethrow_exception(thrown_);
  if (!*result_) return result_->error();
  return std::optional(**result_);
}

Result<void> RemoteProcess::signal(int number) {
  if (number < 1 || number > SIGRTMAX) return Error(Code::kInvalidArgument, format("there is no signal {}", number));
  {
    const std::lock_guard lock(mutex_);
    if (result_ || thrown_) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it has ended");
  }
  return run_->signal(number);
}

Result<void> RemoteProcess::write_stdin(std::string_view bytes, std::chrono::milliseconds patience) {
  const std::lock_guard lock(writing_);
  return run_->write(bytes, patience);
}

Result<void> RemoteProcess::detach() {
  if (detached_.exchange(true)) return {};
  run_->detach();
  return {};
}

}  // namespace belljar::remote
