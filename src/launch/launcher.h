// The only room that creates processes. start() makes the namespaces and pid 1 of a sandbox and its first command.
#pragma once

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "launch/plan.h"

namespace belljar::launch {

// Nanoseconds of each step of a start, in order, as measured by the child with CLOCK_MONOTONIC. Names are those of the step table.
struct StepTime {
  std::string_view name;
  std::int64_t nanoseconds = 0;
};

// What init tells about a command that ended.
struct Exit {
  std::uint32_t exec_id = 0;
  int wait_status = 0;  // waitpid(2)
  rusage usage{};
};

struct SkippedOp {
  int op = 0;  // index into Plan::mounts, or kSkippedKeyring
  int errnum = 0;
};

// Messages from init, decoded.
struct Event {
  enum class Kind { kStarted, kExecFailed, kExited, kStopped, kAlive, kPending, kGone } kind = Kind::kGone;
  std::uint32_t exec_id = 0;
  // kPending: it takes long over its execve; kStarted or kExecFailed follows.
  int pid = 0;                   // kStarted, kPending: pid inside
  int errnum = 0;                // kExecFailed: of execve, chdir, ...
  std::string_view failed_call;  // kExecFailed
  Exit exit;
  // kStopped: by a ^Z in the sandbox's terminal; SIGCONT to its exec id continues it.
  // kStarted: when it was about to be executed; kExited: when init saw its end. The message itself may arrive later.
  std::chrono::steady_clock::time_point at;
};

// One more command as it travels to pid 1: made once, sent when there is room. Borrows the request's descriptors: they
// stay open until it is sent.
struct PackedExec {
  std::string bytes;
  UniqueFd memory;  // what is too long for a message
  std::array<int, 4> fds{};
  int fd_count = 0;
};

// A running sandbox: its pid 1. Move-only; the destructor kills the tree (SIGKILL to pid 1 ends the pid namespace) and reaps it.
// One thread at a time; but next_event() on one thread and exec() or signal() on another do not disturb each other.
class Sandbox {
 public:
  Sandbox() = default;
  Sandbox(Sandbox&&) noexcept;
  Sandbox& operator=(Sandbox&&) noexcept;
  ~Sandbox();

  int init_pid() const noexcept { return init_pid_; }                     // in our pid namespace
  int pidfd() const noexcept { return pidfd_.get(); }                     // readable when pid 1 is dead
  int control_fd() const noexcept { return control_.get(); }              // readable when next_event() has something
  UniqueFd take_listener() noexcept { return std::move(listener_); }      // seccomp notifications, if the plan asked
  UniqueFd take_pty_master() noexcept { return std::move(pty_master_); }  // if the plan asked

  // One for each of Plan::sockets, in order; invalid where it was not wanted after all (InnerSocket::without_redirect).
  std::vector<UniqueFd> take_sockets() noexcept { return std::move(sockets_); }
  int routes_errno() const noexcept { return routes_errno_; }      // 0: Plan::routes hold
  int redirect_errno() const noexcept { return redirect_errno_; }  // 0: Plan::redirect holds

  // "/" as the sandbox sees it (O_PATH), for a sandbox that was started without a first command.
  UniqueFd take_root() noexcept { return std::move(root_); }

  // One for each kExport that was done, in order: readable also when the sandbox has ended, whose file system it keeps.
  std::vector<UniqueFd> take_exported() noexcept { return std::move(exported_); }

  // The id that the next exec() or send() gives: for who registers before the events of that command can arrive.
  std::uint32_t next_exec_id() const noexcept { return next_id_; }
  // Starts one more command. Returns its id at once; kStarted or kExecFailed follows as an Event. Errors: kUnavailable, pid 1 takes
  // no more messages now, or is gone.
  Result<std::uint32_t> exec(const ExecRequest& request);
  // The same in two steps. Nothing here waits for pid 1, which others may have stopped. pack() may be called by any thread.
  Result<PackedExec> pack(const ExecRequest& request) const;
  // 0, or -errno: -EAGAIN while there is no room (control_fd() is writable when there is).
  int send(PackedExec& packed) noexcept;
  // Asks init whether it serves; returns the id that kAlive comes back with.
  std::uint32_t ping() noexcept;
  // Next message from init; nullopt when none is there yet. kGone once init is dead. After start() with a first command one event
  // is there at once (kStarted or kExecFailed) although control_fd() is not readable.
  std::optional<Event> next_event();
  // Sends `signal` to the process group of command `exec_id` (0: every process inside).
  void signal(std::uint32_t exec_id, int signal) noexcept;
  // To the command's first process and nobody else, as kill(2) of its pid.
  void signal_alone(std::uint32_t exec_id, int signal) noexcept;
  // Ends command `exec_id` where its execve(2) has not come to an end yet; else nothing.
  void give_up(std::uint32_t exec_id) noexcept;
  // Kills the whole tree and waits until it is gone. Idempotent.
  void kill_and_reap() noexcept;
  // For a front that ends now, after kExited of a one-shot sandbox with a pid namespace: init has killed and reaped every other
  // process before it reported, and only gives back its mounts (0.3 to 0.4 ms in the kernel, after its last instruction). Nothing
  // inside can act any more. So the front does its own last work meanwhile and waits with await_end() at the very end: not at all
  // would leave a zombie wherever pid 1 of the host reaps no orphans (containers). Anything else is kill_and_reap() and gives -1: a
  // cgroup, for one, cannot be removed before init is gone.
  UniqueFd let_go() noexcept;

  const std::vector<StepTime>& steps() const noexcept { return steps_; }
  const std::vector<SkippedOp>& skipped() const noexcept { return skipped_; }

 private:
  friend class Starter;
  int init_pid_ = -1;
  UniqueFd pidfd_, control_, listener_, pty_master_, root_;
  std::vector<UniqueFd> sockets_, exported_;
  int routes_errno_ = 0, redirect_errno_ = 0;
  std::uint32_t next_id_ = 2;
  std::optional<Event> pending_;  // outcome of the first command, known before start() returned
  std::string default_cwd_;
  std::vector<std::string> default_env_;  // PATH only: what a later exec without its own environment is looked up with
  bool subreaper_ = false, own_pid_namespace_ = false;
  std::vector<StepTime> steps_;
  std::vector<SkippedOp> skipped_;
};

// Waits for a pid 1 that was let go, by its pidfd.
void await_end(const UniqueFd& pidfd) noexcept;

struct StartOptions {
  // End with the first command: init kills what is left, reports and exits by itself (no second round trip). Without a first
  // command this means nothing, but with `first_later`: then what exec() gives first is it.
  bool one_shot = true;
  bool first_later = false;
  bool time_steps = false;
  // Readable or hung up: give up a start that does not end (kCanceled). One with a first command that ends within a moment is let
  // end: its command then gets what was meant for it. -1: none.
  std::array<int, 2> stop = {-1, -1};
};

// Makes the sandbox and, when `first` is given, starts it as exec id 1. Returns when init is set up and the first command has been
// executed or refused; its outcome is the first Event. Errors name the step, the call and the errno.
Result<Sandbox> start(const Plan& plan, const ExecRequest* first, const StartOptions& options = {});

}  // namespace belljar::launch
