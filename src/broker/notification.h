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
  std::uint32_t arch = 0;  // AUDIT_ARCH_*
  std::array<std::uint64_t, 6> args{};
};

// This kernel's structures fit our buffers, and `listener` is a listener. 0 or -errno.
int check_listener(int listener) noexcept;
// A caller and who answers it run on one processor, one after the other, instead of waking an idle one: 5 us a call instead of 15
// to 40 (measured; Linux 6.6, without it nothing happens).
void wake_on_this_cpu(int listener) noexcept;
// 0; -ENOENT when the caller was killed meanwhile or nobody is left; -EINTR; -errno. Waits for a call.
int receive(int listener, Call& call) noexcept;
// A call waits to be received, by somebody.
bool has_waiting(int listener) noexcept;
// No process is left under the filter.
bool is_over(int listener) noexcept;
// The caller still waits for this very answer. After reading its memory or descriptors by number, this is what proves that the
// number was not given to another process in between.
bool still_waiting(int listener, std::uint64_t id) noexcept;
// ERESTARTSYS: the kernel restarts the call or makes it EINTR, as the caller's handler asks.
inline constexpr int kRestart = 512;
// `error` is 0 or a negative errno. -kRestart works too, for a caller that has a signal pending. A caller that is gone gets
// nothing.
void answer(int listener, std::uint64_t id, int error) noexcept;
// The call succeeds and returns `value`.
void answer_value(int listener, std::uint64_t id, std::int64_t value) noexcept;
// Gives the caller a duplicate of `fd`: its number there, or -errno (-EMFILE by the caller's limit, -ENOENT when it is gone). Does
// not answer yet, so that our own descriptor can be closed before the caller goes on.
int add_fd(int listener, std::uint64_t id, int fd, bool close_on_exec) noexcept;
// The same at a number of our choice, which replaces what is there.
int add_fd_at(int listener, std::uint64_t id, int fd, bool close_on_exec, int number) noexcept;
// add_fd() and an answer with that number in one: our own descriptor outlives the answer for a moment.
int add_fd_and_answer(int listener, std::uint64_t id, int fd, bool close_on_exec) noexcept;
// Lets the call run as if it had not been intercepted: with whatever its registers and memory say *now*.
void let_continue(int listener, std::uint64_t id) noexcept;

}  // namespace belljar::broker
