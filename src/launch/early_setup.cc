// What root makes on a thread of the parent while the plan is still being made.
//
// The thread and the planner hand over by two atomics. `inputs` grows as the planner knows more: first the
// hidden names, which take longest to make, then the rest of the stage, or that nothing more comes. `ready`
// says that all but the names is there, which is what a start waits for (take()); the names are awaited by
// the child, over a pipe, when it mounts the masks. So between two names the thread looks whether the rest
// has become known, and does that first.
//
// Namespaces are made by unshare(2) on this thread alone and kept by descriptors of /proc/thread-self/ns; the
// thread then ends. CLONE_FS is unshared first, for the umask is the process's. The thread allocates nothing
// (a thread that does gets a malloc arena of its own) and handles no signal of the host program.
//
// Whatever fails is left out: an invalid descriptor means that the child makes it itself.
#include "launch/early_setup.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "launch/child.h"
#include "launch/idmap.h"
#include "launch/plan.h"
#include "launch/stage.h"

namespace belljar::launch {
namespace {

constexpr std::size_t kStack = 64U << 10;

}  // namespace

// The thread's memory. It allocates nothing: a thread that does gets a heap of its own.
struct EarlySetup::Work {
  enum Input : unsigned { kNames = 1, kRest = 2, kNoMore = 4 };

  EarlySetupOptions options;
  std::string stage_options;
  std::span<const MountOp> names, rest;
  std::atomic<unsigned> inputs{0};
  std::atomic<bool> ready{false};  // `made` is complete
  Resources made;
  UniqueFd tell;  // the other end of Resources::names
  pthread_t thread{};

  // Only this thread changes its namespaces, and it ends soon: the descriptors hold them.
  void make_namespaces() noexcept {
    if (::unshare(CLONE_NEWIPC | CLONE_NEWUTS | (options.network ? CLONE_NEWNET : 0)) < 0) return;
    const UniqueFd own(::open("/proc/thread-self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto open_namespace = [&](const char* name) { return UniqueFd(::openat(own.get(), name, O_RDONLY | O_CLOEXEC)); };
    made.ipc = open_namespace("ipc");
    made.uts = open_namespace("uts");
    if (options.network && raise_loopback() == 0) made.network = open_namespace("net");
  }

  void await(unsigned what) noexcept {
    for (unsigned seen = inputs.load(std::memory_order_acquire); (seen & what) == 0; seen = inputs.load(std::memory_order_acquire))
      inputs.wait(seen, std::memory_order_acquire);
  }
  bool has(unsigned what) const noexcept { return (inputs.load(std::memory_order_acquire) & what) != 0; }

  void set_ready() noexcept {
    ready.store(true, std::memory_order_release);
    ready.notify_all();
  }

  void finish_stage(UniqueFd& stage) noexcept {
    if (stage.valid() && run_stage_ops(stage.get(), rest, MayBind::kNo) == 0) made.stage = std::move(stage);
    set_ready();
  }

  // The names take longest and are wanted last: what the child waits for goes before them as soon as it is known.
  void make_stage() noexcept {
    await(kNames | kNoMore);
    if (!has(kNames)) return set_ready();
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
      await(kRest | kNoMore);
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
    else work.set_ready();
    return nullptr;
  }

  void provide(unsigned what) noexcept {
    inputs.fetch_or(what, std::memory_order_release);
    inputs.notify_all();
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
  if (::pthread_create(&work->thread, &attributes, Work::run, work.get()) == 0) early->work_ = std::move(work);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  ::pthread_attr_destroy(&attributes);
  return early->work_ ? std::move(early) : nullptr;
}

EarlySetup::~EarlySetup() { end(); }

void EarlySetup::end() {
  if (!work_) return;
  work_->provide(Work::kNoMore);
  ::pthread_join(work_->thread, nullptr);
  work_.reset();
}

void EarlySetup::make_names(std::string stage_options, std::span<const MountOp> names) {
  if (!work_) return;
  work_->stage_options = std::move(stage_options);
  work_->names = names;
  work_->provide(Work::kNames);
}

void EarlySetup::make_rest(std::span<const MountOp> rest) {
  if (!work_) return;
  work_->rest = rest;
  work_->provide(Work::kRest);
}

EarlySetup::Resources EarlySetup::take() {
  if (!work_) return {};
  if (!work_->has(Work::kRest)) work_->provide(Work::kNoMore);
  work_->ready.wait(false, std::memory_order_acquire);
  return std::move(work_->made);
}

}  // namespace belljar::launch
