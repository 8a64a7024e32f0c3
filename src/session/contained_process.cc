#include "session/contained_process.h"

#include <signal.h>

#include <algorithm>

#include "base/format.h"
#include "base/thread.h"
#include "session/patience.h"

namespace belljar::session {

ContainedCommand::ContainedCommand(std::unique_ptr<ContainedRun> run) : run_(std::move(run)), pid_(run_->await_start()) {
  thread_ = start_thread([this] { follow(); });
}

ContainedCommand::~ContainedCommand() { thread_.join(); }

void ContainedCommand::follow() {
  std::optional<ExecResult> result;
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

bool ContainedCommand::ended() {
  const std::lock_guard lock(mutex_);
  return result_ || thrown_;
}

Result<std::optional<ExecResult>> ContainedCommand::wait(std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return result_ || thrown_; };
  if (!patience) changed_.wait(lock, over);
  else if (!changed_.wait_for(lock, bounded(*patience), over)) return std::optional<ExecResult>();
  if (thrown_) std::rethrow_exception(thrown_);
  return result_;
}

Result<void> ContainedCommand::signal(int number) {
  if (number < 1 || number > SIGRTMAX) return Error(Code::kInvalidArgument, format("there is no signal {}", number));
  if (ended()) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it has ended");
  return run_->signal(number);
}

ContainedProcess::~ContainedProcess() {
  if (!detached_.load()) command_->run().cancel();
}

Result<void> ContainedProcess::detach() {
  const auto home = home_.lock();
  if (home == nullptr) return Error(Code::kFailedPrecondition, "cannot detach the command").reason("its sandbox is gone");
  if (detached_.exchange(true)) return {};
  command_->run().detach();
  const std::lock_guard lock(home->mutex);
  std::erase_if(home->commands, [](const auto& command) { return command->ended(); });
  home->commands.push_back(command_);
  return {};
}

}  // namespace belljar::session
