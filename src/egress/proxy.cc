// The proxy's one thread: an epoll loop over every connection of one sandbox.
//
// A turn of the loop takes the events, marks their connections as ready, and lets each ready connection
// progress once. A connection that could do more says so and stays ready for the next turn, so that one busy
// tunnel never keeps the others waiting. Sockets of connections are edge-triggered: an event only sets
// `readable` or `writable` of an Endpoint, and the flag stays until a call would block. So nothing is lost
// while a connection waits for something else (an address, its byte rate). Listeners and eventfds are
// level-triggered.
//
// There is no timer for each connection. `next_sweep` is the earliest deadline that is known: a connection
// that progresses can only lower it, and sweep() computes it anew from all of them. A deadline that moves
// later costs nothing but a sweep that finds nobody late.
//
// The token of an event is the connection's id * 2 + the side. Ids are never used twice, so an event for a
// connection that ended earlier in the same turn finds no connection and is dropped.
//
// When no descriptor or no connection is free, the listeners leave the epoll set: level-triggered, they would
// be reported in every turn and the loop would spin. Clients wait in the kernel's backlog until a connection
// ends, or for 100 ms, since descriptors may come free elsewhere in this process.
//
// Calls of other threads (set_rules, take_log) run at the end of a turn, after the events that came with
// them: what a client did before the call is in its result. At the end of the thread `closed` is set under
// the mutex before the last calls run, so a caller is either served or told that nobody serves it.
#include "egress/proxy.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/format.h"
#include "base/wake.h"
#include "egress/connection.h"
#include "egress/dns_server.h"

namespace belljar::egress {
namespace {

using Clock = std::chrono::steady_clock;

// Tokens of epoll events below kFirstId * 2 are these; others are a connection's.
enum Token : std::uint64_t { kStop = 0, kAnswers = 1, kDns = 2, kInner = 3, kCalls = 4, kFirstListener = 8 };
constexpr std::uint64_t kMostListeners = 64;
constexpr std::uint16_t kDnsPort = 53;
constexpr std::uint64_t kFirstId = (kFirstListener + kMostListeners) / 2;

sockaddr_in local_address(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

bool same_place(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_addr.s_addr == b.sin_addr.s_addr && a.sin_port == b.sin_port;
}

}  // namespace

struct Proxy::State {
  Context context;
  struct Listener {
    ProxyListener socket;
    sockaddr_in address{};  // its own
  };
  std::vector<Listener> listeners;
  UniqueFd epoll;
  Wake stop;
  std::optional<DnsServer> dns;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections;
  std::set<std::uint64_t> ready;    // have more to do at once
  std::set<std::uint64_t> starved;  // go on when the rate allows it
  std::uint64_t next_id = kFirstId;
  bool paused = false;  // no more connections or descriptors: the listeners wait
  bool more_dns = false;
  bool rung = false;  // something is asked for
  Clock::time_point next_sweep = Clock::time_point::max();
  pthread_t thread{};
  bool running = false;

  // What other threads want done on ours.
  struct ThreadCall {
    const std::function<void()>& act;
    std::promise<void> done;
  };
  std::mutex calls_mutex;
  std::vector<ThreadCall*> calls;  // guarded by calls_mutex
  bool closed = true;              // guarded by calls_mutex: nobody will do it
  Wake bell;

  void loop();
  int patience() const;
  void dispatch(const epoll_event& event, bool& stopping);
  void accept_all(const Listener& listener);
  void greet(const Listener& listener, UniqueFd client);
  void pause();
  void resume();
  void serve_dns();
  void deliver_inner_sockets();
  void deliver_lookups();
  void start_streams();
  void advance(std::uint64_t id);
  void sweep();
  void run_calls();
  void set_rules(policy::HostRules rules, std::optional<RuleOrigins> origins);
  void watch(int fd, std::uint64_t token) const;
};

void Proxy::State::watch(int fd, std::uint64_t token) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = token;
  ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
}

int Proxy::State::patience() const {
  if (!ready.empty() || !context.woken.empty() || more_dns) return 0;
  constexpr int kTick = 10;  // milliseconds
  if (!starved.empty()) return kTick;
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
    if (more_dns) serve_dns();
    if (!starved.empty() && context.has_credit()) ready.merge(starved);
    ready.merge(context.woken);
    context.woken.clear();
    for (const std::uint64_t id : std::exchange(ready, {})) advance(id);
    if (Clock::now() >= next_sweep) sweep();
    if (rung) run_calls();
  }
  connections.clear();  // writes their records
  {
    const std::lock_guard lock(calls_mutex);
    closed = true;
  }
  run_calls();
}

