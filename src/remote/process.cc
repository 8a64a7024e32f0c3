#include "remote/process.h"

#include <signal.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::remote {

RemoteProcess::RemoteProcess(std::shared_ptr<Followed> run)
    : run_(std::move(run)),
      pid_(run_->await_start()),
      follower_(std::make_unique<session::Follower>(
          session::Follower::Work{.read = [run = run_] { return run->finish(); }, .unread = {}, .at_end = {}})) {}

RemoteProcess::~RemoteProcess() {
  if (!owner_.is_this()) {
    abandon(run_);
    abandon(follower_);
    return;
  }
  if (!detached_.load()) run_->cancel();
}

Result<void> RemoteProcess::signal(int number) {
  BELLJAR_CHECK(owner_.check());
  if (number < 1 || number > SIGRTMAX) return Error(Code::kInvalidArgument, format("there is no signal {}", number));
  if (follower_->ended()) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it has ended");
  return run_->signal(number);
}

Result<void> RemoteProcess::write_stdin(std::string_view bytes, std::chrono::milliseconds patience) {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard lock(writing_);
  return run_->write(bytes, patience);
}

Result<void> RemoteProcess::detach() {
  BELLJAR_CHECK(owner_.check());
  if (detached_.exchange(true)) return {};
  run_->detach();
  return {};
}

}  // namespace belljar::remote
