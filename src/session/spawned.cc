#include "session/spawned.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/format.h"
#include "base/thread.h"
#include "session/patience.h"

namespace belljar::session {
namespace {

using Clock = std::chrono::steady_clock;

// write(2) to a pipe that nobody reads raises SIGPIPE: blocked for this thread meanwhile, and taken away if it was ours.
ssize_t write_quietly(int fd, std::string_view bytes) {
  sigset_t pipe;
  sigset_t old;
  sigset_t pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::sigpending(&pending);
  const bool had = sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe, &old);
  const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  const int error = errno;
  const timespec now{};
  if (written < 0 && error == EPIPE && !had) ::sigtimedwait(&pipe, nullptr, &now);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  errno = error;
  return written;
}

Error no_input(const char* reason) {
  return Error(Code::kFailedPrecondition, "cannot write to the command's stdin").reason(reason);
}

}  // namespace

SpawnedCommand::SpawnedCommand(std::unique_ptr<Running> running, std::shared_ptr<Core> core, bool terminal)
    : running_(std::move(running)),
      core_(std::move(core)),
      terminal_(terminal),
      pid_(running_->await_start()),
      input_(running_->take_input()) {
  thread_ = start_thread([this] { follow(); });
}

SpawnedCommand::~SpawnedCommand() {
  thread_.join();
  if (result_ && !told_) core_->give_back(*result_);
}

void SpawnedCommand::follow() {
  std::optional<ExecResult> result;
  std::exception_ptr thrown;
  try {
    result = running_->finish();
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  result_ = std::move(result);
  thrown_ = thrown;
  changed_.notify_all();
}

bool SpawnedCommand::ended() {
  const std::lock_guard lock(mutex_);
  return result_ || thrown_;
}

Result<std::optional<ExecResult>> SpawnedCommand::wait(std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return result_ || thrown_; };
  if (!patience) changed_.wait(lock, over);
  else if (!changed_.wait_for(lock, bounded(*patience), over)) return std::optional<ExecResult>();
  if (thrown_) std::rethrow_exception(thrown_);
  told_ = true;
  return result_;
}

Result<void> SpawnedCommand::signal(int number) {
  if (number < 1 || number > SIGRTMAX) return Error(Code::kInvalidArgument, format("there is no signal {}", number));
  if (ended()) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it has ended");
  core_->signal(running_->id(), number);
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
  if (!detached_.load()) command_->cancel();
}

Result<void> SpawnedProcess::detach() {
  const auto home = home_.lock();
  if (home == nullptr) return Error(Code::kFailedPrecondition, "cannot detach the command").reason("its sandbox is gone");
  if (detached_.exchange(true)) return {};
  command_->detach();
  const std::lock_guard lock(home->mutex);
  std::erase_if(home->commands, [](const auto& command) { return command->ended(); });
  home->commands.push_back(command_);
  return {};
}

}  // namespace belljar::session
