// The user's terminal while a command runs on a pty of its own: raw, so that every key reaches the inner terminal, and restored
// whatever ends us, SIGKILL excepted.
#pragma once

#include <sys/ioctl.h>
#include <termios.h>

#include <optional>

namespace belljar::front {

std::optional<winsize> window_size(int terminal) noexcept;

// At most one at a time in a process: a crash handler has to find it. One thread.
class RawTerminal {
 public:
  // `terminal` stays the caller's. Not a terminal: does nothing.
  explicit RawTerminal(int terminal) noexcept;
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal();

  // Raw mode, if we are in the foreground: a background job that changes the terminal would be stopped (SIGTTOU). Idempotent.
  void enter() noexcept;
  void restore() noexcept;
  bool is_terminal() const noexcept { return valid_; }
  bool is_raw() const noexcept { return raw_; }

 private:
  int fd_;
  bool valid_ = false, raw_ = false;
  termios saved_{};
};

}  // namespace belljar::front
