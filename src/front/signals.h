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
  virtual int fd() const noexcept = 0;                   // readable: next() has something
  virtual std::optional<int> next() const noexcept = 0;  // a signal that it got
  virtual bool gone() const noexcept = 0;                // it was killed
  virtual void stop() const noexcept = 0;
};

// While it lives, the calling thread's INT TERM HUP QUIT USR1 USR2 WINCH TSTP CONT arrive at fd() instead of acting on us, and
// writes to closed pipes, full files and foreign terminals fail with an errno instead of a signal. A signal that was ignored when
// we started stays ignored, as nohup(1) and background jobs expect. The destructor restores the mask. One thread.
class Signals {
 public:
  enum class Mode { kForwarded, kNone };  // kNone: a host program keeps its signals, fd() is -1
  static Result<Signals> open(Mode take);
  // Of another process that is the caller's end of this front: what it gets arrives over `connection`, which must outlive this.
  // When it is gone, this process is killed, as it would have been in its place.
  static Result<Signals> open_remote(const RemoteEnd& connection);
  Signals(Signals&& other) noexcept;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  int fd() const noexcept { return remote_ != nullptr ? remote_->fd() : fd_.get(); }
  // Readable while one waits that is to end the program: INT TERM HUP QUIT. For poll(2) alone; next() takes it.
  int ending_fd() const noexcept { return ending_fd_.get(); }
  std::optional<int> next() noexcept;
  // Stops us, or who is the caller's end, by SIGSTOP.
  void stop() const noexcept;

 private:
  Signals() = default;
  UniqueFd fd_, ending_fd_;
  const RemoteEnd* remote_ = nullptr;
  sigset_t old_{};
  bool active_ = true;
};

}  // namespace belljar::front
