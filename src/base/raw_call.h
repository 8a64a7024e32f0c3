// System calls by hand, which need nothing of libc: for code between clone3 and execve, helpers that share memory, and so
// thread-local storage, with another process (libc's errno is left alone), and what runs before libc has been set up.
#pragma once

#include <sys/syscall.h>

namespace belljar {

// The kernel's own answer: -errno on failure. Inlined always: a copy that another file was compiled with is none for all of these.
[[gnu::always_inline]] inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) noexcept {
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

[[gnu::always_inline]] inline long as_long(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

}  // namespace belljar
