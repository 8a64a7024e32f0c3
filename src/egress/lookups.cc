// Blocking lookups on a few threads, and a cache of their answers.
//
// The resolver blocks for seconds and cannot be interrupted, so it never runs on the proxy's thread. Threads
// start when a question comes, up to a limit, and end when the queue is empty: lookups are rare, and an idle
// thread is memory. They are detached and own the shared state together with Lookups: its destructor clears
// the queue and returns at once, and a thread that is still within a lookup frees the rest when that ends.
//
// The cache has no order of use. When it is full it is emptied, and some names are asked for again.
#include "egress/lookups.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>

#include "base/unique_fd.h"
#include "base/wake.h"

namespace belljar::egress {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostCached = 1024;
constexpr std::size_t kStack = 256UL * 1024;

}  // namespace

struct Lookups::Shared {
  struct Question {
    std::string name;
    std::uint64_t id = 0;
  };
  struct CachedAnswer {
    Resolved answer;
    Clock::time_point until;
  };

  Shared(Resolve how, std::size_t most) : resolve(std::move(how)), most_threads(std::max<std::size_t>(most, 1)) {}

  const Resolve resolve;
  const std::size_t most_threads;
  Wake ready;
  std::mutex mutex;
  std::deque<Question> questions;  // guarded by mutex, as all below
  std::vector<std::pair<std::uint64_t, Resolved>> answers;
  std::map<std::string, CachedAnswer> cache;
  std::size_t threads = 0;
  bool stopping = false;

  void serve();
  bool start_thread(std::shared_ptr<Shared> self);
};

// Until there is no question left: a lookup is rare, an idle thread is memory.
void Lookups::Shared::serve() {
  std::unique_lock lock(mutex);
  while (!stopping && !questions.empty()) {
    const Question question = std::move(questions.front());
    questions.pop_front();
    lock.unlock();
    Resolved answer = resolve(question.name);
    lock.lock();
    if (answer.ttl.count() > 0) {
      if (cache.size() >= kMostCached) cache.clear();
      cache[question.name] = {answer, Clock::now() + answer.ttl};
    }
    answers.emplace_back(question.id, std::move(answer));
    ready.ring();
  }
  --threads;
}

bool Lookups::Shared::start_thread(std::shared_ptr<Shared> self) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const auto body = [](void* argument) -> void* {
    const std::unique_ptr<std::shared_ptr<Shared>> shared(static_cast<std::shared_ptr<Shared>*>(argument));
    (*shared)->serve();
    return nullptr;
  };
  auto* const own = new std::shared_ptr<Shared>(std::move(self));
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, &attributes, body, own) == 0;
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) delete own;
  return started;
}

Lookups::Lookups(Resolve resolve, std::size_t threads) : shared_(std::make_shared<Shared>(std::move(resolve), threads)) {}

Lookups::~Lookups() {
  const std::scoped_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->questions.clear();
}

int Lookups::poll_fd() const noexcept { return shared_->ready.get(); }

std::optional<Resolved> Lookups::ask(const std::string& name, std::uint64_t id) {
  const std::scoped_lock lock(shared_->mutex);
  if (const auto found = shared_->cache.find(name); found != shared_->cache.end()) {
    if (Clock::now() < found->second.until) return found->second.answer;
    shared_->cache.erase(found);
  }
  shared_->questions.push_back({name, id});
  if (shared_->threads >= shared_->most_threads) return std::nullopt;
  ++shared_->threads;
  if (shared_->start_thread(shared_)) return std::nullopt;
  if (--shared_->threads > 0) return std::nullopt;
  shared_->questions.pop_back();
  return Resolved{.addresses = {}, .error = "no thread is free to look it up", .ttl = {}};
}

std::vector<std::pair<std::uint64_t, Resolved>> Lookups::take() {
  shared_->ready.take();
  const std::scoped_lock lock(shared_->mutex);
  return std::exchange(shared_->answers, {});
}

}  // namespace belljar::egress
