// Threads for calls that may block, made when first needed and never more than a limit.
//
// A worker waits in connect(2) for as long as the caller would. tick() is how it learns that the caller was killed or has a signal
// to handle: it makes the worker's system call return EINTR by a real-time signal with an empty handler, sent to that one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "broker/notification.h"

namespace belljar::broker {

class Workers {
 public:
  // One call in work.
  class Slot {
   public:
    virtual bool interrupted() const noexcept = 0;

   protected:
    ~Slot() = default;
  };
  struct Jobs {
    std::function<void(const Call&, Slot&)> run;
    std::function<bool(const Call&)> caller_gone;
    std::function<bool(const Call&)> caller_signalled;
    std::function<void()> thread_started;
  };

  Workers(std::size_t limit, Jobs jobs);
  // Interrupts and waits for all threads; one that hangs in the kernel (a dead network mount) is left behind after two seconds.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False when there is no thread and none can be made.
  bool submit(const Call& call);
  // To be called every kTick while busy(): interrupts workers whose caller is gone or has had a signal waiting for two ticks.
  void tick();
  bool busy() const;

  static constexpr long kTickMilliseconds = 40;

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace belljar::broker
