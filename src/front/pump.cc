// One direction of one stream, with one buffer. The source is polled only while the buffer is
// empty, so a slow reader of ours makes the command's own writes block, as it would without us.
//
// No call here may block, and O_NONBLOCK may not be set on a descriptor that is shared with the
// caller: the flag belongs to the open file description, open(2), and the caller's shell would get
// EAGAIN. The kinds of descriptors need different ways. Pipes and terminals are opened anew through
// /proc/self/fd, which makes a description of our own. A socket cannot be opened so; it takes
// MSG_DONTWAIT with each call. Where opening anew is refused, a pipe or terminal stays blocking:
// then the pump writes only after POLLOUT and only as much as the kernel promises room for at that
// moment.
//
// A cap on the output may fall inside a UTF-8 character. Head (command/capture.h) keeps up to three
// bytes back until the next read shows whether the character still fits, so the pump carries them
// over between two reads, and writes them when the source ends.
//
// A regular file as input is read ahead of the command. The file offset is shared with the caller,
// so give_back() moves it back by what lies in our buffer and in the pipe. The size of the latter
// is asked of a second read end (FIONREAD), because the command's own is closed by then.
#include "front/pump.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/format.h"

namespace belljar::front {
namespace {

bool would_block(int errnum) noexcept { return errnum == EAGAIN || errnum == EWOULDBLOCK || errnum == EINTR; }

// Linux wakes a pipe's writer when a page is free and a terminal's when 256 bytes are (tty_io.c, WAKEUP_CHARS).
constexpr std::size_t kSafePipeWrite = 4096, kSafeTerminalWrite = 256;

}  // namespace

FdKind fd_kind(int fd) noexcept {
  struct stat status{};
  if (fd < 0 || fstat(fd, &status) != 0) return FdKind::kClosed;
  if (S_ISFIFO(status.st_mode)) return FdKind::kPipe;
  if (S_ISREG(status.st_mode)) return FdKind::kRegular;
  if (S_ISSOCK(status.st_mode)) return FdKind::kSocket;
  if (S_ISCHR(status.st_mode)) {
    if (status.st_rdev == makedev(1, 3)) return FdKind::kNull;
    if (isatty(fd) == 1) return FdKind::kTerminal;
  }
  return FdKind::kOther;
}

bool in_foreground(int fd) noexcept {
  // Only our controlling terminal stops us. The master of a pty answers with the groups of its slave, tty_ioctl(4).
  return tcgetsid(fd) != getsid(0) || tcgetpgrp(fd) == getpgrp();
}

UniqueFd own_description(int fd, int flags) noexcept {
  const FdKind kind = fd_kind(fd);
  if (kind == FdKind::kPipe || kind == FdKind::kTerminal) {
    UniqueFd again(::open(format("/proc/self/fd/{}", fd).c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (again.valid()) return again;
  }
  return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

Pump::Pump(UniqueFd source, UniqueFd sink, std::optional<std::uint64_t> cap)
    : source_(std::move(source)),
      sink_(std::move(sink)),
      source_kind_(fd_kind(source_.get())),
      sink_kind_(fd_kind(sink_.get())),
      sink_blocks_((sink_kind_ == FdKind::kPipe || sink_kind_ == FdKind::kTerminal) &&
                   (fcntl(sink_.get(), F_GETFL) & O_NONBLOCK) == 0),
      cap_(cap),
      head_(cap) {}

Pump::Pump(UniqueFd source, command::Capture* capture)
    : source_(std::move(source)), source_kind_(fd_kind(source_.get())), capture_(capture), head_({}) {}

bool Pump::waits_for_foreground() const noexcept {
  return source_.valid() && source_kind_ == FdKind::kTerminal && !in_foreground(source_.get());
}

int Pump::add_pollfds(pollfd* into) noexcept {
  int count = 0;
  // One buffer, filled when empty: back-pressure reaches the writer through the pipe. A background process must not touch its
  // terminal (SIGTTIN): the supervisor asks again later.
  if (source_.valid() && pending() == 0 && !waits_for_foreground()) into[count++] = {source_.get(), POLLIN, 0};
  if (sink_.valid()) into[count++] = {sink_.get(), static_cast<short>(pending() > 0 ? POLLOUT : 0), 0};
  return count;
}

bool Pump::handle(const pollfd* fds, int count) {
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    if (fds[i].revents == 0) continue;
    if (fds[i].fd == source_.get()) {
      moved |= read_some();
    } else if (fds[i].fd == sink_.get()) {
      if (pending() > 0) moved |= write_some(true);
      else if ((fds[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) lose_sink(EPIPE);
    }
  }
  return moved;
}

bool Pump::read_some() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(kBuffer);
  const std::size_t held = head_.held();
  std::ranges::copy_n(held_.begin(), static_cast<std::ptrdiff_t>(held), buffer_.get());
  char* const into = buffer_.get() + held;
  const ssize_t got = source_kind_ == FdKind::kSocket ? recv(source_.get(), into, kBuffer - held, MSG_DONTWAIT)
                                                      : read(source_.get(), into, kBuffer - held);
  if (got < 0 && would_block(errno)) return false;
  if (got <= 0) {  // EOF; a pty whose other side is closed says EIO; a source that cannot be read ends here, too
    source_ended();
    return false;
  }
  const auto size = static_cast<std::size_t>(got);
  total_ += size;
  if (modes_ != nullptr) modes_->read({into, size});
  if (capture_ != nullptr) {
    capture_->append({into, size});
    return true;
  }
  if (!sink_.valid()) {
    dropped_ += size;
    return true;
  }
  const std::size_t keep = head_.pass({buffer_.get(), held + size});
  std::ranges::copy_n(buffer_.get() + keep, static_cast<std::ptrdiff_t>(head_.held()), held_.begin());
  begin_ = 0, end_ = keep;
  if (keep > 0 && !sink_blocks_) write_some(false);
  return true;
}

bool Pump::write_some(bool polled_writable) {
  std::size_t size = pending();
  if (sink_blocks_) {
    if (!polled_writable) return false;
    size = std::min(size, sink_kind_ == FdKind::kTerminal ? kSafeTerminalWrite : kSafePipeWrite);
  }
  const ssize_t wrote = sink_kind_ == FdKind::kSocket ? send(sink_.get(), buffer_.get() + begin_, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                                      : write(sink_.get(), buffer_.get() + begin_, size);
  if (wrote < 0) {
    if (!would_block(errno)) lose_sink(errno);
    return false;
  }
  begin_ += static_cast<std::size_t>(wrote);
  if (pending() == 0 && !source_.valid()) sink_.reset();
  return wrote > 0;
}

void Pump::source_ended() {
  source_.reset();
  if (eof_character_ && sink_.valid()) {
    buffer_[0] = 0x04;  // VEOF of a fresh pty, termios(3)
    begin_ = 0, end_ = 1;
    write_some(false);
    return;
  }
  // Nothing follows that the cap would cut: the stream ends there.
  if (const std::size_t held = head_.held(); held > 0 && sink_.valid()) {
    std::ranges::copy_n(held_.begin(), static_cast<std::ptrdiff_t>(held), buffer_.get());
    begin_ = 0, end_ = held;
    write_some(false);
    return;
  }
  sink_.reset();
}

// The reader went away or the device is full: nobody will read what comes next. Closing the source lets the writer know by SIGPIPE,
// as if it had written there itself.
void Pump::lose_sink(int errnum) noexcept {
  sink_errno_ = errnum;
  dropped_ += pending();
  begin_ = end_ = 0;
  sink_.reset();
  source_.reset();
}

void Pump::remember_reader(UniqueFd reader) noexcept {
  reader_ = std::move(reader);
  file_ = UniqueFd(fcntl(source_.get(), F_DUPFD_CLOEXEC, 3));  // outlives our EOF; the offset is shared
}

void Pump::give_back() noexcept {
  int in_pipe = 0;
  if (reader_.valid() && file_.valid() && ioctl(reader_.get(), FIONREAD, &in_pipe) == 0) {
    const auto unread = static_cast<off_t>(pending()) + in_pipe;
    if (unread > 0) lseek(file_.get(), -unread, SEEK_CUR);
  }
  close_both();
}

void Pump::close_both() noexcept {
  source_.reset();
  sink_.reset();
  reader_.reset();
  file_.reset();
  begin_ = end_ = 0;
}

}  // namespace belljar::front
