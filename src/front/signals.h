// The signals a front process passes on, as a descriptor.
#pragma once

#include <signal.h>

#include <optional>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::front {

// A process that was given our place with its caller: it gets the caller's signals, and its stop is what the caller sees.
class RemoteEnd {
 public:
  virtual ~RemoteEnd() = default;
  virtual int fd() const noexcept = 0;  // readable: next() has something
  // A signal that it got. Where it was killed, this process is, too, as it would have been in its place.
  virtual std::optional<int> next() noexcept = 0;
  virtual void stop() noexcept = 0;
};

// While it lives, the calling thread's INT TERM HUP QUIT USR1 USR2 WINCH TSTP CONT arrive at fd() instead of acting on us, and
// writes to closed pipes, full files and foreign terminals fail with an errno instead of a signal. A signal that was ignored when
// we started stays ignored, as nohup(1) and background jobs expect. The destructor restores the mask. One thread.
class Signals {
 public:
  enum class Mode { kForwarded, kNone };  // kNone: a host program keeps its signals, fd() is -1
  static Result<Signals> open(Mode take);
  // Of another process that is the caller's end of this front: what it gets arrives over `end`, which must outlive this.
  static Result<Signals> open_remote(RemoteEnd& end);
  Signals(Signals&& other) noexcept;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  int fd() const noexcept { return remote_ != nullptr ? remote_->fd() : fd_.get(); }
  // Readable while one waits that is to end the program: INT TERM HUP QUIT. For poll(2) alone; next() takes it.
  int ending_fd() const noexcept { return ending_fd_.get(); }
  std::optional<int> next() noexcept;
  // Stops us, or who is the caller's end, by SIGSTOP.
  void stop() noexcept;

 private:
  Signals() = default;
  UniqueFd fd_, ending_fd_;
  RemoteEnd* remote_ = nullptr;
  sigset_t old_{};
  bool active_ = true;
};

}  // namespace belljar::front
