// One direction of one stream: bytes from a descriptor to a descriptor or to a Capture, whenever poll says so.
//
// A pump never blocks and never changes the state of a descriptor it shares with the caller: O_NONBLOCK lives in the open file
// description, and the caller's shell has the same one. Terminals and pipes are opened anew for that, sockets use MSG_DONTWAIT.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/unique_fd.h"
#include "command/capture.h"
#include "front/terminal_modes.h"

namespace belljar::front {

// The kind of a caller's descriptor, as far as handing it in goes.
enum class FdKind { kClosed, kNull, kPipe, kRegular, kSocket, kTerminal, kOther };
FdKind fd_kind(int fd) noexcept;
// True for the kinds that a command may hold itself (see stdio.h).
constexpr bool passes_through(FdKind kind) noexcept { return kind == FdKind::kNull || kind == FdKind::kPipe; }

// True when reading the terminal `fd` would not stop us: it is not our controlling terminal, or we are its foreground group.
bool in_foreground(int fd) noexcept;

// A descriptor for the caller's `fd` that can be used without blocking where the kind allows that. `flags`: O_RDONLY or O_WRONLY.
UniqueFd own_description(int fd, int flags) noexcept;

class Pump {
 public:
  Pump(UniqueFd source, UniqueFd sink, std::optional<std::uint64_t> cap = {});
  Pump(UniqueFd source, command::Capture* capture);

  // Adds what to poll for now, at most two entries; returns how many. A pump that is done adds none.
  int add_pollfds(pollfd* into) noexcept;
  // `fds` are those of add_pollfds, with revents. Returns true when bytes moved.
  bool handle(const pollfd* fds, int count);

  std::size_t pending() const noexcept { return end_ - begin_; }
  bool done() const noexcept { return !source_.valid() && pending() == 0; }
  std::uint64_t total() const noexcept { return total_; }                        // bytes read
  std::uint64_t dropped() const noexcept { return dropped_ + head_.dropped(); }  // of them beyond the cap, or unwritable
  bool over_cap() const noexcept { return capture_ != nullptr ? capture_->over() : cap_ && total_ > *cap_; }
  int sink_errno() const noexcept { return sink_errno_; }  // why the sink was given up: EPIPE, ENOSPC; 0 while it works
  bool waits_for_foreground() const noexcept;

  // At the end of the source, write the terminal's end-of-file character instead of closing the sink (a pty has no half-close).
  void end_with_eof_character() noexcept { eof_character_ = true; }
  // Every byte of the source is shown to `modes`, which outlives the pump.
  void tell(TerminalModes* modes) noexcept { modes_ = modes; }
  // Source is a regular file and `reader` a read end of the pipe that is our sink: give_back() returns to the file what the
  // command did not consume, so a `while read` loop around us keeps its input.
  void remember_reader(UniqueFd reader) noexcept;
  void give_back() noexcept;

  void close_both() noexcept;

 private:
  bool read_some();
  bool write_some(bool polled_writable);
  void source_ended();
  void lose_sink(int errnum) noexcept;

  static constexpr std::size_t kBuffer = 128U << 10;

  UniqueFd source_, sink_;
  UniqueFd reader_, file_;  // for give_back
  FdKind source_kind_ = FdKind::kOther, sink_kind_ = FdKind::kOther;
  bool sink_blocks_ = false;  // a pipe or terminal we could not open anew: write little, and only after POLLOUT
  bool eof_character_ = false;
  TerminalModes* modes_ = nullptr;
  command::Capture* capture_ = nullptr;
  std::optional<std::uint64_t> cap_;
  command::Head head_;
  std::unique_ptr<char[]> buffer_;  // made with the first byte: an idle stream costs nothing
  std::size_t begin_ = 0, end_ = 0;
  std::array<char, 3> held_{};  // head_.held() bytes
  std::uint64_t total_ = 0, dropped_ = 0;
  int sink_errno_ = 0;
};

}  // namespace belljar::front
