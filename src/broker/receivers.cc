// The pool behind receivers.h: who receives, who is parked, and how nobody is left without a receiver.
//
// `receiving` counts threads in receive(), `running` those and the ones that work on a call and are not known
// to wait. A thread that is about to block discounts itself (Slot), so that another may run in its place:
// more running threads than processors would only take turns.
//
// One receiver is enough while calls are short, and cheaper than two: the kernel wakes every thread that
// waits on the listener. Two things bring another one in. If calls are queued already (jobs.more(), asked
// once in kLook calls, for it is a system call), a crowd of up to one thread a processor is allowed for the
// next 256 calls. Otherwise one parked thread watches: it looks every kPatience whether any call was taken
// since, and when nobody receives and nothing moved it concludes that all others wait, whatever for, and
// receives itself. That needs no knowledge of what blocks, so a slow disk counts as well as a FIFO.
//
// The watcher is a role and not a thread (`watched`: one is wanted; `watcher`: one is there). It is dropped
// when one look finds a receiver and no new call, so that an idle sandbox has no timer. Every hand-over of
// that role has a window in which a call arrives and finds neither; each of them is closed by re-checking
// after the flag was changed. A lost watcher would hang the sandbox: a client waits in connect for its
// server's listen, which nobody takes.
//
// Interrupting: a thread in a blocking call gets a real-time signal with an empty handler (EINTR). It is sent
// only while `blocking` is set, under the slot's mutex; who leaves the blocking section yields once if a
// signal may be on its way, so that it does not hit the next call.
#include "broker/receivers.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
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

// All signals but ours stay with the program's own threads.
bool start_thread(void* (*body)(void*), void* argument) {
  sigset_t all, before;
  ::sigfillset(&all);
  if (const int ours = interrupt_signal(); ours != 0) ::sigdelset(&all, ours);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 256UL * 1024);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, &attributes, body, argument) == 0;
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// More than these in receive() gain nothing: with calls waiting, as many as there are processors.
int most_receivers() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 2;
  return std::clamp(CPU_COUNT(&set), 1, 8);
}

std::size_t most_waits() {
  constexpr rlim_t kShare = 8;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return Receivers::kMostWaits;
  return static_cast<std::size_t>(std::min<rlim_t>(Receivers::kMostWaits, files.rlim_cur / kShare));
}

}  // namespace

struct Receivers::Pool {
  struct Work final : Slot {
    Work(pid_t tid, const std::shared_ptr<Pool>& all) : thread(tid), pool(all), running(all->running) {}
    bool interrupted() const noexcept override { return stop; }
    void begin_blocking(bool each_tick) override {
      discount();
      open_to_signals(each_tick);
    }
    void end_blocking() override {
      close_to_signals();
      recount();
    }
    bool begin_wait() override { return pool->begin_wait(pool); }
    void end_wait() override { pool->end_wait(); }
    void open_to_signals(bool each_tick = false) {
      const std::scoped_lock lock(mutex);
      blocking = true;
      every_tick = each_tick;
    }
    void close_to_signals() {
      const std::scoped_lock lock(mutex);
      blocking = false;
      // A signal that is still on its way has to arrive here and not in what comes next.
      if (stop || every_tick) ::sched_yield();
      every_tick = false;
    }
    // One that waits for something needs no processor, so another thread may run.
    void discount() {
      if (counted.exchange(false)) --running;
    }
    void discount_if_busy() {
      const std::scoped_lock lock(mutex);
      if (busy) discount();
    }
    void recount() {
      if (!counted.exchange(true)) ++running;
    }
    void begin(const Call& given) {
      const std::scoped_lock lock(mutex);
      call = given;
      busy = young = true;
      stop = false;
      signalled_ticks = 0;
    }
    void end() {
      {
        const std::scoped_lock lock(mutex);
        busy = false;
      }
      recount();
    }
    void wake() {  // under mutex
      if (blocking) ::syscall(SYS_tgkill, ::getpid(), thread, interrupt_signal());
    }
    void interrupt() {  // under mutex
      stop = true;
      wake();
    }

