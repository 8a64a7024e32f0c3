#include "session/contained_process.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "session/contained.h"
#include "session/contained_run.h"

namespace belljar::session {

ContainedCommand::ContainedCommand(std::shared_ptr<ContainedRun> run, const std::weak_ptr<ContainedHome>& home)
    : run_(std::move(run)),
      pid_(run_->await_start()),
      follower_(
          {.read = [run = run_] { return run->finish(); },
           .unread = [run = run_](ExecResult& result) { run->give_back(result); },
           .at_end = [run = run_, home] { leave_home(home, [&](const auto& command) { return &command->run() == run.get(); }); }}) {
}

Result<void> ContainedCommand::signal(int number) {
  if (number < 1 || number > SIGRTMAX) return Error(Code::kInvalidArgument, format("there is no signal {}", number));
  if (ended()) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it has ended");
  return run_->signal(number);
}

ContainedProcess::~ContainedProcess() {
  if (!owner_.is_this()) abandon(command_);
  else if (!detached_.load()) command_->run().cancel();
}

Result<void> ContainedProcess::detach() {
  BELLJAR_CHECK(owner_.check());
  const auto home = home_.lock();
  if (home == nullptr) return Error(Code::kFailedPrecondition, "cannot detach the command").reason("its sandbox is gone");
  if (detached_.exchange(true)) return {};
  command_->run().detach();
  const std::lock_guard lock(home->mutex);
  if (!command_->ended()) home->commands.push_back(command_);
  return {};
}

}  // namespace belljar::session
