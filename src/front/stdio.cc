// The choice for each of the three descriptors: hand it in, relay it through a pipe of ours, or put
// a pty in its place. stdio.h says why only pipes and /dev/null are handed in.
//
// A pipe is relayed too when somebody counts or watches its bytes: a cap on the output and an idle
// timeout both need every byte to pass here. When descriptors 1 and 2 of the caller are the same
// file and both are relayed, they share one pipe. With two pipes the order of the lines would be
// lost, because each would be read for itself. Captured or capped streams stay apart, because each
// has its own buffer or cap.
//
// Only our end of a pipe is made non-blocking. The two ends of a pipe have separate open file
// descriptions, so the command's end blocks as programs expect.
#include "front/stdio.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/format.h"

namespace belljar::front {
namespace {

constexpr const char* kNames[] = {"stdin", "stdout", "stderr"};

// A pipe on no file system but the kernel's own; a FIFO lies in somebody's directory and keeps its owner.
bool is_anonymous_pipe(int fd) noexcept {
  struct statfs status{};
  return fstatfs(fd, &status) == 0 && status.f_type == PIPEFS_MAGIC;
}

void give_to_owner(const StdioOptions& options, int fd) noexcept {
  if (options.owner && geteuid() == 0 && is_anonymous_pipe(fd)) {
    // Failure means that /dev/stdout cannot be opened by name inside; the descriptor works all the same.
    [[maybe_unused]] const int ignored = fchown(fd, options.owner->first, options.owner->second);
  }
}

struct Pipe {
  UniqueFd read, write;
};

// `ours`: the end that we use, which is non-blocking; the command's end blocks, as programs expect.
enum class Ours { kRead, kWrite };
Result<Pipe> make_pipe(const StdioOptions& options, Ours ours, int n) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return Error(Code::kResourceExhausted, format("cannot make a pipe for {}", kNames[n]))
        .sys(errno, "pipe2")
        .next("raise the limit of open files (`ulimit -n`)");
  }
  Pipe pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
  fcntl(ours == Ours::kRead ? fds[0] : fds[1], F_SETFL, (ours == Ours::kRead ? O_RDONLY : O_WRONLY) | O_NONBLOCK);
  give_to_owner(options, fds[0]);
  return pipe;
}

Result<UniqueFd> open_host(int fd, int flags, int n) {
  UniqueFd own = own_description(fd, flags);
  if (own.valid()) return own;
  return Error(Code::kResourceExhausted, format("cannot duplicate {}", kNames[n]))
      .sys(errno, "fcntl")
      .next("raise the limit of open files (`ulimit -n`)");
}

}  // namespace

unsigned reopen_closed_stdio() noexcept {
  unsigned closed = 0;
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    closed |= 1U << fd;
    // The lowest free number is `fd`: those below it are open by now. Without /dev/null nothing else could work either. Writing to
    // it fails with EBADF as it would have.
    // NOLINTNEXTLINE(android-cloexec-open): 0, 1 and 2 are inherited
    if (::open("/dev/null", O_RDONLY) != fd) _exit(125);
  }
  return closed;
}

bool wants_pty(const StdioOptions& options) noexcept {
  if (options.pty != Pty::kAuto) return options.pty == Pty::kYes;
  return options.output == OutputTo::kInherit && options.input == Input::kInherit &&
         fd_kind(options.host[0]) == FdKind::kTerminal && fd_kind(options.host[1]) == FdKind::kTerminal;
}

Result<Stdio> Stdio::open(const StdioOptions& given) {
  StdioOptions options = given;
  options.watch |= options.cap.has_value();
  Stdio stdio;
  stdio.cap_ = options.cap;
  stdio.capture_ = options.output == OutputTo::kCapture;
  for (int n = 0; n < 3; ++n) stdio.host_[n] = options.host[n];
  if (options.input == Input::kNull) stdio.host_[0] = options.host[0] = -1;
  stdio.pty_ = wants_pty(options);
  if (!stdio.pty_) {
    BELLJAR_CHECK(stdio.open_input(options));
    BELLJAR_CHECK(stdio.open_output(options, 1));
  }
  // With a pty, 2 goes there as well unless the caller sent it somewhere else.
  if (stdio.pty_ && (options.output == OutputTo::kCapture || fd_kind(options.host[2]) == FdKind::kTerminal)) return stdio;
  if (!stdio.pty_ && stdio.same_target(options)) stdio.ends_[2] = stdio.ends_[1];
  else BELLJAR_CHECK(stdio.open_output(options, 2));
  return stdio;
}

