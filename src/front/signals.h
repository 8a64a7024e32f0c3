// The signals a front process passes on, as a descriptor.
#pragma once

#include <signal.h>

#include <optional>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::front {

// While it lives, the calling thread's INT TERM HUP QUIT USR1 USR2 WINCH TSTP CONT arrive at fd() instead of acting on us, and
// writes to closed pipes, full files and foreign terminals fail with an errno instead of a signal. A signal that was ignored when
// we started stays ignored, as nohup(1) and background jobs expect. The destructor restores the mask. One thread.
class Signals {
 public:
  enum class Mode { kForwarded, kNone };  // kNone: a host program keeps its signals, fd() is -1
  static Result<Signals> open(Mode take);
  Signals(Signals&& other) noexcept;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  int fd() const noexcept { return fd_.get(); }
  // Readable while one waits that is to end the program: INT TERM HUP QUIT. For poll(2) alone; next() takes it.
  int ending_fd() const noexcept { return ending_fd_.get(); }
  std::optional<int> next() noexcept;

 private:
  Signals() = default;
  UniqueFd fd_, ending_fd_;
  sigset_t old_{};
  bool active_ = true;
};

}  // namespace belljar::front
