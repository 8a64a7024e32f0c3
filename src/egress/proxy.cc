#include "egress/proxy.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/format.h"
#include "egress/connection.h"

namespace belljar::egress {
namespace {

using Clock = std::chrono::steady_clock;

// Tokens of epoll events below kFirstId * 2 are these; others are a connection's.
enum Token : std::uint64_t { kListener = 0, kStop = 1, kAnswers = 2 };
constexpr std::uint64_t kFirstId = 8;

}  // namespace

struct Proxy::State {
  Context context;
  UniqueFd listener, epoll, stop;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections;
  std::set<std::uint64_t> ready;  // have more to do at once
  std::uint64_t next_id = kFirstId;
  bool paused = false;  // no more connections or descriptors: the listener waits
  Clock::time_point next_sweep = Clock::time_point::max();
  pthread_t thread{};
  bool running = false;

  void loop();
  int patience() const;
  void dispatch(const epoll_event& event, bool& stopping);
  void accept_all();
  void take_answers();
  void advance(std::uint64_t id);
  void sweep();
  void watch(int fd, std::uint64_t token) const;
};

void Proxy::State::watch(int fd, std::uint64_t token) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = token;
  ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
}

int Proxy::State::patience() const {
  if (!ready.empty()) return 0;
  if (next_sweep == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_sweep - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Proxy::State::loop() {
  bool stopping = false;
  epoll_event events[128];
  while (!stopping) {
    const int count = ::epoll_wait(epoll.get(), events, std::size(events), patience());
    for (int i = 0; i < count; ++i) dispatch(events[i], stopping);
    for (const std::uint64_t id : std::exchange(ready, {})) advance(id);
    if (Clock::now() >= next_sweep) sweep();
  }
  connections.clear();  // writes their records
}

void Proxy::State::dispatch(const epoll_event& event, bool& stopping) {
  switch (event.data.u64) {
    case kListener:
      return accept_all();
    case kStop:
      stopping = true;
      return;
    case kAnswers:
      return take_answers();
    default:
      break;
  }
  const std::uint64_t id = event.data.u64 / 2;
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  found->second->on_event(static_cast<Connection::Side>(event.data.u64 % 2), event.events);
  ready.insert(id);
}

void Proxy::State::accept_all() {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce; ++i) {
    const bool full = connections.size() >= context.options.max_connections;
    UniqueFd client(full ? -1 : ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.valid()) {
      if (!full && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (full || errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // Whoever waits in the backlog is served when another one leaves.
        ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, listener.get(), nullptr);
        paused = true;
        next_sweep = std::min(next_sweep, Clock::now() + std::chrono::milliseconds(100));
      }
      return;
    }
    const std::uint64_t id = next_id++;
    connections.emplace(id, std::make_unique<Connection>(context, id, std::move(client)));
    ready.insert(id);
  }
}

void Proxy::State::take_answers() {
  for (const auto& [id, resolved] : context.lookups->take()) {
    const auto found = connections.find(id);
    if (found == connections.end()) continue;
    found->second->on_resolved(resolved);
    ready.insert(id);
  }
}

void Proxy::State::advance(std::uint64_t id) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  if (found->second->progress()) ready.insert(id);
  if (!found->second->over()) {
    next_sweep = std::min(next_sweep, found->second->deadline());
    return;
  }
  connections.erase(found);
  if (paused) {
    paused = false;
    watch(listener.get(), kListener);
  }
}

void Proxy::State::sweep() {
  const Clock::time_point now = Clock::now();
  std::vector<std::uint64_t> late;
  for (const auto& [id, connection] : connections) {
    if (connection->deadline() <= now) late.push_back(id);
  }
  for (const std::uint64_t id : late) {
    connections.at(id)->on_deadline();
    advance(id);
  }
  next_sweep = Clock::time_point::max();
  for (const auto& [id, connection] : connections) next_sweep = std::min(next_sweep, connection->deadline());
  if (paused) {  // descriptors may have come free elsewhere
    paused = false;
    watch(listener.get(), kListener);
  }
}

Proxy::Proxy(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

Result<std::unique_ptr<Proxy>> Proxy::start(UniqueFd listener, ProxyOptions options) {
  auto state = std::make_unique<State>();
  const auto failed = [](const char* call) {
    return Error(Code::kResourceExhausted, "cannot start the egress proxy")
        .sys(errno, call)
        .next("raise the limits of open files and processes (`ulimit -n -u`)");
  };
  state->listener = std::move(listener);
  if (::fcntl(state->listener.get(), F_SETFL, O_RDWR | O_NONBLOCK) != 0) return failed("fcntl");
  state->epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!state->epoll.valid()) return failed("epoll_create1");
  state->stop = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state->stop.valid()) return failed("eventfd");
  Context& context = state->context;
  context.options = std::move(options);
  context.epoll = state->epoll.get();
  context.lookups = std::make_unique<Lookups>(context.options.resolve, context.options.max_lookups);
  if (context.lookups->poll_fd() < 0) return failed("eventfd");
  state->watch(state->listener.get(), kListener);
  state->watch(state->stop.get(), kStop);
  state->watch(context.lookups->poll_fd(), kAnswers);
  // Signals are the program's own threads' affair; SIGPIPE of a splice stays pending here for ever.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto body = [](void* argument) -> void* {
    static_cast<State*>(argument)->loop();
    return nullptr;
  };
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 256 * 1024);
  const int error = ::pthread_create(&state->thread, &attributes, body, state.get());
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return errno = error, failed("pthread_create");
  state->running = true;
  return std::unique_ptr<Proxy>(new Proxy(std::move(state)));
}

EgressLog Proxy::stop() {
  if (!std::exchange(state_->running, false)) return {};
  ::eventfd_write(state_->stop.get(), 1);
  ::pthread_join(state_->thread, nullptr);
  state_->listener.reset();
  EgressLog log = std::move(state_->context.log);
  std::uint64_t sequence = 0;
  for (Violation& violation : log.violations) {
    violation.sequence = sequence;
    sequence += violation.count;
  }
  return log;
}

Proxy::~Proxy() { (void)stop(); }

}  // namespace belljar::egress
