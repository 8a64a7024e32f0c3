// A run whose sandbox is ready. What this costs is what a warm start costs, so it comes before all else: on a static program libc's
// own start takes longer than all of this (it asks the processor for its features, and under a hypervisor each of those questions
// is a trap), and so do relocations and the pages they touch. Hence: compiled without a library, no global data, no call but to
// inline functions here.
//
// Handed over are the words, the environment and the working directory; what else the spare must know of us it asks the kernel
// (caller.h). It answers before it does anything, so that a spare that refuses, dies or says nothing costs a cold start and nothing
// else; the streams come with our "go". From then on we are what the caller waits for and signals: signals are passed on, and when
// told so we stop or end. When we are killed, our end of the connection closes and the spare kills the sandbox.
//
// A run with a terminal among its streams starts cold: who reads and who is stopped there is decided by our process group.
#include "warm/client/client.h"

#include <asm/ioctls.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/time_types.h>
#include <linux/un.h>

#include "base/raw_call.h"
#include "warm/wire.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")  // a loop that copies or clears stays one: no memcpy is there to call
#endif

namespace belljar::warm {
namespace {

using std::size_t;

// The kernel's own layouts, socket(7), unix(7), where its headers have none: libc's bring functions that are not there yet.
constexpr int kAfUnix = 1, kSeqpacket = 5, kCloexec = 02000000, kNonBlocking = 04000, kSolSocket = 1, kRights = 1, kPeercred = 17,
              kPeerPidfd = 77, kNoSignal = 0x4000;
struct Vector {
  const void* base;
  size_t size;
};
struct Message {
  void* name;
  int name_size;
  Vector* parts;
  size_t part_count;
  void* control;
  size_t control_size;
  unsigned flags;
};
struct Rights {
  size_t size;
  int level, type;
  int fds[3];
};
struct Credentials {
  int pid;
  unsigned uid, gid;
};
struct Action {
  void* handler;
  unsigned long flags;
  void* restorer;
  std::uint64_t mask;
};

constexpr int kPassed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
const void* const kIgnored = reinterpret_cast<const void*>(1);  // SIG_IGN
constexpr std::uint64_t bit(int signal) noexcept { return std::uint64_t{1} << (signal - 1); }

// What a cold run's process ignores: broken pipes and file size limits of its own, and the terminal's stops.
constexpr std::uint64_t kHeld = bit(SIGPIPE) | bit(SIGXFSZ) | bit(SIGTTIN) | bit(SIGTTOU);

// As front::Signals has it: one that is ignored stays so.
std::uint64_t signals_to_pass(std::uint32_t ignored) noexcept {
  std::uint64_t set = 0;
  for (size_t i = 0; i < sizeof kPassed / sizeof kPassed[0]; ++i) set |= bit(kPassed[i]) & ~std::uint64_t{ignored};
  return set;
}

// As warm::own_inherited() asks it of libc.
void describe(wire::Inherited& own) noexcept {
  for (size_t i = 0; i < wire::kLimits; ++i) raw_call(SYS_prlimit64, 0, static_cast<long>(i), 0, as_long(&own.limits[i]));
  own.nice = static_cast<std::int32_t>(20 - raw_call(SYS_getpriority, 0, 0));
  own.policy = static_cast<std::int32_t>(raw_call(SYS_sched_getscheduler, 0));
  raw_call(SYS_sched_getparam, 0, as_long(&own.priority));
  own.io = static_cast<std::int32_t>(raw_call(SYS_ioprio_get, 1, 0));
  own.personality = static_cast<std::uint32_t>(raw_call(SYS_personality, 0xffffffffL));
  for (int signal = 1; signal < 32; ++signal) {
    Action now{};
    if (raw_call(SYS_rt_sigaction, signal, 0, as_long(&now), sizeof now.mask) == 0 && now.handler == kIgnored)
      own.ignored |= static_cast<std::uint32_t>(bit(signal));
  }
  own.umask = static_cast<std::int32_t>(raw_call(SYS_umask, 0));
  raw_call(SYS_umask, own.umask);
  own.no_huge_pages = static_cast<std::int32_t>(raw_call(SYS_prctl, PR_GET_THP_DISABLE));
  own.no_new_code = static_cast<std::int32_t>(raw_call(SYS_prctl, 66));  // PR_GET_MDWE, Linux 6.3
  own.merged_memory = static_cast<std::int32_t>(raw_call(SYS_prctl, wire::kGetMemoryMerge, 0, 0, 0, 0));
  own.memory_errors = static_cast<std::int32_t>(raw_call(SYS_prctl, PR_MCE_KILL_GET, 0, 0, 0, 0));
  own.secure_bits = static_cast<std::int32_t>(raw_call(SYS_prctl, PR_GET_SECUREBITS));
  raw_call(SYS_prctl, PR_GET_TSC, as_long(&own.time_stamps));
  raw_call(SYS_sched_getattr, 0, as_long(own.scheduling), sizeof own.scheduling, 0);
  raw_call(SYS_get_mempolicy, as_long(&own.memory_policy), as_long(own.memory_nodes), wire::kNodes);
  own.timer_slack = static_cast<std::uint64_t>(raw_call(SYS_prctl, PR_GET_TIMERSLACK));
  constexpr char kSelf[] = "/proc/self/exe";
  struct statx program;
  if (raw_call(SYS_statx, AT_FDCWD, as_long(kSelf), 0, STATX_INO, as_long(&program)) == 0) {
    own.program_device = std::uint64_t{program.stx_dev_major} << 32U | program.stx_dev_minor;
    own.program_inode = program.stx_ino;
  }
}

// /proc/PROCESS/NAME; 0: our own.
struct ProcPath {
  ProcPath(int process, const char* name) noexcept {
    size_t size = 0;
    const auto put = [&](const char* part) {
      for (; *part != '\0'; ++part) text[size++] = *part;
    };
    put(process == 0 ? "/proc/self" : "/proc/");
    char digits[12];
    int count = 0;
    for (int rest = process; rest > 0; rest /= 10) digits[count++] = static_cast<char>('0' + (rest % 10));
    while (count > 0) text[size++] = digits[--count];
    put("/");
    put(name);
    text[size] = '\0';
  }
  char text[48];
};

// What is behind kProofFd of the spare.
void prove(int spare, char (&proof)[wire::kProofBytes]) noexcept {
  static_assert(wire::kProofFd == 3);
  const ProcPath path(spare, "fd/3");
  raw_call(SYS_readlinkat, AT_FDCWD, as_long(path.text), as_long(proof), sizeof proof);
}

// The lines of proc_pid_status(5) that tell what confines it: NoNewPrivs, Seccomp and how many filters. False: they are not there.
struct Filters {
  char text[4096];
  size_t begin = 0, seccomp = 0, end = 0;

