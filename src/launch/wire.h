// Messages between the launcher and init, over a SOCK_SEQPACKET pair: fixed structs, one message a packet. Both ends are the same
// program image, so there is no version and no byte order.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace belljar::launch::wire {

inline constexpr int kMaxSteps = 24;
inline constexpr int kMaxFds = 62;  // with one reply: seccomp listener, pty, sockets of the plan, root, given directories
inline constexpr int kMaxSkipped = 48;
inline constexpr std::uint32_t kInlineExec = 48 * 1024;  // larger exec requests travel in a memfd

enum class ToInit : std::uint32_t { kMapped = 1, kExec, kSignal, kSignalAlone, kPing, kGiveUp };
enum class FromInit : std::uint32_t { kMapMe = 1, kStepFailed, kStarted, kExecFailed, kExited, kStopped, kAlive, kPending };

struct SignalMessage {
  ToInit type = ToInit::kSignal;
  std::uint32_t exec_id = 0;
  std::int32_t signal = 0;
};

// Followed (inline or in the memfd) by NUL-terminated strings: cwd, the paths to try, argv, env.
struct ExecHeader {
  ToInit type = ToInit::kExec;
  std::uint32_t exec_id = 0;
  std::uint32_t paths = 0, argc = 0, envc = 0;
  std::uint32_t bytes = 0;  // of the strings
  std::uint32_t in_memfd = 0;
  std::uint32_t pty = 0, own_terminal = 0, adopt = 0;
  std::uint32_t has_stdio = 0;  // bit i: descriptor i is passed along
};

struct Reply {
  FromInit type = FromInit::kStarted;
  std::uint32_t exec_id = 0;
  std::int32_t pid = 0;
  std::int32_t errnum = 0;
  std::int32_t where = 0;  // kStepFailed: index of the step; kExecFailed: a FailedCall
  std::int32_t op = -1;    // kStepFailed in the mount step: index of the operation
  std::int32_t wait_status = 0;
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC: just before execve, or when the exit was seen
  std::int32_t has_listener = 0, has_pty = 0, has_root = 0, exported = 0;
  std::int32_t routes_errno = 0, redirect_errno = 0;
  std::uint64_t sockets = 0;  // bit i: Plan::sockets[i] is there
  rusage usage{};
  std::int32_t steps = 0, skipped = 0;
  std::int64_t step_ns[kMaxSteps]{};
  std::int32_t skipped_op[kMaxSkipped]{}, skipped_errno[kMaxSkipped]{};
};

enum FailedCall : std::int32_t { kExecve = 0, kChdir, kStdio, kVfork, kRequest };

}  // namespace belljar::launch::wire
