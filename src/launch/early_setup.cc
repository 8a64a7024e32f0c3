// What is made by another thread or process while the plan is still being made.
//
// Planner and worker hand over by two words. `inputs` grows as the planner knows more: first the hidden names,
// which take longest to make, then the rest of the stage, or that nothing more comes; last a user's child. `ready`
// says that all but the names is there, which is what a start waits for (take()); the names are awaited by
// the child, over a pipe, when it mounts the masks. So between two names root's worker looks whether the rest has
// become known, and does that first.
//
// Root's worker is a thread: namespaces are made by unshare(2) on it alone and kept by descriptors of
// /proc/thread-self/ns. CLONE_FS is unshared first, for the umask is the process's. An ordinary user needs a user
// namespace, which no thread may enter alone: that worker is a process that shares memory and descriptors
// (CLONE_VM, CLONE_FILES). The sandbox's child must be born in its namespaces and see the finished plan, so the
// worker clones it: a copy of this memory at that moment, with this process as its parent (CLONE_PARENT), as if it
// had been cloned here. It runs on its copy of the worker's stack. The names are done before; then the worker ends, and
// the child goes on inside only when this process has reaped it (the same pipe).
//
// A process may be killed or stopped by others, or by a filter around us: whoever waits for it here watches its
// pidfd as well, and after kPatience goes on without it.
//
// The worker allocates nothing (a thread that does gets a malloc arena of its own), handles no signal of the host
// program, and calls the kernel by raw_call(): a process that shares memory shares errno.
//
// Whatever fails is left out: an invalid descriptor means that the child makes it itself.
#include "launch/early_setup.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "launch/child.h"
#include "launch/idmap.h"
#include "launch/instrumented.h"
#include "launch/launcher.h"
#include "launch/plan.h"
#include "launch/raw.h"
#include "launch/stage.h"

namespace belljar::launch {
namespace {

constexpr std::size_t kStack = 128U << 10;  // a user's child lives on a copy of it
constexpr std::size_t kGuard = 4096;        // below it
constexpr auto kPatience = std::chrono::seconds(2);

bool has_ended(const UniqueFd& pidfd, int patience_ms) noexcept {
  pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, patience_ms) == 1;
}

// A word that grows, for those who share memory.
class Word {
 public:
  unsigned get() const noexcept { return value_.load(std::memory_order_acquire); }
  void add(unsigned bits) noexcept {
    value_.fetch_or(bits, std::memory_order_release);
    raw_call(SYS_futex, as_long(&value_), FUTEX_WAKE, INT_MAX);
  }
  unsigned await(unsigned bits) const noexcept {
    unsigned seen = get();
    for (; (seen & bits) == 0; seen = get()) raw_call(SYS_futex, as_long(&value_), FUTEX_WAIT, static_cast<long>(seen));
    return seen;
  }
  // False: `process` has ended without, or kPatience is over.
  bool await(unsigned bits, const UniqueFd& process) const noexcept {
    constexpr timespec kLook{0, 20'000'000};
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (unsigned seen = get(); (seen & bits) == 0; seen = get()) {
      raw_call(SYS_futex, as_long(&value_), FUTEX_WAIT, static_cast<long>(seen), as_long(&kLook));
      if (has_ended(process, 0) || std::chrono::steady_clock::now() > end) return (get() & bits) != 0;
    }
    return true;
  }

 private:
  std::atomic<unsigned> value_{0};
};

}  // namespace

// The worker's memory.
struct EarlySetup::Work {
  enum Input : unsigned { kNames = 1, kRest = 2, kNoMore = 4, kChild = 8, kEnd = 16 };  // kNoMore: of the stage
  enum Output : unsigned { kReady = 1, kCloned = 2 };

  EarlySetupOptions options;
  std::string stage_options;
  std::span<const MountOp> names, rest;
  Word inputs, outputs;  // kReady: `made` is complete
  Resources made;
  UniqueFd tell;  // the other end of Resources::names
  pthread_t thread{};
  // a user's
  pid_t process = -1;
  UniqueFd pidfd;
  long parent = 0;
  int names_status = 0;
  long umask = 0;  // the caller's, for the child
  void* stack = MAP_FAILED;
  clone_args arguments{};
  ChildContext* context = nullptr;
  long child = -EAGAIN;

