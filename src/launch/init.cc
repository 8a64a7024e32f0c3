// Pid 1 inside: starts commands, reaps, forwards signals, and takes the tree with it when it ends.
// Starting a command. The child shares our memory until its execve (CLONE_VM), so nothing is copied; it runs on a stack of its
// own in a SpawnSlot, which also holds its arguments. vfork(2) would do the same, but suspends us until the execve, and that may
// take long: a slow disk, a lease on the program (45 s), or a command that stops the child (SIGSTOP) before it has become one. So
// we wait on a futex that the kernel clears when the child lets go of our memory (CLONE_CHILD_CLEARTID), for one poll interval; a
// child that takes longer keeps its slot, is told as kPending, and others are served meanwhile. A child that is kept stopped is
// continued, and killed after two seconds of it. Only a first command is started by vfork: nobody else is there to stop it.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "kernel/pass_fds.h"
#include "launch/become_command.h"
#include "launch/child.h"
#include "launch/instrumented.h"
#include "launch/raw.h"
#include "launch/wire.h"

namespace belljar::launch {

const std::int64_t* measured_steps() noexcept;

namespace {

struct SpawnSlot;

struct RunningCommand {
  std::uint32_t id = 0;
  pid_t pid = 0;
  bool pty = false;
  SpawnSlot* pending = nullptr;  // its execve has not come to an end yet
};
constexpr int kMaxRunning = 1024, kMaxPending = 64;
RunningCommand running[kMaxRunning];
int running_count = 0, pending_count = 0;

std::int64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void send_reply(const ChildContext& context, const wire::Reply& reply, const int* fds, int count) noexcept {
  kernel::send_fds<wire::kMaxFds>(context.control, &reply, sizeof reply, fds, static_cast<std::size_t>(count));
}

constexpr bool kOwnStack = !kInstrumented;            // a sanitizer knows the stacks of threads alone
constexpr int kPollMs = 20, kMostStoppedPolls = 100;  // two seconds of a child that somebody stops
constexpr int kPollsPerSignOfLife = 50;               // a second

// All that a child uses of our memory until its execve. There is one, but for the children that take long over it.
struct SpawnSlot {
  alignas(16) char stack[16384];
  alignas(8) char request[wire::kInlineExec + sizeof(wire::ExecHeader)];
  const ChildContext* context;
  PreparedExec exec;
  volatile SpawnFailure failure;
  std::atomic<int> shares_memory;  // cleared by the kernel
  std::int64_t at_ns, stopped_ns;  // its start; when it was last found stopped
  void *arrays, *shared;           // mappings that `exec` leads to; null: none
  std::size_t arrays_size, shared_size;
  int stopped;
};
alignas(SpawnSlot) char first_memory[sizeof(SpawnSlot)];  // zeros will do, as of all others
SpawnSlot* const first_slot = reinterpret_cast<SpawnSlot*>(first_memory);
SpawnSlot* current = first_slot;

SpawnSlot* make_slot() noexcept {
  void* const memory = ::mmap(nullptr, sizeof(SpawnSlot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<SpawnSlot*>(memory);
}

// Gives back what a request has brought.
void clear(SpawnSlot& slot) noexcept {
  if (slot.arrays != nullptr) ::munmap(slot.arrays, slot.arrays_size);
  if (slot.shared != nullptr) ::munmap(slot.shared, slot.shared_size);
  slot.arrays = slot.shared = nullptr;
}

// One that is not `current`, and no child uses any more.
void free_slot(SpawnSlot* slot) noexcept {
  clear(*slot);
  if (slot == first_slot) slot = std::exchange(current, first_slot);
  ::munmap(slot, sizeof(SpawnSlot));
}

int child_main(void* argument) noexcept {
  SpawnSlot& slot = *static_cast<SpawnSlot*>(argument);
  become_command(slot.exec, slot.context->pty_slave, slot.failure);
}

bool is_stopped(pid_t child) noexcept {
  siginfo_t info{};
  return raw_call(SYS_waitid, P_PID, child, as_long(&info), WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

// Any command may stop a child of ours that has not become one yet, over and over: it is continued, and killed when that does not
// help.
void resume_stopped(SpawnSlot& slot, pid_t child) noexcept {
  const std::int64_t now = now_ns();
  if (now - slot.stopped_ns >= kPollMs * 1'000'000L) {
    slot.stopped_ns = now;
    ++slot.stopped;
  }
  if (slot.stopped > kMostStoppedPolls) {
    slot.failure.errnum = EAGAIN;
    slot.failure.where = wire::kVfork;
  }
  raw_call(SYS_kill, child, slot.stopped > kMostStoppedPolls ? SIGKILL : SIGCONT);
}

// That we are busy and not gone. It is of no command and answers no ping: the launcher only counts it.
void send_alive(int control) noexcept {
  wire::Reply reply;
  reply.type = wire::FromInit::kAlive;
  reply.exec_id = 0;
  raw_call(SYS_sendto, control, as_long(&reply), sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum class SpawnWait { kBriefly, kToTheEnd };  // the latter: nobody else is served meanwhile

// Until the kernel clears `shares_memory`, at the child's execve or its death; false: not yet. A slow disk may keep it, or
// another's lease on the program (45 s, proc_sys_fs(5)).
bool await_command(SpawnSlot& slot, pid_t child, SpawnWait how) noexcept {
  for (int polls = 0; slot.shares_memory.load(std::memory_order_acquire) != 0;) {
    const timespec patience{0, kPollMs * 1'000'000L};
    if (raw_call(SYS_futex, as_long(&slot.shares_memory), FUTEX_WAIT, 1, as_long(&patience)) != -ETIMEDOUT) continue;
    if (how == SpawnWait::kBriefly) return false;
    if (++polls % kPollsPerSignOfLife == 0) send_alive(slot.context->control);
    if (is_stopped(child)) resume_stopped(slot, child);
  }
  return true;
}

// The child shares our memory, as with vfork(2), which waits for it without end: of a first command, which nobody is there to stop,
// that is the shorter way. -errno: there is none.
pid_t start_child(SpawnSlot& slot, SpawnWait how) noexcept {
  if (!kOwnStack || how == SpawnWait::kToTheEnd) {
    const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions): the child only execs, and reports a failure by our memory
    if (pid == 0) child_main(&slot);
    return pid < 0 ? -errno : pid;
  }
  slot.shares_memory.store(1, std::memory_order_release);
  // CLONE_CHILD_CLEARTID, clone(2): cleared, and who waits is woken, when the child no longer shares our memory.
  const pid_t pid = ::clone(child_main, slot.stack + sizeof slot.stack, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, &slot, nullptr,
                            nullptr, &slot.shares_memory);
  return pid < 0 ? -errno : pid;
}

// Serves others while the child of `current` takes long over its execve: that and its memory are left to it. Told at once: who ends
// what an ended command left behind must know it for a command's.
bool leave_pending(const ChildContext& context, pid_t child) noexcept {
  if (pending_count == kMaxPending) return false;
  SpawnSlot* const next = make_slot();
  if (next == nullptr) return false;
  ++pending_count;
  running[running_count++] = {current->exec.id, child, current->exec.pty, current};
  wire::Reply reply;
  reply.type = wire::FromInit::kPending;
  reply.exec_id = current->exec.id;
  reply.pid = child;
  reply.at_ns = current->at_ns;
  current = next;
  send_reply(context, reply, nullptr, 0);
  return true;
}

// Starts `current`. False: what came of it is told later.
bool spawn(ChildContext& context, SpawnWait how, wire::Reply& reply) noexcept {
  SpawnSlot& slot = *current;
  const PreparedExec& exec = slot.exec;
  reply.exec_id = exec.id;
  reply.type = wire::FromInit::kExecFailed;
  if (running_count == kMaxRunning) {
    reply.errnum = EAGAIN;
    reply.where = wire::kRequest;
    return true;
  }
  if (exec.pty && ::ioctl(context.pty_slave, TIOCSCTTY, 0) < 0) {  // no harm when it is ours already
    reply.errnum = errno;
    reply.where = wire::kStdio;
    return true;
  }
  slot.context = &context;
  slot.failure.errnum = 0;
  slot.stopped = 0;
  slot.stopped_ns = 0;
  slot.at_ns = reply.at_ns = now_ns();
  const pid_t pid = start_child(slot, how);
  if (pid < 0) {
    reply.errnum = -pid;
    reply.where = wire::kVfork;
    return true;
  }
  if (kOwnStack && how == SpawnWait::kBriefly && !await_command(slot, pid, how)) {
    if (leave_pending(context, pid)) return false;
    (void)await_command(slot, pid, SpawnWait::kToTheEnd);
  }
  if (slot.failure.errnum != 0) {
    reply.errnum = slot.failure.errnum;
    reply.where = slot.failure.where;
    ::waitpid(pid, nullptr, 0);
    return true;
  }
  running[running_count++] = {exec.id, pid, exec.pty};
  reply.type = wire::FromInit::kStarted;
  reply.pid = pid;
  return true;
}

void close_stdio(PreparedExec& exec) noexcept {
  for (int& fd : exec.stdio) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
}

// Ends everything but us. With a pid namespace of our own one signal reaches all. Without one (external-sandbox, landlock) we are
// the subreaper of all.
void kill_everything(const ChildContext& context) noexcept {
  if (context.own_pid_namespace) {
    pid_t ended = 0;
    do ended = ::waitpid(-1, nullptr, __WALL | WNOHANG);
    while (ended > 0);
    if (ended < 0 && errno == ECHILD) return;  // whoever lives inside is a child of ours or below one
    ::kill(-1, SIGKILL);
    while (::waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
    }
    return;
  }
  sweep_children(context.children);
}

enum class ChildState { kThere, kReaped };

// Tells what came of a pending start whose child does not use our memory any more. False: the command never came to be, and its
// entry is gone.
bool finish_pending(const ChildContext& context, int index, ChildState child) noexcept {
  RunningCommand& entry = running[index];
  SpawnSlot* const slot = std::exchange(entry.pending, nullptr);
  --pending_count;
  wire::Reply reply;
  reply.exec_id = entry.id;
  reply.at_ns = slot->at_ns;
  reply.pid = entry.pid;
  reply.errnum = slot->failure.errnum;
  reply.where = slot->failure.where;
  const bool failed = reply.errnum != 0;
  reply.type = failed ? wire::FromInit::kExecFailed : wire::FromInit::kStarted;
  free_slot(slot);
  if (failed) {
    if (child == ChildState::kThere) ::waitpid(entry.pid, nullptr, 0);
    entry = running[--running_count];
  }
  send_reply(context, reply, nullptr, 0);
  return !failed;
}

void check_pending(const ChildContext& context) noexcept {
  for (int i = running_count - 1; i >= 0; --i) {
    SpawnSlot* const slot = running[i].pending;
    if (slot == nullptr) continue;
    if (slot->shares_memory.load(std::memory_order_acquire) == 0) finish_pending(context, i, ChildState::kThere);
    else if (is_stopped(running[i].pid)) resume_stopped(*slot, running[i].pid);
  }
}

void report_exit(ChildContext& context, int index, int status, const rusage& usage) noexcept {
  wire::Reply reply;
  reply.type = wire::FromInit::kExited;
  reply.exec_id = running[index].id;
  reply.at_ns = now_ns();
  reply.pid = running[index].pid;
  reply.wait_status = status;
  reply.usage = usage;
  running[index] = running[--running_count];
  if (context.one_shot && reply.exec_id == 1) {
    kill_everything(context);
    send_reply(context, reply, nullptr, 0);
    ::_exit(0);
  }
  send_reply(context, reply, nullptr, 0);
}

// ^Z in its terminal. A SIGSTOP is the front's own doing, or the command's own business.
void report_stop(const ChildContext& context, int index, int status) noexcept {
  if (!running[index].pty || WSTOPSIG(status) != SIGTSTP) return;
  wire::Reply reply;
  reply.type = wire::FromInit::kStopped;
  reply.exec_id = running[index].id;
  reply.pid = running[index].pid;
  send_reply(context, reply, nullptr, 0);
}

void reap(ChildContext& context) noexcept {
  int status = 0;
  rusage usage{};
  pid_t pid = 0;
  while ((pid = ::wait4(-1, &status, WNOHANG | WUNTRACED | __WALL, &usage)) > 0) {
    for (int i = 0; i < running_count; ++i) {
      if (running[i].pid != pid) continue;
      if (WIFSTOPPED(status)) {
        if (running[i].pending != nullptr) resume_stopped(*running[i].pending, pid);
        else report_stop(context, i, status);
      } else if (running[i].pending == nullptr || finish_pending(context, i, ChildState::kReaped)) {
        report_exit(context, i, status, usage);
      }
      break;
    }
  }
}

void forward_signal(const ChildContext& context, const wire::SignalMessage& message) noexcept {
  if (message.exec_id == 0 && context.own_pid_namespace) {
    ::kill(-1, message.signal);
    return;
  }
  for (int i = 0; i < running_count; ++i) {
    if (message.exec_id == 0 || running[i].id == message.exec_id) {
      // Before its execve it may not lead a group yet.
      if (message.type == wire::ToInit::kSignalAlone || running[i].pending != nullptr) {
        ::kill(running[i].pid, message.signal);
        continue;
      }
      // The terminal's foreground job may be another group than the shell's own.
      const pid_t foreground = context.pty_slave >= 0 ? ::tcgetpgrp(context.pty_slave) : -1;
      if (foreground > 1 && foreground != running[i].pid) ::kill(-foreground, message.signal);
      ::kill(-running[i].pid, message.signal);
    }
  }
}

// One that has not become its command has nothing below it that would have to be found.
void give_up(std::uint32_t exec_id) noexcept {
  for (int i = 0; i < running_count; ++i) {
    const SpawnSlot* const slot = running[i].pending;
    if (running[i].id == exec_id && slot != nullptr && slot->shares_memory.load(std::memory_order_acquire) != 0)
      ::kill(running[i].pid, SIGKILL);
  }
}

// Splits `bytes` of NUL-terminated strings into the arrays of a PreparedExec. The arrays live in their own mapping.
bool unpack(const wire::ExecHeader& header, char* strings, SpawnSlot& slot) noexcept {
  PreparedExec& exec = slot.exec;
  const std::size_t pointers = std::size_t{header.paths} + header.argc + header.envc + 3;
  slot.arrays_size = pointers * sizeof(char*);
  void* const mapping = ::mmap(nullptr, slot.arrays_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return false;
  slot.arrays = mapping;
  char** at = static_cast<char**>(mapping);
  char* text = strings;
  char* const end = strings + header.bytes;
  const auto next = [&]() noexcept -> char* {
    char* start = text;
    while (text < end && *text != '\0') ++text;
    if (text == end) return nullptr;
    ++text;
    return start;
  };
  exec.cwd = next();
  const auto fill = [&](std::uint32_t count) noexcept -> char** {
    char** start = at;
    for (std::uint32_t i = 0; i < count; ++i) {
      if ((*at++ = next()) == nullptr) return nullptr;
    }
    *at++ = nullptr;
    return start;
  };
  exec.paths = fill(header.paths);
  exec.argv = fill(header.argc);
  exec.envp = fill(header.envc);
  return exec.cwd != nullptr && exec.paths != nullptr && exec.argv != nullptr && exec.envp != nullptr;
}

// The strings of the request in `job`: in it, or in the memory that came along. nullptr: neither.
char* strings_of(const wire::ExecHeader& header, ssize_t size, SpawnSlot& slot, int memory) noexcept {
  if (header.in_memfd == 0) {
    const bool whole = static_cast<std::size_t>(size) == sizeof header + header.bytes;
    return whole ? slot.request + sizeof header : nullptr;
  }
  if (memory < 0) return nullptr;
  void* const mapping = ::mmap(nullptr, header.bytes, PROT_READ, MAP_PRIVATE, memory, 0);
  if (mapping == MAP_FAILED) return nullptr;
  slot.shared = mapping;
  slot.shared_size = header.bytes;
  return static_cast<char*>(mapping);
}

void handle_exec(ChildContext& context, ssize_t size, int* fds, int fd_count) noexcept {
  SpawnSlot& slot = *current;
  wire::ExecHeader header;
  wire::Reply reply;
  std::memcpy(&header, slot.request, sizeof header);
  reply.type = wire::FromInit::kExecFailed;
  reply.exec_id = header.exec_id;
  reply.errnum = EINVAL;
  reply.where = wire::kRequest;
  PreparedExec& exec = slot.exec;
  exec = PreparedExec();
  exec.id = header.exec_id;
  exec.pty = header.pty != 0;
  exec.own_terminal = header.own_terminal != 0;
  exec.adopt = header.adopt != 0;
  int used = 0;
  for (int i = 0; i < 3; ++i) {
    if ((header.has_stdio & (1U << i)) != 0 && used < fd_count) {
      exec.stdio[i] = ::fcntl(fds[used], F_DUPFD_CLOEXEC, 10);
      ::close(fds[used++]);
    }
  }
  char* const strings = strings_of(header, size, slot, used < fd_count ? fds[used] : -1);
  for (; used < fd_count; ++used) ::close(fds[used]);
  PreparedExec ours = exec;  // a child that is pending has its own descriptors, and reads their numbers in `exec`
  bool settled = true;
  if (strings != nullptr && unpack(header, strings, slot)) {
    if (header.envc == 0) exec.envp = context.envp;
    settled = spawn(context, SpawnWait::kBriefly, reply);
  }
  close_stdio(ours);
  if (!settled) return;
  clear(slot);
  send_reply(context, reply, nullptr, 0);
}

// One message from the launcher; false when it is gone.
bool handle_request(ChildContext& context) noexcept {
  char* const request = current->request;
  auto received = kernel::receive_fds<4>(context.control, request, sizeof current->request);
  const ssize_t size = received.size;
  if (size <= 0) return size < 0 && errno == EINTR;
  wire::ToInit type{};
  std::memcpy(&type, request, sizeof type);
  wire::SignalMessage message;
  const bool plain = size == sizeof message;
  if (plain) std::memcpy(&message, request, sizeof message);
  if (plain && (type == wire::ToInit::kSignal || type == wire::ToInit::kSignalAlone)) {
    forward_signal(context, message);
  } else if (plain && type == wire::ToInit::kGiveUp) {
    give_up(message.exec_id);
  } else if (plain && type == wire::ToInit::kPing) {
    wire::Reply reply;
    reply.type = wire::FromInit::kAlive;
    reply.exec_id = message.exec_id;
    send_reply(context, reply, nullptr, 0);
  } else if (type == wire::ToInit::kExec && static_cast<std::size_t>(size) >= sizeof(wire::ExecHeader)) {
    handle_exec(context, size, received.fds, static_cast<int>(received.count));
  }
  return true;
}

// One request at `maker` for sockets of this network; false when whoever asks is gone.
bool make_sockets(int maker) noexcept {
  char what = 0;
  const ssize_t size = ::recv(maker, &what, sizeof what, 0);
  if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
  int fds[2];
  int count = 0;
  if (what == 'p') {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0) count = 2;
  } else {
    fds[0] = ::socket(what == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fds[0] >= 0) count = 1;
  }
  kernel::send_fds<2>(maker, &what, sizeof what, fds, static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ::close(fds[i]);
  return true;
}

// The first command, where there is one; else that we are there.
wire::Reply start_first(ChildContext& context) noexcept {
  wire::Reply reply;
  reply.type = wire::FromInit::kStarted;
  if (context.first == nullptr) return reply;
  current->exec = *context.first;
  (void)spawn(context, SpawnWait::kToTheEnd, reply);
  close_stdio(*context.first);
  return reply;
}

// What was made inside is passed out with it, and is not ours any more.
void tell_start(const ChildContext& context, wire::Reply& reply) noexcept {
  int fds[wire::kMaxFds];
  int count = 0;
  if (context.listener >= 0) {
    fds[count++] = context.listener;
    reply.has_listener = 1;
  }
  if (context.pty_master >= 0) {
    fds[count++] = context.pty_master;
    reply.has_pty = 1;
  }
  for (std::size_t i = 0; i < context.plan->sockets.size(); ++i) {
    if (context.sockets[i] < 0) continue;
    fds[count++] = context.sockets[i];
    reply.sockets |= std::uint64_t{1} << i;
  }
  if (context.root >= 0) {
    fds[count++] = context.root;
    reply.has_root = 1;
  }
  for (int i = 0; i < context.exported_count; ++i) fds[count++] = context.exported[i];
  reply.exported = context.exported_count;
  reply.routes_errno = context.routes_errno;
  reply.redirect_errno = context.redirect_errno;
  reply.steps = static_cast<std::int32_t>(steps().size());
  std::memcpy(reply.step_ns, measured_steps(), static_cast<std::size_t>(reply.steps) * sizeof(std::int64_t));
  reply.skipped = context.skipped;
  std::memcpy(reply.skipped_op, context.skipped_op, sizeof reply.skipped_op);
  std::memcpy(reply.skipped_errno, context.skipped_errno, sizeof reply.skipped_errno);
  send_reply(context, reply, fds, count);
  for (int i = 0; i < count; ++i) ::close(fds[i]);
}

// Until something happens, and then that. `children`: a signalfd for SIGCHLD. False: the launcher is gone.
bool serve_next(ChildContext& context, int children) noexcept {
  pollfd wait[4] = {{context.control, POLLIN, 0},
                    {children, POLLIN, 0},
                    {context.maker, POLLIN, 0},  // -1 is passed over
                    {context.pairs, POLLIN, 0}};
  if (::poll(wait, 4, pending_count > 0 ? kPollMs : -1) < 0) return true;
  if (pending_count > 0) check_pending(context);
  int* const makers[2] = {&context.maker, &context.pairs};
  for (int i = 0; i < 2; ++i) {
    if (wait[2 + i].revents == 0 || make_sockets(*makers[i])) continue;
    ::close(*makers[i]);
    *makers[i] = -1;
  }
  if (wait[1].revents != 0) {
    signalfd_siginfo info;
    while (::read(children, &info, sizeof info) > 0) {
    }
    reap(context);
  }
  return wait[0].revents == 0 || handle_request(context);
}

}  // namespace

// Each round kills our children, whose orphans become our children for the next round.
void sweep_children(int list) noexcept {
  for (int round = 0; round < 10000; ++round) {
    char buffer[4096];
    const ssize_t size = list < 0 ? 0 : ::pread(list, buffer, sizeof buffer - 1, 0);
    if (size > 0) {
      buffer[size] = '\0';
      pid_t child = 0;  // by hand: strtol(3) asks the locale, whose memory may be gone (inherited_memory.cc)
      for (const char* at = buffer; *at != '\0'; ++at) {
        if (*at >= '0' && *at <= '9') {
          child = child * 10 + (*at - '0');
          continue;
        }
        if (child > 0) ::kill(child, SIGKILL);
        child = 0;
      }
      // A blank ends each: what has none was cut off and is another number. The next round has it.
    } else {
      for (int i = 0; i < running_count; ++i) ::kill(-running[i].pid, SIGKILL);
    }
    if (::waitpid(-1, nullptr, __WALL) < 0 && errno == ECHILD) return;
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
  }
}

void serve(ChildContext& context) noexcept {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  context.own_pid_namespace = (context.plan->clone_flags & CLONE_NEWPID) != 0 && ::getpid() == 1;
  const int children = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  wire::Reply reply = start_first(context);
  tell_start(context, reply);
  if (reply.type == wire::FromInit::kExecFailed && context.one_shot) ::_exit(0);
  drop_inherited_memory(context);
  while (serve_next(context, children)) {
  }
  // So is everything here.
  kill_everything(context);
  ::_exit(0);
}

}  // namespace belljar::launch
