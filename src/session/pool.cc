// A few threads make and end sandboxes, one for each processor; callers take them, and make one themselves only when none waits.
//
// Everything is guarded by one mutex, but no sandbox is made, asked or ended with it held (Busy). What is
// worked on has been taken out of the lists before, so no other thread can get it, and busy_ counts it
// meanwhile: total() would otherwise let the pool grow over `most`. coming_ counts those of them that will wait when the work is
// done, so that two threads do not make the same missing one.
//
// A thread does one thing per round, in this order: end what was given back, since that frees room; drop what
// waited too long; make what is missing; ask one that waits whether it lives. After each round the lists are
// looked at anew, for they may have changed while the mutex was free.
//
// A sandbox that was used is never handed out again. It is ended and another one is made, so nothing that a
// command left behind can meet the next owner. A sandbox that waits is asked once more when it is taken: it may
// have died since the last check.
//
// stop() first lets owners give back, for as long as its caller allows, then ends what they still hold. The
// threads are joined when nothing is left to end, and only then the directory of the workspaces goes.
#include "belljar/pool.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/owner.h"
#include "base/patience.h"
#include "base/real_path.h"
#include "base/remove_tree.h"
#include "base/thread.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/state_dir.h"
#include "belljar/units.h"
#include "runtime/living.h"
#include "session/live.h"