    const pid_t thread;
    const std::shared_ptr<Pool>& pool;  // of serve(), whose this is
    std::atomic<int>& running;
    std::atomic<bool> counted = true;
    std::atomic<bool> stop = false;
    std::mutex mutex;  // guards what follows
    Call call;
    int signalled_ticks = 0;
    bool busy = false, blocking = false, every_tick = false;
    bool young = true;  // began after the last tick
  };
  static constexpr std::size_t kParked = 4;  // idle threads beyond these end
  static constexpr std::uint32_t kLook = 4;  // whether calls wait is asked once in so many
  static constexpr auto kPatience = std::chrono::milliseconds(2);

  Pool(std::size_t most, Jobs given) : limit(most), jobs(std::move(given)) {}

  const std::size_t limit;
  const Jobs jobs;
  const int crowd = most_receivers();
  std::atomic<int> receiving = 0;        // threads in receive(), or on their way
  std::atomic<int> running = 0;          // the same, and those that work on a call and are not known to wait
  std::atomic<int> crowded = 0;          // for so many more calls, `crowd` threads may receive
  std::atomic<std::uint32_t> taken = 0;  // calls so far
  std::atomic<bool> watched = false;     // a parked thread is to look every kPatience whether somebody receives
  std::atomic<bool> active = false;      // calls came since the last tick
  std::atomic<bool> stopping = false;    // written under mutex
  std::mutex mutex;                      // guards what follows
  std::condition_variable wake, ended;
  std::vector<Work*> works;  // of all threads
  std::size_t threads = 0, parked = 0;
  std::size_t waits = 0;   // of the threads: in Wait
  std::size_t wanted = 0;  // parked threads that are to receive
  bool watcher = false;    // one of the parked watches

  bool may_receive() noexcept {
    int now = receiving;
    const int most = crowded > 0 ? crowd : 1;
    while (now < most) {
      if (receiving.compare_exchange_weak(now, now + 1)) return true;
    }
    return false;
  }
  bool spawn(const std::shared_ptr<Pool>& self);
  bool begin_wait(const std::shared_ptr<Pool>& self);
  void end_wait();
  enum class Aim { kReceive, kWatch };
  void call_another(const std::shared_ptr<Pool>& self, Aim aim);
  void note_call(const std::shared_ptr<Pool>& self);
  bool park(std::unique_lock<std::mutex>& lock);
  void serve(const std::shared_ptr<Pool>& self);
};

// Under mutex. The new thread parks, and finds there what it is wanted for.
bool Receivers::Pool::spawn(const std::shared_ptr<Pool>& self) {
  if (threads - waits >= limit || stopping) return false;
  if (jobs.thread_starting) jobs.thread_starting();
  auto* const own = new std::shared_ptr<Pool>(self);
  const auto body = [](void* argument) -> void* {
    const std::unique_ptr<std::shared_ptr<Pool>> pool(static_cast<std::shared_ptr<Pool>*>(argument));
    (*pool)->serve(*pool);
    return nullptr;
  };
  if (start_thread(body, own)) {
    ++threads;
    return true;
  }
  delete own;
  return false;
}

// Whoever waits leaves a thread behind that takes calls, or is refused.
bool Receivers::Pool::begin_wait(const std::shared_ptr<Pool>& self) {
  const std::scoped_lock lock(mutex);
  if (waits >= most_waits()) return false;
  ++waits;
  if (threads > waits) return true;
  const bool made = spawn(self);
  if (made) watched = true;  // it parks, and is to look at once: who asked for a watcher may have got none
  else --waits;
  return made;
}

void Receivers::Pool::end_wait() {
  const std::scoped_lock lock(mutex);
  --waits;
}

// Makes a parked thread receive or watch; a new one where none is parked.
void Receivers::Pool::call_another(const std::shared_ptr<Pool>& self, Aim aim) {
  const std::scoped_lock lock(mutex);
  const bool made = parked <= wanted && spawn(self);
  if (parked <= wanted && !made) {
    if (aim == Aim::kWatch) watched = false;  // the next call tries again
    return;
  }
  if (aim == Aim::kReceive) ++wanted;
  if (aim == Aim::kReceive) ++running;
  if (!made) wake.notify_one();
}

// Behind a received call: somebody else must be able to receive soon, at once if calls wait already and a processor is free for
// it. More threads than processors would only take turns on them.
void Receivers::Pool::note_call(const std::shared_ptr<Pool>& self) {
  const std::uint32_t count = taken.fetch_add(1, std::memory_order_relaxed);
  if (crowded > 0) crowded.fetch_sub(1, std::memory_order_relaxed);
  if (!active && !active.exchange(true)) jobs.work_started();
  if (running < crowd && count % kLook == 0 && jobs.more()) {
    crowded = 256;
    call_another(self, Aim::kReceive);
  } else if (!watched && !watched.exchange(true)) {
    call_another(self, Aim::kWatch);
  }
}