  bool are_none() const noexcept { return wire::begins(text + seccomp, "\nSeccomp:\t0\n"); }
  bool are_counted() const noexcept {
    for (size_t at = seccomp; at < end; ++at) {
      if (wire::begins(text + at, "\nSeccomp_filters:")) return true;
    }
    return false;
  }
};
// What two of them say from there on.
bool are_equal(const Filters& a, size_t from_a, const Filters& b, size_t from_b) noexcept {
  if (a.end - from_a != b.end - from_b) return false;
  for (size_t i = 0; i < a.end - from_a; ++i) {
    if (a.text[from_a + i] != b.text[from_b + i]) return false;
  }
  return true;
}
bool read_filters(int process, Filters& filters) noexcept {
  const ProcPath path(process, "status");
  const int file = static_cast<int>(raw_call(SYS_openat, AT_FDCWD, as_long(path.text), kCloexec, 0));
  const long size = raw_call(SYS_read, file, as_long(filters.text), sizeof filters.text - 1);
  raw_call(SYS_close, file);
  if (size <= 0) return false;
  filters.text[size] = '\0';
  for (size_t at = 0; filters.text[at] != '\0'; ++at) {
    if (filters.text[at] != '\n') continue;
    if (wire::begins(filters.text + at, "\nNoNewPrivs:")) filters.begin = at;
    else if (wire::begins(filters.text + at, "\nSeccomp:")) filters.seccomp = at;
    else if (filters.begin != 0 && !wire::begins(filters.text + at, "\nSeccomp")) {
      filters.end = at;
      return filters.seccomp != 0;
    }
  }
  return false;
}

// Nobody in a sandbox may play the spare and be given an environment and streams: it has namespaces of its own, or a filter, and
// loses neither. Asked while it looks at us.
bool is_where_we_are(int spare) noexcept {
  constexpr char kNamespaces[][8] = {"ns/user", "ns/mnt", "ns/pid"};  // no pointers: nobody has relocated us yet
  for (const char(&name)[8] : kNamespaces) {
    const ProcPath theirs(spare, name), ours(0, name);
    struct statx a, b;
    if (raw_call(SYS_statx, AT_FDCWD, as_long(theirs.text), 0, STATX_INO, as_long(&a)) != 0 ||
        raw_call(SYS_statx, AT_FDCWD, as_long(ours.text), 0, STATX_INO, as_long(&b)) != 0 || a.stx_ino != b.stx_ino)
      return false;
  }
  Filters theirs, ours;
  if (!read_filters(spare, theirs) || !read_filters(0, ours) || !are_equal(theirs, theirs.begin, ours, ours.begin)) return false;
  // As many may be others, unless they are pid 1's: has_known_filters().
  return ours.are_none() ||
         (ours.are_counted() && read_filters(1, theirs) && are_equal(theirs, theirs.seccomp, ours, ours.seccomp));
}

bool is_terminal_or_closed(int fd) noexcept {
  char settings[64];  // more than the kernel's struct termios
  const long status = raw_call(SYS_ioctl, fd, TCGETS, as_long(settings));
  return status == 0 || status == -EBADF;
}

[[noreturn]] void end(int code) noexcept {
  for (;;) raw_call(SYS_exit_group, code);
}

// Who called listen(2) is there yet, so that what was read by its number was of nobody who got the number later. A kernel
// before 6.5 does not tell.
bool still_listens(int fd) noexcept {
  int listener = -1, size = sizeof listener;
  const long asked = raw_call(SYS_getsockopt, fd, kSolSocket, kPeerPidfd, as_long(&listener), as_long(&size));
  if (asked != 0) return asked == -ENOPROTOOPT;
  const bool there = raw_call(SYS_pidfd_send_signal, listener, 0, 0, 0) == 0;
  raw_call(SYS_close, listener);
  return there;
}

// A spare of this user's that listens there. Not one that many wait for: connect(2) would wait for it, too. What nobody listens on
// any more was left by one that was killed, and would be taken for a spare by who makes the next.
int connect_to(const char* path, size_t size, long uid, int& spare) noexcept {
  sockaddr_un name{kAfUnix, {}};
  for (size_t i = 0; i <= size; ++i) name.sun_path[i] = path[i];
  const int fd = static_cast<int>(raw_call(SYS_socket, kAfUnix, kSeqpacket | kCloexec | kNonBlocking, 0));
  if (fd < 0) return -1;
  Credentials peer{};
  int peer_size = sizeof peer;
  const long connected = raw_call(SYS_connect, fd, as_long(&name), static_cast<long>(sizeof name.sun_family + size + 1));
  if (connected == -ECONNREFUSED) raw_call(SYS_unlinkat, AT_FDCWD, as_long(path), 0);
  if (connected == 0 && raw_call(SYS_getsockopt, fd, kSolSocket, kPeercred, as_long(&peer), as_long(&peer_size)) == 0 &&
      peer.uid == uid && peer.pid > 0 && is_where_we_are(peer.pid) && still_listens(fd)) {
    spare = peer.pid;
    return fd;
  }
  raw_call(SYS_close, fd);
  return -1;
}

bool send_request(int fd, const wire::Request& request, char* const* argv, char* const* environment, const char* cwd) noexcept {
  Vector parts[4] = {{&request, sizeof request},
                     {argv[0], request.argv_bytes},
                     {environment[0], request.environment_bytes},
                     {cwd, request.cwd_bytes}};
  const Message message{nullptr, 0, parts, 4, nullptr, 0, 0};
  return raw_call(SYS_sendmsg, fd, as_long(&message), kNoSignal) > 0;
}

// The streams come with it: a spare that does not answer must not hold the caller's pipes open.
bool send_go(int fd) noexcept {
  const wire::Signal go{wire::kGo};
  Vector part{&go, sizeof go};
  struct alignas(8) {
    Rights rights;
    int padding;
  } control{{sizeof(size_t) + (2 * sizeof(int)) + (3 * sizeof(int)), kSolSocket, kRights, {0, 1, 2}}, 0};
  const Message message{nullptr, 0, &part, 1, &control, sizeof control, 0};
  return raw_call(SYS_sendmsg, fd, as_long(&message), kNoSignal) == sizeof go;
}

// What the spare says, unless it takes long over it, or somebody wants us to end: then the run is a cold one, at once.
bool is_taken(int fd, int signals) noexcept {
  constexpr long kPatience = 500'000'000;  // nanoseconds
  const __kernel_timespec patience{0, kPatience};
  struct pollfd wait[2] = {{fd, POLLIN, 0}, {signals, POLLIN, 0}};
  if (raw_call(SYS_ppoll, as_long(wait), 2, as_long(&patience), 0, 8) <= 0 || wait[0].revents == 0) return false;
  wire::Answer answer;
  if (raw_call(SYS_recvfrom, fd, as_long(&answer), sizeof answer) != sizeof answer || answer.say != wire::Say::kTaken) return false;
  return send_go(fd);
}

// Taken by the spare: from here on we are its caller's end.
[[noreturn]] void serve(int fd, int signals) noexcept {
  for (;;) {
    struct pollfd wait[2] = {{fd, POLLIN, 0}, {signals, POLLIN, 0}};
    (void)raw_call(SYS_ppoll, as_long(wait), 2, 0, 0, 8);
    if (wait[1].revents != 0) {
      unsigned char info[128];  // signalfd_siginfo: the number comes first
      if (raw_call(SYS_read, signals, as_long(info), sizeof info) == sizeof info) {
        const wire::Signal passed{static_cast<std::int32_t>(info[0])};
        raw_call(SYS_sendto, fd, as_long(&passed), sizeof passed, kNoSignal);
      }
    }
    if (wait[0].revents == 0) continue;
    wire::Answer answer;
    const long size = raw_call(SYS_recvfrom, fd, as_long(&answer), sizeof answer);
    if (size == -EINTR || size == -EAGAIN) continue;
    if (size != sizeof answer) {
      constexpr char kGone[] = "belljar: the process that kept this sandbox ready was killed, and the command with it\n";
      raw_call(SYS_write, 2, as_long(kGone), sizeof kGone - 1);
      end(125);
    }
    if (answer.say == wire::Say::kEnded) end(answer.value);
    if (answer.say == wire::Say::kSignalled) {
      const std::uint64_t open = bit(answer.value);
      raw_call(SYS_rt_sigprocmask, SIG_UNBLOCK, as_long(&open), 0, sizeof open);
      raw_call(SYS_kill, raw_call(SYS_getpid), answer.value);
      end(128 + answer.value);
    }
    if (answer.say == wire::Say::kStop) raw_call(SYS_kill, raw_call(SYS_getpid), SIGSTOP);  // continued: CONT waits in `signals`
  }
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) void belljar_warm_first(int argc, char** argv, char** environment) noexcept {
  const wire::Words words = wire::words_of(argc, argv);
  if (!words.right || environment[0] == nullptr) return;
  const long uid = raw_call(SYS_geteuid);
  char path[wire::kPathBytes];
  const size_t directory = wire::put_directory(environment, uid == 0, path);
  if (directory == 0) return;
  // Nobody who never asked for spares pays for more than this.
  path[directory] = '\0';
  if (raw_call(SYS_faccessat, AT_FDCWD, as_long(path), 1) != 0) return;
  for (int fd = 0; fd < 3; ++fd) {
    if (is_terminal_or_closed(fd)) return;
  }
  char cwd[4096];
  const long cwd_size = raw_call(SYS_getcwd, as_long(cwd), sizeof cwd);
  if (cwd_size <= 1 || cwd[0] != '/') return;

  // The kernel lays the strings one behind the other, first argv's, then the environment's.
  wire::Request request;
  request.argc = static_cast<std::uint32_t>(argc);
  request.argv_bytes = static_cast<std::uint32_t>(environment[0] - argv[0]);
  char* const* last = environment;
  while (last[1] != nullptr) ++last;
  request.environment_bytes = static_cast<std::uint32_t>(*last + wire::length(*last) + 1 - environment[0]);
  request.cwd_bytes = static_cast<std::uint32_t>(cwd_size);
  if (argv[0] + request.argv_bytes != environment[0] || argv[argc - 1] + wire::length(argv[argc - 1]) + 1 != environment[0] ||
      std::size_t{request.argv_bytes} + request.environment_bytes + request.cwd_bytes + sizeof request > wire::kMostBytes)
    return;

  describe(request.inherited);
  const std::uint64_t kind = wire::hash_of_kind(words, argv, environment, cwd, request.inherited);
  for (int slot = 0; slot < wire::kSlots; ++slot) {
    wire::put_name(path + directory, kind, slot);
    int spare = 0;
    const int fd = connect_to(path, wire::length(path), uid, spare);
    if (fd < 0) continue;
    prove(spare, request.proof);
    // Before it is taken: a signal that comes in between is the command's.
    const std::uint64_t passed = signals_to_pass(request.inherited.ignored);
    const std::uint64_t blocked = passed | kHeld;
    std::uint64_t before = 0;
    if (raw_call(SYS_rt_sigprocmask, SIG_BLOCK, as_long(&blocked), as_long(&before), sizeof before) != 0) return;
    const int signals = static_cast<int>(raw_call(SYS_signalfd4, -1, as_long(&passed), sizeof passed, kCloexec | kNonBlocking));
    if (before == 0 && signals >= 0 && send_request(fd, request, argv, environment, cwd) && is_taken(fd, signals))
      serve(fd, signals);
    raw_call(SYS_close, fd);
    if (signals >= 0) raw_call(SYS_close, signals);
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, as_long(&before), 0, sizeof before);
  }
}

}  // namespace belljar::warm
