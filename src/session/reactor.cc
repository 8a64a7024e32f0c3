// A loop is an epoll(7) instance, a set of deadlines and one mutex, which is held while turns run.
//
// The mutex gives drop() its promise: whoever has it knows that no turn runs. It is also why drop() must not be
// called from a turn, which has ignore() instead. The mutex is not held during epoll_wait(2).
//
// Events carry an id and not a pointer. epoll_wait may have returned an event of a sandbox that another thread
// drops before the event is handled (epoll(7), the advice on event caches). The id is looked up again with the
// mutex held, and an unknown id is skipped. Ids are never reused. The low bits of the data hold the tag of the
// watch.
//
// The watches are level-triggered: a turn that leaves something unread gets another turn. The wait is rounded
// up to milliseconds, for a deadline that is rounded down would be met too early and make the loop spin. A
// deadline that another thread sets needs a wake, because the running epoll_wait does not know of it.
//
// After fork(2) the child has none of these threads, so shared() makes a new instance there and leaves the
// parent's alone.
#include "session/reactor.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/thread.h"

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

constexpr unsigned kTagBits = 5;
constexpr milliseconds kLongestWait{60'000};
constexpr const char* kCannotServe = "cannot serve a sandbox";

Error cannot_serve(const char* call) {
  return Error(Code::kResourceExhausted, kCannotServe).sys(errno, call).next("raise `ulimit -n`, or keep fewer");
}

}  // namespace

Result<std::unique_ptr<Loop>> Loop::create() {
  std::unique_ptr<Loop> loop(new Loop);
  loop->epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_.valid() || !loop->wake_.valid()) return cannot_serve("epoll_create1");
  epoll_event event{};  // id 0 is nobody's
  event.events = EPOLLIN;
  if (::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->wake_.get(), &event) < 0) return cannot_serve("epoll_ctl");
  loop->thread_ = BELLJAR_TRY(open_thread([raw = loop.get()] { raw->run(); }, kCannotServe));
  return loop;
}

Result<std::uint64_t> Loop::add(LoopHandler& served, std::span<const Watch> watches) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_id_++;
  Entry entry;
  entry.served = &served;
  for (const Watch& watch : watches) {
    epoll_event event{};
    event.events = static_cast<std::uint32_t>(watch.events);  // POLLIN and its like are EPOLLIN and its like, epoll(7)
    event.data.u64 = id << kTagBits | watch.tag;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watch.fd, &event) < 0) {
      Error error = cannot_serve("epoll_ctl");
      for (const int fd : entry.fds) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
      return error;
    }
    entry.fds.push_back(watch.fd);
  }
  set_due(id, entries_[id] = std::move(entry), std::chrono::steady_clock::now());
  wake_.ring();
  return id;
}

void Loop::drop(std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  for (const int fd : found->second.fds) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  if (found->second.due) due_.erase({*found->second.due, id});
  entries_.erase(found);
}

void Loop::ignore(int fd) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Loop::set_due(std::uint64_t id, Entry& entry, std::optional<LoopTime> due) {
  if (entry.due) due_.erase({*entry.due, id});
  entry.due = due;
  if (due) due_.insert({*due, id});
}

void Loop::give_turn(std::uint64_t id, std::uint32_t ready) {
  const auto found = entries_.find(id);
  if (found != entries_.end()) set_due(id, found->second, found->second.served->turn(ready));
}

void Loop::run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    milliseconds wait = kLongestWait;
    {
      const std::lock_guard lock(mutex_);
      if (!due_.empty())
        wait = std::clamp(std::chrono::ceil<milliseconds>(due_.begin()->first - std::chrono::steady_clock::now()), milliseconds(0),
                          kLongestWait);
    }
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(wait.count()));
    std::map<std::uint64_t, std::uint32_t> ready;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
      ready[data >> kTagBits] |= 1U << (data & ((1U << kTagBits) - 1));
    }
    if (ready.contains(0)) wake_.take();
    const std::lock_guard lock(mutex_);
    for (const auto& [id, bits] : ready) give_turn(id, bits);
    const LoopTime now = std::chrono::steady_clock::now();
    std::vector<std::uint64_t> late;
    for (const auto& [time, id] : due_) {
      if (time > now) break;
      late.push_back(id);
    }
    for (const std::uint64_t id : late) give_turn(id, 0);
  }
}

Result<Reactor*> Reactor::shared() {
  static std::mutex mutex;
  static Reactor* instance = nullptr;
  static pid_t owner = -1;
  const std::lock_guard lock(mutex);
  if (instance == nullptr || owner != ::getpid()) {
    instance = new Reactor;
    owner = ::getpid();
  }
  BELLJAR_CHECK(instance->fill());
  return instance;
}

// What failed half way is gone on with at the next start: threads and descriptors cannot be taken back.
Result<void> Reactor::fill() {
  if (wanted_ == 0) wanted_ = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 4);
  while (loops_.size() < wanted_) loops_.push_back(BELLJAR_TRY(Loop::create()));
  while (starters_.size() < wanted_) starters_.push_back(BELLJAR_TRY(open_thread([this] { serve_jobs(); }, kCannotServe)));
  return {};
}

void Reactor::run_on_starter(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  work_.notify_one();
}

Loop& Reactor::next_loop() noexcept {
  const std::lock_guard lock(mutex_);
  return *loops_[next_++ % loops_.size()];
}

void Reactor::serve_jobs() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return !jobs_.empty(); });
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace belljar::session
