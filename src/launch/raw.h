// System calls that leave libc's errno alone, for helpers that share memory, and so thread-local storage, with another process.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include <atomic>

namespace belljar::launch {

// The kernel's own answer: -errno on failure.
inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) noexcept {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  long value = number;
  asm volatile("syscall" : "+a"(value) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return value;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#else
#error "write the system call of this processor here"
#endif
}

inline long as_long(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

// The pid of a child on a copy of this memory; in it 0; or -errno. An outer filter cannot look behind clone3's pointer and says so
// by ENOSYS; clone's flags it can judge. Without CLONE_VM.
inline long raw_clone(const clone_args& arguments) noexcept {
  const long pid = raw_call(SYS_clone3, as_long(&arguments), sizeof arguments);
  if (pid != -ENOSYS || (arguments.flags & CLONE_INTO_CGROUP) != 0) return pid;
  return raw_call(SYS_clone, static_cast<long>(arguments.flags), 0, static_cast<long>(arguments.pidfd));
}

// The status of a helper: kBusy until it ends, then 0 or -errno.
class HelperStatus {
 public:
  static constexpr int kBusy = 1;

  void begin() noexcept { value_.store(kBusy, std::memory_order_relaxed); }
  void end(int status) noexcept {  // by the helper
    value_.store(status, std::memory_order_release);
    raw_call(SYS_futex, as_long(&value_), FUTEX_WAKE, 1);
  }
  int await() noexcept {
    while (value_.load(std::memory_order_acquire) == kBusy) raw_call(SYS_futex, as_long(&value_), FUTEX_WAIT, kBusy);
    return value_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<int> value_{kBusy};
};

}  // namespace belljar::launch
