#include "broker/workers.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace belljar::broker {
namespace {

// The last real-time signal that nobody in this process uses; 0 when all are taken. Chosen once: a handler belongs to the process.
int interrupt_signal() {
  static const int chosen = [] {
    for (int number = SIGRTMAX; number >= SIGRTMIN; --number) {
      struct sigaction action{};
      if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
      action.sa_handler = [](int) {};
      action.sa_flags = 0;  // no SA_RESTART: the point is EINTR
      if (::sigaction(number, &action, nullptr) == 0) return number;
    }
    return 0;
  }();
  return chosen;
}

}  // namespace

struct Workers::Pool {
  struct Work final : Slot {
    Call call;
    pid_t thread = 0;
    int signalled_ticks = 0;
    bool young = true;  // began after the last tick
    std::atomic<bool> stop = false;
    bool interrupted() const noexcept override { return stop; }
  };
  static constexpr std::size_t kParked = 4;  // idle threads beyond these end

  Pool(std::size_t most, Jobs given) : limit(most), jobs(std::move(given)) {}

  const std::size_t limit;
  const Jobs jobs;
  std::mutex mutex;
  std::condition_variable wake, ended;  // with mutex
  std::deque<Call> queue;               // guarded by mutex, as all below
  std::vector<Work*> working;
  std::size_t threads = 0, idle = 0;
  bool stopping = false;

  void interrupt(Work& work) {  // under mutex: the thread cannot leave the call's work meanwhile
    work.stop = true;
    ::syscall(SYS_tgkill, ::getpid(), work.thread, interrupt_signal());
  }
  void serve();
  void do_one(std::unique_lock<std::mutex>& lock);
};

void Workers::Pool::do_one(std::unique_lock<std::mutex>& lock) {
  Work work;
  work.call = queue.front();
  work.thread = static_cast<pid_t>(::syscall(SYS_gettid));
  queue.pop_front();
  working.push_back(&work);
  lock.unlock();
  jobs.run(work.call, work);
  lock.lock();
  std::erase(working, &work);
}

void Workers::Pool::serve() {
  jobs.thread_started();
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!queue.empty()) {
      do_one(lock);
      continue;
    }
    if (idle >= kParked) break;
    ++idle;
    wake.wait(lock, [&] { return stopping || !queue.empty(); });
    --idle;
  }
  --threads;
  ended.notify_all();
}

namespace {

// All signals but ours stay with the program's own threads.
bool start_thread(void* (*body)(void*), void* argument) {
  sigset_t all, before;
  ::sigfillset(&all);
  if (const int ours = interrupt_signal(); ours != 0) ::sigdelset(&all, ours);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 256 * 1024);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, &attributes, body, argument) == 0;
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

Workers::Workers(std::size_t limit, Jobs jobs) : pool_(std::make_shared<Pool>(std::max<std::size_t>(limit, 1), std::move(jobs))) {}

bool Workers::submit(const Call& call) {
  const std::scoped_lock lock(pool_->mutex);
  pool_->queue.push_back(call);
  if (pool_->idle >= pool_->queue.size()) {
    pool_->wake.notify_one();
    return true;
  }
  if (pool_->threads >= pool_->limit) return true;
  auto* const own = new std::shared_ptr<Pool>(pool_);
  const auto body = [](void* argument) -> void* {
    const std::unique_ptr<std::shared_ptr<Pool>> pool(static_cast<std::shared_ptr<Pool>*>(argument));
    (*pool)->serve();
    return nullptr;
  };
  if (start_thread(body, own)) {
    ++pool_->threads;
    return true;
  }
  delete own;
  if (pool_->threads > 0) {
    pool_->wake.notify_one();
    return true;
  }
  pool_->queue.pop_back();
  return false;
}

void Workers::tick() {
  const std::scoped_lock lock(pool_->mutex);
  for (Pool::Work* const work : pool_->working) {
    if (std::exchange(work->young, false)) continue;
    const bool signalled = pool_->jobs.caller_signalled(work->call);
    work->signalled_ticks = signalled ? work->signalled_ticks + 1 : 0;
    if (work->stop || work->signalled_ticks >= 2 || pool_->jobs.caller_gone(work->call)) pool_->interrupt(*work);
  }
}

bool Workers::busy() const {
  const std::scoped_lock lock(pool_->mutex);
  return !pool_->working.empty() || !pool_->queue.empty();
}

Workers::~Workers() {
  std::unique_lock lock(pool_->mutex);
  pool_->stopping = true;
  pool_->queue.clear();
  pool_->wake.notify_all();
  // A signal may come just before the thread enters its system call, so it is repeated.
  for (int tries = 0; pool_->threads > 0 && tries < 1000; ++tries) {
    for (Pool::Work* const work : pool_->working) pool_->interrupt(*work);
    pool_->ended.wait_for(lock, std::chrono::milliseconds(2));
  }
}

}  // namespace belljar::broker