// After the events that came with it: what a client did before the question is in the answer.
void Proxy::State::run_calls() {
  rung = false;
  std::vector<ThreadCall*> all;
  {
    const std::lock_guard lock(calls_mutex);
    all.swap(calls);
  }
  for (ThreadCall* const call : all) {
    call->act();
    call->done.set_value();
  }
}

void Proxy::State::set_rules(policy::HostRules rules, std::optional<RuleOrigins> origins) {
  context.options.rules = std::move(rules);
  if (origins) context.options.rule_origins = *std::move(origins);
  for (const auto& [id, connection] : connections) {
    connection->on_rules();
    ready.insert(id);
  }
}

void Proxy::State::dispatch(const epoll_event& event, bool& stopping) {
  const std::uint64_t token = event.data.u64;
  if (token == kStop) stopping = true;
  else if (token == kAnswers) deliver_lookups();
  else if (token == kDns) serve_dns();
  else if (token == kInner) deliver_inner_sockets();
  else if (token == kCalls) rung = bell.take() || rung;
  else if (token < kFirstListener + kMostListeners) accept_all(listeners[token - kFirstListener]);
  if (token < kFirstListener + kMostListeners) return;
  const std::uint64_t id = token / 2;
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  found->second->on_event(static_cast<Connection::Side>(event.data.u64 % 2), event.events);
  ready.insert(id);
}

void Proxy::State::serve_dns() { more_dns = dns->serve(); }

// Whoever waits in a backlog is served when another one leaves.
void Proxy::State::pause() {
  for (const Listener& listener : listeners) ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, listener.socket.fd.get(), nullptr);
  paused = true;
  next_sweep = std::min(next_sweep, Clock::now() + std::chrono::milliseconds(100));
}

void Proxy::State::resume() {
  for (std::size_t i = 0; i < listeners.size(); ++i) watch(listeners[i].socket.fd.get(), kFirstListener + i);
  paused = false;
}