  ~Work() {
    if (stack != MAP_FAILED) ::munmap(stack, kGuard + kStack);
  }

  // Only this thread changes its namespaces, and it ends soon: the descriptors hold them.
  void make_namespaces() noexcept {
    if (::unshare(CLONE_NEWIPC | CLONE_NEWUTS | (options.network ? CLONE_NEWNET : 0)) < 0) return;
    const UniqueFd own(::open("/proc/thread-self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto open_namespace = [&](const char* name) { return UniqueFd(::openat(own.get(), name, O_RDONLY | O_CLOEXEC)); };
    made.ipc = open_namespace("ipc");
    made.uts = open_namespace("uts");
    if (options.network && raise_loopback() == 0) made.network = open_namespace("net");
  }

  bool has(unsigned what) const noexcept { return (inputs.get() & what) != 0; }

  void finish_stage(UniqueFd& stage) noexcept {
    if (stage.valid() && run_stage_ops(stage.get(), rest, MayBind::kNo) == 0) made.stage = std::move(stage);
    outputs.add(kReady);
  }

  // The names take longest and are wanted last: what the child waits for goes before them as soon as it is known.
  void make_stage() noexcept {
    if ((inputs.await(kNames | kNoMore) & kNames) == 0) return outputs.add(kReady);
    int ends[2];
    UniqueFd stage(make_filesystem("tmpfs", stage_options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
    if (::pipe2(ends, O_CLOEXEC) == 0) made.names = UniqueFd(ends[0]), tell = UniqueFd(ends[1]);
    if (!made.names.valid()) stage.reset();
    const int place = stage.get();
    int status = place < 0 ? -EBADF : 0;
    bool finished = false;
    for (const MountOp& op : names) {
      if (status < 0) break;
      if (!finished && has(kRest)) finish_stage(stage), finished = true;
      status = run_stage_op(place, op, MayBind::kNo);
    }
    if (!finished) {
      inputs.await(kRest | kNoMore);
      if (status < 0) stage.reset();
      finish_stage(stage);
    }
    if (tell.valid()) (void)!::write(tell.get(), &status, sizeof status);
  }

  static void* run(void* argument) noexcept {
    auto& work = *static_cast<Work*>(argument);
    // Its own umask.
    const bool apart = ::unshare(CLONE_FS) == 0;
    if (apart) ::umask(0);
    work.make_namespaces();
    work.made.users =
        make_id_namespace(work.options.inside_uid, work.options.outside_uid, work.options.inside_gid, work.options.outside_gid);
    if (apart) work.make_stage();
    else work.outputs.add(kReady);
    return nullptr;
  }

  // --- an ordinary user's

  int enter_own_namespaces() noexcept {
    int status = map_self(options.inside_uid, options.outside_uid, options.inside_gid, options.outside_gid);
    const long flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (options.network ? CLONE_NEWNET : 0);
    if (status == 0) status = static_cast<int>(raw_call(SYS_unshare, flags));
    if (status == 0 && options.network) status = raise_loopback();
    return status;
  }

  // Its names alone: the rest may need mounts, which belong to the child's own tree. Without it the child makes both.
  void make_own_stage() noexcept {
    if ((inputs.await(kNames | kNoMore) & kNames) == 0) return;
    const int stage = make_filesystem("tmpfs", stage_options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (stage < 0) return;
    names_status = run_stage_ops(stage, names, MayBind::kNo);
    made.stage = UniqueFd(stage);
  }

  void clone_child() noexcept {
    raw_call(SYS_umask, umask);
    child = raw_clone(arguments);
    if (child == 0) enter_sandbox(*context);
    outputs.add(kCloned);
  }

  static int run_as_user(void* argument) noexcept {
    auto& work = *static_cast<Work*>(argument);
    // No pid namespace ends it with the parent, which may be gone before this is armed. Its number is 0 here where children of this
    // process belong to another pid namespace: no sandbox starts there.
    raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    work.umask = raw_call(SYS_umask, 0);
    const bool ours = raw_call(SYS_getppid) == work.parent;
    work.made.entered = ours && work.enter_own_namespaces() == 0;
    if (work.made.entered) work.make_own_stage();
    work.outputs.add(kReady);
    if (work.made.entered && (work.inputs.await(kChild | kEnd) & kChild) != 0) work.clone_child();
    return 0;
  }

  // Ends it whatever it does. By the planner, as what follows.
  void reap() noexcept {
    if (process <= 0) return;  // waitpid(0) would take any child of this group
    if (!has_ended(pidfd, std::chrono::milliseconds(kPatience).count())) ::kill(process, SIGKILL);
    while (::waitpid(process, nullptr, __WALL) < 0 && errno == EINTR) {
    }
    process = 0;
  }
};

std::unique_ptr<EarlySetup> EarlySetup::begin(const EarlySetupOptions& options) {
  std::unique_ptr<EarlySetup> early(new EarlySetup);
  auto work = std::make_unique<Work>();
  work->options = options;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return nullptr;
  ::pthread_attr_setstacksize(&attributes, kStack);
  // The caller's signals are the caller's: none is handled here.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  if (!options.as_user) {
    if (::pthread_create(&work->thread, &attributes, Work::run, work.get()) == 0) early->work_ = std::move(work);
  } else {
    int pidfd = -1;
    work->parent = ::getpid();
    work->stack = ::mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (!kInstrumented && work->stack != MAP_FAILED && ::mprotect(work->stack, kGuard, PROT_NONE) == 0)
      work->process = ::clone(Work::run_as_user, static_cast<char*>(work->stack) + kGuard + kStack,
                              CLONE_VM | CLONE_FILES | CLONE_PIDFD | CLONE_NEWUSER, work.get(), &pidfd);
    work->pidfd = UniqueFd(pidfd);
    if (work->process >= 0) early->work_ = std::move(work);
  }
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  ::pthread_attr_destroy(&attributes);
  return early->work_ ? std::move(early) : nullptr;
}

EarlySetup::~EarlySetup() { end(); }

void EarlySetup::end() {
  if (!work_) return;
  work_->inputs.add(Work::kNoMore | Work::kEnd);
  if (work_->options.as_user) work_->reap();
  else ::pthread_join(work_->thread, nullptr);
  work_.reset();
}

void EarlySetup::make_names(std::string stage_options, std::span<const MountOp> names) {
  if (!work_) return;
  work_->stage_options = std::move(stage_options);
  work_->names = names;
  work_->inputs.add(Work::kNames);
}

void EarlySetup::make_rest(std::span<const MountOp> rest) {
  if (!work_) return;
  work_->rest = rest;
  work_->inputs.add(Work::kRest);
}

EarlySetup::Resources EarlySetup::take() {
  if (!work_) return {};
  const bool as_user = work_->options.as_user;
  if (!work_->has(as_user ? Work::kNames : Work::kRest)) work_->inputs.add(Work::kNoMore);
  if (!as_user) work_->outputs.await(Work::kReady);
  else if (!work_->outputs.await(Work::kReady, work_->pidfd)) return {};
  return std::move(work_->made);
}

long EarlySetup::clone(const clone_args& arguments, ChildContext& context) {
  int ends[2];
  if (!work_ || ::pipe2(ends, O_CLOEXEC) < 0) return -EAGAIN;
  const UniqueFd names(ends[0]), tell(ends[1]);
  work_->arguments = arguments;
  work_->arguments.flags |= CLONE_PARENT;
  work_->context = &context;
  context.names = names.get();
  work_->inputs.add(Work::kChild);
  const bool cloned = work_->outputs.await(Work::kCloned, work_->pidfd);
  work_->reap();
  int* const pidfd = reinterpret_cast<int*>(arguments.pidfd);                   // NOLINT(performance-no-int-to-ptr)
  if (!cloned && (work_->outputs.get() & Work::kCloned) == 0 && *pidfd >= 0) {  // killed between the two
    ::syscall(SYS_pidfd_send_signal, *pidfd, SIGKILL, nullptr, 0);
    await_end(UniqueFd(std::exchange(*pidfd, -1)));
    work_->child = -EAGAIN;
  }
  const int status = work_->names_status;
  if (work_->child > 0) (void)!::write(tell.get(), &status, sizeof status);
  return work_->child;
}

}  // namespace belljar::launch
