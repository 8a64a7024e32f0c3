#include "session/spawned.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/held_signal.h"
#include "base/patience.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "session/core.h"
#include "session/ended.h"
#include "session/live.h"
#include "session/running.h"

namespace belljar::session {
namespace {

using Clock = std::chrono::steady_clock;

// write(2) to a pipe that nobody reads raises SIGPIPE.
ssize_t write_quietly(int fd, std::string_view bytes) {
  const HeldSignal nobody_reads(SIGPIPE);
  return ::write(fd, bytes.data(), bytes.size());
}

}  // namespace

SpawnedCommand::SpawnedCommand(std::shared_ptr<Running> running, std::shared_ptr<Core> core, bool terminal,
                               const std::weak_ptr<Detached>& home)
    : running_(std::move(running)),
      core_(std::move(core)),
      terminal_(terminal),
      pid_(running_->await_start()),
      input_(running_->take_input()),
      follower_(
          {.read = [run = running_] { return run->finish(); },
           .unread = [core = core_](ExecResult& result) { core->give_back(result); },
           .at_end = [run = running_, home] { leave_home(home, [&](const auto& command) { return command->runs(*run); }); }}) {}

Result<void> SpawnedCommand::signal(int number) {
  if (number < 1 || number > SIGRTMAX) return Error(Code::kInvalidArgument, format("there is no signal {}", number));
  if (ended()) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it has ended");
  const std::uint32_t id = running_->id();
  if (id == 0) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it was never sent");  // 0 is all
  core_->signal(id, number);
  return {};
}

Result<void> SpawnedCommand::write(std::string_view bytes, std::chrono::milliseconds patience) {
  const std::lock_guard lock(input_mutex_);
  if (!input_.valid()) return no_input("it was spawned without a pipe for it, or the pipe is closed");
  const Clock::time_point end = Clock::now() + bounded(patience);
  while (!bytes.empty()) {
    const ssize_t written = write_quietly(input_.get(), bytes);
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EPIPE || errno == EIO) return no_input("nobody reads it any more");
    if (errno != EAGAIN && errno != EINTR) return no_input("the pipe failed");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0)
      return Error(Code::kDeadlineExceeded, "cannot write to the command's stdin")
          .reason(format("it did not read for {}", to_string(patience)));
    if (ended()) return no_input("the command has ended");
    pollfd wait{input_.get(), POLLOUT, 0};
    // In short steps: a descendant may hold the pipe open after the command's end.
    ::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left, 200)));
  }
  return {};
}

Result<void> SpawnedCommand::close_stdin() {
  if (terminal_) return write("\x04", std::chrono::seconds(5));
  const std::lock_guard lock(input_mutex_);
  input_.reset();
  return {};
}

Result<void> SpawnedCommand::resize(unsigned short rows, unsigned short columns) {
  const std::lock_guard lock(input_mutex_);
  const winsize size{rows, columns, 0, 0};
  if (!terminal_ || ::ioctl(input_.get(), TIOCSWINSZ, &size) < 0)
    return Error(Code::kFailedPrecondition, "cannot resize the terminal").reason("the command was spawned without one");
  return {};
}

SpawnedProcess::~SpawnedProcess() {
  if (!owner_.is_this()) abandon(command_);
  else if (!detached_.load()) command_->cancel();
}

Result<void> SpawnedProcess::detach() {
  BELLJAR_CHECK(owner_.check());
  const auto home = home_.lock();
  if (home == nullptr) return Error(Code::kFailedPrecondition, "cannot detach the command").reason("its sandbox is gone");
  if (detached_.exchange(true)) return {};
  command_->detach();
  const std::lock_guard lock(home->mutex);
  if (!command_->ended()) home->commands.push_back(command_);
  return {};
}

}  // namespace belljar::session
