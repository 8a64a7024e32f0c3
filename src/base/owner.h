// Which process an object belongs to, for programs that fork.
#pragma once

#include <unistd.h>

#include <atomic>
#include <utility>

#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {

// Remembers the process that made an object with threads or processes. After fork(2) the child holds a copy of the object and of
// its descriptors, without the threads that serve it: a call would wait for ever, and a destructor end what the parent still uses.
class OwningProcess {
 public:
  bool is_this() const noexcept { return pid_.load() == ::getpid(); }
  // From now on it belongs to this process.
  void take() noexcept { pid_.store(::getpid()); }
  Result<void> check() const {
    if (is_this()) return {};
    return not_this();
  }
  static Error not_this() {
    return Error(Code::kFailedPrecondition, "cannot use what another process made")
        .reason("it belongs to the process that this one was forked from")
        .next("make another here, or let the parent do it");
  }

 private:
  std::atomic<pid_t> pid_{::getpid()};
};

// Leaks `value` on purpose, with its descriptors: in a forked child, what belongs to the parent.
template <class T>
void abandon(T& value) {
  static_cast<void>(new T(std::move(value)));  // NOLINT(cppcoreguidelines-owning-memory)
}

}  // namespace belljar