namespace belljar {

using std::chrono::milliseconds;

// Shared by the pool and what it handed out, whichever lives longer. Threads of its own make and end sandboxes.
class PoolState : public std::enable_shared_from_this<PoolState> {
 public:
  explicit PoolState(PoolOptions options) : options_(std::move(options)) {}
  Result<void> start();
  Result<Lease> take(const TakeOptions& options);
  void give_back(std::shared_ptr<Sandbox> sandbox) noexcept;
  void stop(milliseconds patience);
  PoolStats stats() const;
  // Not: we are in a forked child, where nothing of the pool may be touched, its lock included.
  bool is_ours() const noexcept { return owner_.is_this(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::shared_ptr<Sandbox> sandbox;
    Clock::time_point since, checked;
  };

  // Works without the lock, and is counted meanwhile; kComing: what is worked on waits to be taken afterwards.
  enum class Then { kGoes, kComing };
  class Busy {
   public:
    Busy(PoolState& pool, std::unique_lock<std::mutex>& lock, Then then = Then::kGoes)
        : pool_(pool), lock_(lock), coming_(then == Then::kComing ? 1 : 0) {
      ++pool_.busy_;
      pool_.coming_ += coming_;
      lock_.unlock();
    }
    ~Busy() {
      lock_.lock();
      --pool_.busy_;
      pool_.coming_ -= coming_;
      pool_.changed_.notify_all();  // stop() waits for the last one, however its work went
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    PoolState& pool_;
    std::unique_lock<std::mutex>& lock_;
    const std::size_t coming_;
  };

  Result<std::shared_ptr<Sandbox>> make();
  Result<std::shared_ptr<Sandbox>> make_unlocked(std::unique_lock<std::mutex>& lock, Then then);
  bool lives_unlocked(Sandbox& sandbox, std::unique_lock<std::mutex>& lock, Then then);
  Result<void> prepare(const SandboxConfig& config, std::shared_ptr<Sandbox>& sandbox) const;
  void discard(const std::shared_ptr<Sandbox>& sandbox) noexcept;
  void serve();
  // What a thread is to do next. All with mutex_ held; each leaves it while it works.
  bool end_one(std::unique_lock<std::mutex>& lock);
  bool expire_one(std::unique_lock<std::mutex>& lock);
  bool check_one(std::unique_lock<std::mutex>& lock);
  bool make_one(std::unique_lock<std::mutex>& lock);
  Clock::time_point next_turn() const;
  Clock::time_point make_after() const;
  std::size_t total() const noexcept { return waiting_.size() + in_use_.size() + ending_.size() + busy_; }
  Result<std::shared_ptr<Sandbox>> take_waiting(std::unique_lock<std::mutex>& lock);

  const OwningProcess owner_;
  PoolOptions options_;  // not changed after start()
  std::string workspaces_;
  std::shared_ptr<void> living_;  // of all of them, so that each knows where the others are made
  std::atomic<unsigned> serial_{0};
  std::vector<std::thread> threads_;

  mutable std::mutex mutex_;
  std::condition_variable work_, changed_;  // for the threads; for who waits
  // guarded by mutex_
  std::deque<Waiting> waiting_;                                // the longest first
  std::map<const Sandbox*, std::shared_ptr<Sandbox>> in_use_;  // handed out
  std::vector<std::shared_ptr<Sandbox>> ending_;
  std::size_t busy_ = 0;    // being made, asked or ended now
  std::size_t coming_ = 0;  // of those, the ones that a thread of ours makes or asks: they wait afterwards
  std::size_t wanted_ = 0;  // how many should wait; less than `ready` when the pool was quiet
  Clock::time_point try_again_{};
  Clock::time_point quiet_until_{};  // for what was handed out
  bool stopped_ = false, quit_ = false;
  PoolStats stats_;
};

namespace {

constexpr milliseconds kAfterFailure{1000};
// The next is made a little after one was handed out: making it at once would take processor and locks of this process from the
// first command of the one that is waited for.
constexpr milliseconds kAfterHandOut{3};
constexpr int kBehindHandOuts = 10;
constexpr std::size_t kMostMakers = 4;  // no more pid 1s are made at one time (reactor.h)
constexpr milliseconds kLook{50};       // how often a waiting take() looks at its cancel token

Error stopped_error() { return Error(Code::kFailedPrecondition, "cannot take a sandbox").reason("the pool was stopped"); }

Result<std::string> make_directory_in(const std::string& parent) {
  std::string path = parent + "/belljar-pool-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return Error(Code::kFailedPrecondition, format("cannot make a directory for workspaces in {}", quoted(parent)))
        .sys(errno, "mkdtemp")
        .next("name a directory that you may write to (PoolOptions::workspaces)");
  return path;
}

// Nothing has run in it but `prepare`, so an answer of its pid 1 will do where we know how to ask for one.
bool lives(Sandbox& sandbox) {
  auto* const live = dynamic_cast<session::LiveSandbox*>(&sandbox);
  return (live != nullptr ? live->answer() : sandbox.health()).has_value();
}

}  // namespace

// --- making and ending

Result<std::shared_ptr<Sandbox>> PoolState::make() {
  SandboxConfig config = options_.sandbox;
  config.siblings = Siblings::kHidden;
  config.workspace = format("{}/{}", workspaces_, ++serial_);
  if (::mkdir(config.workspace.c_str(), 0700) < 0)
    return Error(Code::kFailedPrecondition, format("cannot make the workspace {}", quoted(config.workspace))).sys(errno, "mkdir");
  std::shared_ptr<Sandbox> sandbox;
  auto ready = prepare(config, sandbox);
  if (ready) return sandbox;
  if (sandbox != nullptr) (void)sandbox->stop();
  (void)remove_tree(config.workspace);
  return std::move(ready).error();
}

// Factory and `prepare` are the caller's: what they throw is the answer of this one try, and ends neither the pool nor its thread.
Result<void> PoolState::prepare(const SandboxConfig& config, std::shared_ptr<Sandbox>& sandbox) const {
  const auto thrown = [](const char* what) { return Error(Code::kInternal, "cannot prepare a sandbox of the pool").reason(what); };
  try {
    sandbox = BELLJAR_TRY(make_sandbox(config));
    BELLJAR_CHECK(sandbox->start());
    if (!options_.prepare) return {};
    BELLJAR_CHECK(options_.prepare(*sandbox));
    if (lives(*sandbox)) return {};
    return Error(Code::kUnavailable, "cannot prepare a sandbox of the pool")
        .reason("it did not run any more when `prepare` had ended");
  } catch (const std::exception& error) {
    return thrown(error.what());
  } catch (...) {
    return thrown("it threw something that is no std::exception");
  }
}

void PoolState::discard(const std::shared_ptr<Sandbox>& sandbox) noexcept {
  (void)sandbox->stop();
  // Its path is ours: nothing else was ever made by that name.
  if (sandbox->workspace().starts_with(workspaces_ + "/")) (void)remove_tree(sandbox->workspace());
}

Result<std::shared_ptr<Sandbox>> PoolState::make_unlocked(std::unique_lock<std::mutex>& lock, Then then) {
  const Busy busy(*this, lock, then);
  return make();
}

bool PoolState::lives_unlocked(Sandbox& sandbox, std::unique_lock<std::mutex>& lock, Then then) {
  const Busy busy(*this, lock, then);
  return lives(sandbox);
}

Result<void> PoolState::start() {
  if (!options_.sandbox.workspace.empty())
    return Error(Code::kInvalidArgument, "cannot make a pool of sandboxes on one workspace")
        .reason("what one leaves there the next would find")
        .next("leave `workspace` empty: each gets one of its own below PoolOptions::workspaces");
  if (!options_.sandbox.transaction.empty())
    return Error(Code::kInvalidArgument, "cannot make a pool of sandboxes in a transaction")
        .reason("a transaction goes on from what the workspace holds, and here each is made anew and removed")
        .next("leave `transaction` empty, or make_sandbox() with a workspace of your own");
  // It ends a path for the kernel: another directory than the one that was named.
  if (options_.workspaces.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot make a pool with the `workspaces` {}", quoted(options_.workspaces)))
        .reason("it holds a NUL byte")
        .next("name a directory that you may write to (PoolOptions::workspaces)");
  if (options_.most < 1 || options_.most < options_.ready)
    return Error(Code::kInvalidArgument, format("cannot make a pool of at most {} with {} ready", options_.most, options_.ready))
        .next("let `most` be at least 1 and at least `ready`");
  if (options_.check_interval <= milliseconds(0) || (options_.idle_time && *options_.idle_time <= milliseconds(0)))
    return Error(Code::kInvalidArgument, "cannot make a pool with a time that is not positive");
  const char* tmpdir = ::secure_getenv("TMPDIR");
  const std::string parent = !options_.workspaces.empty() ? options_.workspaces : tmpdir != nullptr ? tmpdir : "/var/tmp";
  // Sandboxes know their workspaces by canonical paths.
  workspaces_ = BELLJAR_TRY(make_directory_in(real_path_or_given(parent)));
  // The sandboxes' own user passes through, when we are root; names below tell nothing.
  ::chmod(workspaces_.c_str(), 0711);
  living_ = runtime::enter_living(default_state_dir(), {workspaces_}, runtime::Others::kNotAsked).record;
  options_.check_interval = bounded(options_.check_interval);
  if (options_.idle_time) options_.idle_time = bounded(*options_.idle_time);
  wanted_ = options_.ready;
  if (wanted_ > 0) {
    auto first = make();
    if (!first) {
      (void)remove_tree(workspaces_);
      return first.error();
    }
    const auto now = Clock::now();
    waiting_.push_back({*std::move(first), now, now});
    stats_.made = 1;
  }
  const std::size_t makers = std::clamp<std::size_t>(options_.ready, 1, kMostMakers);
  while (threads_.size() < std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, makers)) {
    auto thread = open_thread([this] { serve(); }, "cannot make a pool");
    if (!thread && threads_.empty()) {
      if (!waiting_.empty()) (void)waiting_.front().sandbox->stop();
      (void)remove_tree(workspaces_);
      return thread.error();
    }
    if (!thread) break;  // fewer do the same, later
    threads_.push_back(*std::move(thread));
  }
  return {};
}

// --- the threads

void PoolState::serve() {
  // Of this thread alone, nice(2): pid 1s are made by the reactor's, which were there before. Of the time that a hand-out takes
  // while the pool is filled again it saves the half.
  ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kBehindHandOuts);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (end_one(lock) || (!stopped_ && (expire_one(lock) || make_one(lock) || check_one(lock)))) {
      changed_.notify_all();
      continue;
    }
    if (quit_) return;
    work_.wait_until(lock, next_turn());
  }
}

bool PoolState::end_one(std::unique_lock<std::mutex>& lock) {
  if (ending_.empty()) return false;
  const std::shared_ptr<Sandbox> sandbox = std::move(ending_.back());
  ending_.pop_back();
  const Busy busy(*this, lock);
  discard(sandbox);
  return true;
}

bool PoolState::expire_one(std::unique_lock<std::mutex>&) {
  if (!options_.idle_time || waiting_.empty() || Clock::now() - waiting_.front().since < *options_.idle_time) return false;
  ending_.push_back(std::move(waiting_.front().sandbox));
  waiting_.pop_front();
  wanted_ = std::min(wanted_, waiting_.size());
  return true;
}

bool PoolState::make_one(std::unique_lock<std::mutex>& lock) {
  if (waiting_.size() + coming_ >= wanted_ || total() >= options_.most || Clock::now() < make_after()) return false;
  if (waiting_.size() + coming_ + 1 < wanted_) work_.notify_one();  // for the next
  auto made = make_unlocked(lock, Then::kComing);
  if (!made) {
    stats_.last_error = made.error().line();
    try_again_ = Clock::now() + kAfterFailure;
    return true;
  }
  stats_.last_error.clear();
  ++stats_.made;
  const auto now = Clock::now();
  if (stopped_) ending_.push_back(*std::move(made));
  else waiting_.push_back({*std::move(made), now, now});
  return true;
}

bool PoolState::check_one(std::unique_lock<std::mutex>& lock) {
  const auto due = Clock::now() - options_.check_interval;
  const auto found = std::ranges::find_if(waiting_, [&](const Waiting& one) { return one.checked < due; });
  if (found == waiting_.end()) return false;
  Waiting one = std::move(*found);
  waiting_.erase(found);
  const bool alive = lives_unlocked(*one.sandbox, lock, Then::kComing);
  one.checked = Clock::now();
  if (alive && !stopped_) {
    waiting_.push_front(std::move(one));
  } else {
    if (!alive) ++stats_.dead;
    ending_.push_back(std::move(one.sandbox));
  }
  return true;
}

PoolState::Clock::time_point PoolState::next_turn() const {
  auto next = Clock::now() + options_.check_interval;
  for (const Waiting& one : waiting_) {
    next = std::min(next, one.checked + options_.check_interval + milliseconds(1));
    if (options_.idle_time) next = std::min(next, one.since + *options_.idle_time);
  }
  if (waiting_.size() + coming_ < wanted_ && total() < options_.most) next = std::min(next, make_after());
  return next;
}

// With none left the next taker waits: no time to lose.
PoolState::Clock::time_point PoolState::make_after() const {
  return waiting_.empty() ? try_again_ : std::max(try_again_, quiet_until_);
}

// --- taking and giving back

Result<std::shared_ptr<Sandbox>> PoolState::take_waiting(std::unique_lock<std::mutex>& lock) {
  while (!waiting_.empty()) {
    std::shared_ptr<Sandbox> sandbox = std::move(waiting_.front().sandbox);
    waiting_.pop_front();
    const bool alive = lives_unlocked(*sandbox, lock, Then::kGoes);  // taken out under the lock: nobody else can get it
    if (alive) return sandbox;
    ++stats_.dead;
    ending_.push_back(sandbox);
    work_.notify_one();
  }
  if (total() >= options_.most) return std::shared_ptr<Sandbox>();
  auto made = make_unlocked(lock, Then::kGoes);
  if (made) ++stats_.made, ++stats_.waited;
  return made;
}

Result<Lease> PoolState::take(const TakeOptions& options) {
  const auto end = Clock::now() + bounded(options.patience);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return stopped_error();
    if (options.cancel.cancelled()) return Error(Code::kCanceled, "cannot take a sandbox").reason("the caller cancelled it");
    wanted_ = options_.ready;
    auto sandbox = BELLJAR_TRY(take_waiting(lock));
    if (sandbox != nullptr) {
      // Several taken in a row: their first commands come before those that replace them, while half of these are there.
      if (waiting_.size() >= wanted_ / 2) quiet_until_ = Clock::now() + kAfterHandOut;
      work_.notify_one();
      if (stopped_) {
        ending_.push_back(std::move(sandbox));
        return stopped_error();
      }
      in_use_.emplace(sandbox.get(), sandbox);
      ++stats_.taken;
      return Lease(std::move(sandbox), shared_from_this());
    }
    const auto now = Clock::now();
    if (now >= end)
      return Error(Code::kResourceExhausted, "cannot take a sandbox")
          .reason(format("{} are in use, and none was given back for {}", options_.most, to_string(options.patience)))
          .next("give one back, or let PoolOptions::most be larger");
    changed_.wait_until(lock, options.cancel.fd() < 0 ? end : std::min(end, now + kLook));
  }
}

