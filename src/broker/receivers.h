// Threads that take calls from the listener themselves and answer them: no hand-over from an event loop.
//
// One of them waits in receive(); the others are parked. The kernel wakes *every* thread that waits on a listener for each call (2
// us each, measured), so a second one goes there only when calls wait already, or when the call in work takes longer than a few
// milliseconds: a FIFO without a reader, a slow disk, a connect. So nothing that blocks stops the callers behind it, and a fast
// call costs no thread switch but the one to us and back.
//
// A thread in a blocking system call waits for as long as the caller would. tick() is how it learns that the caller was killed or
// has a signal to handle: it makes the system call return EINTR by a real-time signal with an empty handler, sent to that one
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "broker/notification.h"

namespace belljar::broker {

class Receivers {
 public:
  // One call in work. To be used by the thread that works on it.
  class Slot {
   public:
    virtual bool interrupted() const noexcept = 0;
    // Between the two, tick() may interrupt a system call of this thread. Nothing else may be done there: an interrupted answer
    // would be lost.
    virtual void begin_blocking(bool every_tick) = 0;
    virtual void end_blocking() = 0;
    // Between the two this thread is not one of the `limit`. False: there are too many of those, or no thread is left to go on
    // with other calls and none can be made. Nothing was begun then.
    virtual bool begin_wait() = 0;
    virtual void end_wait() = 0;

   protected:
    ~Slot() = default;
  };
  // For the time of one system call that may block. With `kEveryTick` it returns EINTR at each tick, interrupted() or not: for who
  // has to look at something else meanwhile.
  enum class Until { kInterrupted, kEveryTick };
  class Blocking {
   public:
    explicit Blocking(Slot& slot, Until until = Until::kInterrupted) : slot_(slot) {
      slot_.begin_blocking(until == Until::kEveryTick);
    }
    ~Blocking() { slot_.end_blocking(); }
    Blocking(const Blocking&) = delete;
    Blocking& operator=(const Blocking&) = delete;

   private:
    Slot& slot_;
  };

  // For as long as a call waits for somebody who may never come, with no bound but its caller's patience. Such calls keep their
  // threads from nobody: else as many as there are threads would stop all others.
  class Wait {
   public:
    explicit Wait(Slot& slot) : slot_(slot), granted_(slot.begin_wait()) {}
    ~Wait() {
      if (granted_) slot_.end_wait();
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    bool granted() const noexcept { return granted_; }

   private:
    Slot& slot_;
    bool granted_;
  };
  static constexpr std::size_t kMostWaits = 512;  // or an eighth of the descriptors we may have, as each holds a few

  enum class Received { kCall, kNothing, kEnd };  // kNothing: try again; kEnd: there will be none any more
  struct Jobs {
    std::function<Received(Call&)> receive;  // waits; returns kNothing when a signal came
    std::function<bool()> more;              // another call waits already
    std::function<void(const Call&, Slot&)> run;
    std::function<bool(const Call&)> caller_gone;
    std::function<bool(const Call&)> caller_signalled;
    std::function<void()> thread_starting;  // by who makes it
    std::function<void()> thread_started;   // on the new one
    std::function<void()> work_started;     // after a quiet time: tick() is wanted kTickMilliseconds from now
  };

  Receivers(std::size_t limit, Jobs jobs);
  // Interrupts and waits for all threads; one that hangs in the kernel (a dead network mount) is left behind after two seconds.
  ~Receivers();
  Receivers(const Receivers&) = delete;
  Receivers& operator=(const Receivers&) = delete;

  // Makes the first thread. False when none can be made.
  bool start();
  // Interrupts calls whose caller is gone or has had a signal waiting for two ticks. True: to be called again after
  // kTickMilliseconds. False: nothing was in work since the last one, the next work_started() says when.
  bool tick();

  static constexpr long kTickMilliseconds = 40;

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace belljar::broker