// Waits until this thread is to receive. False: it is to end.
bool Receivers::Pool::park(std::unique_lock<std::mutex>& lock) {
  if (parked >= kParked && wanted == 0 && (watcher || !watched)) return false;
  ++parked;
  bool watching = false;
  std::uint32_t seen = 0;
  while (!stopping) {
    if (wanted > 0) {
      --wanted;
      if (may_receive()) break;
      --running;
    }
    if (!watching && watched && !watcher) watching = watcher = true, seen = taken;
    if (!watching) {
      wake.wait(lock);
      continue;
    }
    wake.wait_for(lock, kPatience);
    const std::uint32_t now = taken;
    if (receiving == 0 && now == seen && may_receive()) {
      for (Work* const work : works) work->discount_if_busy();  // they wait, whatever for
      ++running;
      break;
    }
    if (receiving > 0 && now == seen) {  // quiet: the next call asks for a watcher
      watched = false;
      if (taken == now) watching = watcher = false;
      else watched = true;  // it came just before, and asked nobody
    }
    seen = now;
  }
  if (watching) watcher = false;
  // Woken to watch, it may have been sent to receive instead, with nobody left to watch: the next call asks once more. Else all
  // could wait for a call that nobody takes, as clients do for their server's listen.
  if (!watcher) watched = false;
  --parked;
  return !stopping;
}

void Receivers::Pool::serve(const std::shared_ptr<Pool>& self) {
  jobs.thread_started();
  Work work(static_cast<pid_t>(::syscall(SYS_gettid)), self);
  std::unique_lock lock(mutex);
  works.push_back(&work);
  while (park(lock)) {
    lock.unlock();
    Received received = Received::kNothing;
    do {
      Call call;
      work.open_to_signals();
      received = stopping ? Received::kEnd : jobs.receive(call);
      work.close_to_signals();
      --receiving;
      if (received == Received::kCall) {
        work.begin(call);
        note_call(self);
        jobs.run(call, work);
        work.end();
      }
    } while (received != Received::kEnd && !stopping && running <= crowd && may_receive());
    --running;
    lock.lock();
    if (received == Received::kEnd) break;
    if (received == Received::kNothing) watched = true;  // this thread's turn came to nothing, and it may have been who watched
  }
  std::erase(works, &work);
  --threads;
  ended.notify_all();
}

Receivers::Receivers(std::size_t limit, Jobs jobs)
    : pool_(std::make_shared<Pool>(std::max<std::size_t>(limit, 1), std::move(jobs))) {}

bool Receivers::start() {
  const std::scoped_lock lock(pool_->mutex);
  if (!pool_->spawn(pool_)) return false;
  ++pool_->wanted;
  ++pool_->running;
  return true;
}

bool Receivers::tick() {
  const std::scoped_lock lock(pool_->mutex);
  bool busy = false;
  for (Pool::Work* const work : pool_->works) {
    const std::scoped_lock work_lock(work->mutex);
    if (!work->busy) continue;
    busy = true;
    if (std::exchange(work->young, false)) continue;
    const bool signalled = pool_->jobs.caller_signalled(work->call);
    work->signalled_ticks = signalled ? work->signalled_ticks + 1 : 0;
    if (work->stop || work->signalled_ticks >= 2 || pool_->jobs.caller_gone(work->call)) work->interrupt();
    else if (work->every_tick) work->wake();
  }
  return pool_->active.exchange(busy) || busy;
}

Receivers::~Receivers() {
  std::unique_lock lock(pool_->mutex);
  pool_->stopping = true;
  pool_->wake.notify_all();
  // A signal may come just before the thread enters its system call, so it is repeated.
  for (int tries = 0; pool_->threads > 0 && tries < 1000; ++tries) {
    for (Pool::Work* const work : pool_->works) {
      const std::scoped_lock work_lock(work->mutex);
      work->interrupt();
    }
    pool_->ended.wait_for(lock, std::chrono::milliseconds(2));
  }
}

}  // namespace belljar::broker