void Proxy::State::accept_all(const Listener& listener) {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce && !paused; ++i) {
    if (connections.size() >= context.options.max_connections) return pause();
    UniqueFd client(::accept4(listener.socket.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client.valid()) greet(listener, std::move(client));
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return pause();
    else if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

void Proxy::State::deliver_inner_sockets() {
  while (auto made = context.inner.take()) {
    const auto found = connections.find(made->first);
    if (found == connections.end()) continue;
    found->second->on_socket(std::move(made->second));
    ready.insert(made->first);
  }
}

// Where a client wanted to go is the address of our end: a redirect leaves it as it was.
void Proxy::State::greet(const Listener& listener, UniqueFd client) {
  ClientKind kind = listener.socket.kind;
  policy::Destination direct;
  if (kind == ClientKind::kProxy || kind == ClientKind::kDirect) {
    const sockaddr_in wanted = local_address(client.get());
    const std::uint32_t number = ntohl(wanted.sin_addr.s_addr);
    const bool moved = !same_place(wanted, listener.address);
    if (kind == ClientKind::kDirect || moved)
      kind = ntohs(wanted.sin_port) == kDnsPort ? ClientKind::kDnsStream : ClientKind::kDirect;
    direct.port = ntohs(wanted.sin_port);
    if (const std::string* name = context.fakes.find_name(number))
      direct.host.name = *name, kind = moved ? ClientKind::kDirect : kind;
    else direct.host.ip = policy::ipv4(number);
  }
  if (kind == ClientKind::kHostPort || kind == ClientKind::kPublished)
    direct = {{.name = {}, .ip = policy::ipv4(INADDR_LOOPBACK)}, listener.socket.port};
  const std::uint64_t id = next_id++;
  connections.emplace(id, std::make_unique<Connection>(context, id, std::move(client), kind, std::move(direct)));
  ready.insert(id);
}

void Proxy::State::deliver_lookups() {
  for (const auto& [id, resolved] : context.lookups->take()) {
    if (id >= DnsServer::kMark) {
      if (dns) dns->on_resolved(id, resolved);
      continue;
    }
    const auto found = connections.find(id);
    if (found == connections.end()) continue;
    found->second->on_resolved(resolved);
    ready.insert(id);
  }
}

// Each is a connection like any other, and counts as one.
void Proxy::State::start_streams() {
  for (NewStream& begun : std::exchange(context.new_streams, {})) {
    if (!begun.stream->gone && connections.size() >= context.options.max_connections) {
      begun.stream->aborted = begun.stream->turned_away = true;
      context.woken.insert(begun.carrier);
      continue;
    }
    const std::uint64_t id = next_id++;
    connections.emplace(id, std::make_unique<Connection>(context, id, std::move(begun)));
    ready.insert(id);
  }
}

void Proxy::State::advance(std::uint64_t id) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  if (found->second->progress()) ready.insert(id);
  if (found->second->waits_for_credit()) starved.insert(id);
  if (!found->second->over()) {
    next_sweep = std::min(next_sweep, found->second->deadline());
  } else {
    connections.erase(found);
    if (paused) resume();
  }
  if (!context.new_streams.empty()) start_streams();
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
  if (paused) resume();  // descriptors may have come free elsewhere
}

Proxy::Proxy(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

Result<std::unique_ptr<Proxy>> Proxy::start(UniqueFd listener, ProxyOptions options) {
  ProxySockets sockets;
  sockets.listeners.push_back({ClientKind::kProxy, std::move(listener)});
  return start(std::move(sockets), std::move(options));
}

Result<std::unique_ptr<Proxy>> Proxy::start(ProxySockets sockets, ProxyOptions options) {
  auto state = std::make_unique<State>();
  const auto failed = [](const char* call) {
    return Error(Code::kResourceExhausted, "cannot start the egress proxy")
        .sys(errno, call)
        .next("raise the limits of open files and processes (`ulimit -n -u`)");
  };
  for (ProxyListener& listener : sockets.listeners) {
    if (::fcntl(listener.fd.get(), F_SETFL, O_RDWR | O_NONBLOCK) != 0) return failed("fcntl");
    const sockaddr_in address = local_address(listener.fd.get());
    state->listeners.push_back({std::move(listener), address});
  }
  state->epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!state->epoll.valid()) return failed("epoll_create1");
  if (!state->stop.valid() || !state->bell.valid()) return failed("eventfd");
  Context& context = state->context;
  context.options = std::move(options);
  context.fakes = FakeAddresses(context.options.fake_addresses);
  context.epoll = state->epoll.get();
  context.lookups = std::make_unique<Lookups>(context.options.resolve, context.options.max_lookups);
  if (context.lookups->poll_fd() < 0) return failed("eventfd");
  context.culprits = Culprits(std::move(sockets.diag), sockets.init_pid);
  if (sockets.dns.valid()) {
    state->dns.emplace(context, std::move(sockets.dns));
    state->watch(state->dns->fd(), kDns);
  }
  context.inner = InnerSockets(std::move(sockets.maker));
  if (context.inner.fd() >= 0) state->watch(context.inner.fd(), kInner);
  context.credited = Clock::now();
  state->resume();
  state->watch(state->stop.get(), kStop);
  state->watch(state->bell.get(), kCalls);
  state->watch(context.lookups->poll_fd(), kAnswers);
  state->closed = false;
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
  ::pthread_attr_setstacksize(&attributes, 256UL * 1024);
  const int error = ::pthread_create(&state->thread, &attributes, body, state.get());
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return errno = error, failed("pthread_create");
  state->running = true;
  return std::unique_ptr<Proxy>(new Proxy(std::move(state)));
}

namespace {

// The log as it is handed out.
EgressLog take(EgressLog& kept) {
  EgressLog log = std::exchange(kept, {});
  std::uint64_t sequence = 0;
  for (Violation& violation : log.violations) {
    violation.sequence = sequence;
    sequence += violation.count;
  }
  return log;
}

}  // namespace

EgressLog Proxy::stop() {
  if (!std::exchange(state_->running, false)) return {};
  state_->stop.ring();
  ::pthread_join(state_->thread, nullptr);
  state_->listeners.clear();
  state_->dns.reset();
  return take(state_->context.log);
}

bool Proxy::on_thread(const std::function<void()>& act) {
  State::ThreadCall call{act, {}};
  auto done = call.done.get_future();
  {
    const std::lock_guard lock(state_->calls_mutex);
    if (state_->closed) return false;
    state_->calls.push_back(&call);
  }
  state_->bell.ring();
  done.wait();
  return true;
}

void Proxy::set_rules(policy::HostRules rules, std::optional<RuleOrigins> origins) {
  (void)on_thread([&] { state_->set_rules(std::move(rules), std::move(origins)); });
}

EgressLog Proxy::take_log() {
  EgressLog log;
  (void)on_thread([&] { log = take(state_->context.log); });
  return log;
}

Proxy::~Proxy() { (void)stop(); }

}  // namespace belljar::egress