void PoolState::give_back(std::shared_ptr<Sandbox> sandbox) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (in_use_.erase(sandbox.get()) == 0) return;  // the pool ended it already
    if (!quit_) {
      ending_.push_back(std::move(sandbox));
      work_.notify_one();
      changed_.notify_all();
      return;
    }
  }
  discard(sandbox);
}

void PoolState::stop(milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  for (Waiting& one : waiting_) ending_.push_back(std::move(one.sandbox));
  waiting_.clear();
  work_.notify_all();
  changed_.notify_all();
  changed_.wait_until(lock, Clock::now() + bounded(patience), [&] { return in_use_.empty(); });
  for (auto& [key, sandbox] : in_use_) ending_.push_back(std::move(sandbox));
  in_use_.clear();
  work_.notify_all();
  changed_.wait(lock, [&] { return quit_ || (ending_.empty() && busy_ == 0); });
  if (std::exchange(quit_, true)) return;
  work_.notify_all();
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  living_.reset();
  (void)remove_tree(workspaces_);
}

PoolStats PoolState::stats() const {
  const std::lock_guard lock(mutex_);
  PoolStats now = stats_;
  now.ready = waiting_.size();
  now.in_use = in_use_.size();
  return now;
}

// --- the public face

Lease::Lease(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<PoolState> home) noexcept
    : sandbox_(std::move(sandbox)), home_(std::move(home)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  sandbox_ = std::move(other.sandbox_);
  home_ = std::move(other.home_);
  return *this;
}

void Lease::give_back() noexcept {
  auto home = std::exchange(home_, nullptr);
  if (home == nullptr) return;
  if (home->is_ours()) return home->give_back(std::exchange(sandbox_, nullptr));
  abandon(home);
  abandon(sandbox_);
}

Result<std::unique_ptr<Pool>> Pool::create(PoolOptions options) {
  auto state = std::make_shared<PoolState>(std::move(options));
  BELLJAR_CHECK(state->start());
  return std::unique_ptr<Pool>(new Pool(std::move(state)));
}

Pool::~Pool() {
  if (state_->is_ours()) state_->stop(milliseconds(0));
  else abandon(state_);
}
Result<Lease> Pool::take(const TakeOptions& options) {
  if (!state_->is_ours()) return OwningProcess::not_this();
  return state_->take(options);
}
void Pool::stop(milliseconds patience) {
  if (state_->is_ours()) state_->stop(patience);
}
PoolStats Pool::stats() const { return state_->is_ours() ? state_->stats() : PoolStats(); }

}  // namespace belljar
