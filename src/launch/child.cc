// The steps of a start, in order.
//
// Two kinds of caller take the same road. An ordinary user enters a user namespace with clone3 and builds everything in it. Root
// makes the other namespaces as real root (mounting idmapped binds needs it) and enters the user namespace last, as an unprivileged
// host id: the mount, pid and network namespaces then belong to an ancestor, so nothing inside could ever undo them even with every
// capability of its own namespace. Either way no process inside holds host uid 0 or any capability when a command starts.
#include "launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>

#include "launch/plan.h"
#include "launch/raw.h"
#include "launch/wire.h"

namespace belljar::launch {
namespace {

int result(long value) noexcept { return value < 0 ? -errno : 0; }

// Decimal digits of `number`, written backwards into the end of `buffer`; returns their start.
char* digits(unsigned number, char* end) noexcept {
  do *--end = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  return end;
}

// By raw calls: who maps itself may share this memory with another (early_setup.h).
int write_file(const char* path, const char* data, std::size_t size) noexcept {
  const long fd = raw_call(SYS_openat, AT_FDCWD, as_long(path), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return static_cast<int>(fd);
  const long written = raw_call(SYS_write, fd, as_long(data), static_cast<long>(size));
  raw_call(SYS_close, fd);
  if (written < 0) return static_cast<int>(written);
  return written == static_cast<long>(size) ? 0 : -EIO;
}

int write_map(const char* path, unsigned inside, unsigned outside) noexcept {
  char buffer[40];
  char* end = buffer + sizeof buffer;
  char* text = end;
  *--text = '1';
  *--text = ' ';
  text = digits(outside, text);
  *--text = ' ';
  text = digits(inside, text);
  return write_file(path, text, static_cast<std::size_t>(end - text));
}

// Init shares the caller's memory image: its arguments and environment may hold secrets, and the arguments can be read by everyone
// inside (PR-05). Both are wiped; the rest of a non-dumpable process is closed to them.
int hide_self(ChildContext&) noexcept {
  wipe_arguments();
  return result(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

// Init wears the command's locks and uid, so without a pid namespace the command may kill it or stop it. Somebody above, whom no
// signal from inside reaches (Landlock's scope; as root another uid), takes the orphans along then, and lets one that was stopped
// go on; one that is stopped without end is ended.
[[noreturn]] void guard_init(ChildContext& context, pid_t init) noexcept {
  hide_self(context);
  ::prctl(PR_SET_NAME, "guard", 0, 0, 0);
  const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  // A copy of the control socket would keep init and the launcher from seeing each other's end.
  if (list > 0) ::syscall(SYS_close_range, 0, list - 1, 0);
  ::syscall(SYS_close_range, list + 1, ~0U, 0);
  constexpr int kMostStops = 1000;
  int status = 0, stops = 0;
  for (;;) {
    const pid_t changed = ::waitpid(-1, &status, __WALL | WUNTRACED);
    if (changed == init && WIFSTOPPED(status)) ::kill(init, ++stops < kMostStops ? SIGCONT : SIGKILL);
    else if (changed == init || (changed < 0 && errno != EINTR)) break;
  }
  if (list >= 0) sweep_children(list);  // else: without CONFIG_PROC_CHILDREN nobody tells whom
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int become_subreaper(ChildContext& context) noexcept {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) return -errno;
  const pid_t init = ::_Fork();
  if (init < 0) return -errno;
  if (init > 0) guard_init(context, init);
  context.children = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  return result(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
}

// When the parent's thread dies, so do we; pid 1's death takes the namespace along. A change of ids clears this (prctl(2)), so it
// is armed again after the identity step. Without a pid namespace pid 1 must outlive the parent for a moment to sweep the tree: it
// sees the end of the control socket instead.
//
// A parent that is gone already sends nothing, and in a pid namespace of our own its number is 0 either way. So its pidfd is asked
// after that, by each wait for it, and when the descriptors are closed: from then on the control socket tells.
int die_with_parent(ChildContext& context) noexcept {
  if (context.plan->subreaper) return become_subreaper(context);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) return -errno;
  await_or_end(context, -1);
  return 0;
}

int map_own_id(ChildContext& context) noexcept {
  const Plan& plan = *context.plan;
  if (plan.identity != Identity::kSelfMapped || context.entered) return 0;
  return map_self(plan.inside_uid, plan.outside_uid, plan.inside_gid, plan.outside_gid);
}

// Joined by ourselves ("0" means the writer), then hidden: the cgroup namespace is made after joining, so that its root is our
// group.
int join_cgroup(ChildContext& context) noexcept {
  for (const std::string& file : context.plan->join_files) {
    if (const int status = write_file(file.c_str(), "0", 1); status < 0) return status;
  }
  if ((context.plan->clone_flags & CLONE_NEWCGROUP) == 0) return 0;
  return result(::unshare(CLONE_NEWCGROUP));
}

int enter_ready_namespaces(ChildContext& context) noexcept {
  if (context.ipc >= 0 && ::setns(context.ipc, CLONE_NEWIPC) < 0) return -errno;
  return context.uts >= 0 && ::setns(context.uts, CLONE_NEWUTS) < 0 ? -errno : 0;
}

int apply_rlimits(ChildContext& context) noexcept {
  for (const RlimitSpec& limit : context.plan->rlimits) {
    rlimit value = limit.value;
    rlimit old{};
    const auto resource = static_cast<__rlimit_resource>(limit.resource);
    if (::getrlimit(resource, &old) < 0) return -errno;
    if (value.rlim_max > old.rlim_max) value.rlim_max = old.rlim_max;
    if (value.rlim_cur > value.rlim_max) value.rlim_cur = value.rlim_max;
    if (::setrlimit(resource, &value) < 0) return -errno;
  }
  return 0;
}

// Keyrings are not namespaced: without this the command would hold the caller's session keyring (PR-11).
int new_session_keyring(ChildContext& context) noexcept {
  if (!context.plan->drop_privileges) return 0;
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0) return 0;
  const int error = errno;
  const bool refused = error == ENOSYS || error == EPERM || error == EDQUOT;  // by an outer filter, or a quota
  if (!refused || context.plan->keyring_required) return -error;
  note_skipped(context, kSkippedKeyring, error);
  return 0;
}

int drop_bounding_set() noexcept {
  for (unsigned long capability = 0; capability < 64; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) {
      if (errno == EINVAL) break;  // past the last one this kernel knows
      return -errno;
    }
  }
  return 0;
}

// By raw calls. The C library's wrappers tell all threads of the process (nptl(7)), and in a child of a threaded process that is a
// list of threads that are not here: one that was just being made is waited for without end.
int change_ids(uid_t uid, gid_t gid) noexcept {
  if (::syscall(SYS_setresgid, gid, gid, gid) < 0) return -errno;
  return result(static_cast<int>(::syscall(SYS_setresuid, uid, uid, uid)));
}

// Only the parent may write a map to another host id; it does so when it is asked.
int make_own_users(ChildContext& context) noexcept {
  if (::unshare(CLONE_NEWUSER) < 0) return -errno;
  wire::Reply please;
  please.type = wire::FromInit::kMapMe;
  if (::send(context.control, &please, sizeof please, MSG_NOSIGNAL) < 0) return -errno;
  await_or_end(context, context.control);
  wire::SignalMessage answer;
  const ssize_t got = ::recv(context.control, &answer, sizeof answer, 0);
  if (got < 0) return -errno;
  if (got == 0) return -EPIPE;
  return answer.signal != 0 ? -answer.signal : 0;
}

int become_unprivileged(ChildContext& context) noexcept {
  const Plan& plan = *context.plan;
  if (plan.identity != Identity::kRootMapped && plan.identity != Identity::kSwitched) return 0;
  if (::syscall(SYS_setgroups, 0, nullptr) < 0) return -errno;
  if (plan.identity == Identity::kSwitched) {
    if (const int status = drop_bounding_set(); status < 0) return status;  // later there is no right to
    return change_ids(plan.outside_uid, plan.outside_gid);
  }
  if (context.users >= 0) {
    if (::setns(context.users, CLONE_NEWUSER) < 0) return -errno;
  } else if (const int status = make_own_users(context); status < 0) {
    return status;
  }
  if (const int status = change_ids(plan.inside_uid, plan.inside_gid); status < 0) return status;
  return result(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
}

int open_terminal(ChildContext& context) noexcept {
  if (!context.plan->want_pty) return 0;
  int master = ::open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  // Without a devpts of our own (danger-full-access) the host's keeps its ptmx closed there and open here.
  if (master < 0) master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return -errno;
  int unlock = 0;
  if (::ioctl(master, TIOCSPTLCK, &unlock) < 0) return -errno;
  const int slave = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) return -errno;
  const winsize size{context.plan->pty_rows, context.plan->pty_columns, 0, 0};
  if (size.ws_row != 0 && ::ioctl(master, TIOCSWINSZ, &size) < 0) return -errno;
  context.pty_master = master;
  context.pty_slave = slave;
  return 0;
}

int drop_capabilities(ChildContext& context) noexcept {
  if (!context.plan->drop_privileges) return 0;
  // Locked, so that no later uid 0 of any kind brings capabilities back, capabilities(7). Not locked is KEEP_CAPS: there are none
  // to keep, NO_SETUID_FIXUP does the same for good, and programs that ask for it (ping) end where they may not.
  constexpr unsigned long kLocked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  const Identity identity = context.plan->identity;
  const bool may = identity == Identity::kSelfMapped || identity == Identity::kRootMapped || ::geteuid() == 0;
  if (may && ::prctl(PR_SET_SECUREBITS, kLocked, 0, 0, 0) < 0) return -errno;
  if (may) {
    if (const int status = drop_bounding_set(); status < 0) return status;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return result(::syscall(SYS_capset, &header, none));
}

int set_no_new_privs(ChildContext& context) noexcept {
  if (!context.plan->drop_privileges) return 0;
  return result(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

// Keeps what init and the first command need, above 9, and closes everything else: an inherited directory descriptor is a way out
// (CVE-2024-21626).
int close_inherited_fds(ChildContext& context) noexcept {
  await_or_end(context, -1);
  int kept[10 + kMaxInnerSockets + kMaxExported];
  int count = 0;
  const auto keep = [&](int& fd) noexcept {
    if (fd < 0) return 0;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, 10);
    if (moved < 0) return -errno;
    kept[count++] = fd = moved;
    return 0;
  };
  if (const int status = keep(context.control); status < 0) return status;
  if (const int status = keep(context.children); status < 0) return status;
  if (const int status = keep(context.maps); status < 0) return status;
  if (const int status = keep(context.maker); status < 0) return status;
  if (const int status = keep(context.pairs); status < 0) return status;
  if (const int status = keep(context.pty_master); status < 0) return status;
  if (const int status = keep(context.pty_slave); status < 0) return status;
  for (std::size_t i = 0; i < context.plan->sockets.size(); ++i) {
    if (const int status = keep(context.sockets[i]); status < 0) return status;
  }
  for (int i = 0; i < context.exported_count; ++i) {
    if (const int status = keep(context.exported[i]); status < 0) return status;
  }
  if (context.first != nullptr) {
    for (int& fd : context.first->stdio) {
      if (const int status = keep(fd); status < 0) return status;
    }
  }
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && kept[j] < kept[j - 1]; --j) {
      const int swap = kept[j];
      kept[j] = kept[j - 1];
      kept[j - 1] = swap;
    }
  }
  unsigned from = 0;
  for (int i = 0; i <= count; ++i) {
    const unsigned to = i < count ? static_cast<unsigned>(kept[i]) : ~0U;
    if (to > from && ::syscall(SYS_close_range, from, i < count ? to - 1 : to, 0) < 0) return -errno;
    from = to + 1;
  }
  // 0, 1 and 2 of init itself: /dev/null, so that a later descriptor is never taken for one of them.
  const int null = ::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): commands inherit it as 0
  if (null != 0) return null < 0 ? -errno : -EBADF;
  if (::dup2(0, 1) < 0 || ::dup2(0, 2) < 0) return -errno;
  if (context.first != nullptr) return 0;
  // A session's files are reached by their caller through this. Before Landlock and seccomp, which need not allow it.
  context.root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return context.root < 0 ? -errno : 0;
}

// A session of our own: no controlling terminal is shared with the caller (CVE-2017-5226).
int new_session(ChildContext&) noexcept { return ::setsid() < 0 && errno != EPERM ? -errno : 0; }

int install_filter(ChildContext& context) noexcept {
  const Plan& plan = *context.plan;
  if (plan.seccomp.empty()) return 0;
  sock_fprog program{static_cast<unsigned short>(plan.seccomp.size()), const_cast<sock_filter*>(plan.seccomp.data())};
  unsigned flags = 0;
  if (plan.seccomp_listener) flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  long fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (fd < 0 && errno == EINVAL && plan.seccomp_listener) {
    // Remove when Linux 5.19 is the oldest kernel (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).
    fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  }
  if (fd < 0) return -errno;
  if (plan.seccomp_listener) context.listener = static_cast<int>(fd);
  return 0;
}

// Order matters. Root's idmapped mounts need host privilege, so its user namespace comes after the tree. A thread under Landlock
// may no longer mount or pivot_root, landlock(7), so the tree comes first; Landlock and seccomp need no_new_privs once capabilities
// are gone; seccomp is last, it forbids the calls above. Limits come when the descriptors and the memory of the start are given
// back.
constexpr Step kSteps[] = {
    {"parent_death", die_with_parent, "tie the sandbox to its parent"},
    {"maps", open_maps, "read its own memory's map"},
    {"id_map", map_own_id, "map the user id into the user namespace"},
    {"cgroup", join_cgroup, "join the cgroup"},
    {"namespaces", enter_ready_namespaces, "enter the namespaces that were made for it"},
    {"network_begin", begin_network, "make a network namespace"},
    {"session", new_session, "start a session"},
    {"keyring", new_session_keyring, "join an empty session keyring"},
    {"tree", build_tree, "build the mount tree"},
    {"network", join_network, "make a network namespace"},
    {"tree_end", end_names, "end the helper that hid names"},
    {"sockets", open_sockets, "open the sandbox's own listening sockets"},
    {"identity", become_unprivileged, "give up host root"},
    {"network_end", end_helper, "end the helper that made the network namespace"},
    {"terminal", open_terminal, "open a terminal"},
    {"capabilities", drop_capabilities, "drop capabilities"},
    {"no_new_privs", set_no_new_privs, "set no_new_privs"},
    {"close_fds", close_inherited_fds, "close inherited descriptors"},
    {"landlock", restrict_paths, "restrict paths with Landlock"},
    {"rlimits", apply_rlimits, "set resource limits"},
    {"hide_self", hide_self, "hide init from the command"},
    {"seccomp", install_filter, "install the system call filter"},
};

std::int64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t step_ns[wire::kMaxSteps];

}  // namespace

std::span<const Step> steps() noexcept { return kSteps; }

void await_or_end(const ChildContext& context, int fd) noexcept {
  pollfd awaited[] = {{context.front, POLLIN, 0}, {fd, POLLIN, 0}};  // -1 is passed over
  while (::poll(awaited, 2, fd < 0 ? 0 : -1) < 0 && errno == EINTR) {
  }
  if (awaited[0].revents != 0) ::_exit(125);
}

// gid_map needs setgroups denied first, user_namespaces(7) (CVE-2014-8989).
int map_self(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid) noexcept {
  if (const int status = write_file("/proc/self/setgroups", "deny", 4); status < 0 && status != -ENOENT) return status;
  if (const int status = write_map("/proc/self/uid_map", inside_uid, outside_uid); status < 0) return status;
  return write_map("/proc/self/gid_map", inside_gid, outside_gid);
}

void wipe_arguments() noexcept {
  constexpr std::size_t kLargest =
      4U << 20;  // of argument and environment strings, execve(2): both lie in one piece at the stack's end
  char* const first_argument = program_invocation_name;
  char* const first_variable = environ != nullptr ? *environ : nullptr;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) std::memset(*entry, 0, std::strlen(*entry));
  if (first_argument != nullptr && first_variable > first_argument &&
      static_cast<std::size_t>(first_variable - first_argument) < kLargest) {
    const auto size = static_cast<std::size_t>(first_variable - first_argument);
    std::memset(first_argument, 0, size);
    std::memcpy(first_argument, "init", size > 5 ? 5 : 0);
  }
  ::prctl(PR_SET_NAME, "init", 0, 0, 0);
}

void note_skipped(ChildContext& context, int op, int error) noexcept {
  if (context.skipped >= static_cast<int>(std::size(context.skipped_op))) return;
  context.skipped_op[context.skipped] = op;
  context.skipped_errno[context.skipped++] = error;
}

const std::int64_t* measured_steps() noexcept { return step_ns; }

void enter_sandbox(ChildContext& context) noexcept {
  // A host program that ignores SIGCHLD would have the kernel reap our children for us, wait(2), and the command would inherit it.
  ::signal(SIGCHLD, SIG_DFL);
  std::int64_t before = context.time_steps ? now_ns() : 0;
  int index = 0;
  for (const Step& step : kSteps) {
    if (const int status = step.run(context); status < 0) {
      wire::Reply reply;
      reply.type = wire::FromInit::kStepFailed;
      reply.errnum = -status;
      reply.where = index;
      reply.op = context.failed_op;
      ::send(context.control, &reply, sizeof reply, MSG_NOSIGNAL);
      ::_exit(125);
    }
    if (context.time_steps) {
      const std::int64_t after = now_ns();
      step_ns[index] = after - before;
      before = after;
    }
    ++index;
  }
  serve(context);
}

}  // namespace belljar::launch
