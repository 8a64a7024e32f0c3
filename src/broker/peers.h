// Who asked for the connections that were made here. SO_PEERCRED names the process that called connect(2), and that is ours: in the
// server's pid namespace it has no number. Nothing is decided by it. Safe from any thread.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.h"

namespace belljar::broker {

class Caller;

class Peers {
 public:
  struct Process {
    static Process of(const Caller& caller);

    pid_t ours = 0;      // in our pid namespace
    pid_t inside = 0;    // in its own
    ino_t identity = 0;  // Caller::identity()
  };

  // `diag`: where the sandbox has a network namespace of its own, a sock_diag socket of that.
  explicit Peers(UniqueFd diag) noexcept : diag_(std::move(diag)) {}

  // Sockets that another process makes for callers on our behalf name that one.
  void set_maker(pid_t process) noexcept { maker_ = process; }
  bool is_ours(pid_t process) const noexcept { return process != 0 && (process == ::getpid() || process == maker_); }

  // `client`, which is about to be connected: its inode on sockfs. It is never another's while its peer is one of ours.
  void note(ino_t client, const Process& process);
  // The connect failed.
  void forget(ino_t client);
  // Who connected what `accepted`, a stream or sequenced packet socket, is connected to. None where the client's program has closed
  // it, or kMost others came since.
  std::optional<Process> find(int accepted) const;

 private:
  static constexpr std::size_t kMost = 4096;

  const UniqueFd diag_;
  std::atomic<pid_t> maker_ = 0;
  mutable std::mutex mutex_;  // guards what follows, and the order of questions and answers on diag_
  std::unordered_map<ino_t, Process> processes_;
  std::deque<ino_t> order_;  // of each noted once
};

}  // namespace belljar::broker
