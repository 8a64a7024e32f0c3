// Pid 1 inside: starts commands, reaps, forwards signals, and takes the tree with it when it ends.
//
// It is the same image as the launcher, already behind every lock the command will be behind (same filter, same Landlock domain, no
// capabilities) and non-dumpable, so it is no richer a target than the command itself (CVE-2026-41163). A warm exec costs one vfork
// and one execve.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "launch/child.h"
#include "launch/wire.h"

namespace belljar::launch {

const std::int64_t* measured_steps() noexcept;

namespace {

struct Running {
  std::uint32_t id = 0;
  pid_t pid = 0;
  bool pty = false;
};
constexpr int kMaxRunning = 1024;
Running running[kMaxRunning];
int running_count = 0;
alignas(8) char request_buffer[wire::kInlineExec + sizeof(wire::ExecHeader)];

std::int64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void send_reply(const ChildContext& context, const wire::Reply& reply, const int* fds, int count) noexcept {
  iovec part{const_cast<wire::Reply*>(&reply), sizeof reply};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(wire::kMaxFds * sizeof(int))];
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(static_cast<std::size_t>(count) * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(static_cast<std::size_t>(count) * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, static_cast<std::size_t>(count) * sizeof(int));
  }
  ::sendmsg(context.control, &message, MSG_NOSIGNAL);
}

// What the vforked child reports through the memory it shares with us.
struct SpawnFailure {
  int errnum = 0;
  std::int32_t where = wire::kExecve;
};

[[noreturn]] void fail(volatile SpawnFailure* failure, std::int32_t where) noexcept {
  failure->errnum = errno;
  failure->where = where;
  ::_exit(127);
}

// A file of that name is there, whatever else may be done with it. By statfs(2), which asks for search permission on the way and
// nothing more: stat, access and open may be notified (`belljar learn`), and before the start is told nobody answers those.
bool exists(const char* path) noexcept {
  struct statfs facts;
  return ::statfs(path, &facts) == 0;
}

// Between the filter and execve: no call here may be one that a filter notifies (tests/kernel/seccomp_test.cc holds the list).
[[noreturn]] void become_command(const ChildContext& context, const PreparedExec& exec, volatile SpawnFailure* failure) noexcept {
  // A process group of its own, so that a signal reaches the whole job. On the terminal it stays in init's session: were it the
  // leader of one, its group would be orphaned, and the kernel would drop the SIGTSTP of a typed ^Z (setpgid(2)).
  if (exec.pty) ::setpgid(0, 0);
  else ::setsid();
  if (exec.pty) {
    for (int fd = 0; fd < 3; ++fd) {
      // One that the caller sent elsewhere (`2>log`) stays there.
      if (::dup2(exec.stdio[fd] >= 0 ? exec.stdio[fd] : context.pty_slave, fd) < 0) fail(failure, wire::kStdio);
    }
    if (::tcsetpgrp(context.pty_slave, ::getpid()) < 0) fail(failure, wire::kStdio);  // SIGTTOU is blocked still
  } else {
    for (int fd = 0; fd < 3; ++fd) {  // sources are all above 9: no order to mind
      if (exec.stdio[fd] >= 0 && ::dup2(exec.stdio[fd], fd) < 0) fail(failure, wire::kStdio);
    }
  }
  if (exec.own_terminal && ::ioctl(0, TIOCSCTTY, 0) < 0) fail(failure, wire::kStdio);
  if (::chdir(exec.cwd) < 0) fail(failure, wire::kChdir);
  if (exec.adopt) ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // survives execve, prctl(2)
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int error = ENOENT;
  for (char* const* path = exec.paths; *path != nullptr; ++path) {
    ::execve(*path, exec.argv, exec.envp);
    // As execvp(3): a candidate that may not be run is remembered, the search goes on. One in a directory that may not be searched
    // was never found, unless it was named with its directory.
    if (errno == EACCES) {
      if (std::strchr(exec.argv[0], '/') != nullptr || exists(*path)) error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      error = errno;
      break;
    }
  }
  errno = error;
  fail(failure, wire::kExecve);
}

void spawn(ChildContext& context, const PreparedExec& exec, wire::Reply& reply) noexcept {
  reply.exec_id = exec.id;
  if (running_count == kMaxRunning) {
    reply.type = wire::FromInit::kExecFailed;
    reply.errnum = EAGAIN;
    reply.where = wire::kRequest;
    return;
  }
  if (exec.pty && ::ioctl(context.pty_slave, TIOCSCTTY, 0) < 0) {  // no harm when it is ours already
    reply.type = wire::FromInit::kExecFailed;
    reply.errnum = errno;
    reply.where = wire::kStdio;
    return;
  }
  volatile SpawnFailure failure;
  failure.errnum = 0;
  reply.at_ns = now_ns();
  const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions): the child only execs, and shares our memory to report failure
  if (pid == 0) become_command(context, exec, &failure);
  if (pid < 0 || failure.errnum != 0) {
    reply.type = wire::FromInit::kExecFailed;
    reply.errnum = pid < 0 ? errno : failure.errnum;
    reply.where = pid < 0 ? wire::kVfork : failure.where;
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    return;
  }
  running[running_count++] = {exec.id, pid, exec.pty};
  reply.type = wire::FromInit::kStarted;
  reply.pid = pid;
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
    ::kill(-1, SIGKILL);
    while (::waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
    }
    return;
  }
  sweep_children(context.children);
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
      if (running[i].pid == pid) {
        if (WIFSTOPPED(status)) report_stop(context, i, status);
        else report_exit(context, i, status, usage);
        break;
      }
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
      if (message.type == wire::ToInit::kSignalAlone) {
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

// Splits `bytes` of NUL-terminated strings into the arrays of a PreparedExec. The arrays live in their own mapping.
bool unpack(const wire::ExecHeader& header, char* strings, PreparedExec& exec, void*& mapping, std::size_t& mapped) noexcept {
  const std::size_t pointers = std::size_t{header.paths} + header.argc + header.envc + 3;
  mapped = pointers * sizeof(char*);
  mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return false;
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

void handle_exec(ChildContext& context, ssize_t size, int* fds, int fd_count) noexcept {
  wire::ExecHeader header;
  wire::Reply reply;
  std::memcpy(&header, request_buffer, sizeof header);
  reply.type = wire::FromInit::kExecFailed;
  reply.exec_id = header.exec_id;
  reply.errnum = EINVAL;
  reply.where = wire::kRequest;
  PreparedExec exec;
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
  char* strings = request_buffer + sizeof header;
  void* shared = MAP_FAILED;
  if (header.in_memfd != 0) {
    if (used < fd_count) shared = ::mmap(nullptr, header.bytes, PROT_READ, MAP_PRIVATE, fds[used], 0);
    strings = static_cast<char*>(shared);
  } else if (static_cast<std::size_t>(size) != sizeof header + header.bytes) {
    strings = nullptr;
  }
  for (; used < fd_count; ++used) ::close(fds[used]);
  void* arrays = MAP_FAILED;
  std::size_t mapped = 0;
  if (strings != nullptr && strings != MAP_FAILED && unpack(header, strings, exec, arrays, mapped)) {
    if (header.envc == 0) exec.envp = context.envp;
    spawn(context, exec, reply);
  }
  close_stdio(exec);
  if (arrays != MAP_FAILED) ::munmap(arrays, mapped);
  if (shared != MAP_FAILED) ::munmap(shared, header.bytes);
  send_reply(context, reply, nullptr, 0);
}

// One message from the launcher; false when it is gone.
bool handle_request(ChildContext& context) noexcept {
  iovec part{request_buffer, sizeof request_buffer};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t size = ::recvmsg(context.control, &message, MSG_CMSG_CLOEXEC);
  if (size <= 0) return size < 0 && errno == EINTR;
  int fds[4];
  int count = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_type != SCM_RIGHTS) continue;
    count = static_cast<int>((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds, CMSG_DATA(header), static_cast<std::size_t>(count) * sizeof(int));
  }
  wire::ToInit type{};
  std::memcpy(&type, request_buffer, sizeof type);
  if ((type == wire::ToInit::kSignal || type == wire::ToInit::kSignalAlone) && size == sizeof(wire::SignalMessage)) {
    wire::SignalMessage signal;
    std::memcpy(&signal, request_buffer, sizeof signal);
    forward_signal(context, signal);
  } else if (type == wire::ToInit::kPing && size == sizeof(wire::SignalMessage)) {
    wire::SignalMessage ping;
    std::memcpy(&ping, request_buffer, sizeof ping);
    wire::Reply reply;
    reply.type = wire::FromInit::kAlive;
    reply.exec_id = ping.exec_id;
    send_reply(context, reply, nullptr, 0);
  } else if (type == wire::ToInit::kExec && static_cast<std::size_t>(size) >= sizeof(wire::ExecHeader)) {
    handle_exec(context, size, fds, count);
  }
  return true;
}

// One request for a socket of this network; false when whoever asks is gone.
bool make_socket(const ChildContext& context) noexcept {
  char family = 0;
  const ssize_t size = ::recv(context.maker, &family, sizeof family, 0);
  if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
  const int fd = ::socket(family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  iovec part{&family, sizeof family};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ::sendmsg(context.maker, &message, MSG_NOSIGNAL);
  if (fd >= 0) ::close(fd);
  return true;
}

}  // namespace

// Each round kills our children, whose orphans become our children for the next round.
void sweep_children(int list) noexcept {
  for (int round = 0; round < 10000; ++round) {
    char buffer[4096];
    const ssize_t size = list < 0 ? 0 : ::pread(list, buffer, sizeof buffer - 1, 0);
    if (size > 0) {
      buffer[size] = '\0';
      pid_t child = 0;  // by hand: strtol(3) asks the locale, whose memory may be gone (own_memory.cc)
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

  wire::Reply reply;
  reply.type = wire::FromInit::kStarted;
  if (context.first != nullptr) {
    spawn(context, *context.first, reply);
    close_stdio(*context.first);
  }
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
  reply.routes_errno = context.routes_errno;
  reply.redirect_errno = context.redirect_errno;
  reply.steps = static_cast<std::int32_t>(steps().size());
  std::memcpy(reply.step_ns, measured_steps(), static_cast<std::size_t>(reply.steps) * sizeof(std::int64_t));
  reply.skipped = context.skipped;
  std::memcpy(reply.skipped_op, context.skipped_op, sizeof reply.skipped_op);
  std::memcpy(reply.skipped_errno, context.skipped_errno, sizeof reply.skipped_errno);
  send_reply(context, reply, fds, count);
  for (int i = 0; i < count; ++i) ::close(fds[i]);
  if (reply.type == wire::FromInit::kExecFailed && context.one_shot) ::_exit(0);
  drop_inherited_memory(context);

  for (;;) {
    pollfd wait[3] = {{context.control, POLLIN, 0}, {children, POLLIN, 0}, {context.maker, POLLIN, 0}};  // -1 is passed over
    if (::poll(wait, 3, -1) < 0) continue;
    if (wait[2].revents != 0 && !make_socket(context)) {
      ::close(context.maker);
      context.maker = -1;
    }
    if (wait[1].revents != 0) {
      signalfd_siginfo info;
      while (::read(children, &info, sizeof info) > 0) {
      }
      reap(context);
    }
    if (wait[0].revents != 0 && !handle_request(context)) {
      // The launcher is gone: so is everything here.
      kill_everything(context);
      ::_exit(0);
    }
  }
}

}  // namespace belljar::launch
