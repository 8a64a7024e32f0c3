// A wake-up call from one thread to another that polls, eventfd(2).
#pragma once

#include <sys/eventfd.h>

#include "base/unique_fd.h"

namespace belljar {

class Wake {
 public:
  // Not valid, with errno: no descriptor is free.
  Wake() noexcept : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  bool valid() const noexcept { return fd_.valid(); }
  int get() const noexcept { return fd_.get(); }  // readable once rung, for poll(2)
  // From any thread. Where it is full it is readable already.
  void ring() const noexcept { ::eventfd_write(fd_.get(), 1); }
  // Clears it: it is readable no more. False: it had not rung.
  bool take() const noexcept {
    eventfd_t rings = 0;
    return ::eventfd_read(fd_.get(), &rings) == 0;
  }

 private:
  UniqueFd fd_;
};

}  // namespace belljar
