// The three requests of a seccomp listener, seccomp_unotify(2).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

namespace belljar::broker {

// One call that waits for its answer.
struct Call {
  std::uint64_t id = 0;
  pid_t tid = 0;  // of the calling thread, in our pid namespace
  int number = 0;
  std::array<std::uint64_t, 6> args{};
};

// This kernel's structures fit our buffers, and `listener` is a listener. 0 or -errno.
int check_listener(int listener) noexcept;
// 0; -ENOENT when the caller was killed meanwhile; -errno. Only after poll(2) said there is one: it waits otherwise.
int receive(int listener, Call& call) noexcept;
// The caller still waits for this very answer. After reading its memory or descriptors by number, this is what proves that the
// number was not given to another process in between.
bool still_waiting(int listener, std::uint64_t id) noexcept;
// `error` is 0 or a negative errno. -ERESTARTSYS (512) works too, for a caller that has a signal pending. A caller that is gone
// gets nothing.
void answer(int listener, std::uint64_t id, int error) noexcept;
// Lets the call run as if it had not been intercepted: with whatever its registers and memory say *now*.
void let_continue(int listener, std::uint64_t id) noexcept;

}  // namespace belljar::broker