bool Stdio::same_target(const StdioOptions& options) const noexcept {
  if (options.output == OutputTo::kCapture || options.cap || !output_) return false;
  struct stat out{}, err{};
  return fstat(options.host[1], &out) == 0 && fstat(options.host[2], &err) == 0 && out.st_dev == err.st_dev &&
         out.st_ino == err.st_ino;
}

Result<void> Stdio::open_input(const StdioOptions& options) {
  const FdKind kind = fd_kind(options.host[0]);
  if (kind == FdKind::kClosed) return {};
  if (kind == FdKind::kNull || (kind == FdKind::kPipe && !options.watch)) {
    give_to_owner(options, options.host[0]);
    ends_[0] = options.host[0];
    return {};
  }
  Pipe pipe = BELLJAR_TRY(make_pipe(options, Ours::kWrite, 0));
  input_ = std::make_unique<Pump>(BELLJAR_TRY(open_host(options.host[0], O_RDONLY, 0)), std::move(pipe.write));
  if (kind == FdKind::kRegular) input_->remember_reader(UniqueFd(fcntl(pipe.read.get(), F_DUPFD_CLOEXEC, 3)));
  owned_[0] = std::move(pipe.read);
  ends_[0] = owned_[0].get();
  return {};
}

Result<void> Stdio::open_output(const StdioOptions& options, int n) {
  std::unique_ptr<Pump>& pump = n == 1 ? output_ : error_;
  if (options.output == OutputTo::kInherit) {
    const FdKind kind = fd_kind(options.host[n]);
    if (kind == FdKind::kClosed) return {};
    if (kind == FdKind::kNull || (kind == FdKind::kPipe && !options.watch)) {
      give_to_owner(options, options.host[n]);
      ends_[n] = options.host[n];
      return {};
    }
  }
  Pipe pipe = BELLJAR_TRY(make_pipe(options, Ours::kRead, n));
  if (options.output == OutputTo::kCapture) {
    captures_[n - 1] = std::make_unique<command::Capture>(options.cap.value_or(UINT64_MAX));
    pump = std::make_unique<Pump>(std::move(pipe.read), captures_[n - 1].get());
  } else {
    pump = std::make_unique<Pump>(std::move(pipe.read), BELLJAR_TRY(open_host(options.host[n], O_WRONLY, n)), options.cap);
  }
  owned_[n] = std::move(pipe.write);
  ends_[n] = owned_[n].get();
  return {};
}

void Stdio::close_command_ends() noexcept {
  for (int n = 0; n < 3; ++n) {
    ends_[n] = -1;
    owned_[n].reset();
  }
}

void Stdio::attach_pty(UniqueFd master) {
  fcntl(master.get(), F_SETFL, O_RDWR | O_NONBLOCK);
  master_ = UniqueFd(fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  if (host_[0] >= 0) {
    input_ = std::make_unique<Pump>(own_description(host_[0], O_RDONLY), UniqueFd(fcntl(master.get(), F_DUPFD_CLOEXEC, 3)));
    input_->end_with_eof_character();
  }
  if (capture_) {
    captures_[0] = std::make_unique<command::Capture>(cap_.value_or(UINT64_MAX));
    output_ = std::make_unique<Pump>(std::move(master), captures_[0].get());
  } else {
    output_ = std::make_unique<Pump>(std::move(master), own_description(host_[1], O_WRONLY), cap_);
    if (fd_kind(host_[1]) == FdKind::kTerminal) {
      modes_ = std::make_unique<TerminalModes>();
      output_->tell(modes_.get());
    }
  }
}

void Stdio::undo_modes() noexcept {
  if (!modes_) return;
  const std::string text = modes_->undo();
  // Few bytes: what a full terminal does not take is lost.
  const UniqueFd terminal = own_description(host_[1], O_WRONLY);
  if (!text.empty() && terminal.valid()) [[maybe_unused]]
    const ssize_t ignored = ::write(terminal.get(), text.data(), text.size());
}

void Stdio::set_window_size(const winsize& size) noexcept {
  // The kernel sends SIGWINCH to the inner foreground group by itself, tty_ioctl(4).
  ioctl(master_.get(), TIOCSWINSZ, &size);
}

bool Stdio::lost_terminal() const noexcept {
  if (!master_.valid()) return false;
  pollfd host{host_[1], 0, 0};
  return poll(&host, 1, 0) == 1 && (host.revents & POLLHUP) != 0;
}

void Stdio::hang_up() noexcept {
  if (input_) input_->close_both();
  if (output_) output_->close_both();
  master_.reset();
}

Output Stdio::take_out() { return captures_[0] ? std::move(*captures_[0]).finish() : Output{}; }
Output Stdio::take_err() { return captures_[1] ? std::move(*captures_[1]).finish() : Output{}; }

}  // namespace belljar::front
