// How one live sandbox is started, served and ended, and which thread does what.
//
// A starter of the reactor makes pid 1, because a pid 1 dies with the thread that made it (PR_SET_PDEATHSIG,
// reactor.h). The caller waits for the outcome. A loop gets the sandbox last, when everything that a turn uses
// is in place. From then on the loop alone reads what pid 1 tells and drains the broker. The threads of callers
// send requests and read pipes.
//
// An id is registered before its request goes out (expect()), since pid 1 may answer before send() returns. An
// answer to an id that is not registered belongs to a command for which nobody waits.
//
// Locks: stop_mutex_ before send_mutex_ before mutex_. deliver() takes mutex_ with a command's mutex held and
// finish() takes them the other way round. The two cannot meet: finish() begins after Loop::drop(), and from
// then on no turn runs.
//
// A turn never ends the sandbox itself. The end waits for processes to die, and Loop::drop() from within a turn
// would wait for that turn. So the turn hands the end to a starter, together with a reference that keeps the
// object alive.
#include "session/live_instance.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/format.h"
#include "base/remove_tree.h"
#include "kernel/cgroup.h"
#include "runtime/enforcement.h"
#include "runtime/start_inputs.h"

namespace belljar::session {
namespace {

constexpr std::size_t kMostViolations = 1000;
constexpr std::chrono::microseconds kAnswerSoon{200};
enum Tag : unsigned { kControl, kBroker, kNotice };

bool lends(const launch::Plan& plan) noexcept {
  return plan.identity == launch::Identity::kRootMapped || plan.identity == launch::Identity::kSwitched;
}

}  // namespace

LiveInstance::Use::Use(LiveInstance& instance) noexcept : instance_(instance) { instance_.users_.fetch_add(1); }
LiveInstance::Use::~Use() {
  instance_.last_use_.store(Clock::now().time_since_epoch().count());
  instance_.users_.fetch_sub(1);
}

Result<std::shared_ptr<LiveInstance>> LiveInstance::start(InstanceOptions options, const CancelToken& cancel) {
  std::shared_ptr<LiveInstance> instance(new LiveInstance(std::move(options)));
  Reactor* const reactor = BELLJAR_TRY(Reactor::shared());
  instance->loop_ = &reactor->next_loop();
  const auto promise = std::make_shared<std::promise<Result<void>>>();
  std::future<Result<void>> outcome = promise->get_future();
  reactor->run_on_starter([instance, promise, cancel] {
    auto launched = instance->launch(cancel);
    if (!launched) instance->stop();
    promise->set_value(std::move(launched));
  });
  BELLJAR_CHECK(outcome.get());
  return instance;
}

LiveInstance::~LiveInstance() { stop(); }

void LiveInstance::stop() noexcept {
  stop_.store(true);
  const std::lock_guard lock(stop_mutex_);
  if (std::exchange(finished_, true)) return;
  if (served_) loop_->drop(*served_);
  finish();
}

Error LiveInstance::not_running() const {
  const std::lock_guard lock(mutex_);
  return Error(Code::kFailedPrecondition, "the sandbox does not run")
      .reason(ended_because_.empty() ? "it was stopped" : ended_because_)
      .next("start() it again, or make another");
}

std::optional<std::pair<uid_t, gid_t>> LiveInstance::lent_identity() const noexcept {
  const launch::Plan& plan = options_.prepared.plan;
  if (!lends(plan)) return {};
  return std::pair(plan.outside_uid, plan.outside_gid);
}

std::vector<std::string> LiveInstance::environment_with(const std::map<std::string, std::string>& overrides) const {
  std::vector<std::string> variables;
  for (const std::string& entry : options_.prepared.plan.env) {
    if (!overrides.contains(entry.substr(0, entry.find('=')))) variables.push_back(entry);
  }
  for (const auto& [name, text] : overrides) variables.push_back(name + "=" + text);
  return variables;
}

// --- on a starter

Result<void> LiveInstance::prepare() {
  launch::Plan& plan = options_.prepared.plan;
  const Policy& policy = options_.policy;
  limits_ =
      BELLJAR_TRY(runtime::LimitSet::create(policy.limits, runtime::limit_context(options_.prepared, policy, options_.growing)));
  EnforcementReport& report = options_.prepared.report;
  report.insert(report.end(), limits_->clauses().begin(), limits_->clauses().end());
  plan.rlimits.insert(plan.rlimits.end(), limits_->rlimits().begin(), limits_->rlimits().end());
  plan.cgroup_fd = limits_->cgroup_fd();
  plan.join_files = limits_->join_files();
  egress_ = std::make_shared<LiveEgress>(policy, LiveEgressOptions{options_.interception, options_.origins, options_.given_rules});
  BELLJAR_CHECK(egress_->plan(plan.env, report));
  return runtime::check_required(report, policy);
}

Result<void> LiveInstance::launch(const CancelToken& cancel) {
  BELLJAR_CHECK(prepare());
  const launch::Plan& plan = options_.prepared.plan;
  timespec began{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &began);
  sandbox_ = BELLJAR_TRY(launch::start(plan, nullptr, {.one_shot = false, .stop = {cancel.fd(), -1}}));
  init_pid_ = sandbox_.init_pid();
  // Which hidden names were used is not told of a sandbox that stays: `belljar agent` would take our own words about one, in a
  // result, for the tool's, and judge the next call that names it as one that the tool asked for.
  sandbox_.take_exported();
  limits_->attach(init_pid_);
  runtime::lower_skipped(plan, sandbox_.skipped(), options_.prepared.report);
  BELLJAR_CHECK(runtime::check_required(options_.prepared.report, options_.policy));
  runtime::PassedSockets inside = runtime::passed_sockets(sandbox_, plan);
  broker::Inner inner = runtime::take_inner(inside);
  BELLJAR_CHECK(egress_->open(std::move(inside), options_.prepared.report));
  if (UniqueFd listener = sandbox_.take_listener(); listener.valid()) {
    broker::BrokerOptions rules = runtime::broker_options(options_.prepared, options_.policy, origins());
    rules.began = began;
    rules.state_dir = options_.state_dir;
    if (!options_.prepared.pid_namespace) rules.guard = init_pid_;
    if (options_.rules != nullptr) rules.explain = runtime::explainer(*options_.rules, origins());
    broker_ = BELLJAR_TRY(broker::Broker::create(std::move(listener), std::move(rules), std::move(inner)));
    if (const std::string& why = broker_->why_alone(); !why.empty()) {
      runtime::lower_alone(why, options_.prepared.report);
      BELLJAR_CHECK(runtime::check_required(options_.prepared.report, options_.policy));
    }
  }
  const auto identity = lent_identity().value_or(std::pair(static_cast<uid_t>(-1), static_cast<gid_t>(-1)));
  files_ = BELLJAR_TRY(Files::open({.root = sandbox_.take_root(),
                                    .workspace = options_.workspace,
                                    .named = options_.named,
                                    .roots = options_.roots,
                                    .uid = identity.first,
                                    .gid = identity.second,
                                    .rules = {.plain = options_.rules,
                                              .live = options_.prepared.file_rules,
                                              .directories = broker_ ? broker_->directories() : nullptr,
                                              .begin = [this] { begin_run(); }}}));
  std::vector<Watch> watches = {{sandbox_.control_fd(), POLLIN, kControl}};
  if (broker_) watches.push_back({broker_->poll_fd(), POLLIN, kBroker});
  for (const auto& notice : limits_->notices()) watches.push_back({notice.fd, notice.events, kNotice});
  launch::forget_start(options_.prepared.plan);
  last_use_.store(Clock::now().time_since_epoch().count());
  running_.store(true);
  const std::lock_guard lock(stop_mutex_);
  served_ = BELLJAR_TRY(loop_->add(*this, watches));
  return {};
}

// --- on the loop

std::optional<LoopTime> LiveInstance::turn(std::uint32_t ready) {
  if (stop_.load() || !running_.load()) return {};
  if ((ready & 1U << kBroker) != 0) {
    broker_->on_readable();
    take_notices();
    if (!broker_->active()) loop_->ignore(broker_->poll_fd());
  }
  if ((ready & 1U << kControl) != 0) take_events();
  const Clock::time_point now = Clock::now();
  sample_limits(now);
  if (running_.load() && !idle(now)) return next_deadline();
  // It ends: not here, where others wait.
  running_.store(false);
  loop_->ignore(sandbox_.control_fd());
  if (const auto self = weak_from_this().lock(); self != nullptr) {
    if (const auto reactor = Reactor::shared()) (*reactor)->run_on_starter([self] { self->stop(); });
  }
  return {};
}

void LiveInstance::take_events() {
  while (const auto event = sandbox_.next_event()) {
    if (event->kind == launch::Event::Kind::kGone) {
      const std::lock_guard lock(mutex_);
      if (!stop_.load() && ended_because_.empty())
        ended_because_ = "its pid 1 was killed from outside, or the machine ran out of memory";
      running_.store(false);
      return;
    }
    ++events_received_;
    deliver(*event);
  }
}

void LiveInstance::deliver(const launch::Event& event) {
  std::shared_ptr<CommandState> command;
  {
    const std::lock_guard lock(mutex_);
    using enum launch::Event::Kind;
    if (event.kind == kStarted || event.kind == kPending) pids_[event.exec_id] = event.pid;
    if (event.kind == kExited || event.kind == kExecFailed) pids_.erase(event.exec_id);
    const auto found = commands_.find(event.exec_id);
    if (found == commands_.end()) return;  // detached
    command = found->second;
  }
  const std::lock_guard lock(command->mutex);
  switch (event.kind) {
    case launch::Event::Kind::kStarted:
      command->started = event;
      command->settled = true;
      // Nobody is woken: who waits for the end wants no other news, and who waits for the start looks again (await_start).
      if (command->wants_start) command->wake.ring();
      return;
    case launch::Event::Kind::kExecFailed:
      command->failed = event;
      command->settled = true;
      break;
    case launch::Event::Kind::kExited:
      if (broker_) take_notices();
      command->limits = limits_->finish(event.exit.wait_status, event.exit.usage);
      command->exited = event;
      break;
    case launch::Event::Kind::kAlive:
      command->settled = true;
      break;
    case launch::Event::Kind::kStopped:  // job control is its caller's business: signal() continues it
    case launch::Event::Kind::kPending:
    case launch::Event::Kind::kGone:
      return;
  }
  command->wake.ring();
}

void LiveInstance::take_notices() {
  std::vector<Violation> seen = broker_->take_violations();
  const std::lock_guard lock(mutex_);
  for (Violation& violation : seen) {
    if (violations_.size() < kMostViolations) violations_.push_back(std::move(violation));
    else ++violations_dropped_;
  }
}

void LiveInstance::sample_limits(Clock::time_point now) {
  while (auto hit = limits_->sample(now)) {
    if (!hit->kill) continue;
    {
      const std::lock_guard lock(mutex_);
      hit_ = std::move(*hit);
    }
    sandbox_.signal(0, SIGKILL);  // no lock: one message, and the end waits for this turn
  }
}

std::optional<LiveInstance::Clock::time_point> LiveInstance::next_deadline() const {
  auto next = limits_->next_sample();
  if (options_.idle_timeout) {
    const Clock::time_point last{Clock::duration(last_use_.load())};
    // While it is in use nothing tells us of the end of that: look again.
    const auto at = users_.load() > 0 ? Clock::now() + *options_.idle_timeout : last + *options_.idle_timeout;
    if (!next || at < *next) next = at;
  }
  return next;
}

bool LiveInstance::idle(Clock::time_point now) {
  if (!options_.idle_timeout || users_.load() > 0) return false;
  if (now - Clock::time_point(Clock::duration(last_use_.load())) < *options_.idle_timeout) return false;
  idled_.store(true);
  const std::lock_guard lock(mutex_);
  ended_because_ = format("it was not used for {}", to_string(*options_.idle_timeout));
  return true;
}

// The order matters: what is inside dies first, then its broker, then its groups.
void LiveInstance::finish() noexcept {
  running_.store(false);
  if (sandbox_.pidfd() >= 0 && options_.prepared.pid_namespace)
    ::syscall(SYS_pidfd_send_signal, sandbox_.pidfd(), SIGKILL, nullptr, 0);
  {
    const std::lock_guard lock(send_mutex_);
    sandbox_.kill_and_reap();
  }
  if (broker_) take_notices();
  broker_.reset();
  ExecResult unread;  // what no result has told yet: refusals, and what went through the proxy
  if (egress_ != nullptr) egress_->close(unread);
  limits_.reset();
  for (const std::string& path : options_.prepared.remove_after) (void)remove_tree(path);
  options_.prepared.remove_after.clear();
  if (idled_.load() && !options_.remove_when_idle.empty()) (void)remove_tree(options_.remove_when_idle);
  launch::forget_start(options_.prepared.plan);
  options_.prepared.held.reset();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, command] : commands_) {
    const std::lock_guard inner(command->mutex);
    command->gone = true;
    command->wake.ring();
  }
  unread.violations.insert(unread.violations.begin(), violations_.begin(), violations_.end());
  violations_.clear();
  // Not of a start that failed: who started it knows, and may try once more.
  if (served_ && options_.on_end) options_.on_end(unread);
}

// --- for the threads of callers

Result<LiveInstance::Started> LiveInstance::expect() {
  Started started;
  started.state = std::make_shared<CommandState>();
  ::clock_gettime(CLOCK_REALTIME_COARSE, &started.state->began);
  if (!started.state->wake.valid())
    return Error(Code::kResourceExhausted, "cannot start a command")
        .sys(errno, "eventfd")
        .next("raise `ulimit -n`, or run fewer at once");
  if (!running_.load()) return not_running();
  started.id = sandbox_.next_exec_id();
  const std::lock_guard inner(mutex_);
  commands_.emplace(started.id, started.state);
  return started;
}

// For the rules: a command, or a file call of ours, begins.
void LiveInstance::begin_run() {
  if (options_.prepared.file_rules == nullptr) return;
  // By the clock that stamps inodes: a command begins in well under a tick, and what it makes in that one is its own.
  timespec oldest{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &oldest);
  {
    const std::lock_guard inner(mutex_);
    for (const auto& [id, state] : commands_) {
      if (std::tie(state->began.tv_sec, state->began.tv_nsec) < std::tie(oldest.tv_sec, oldest.tv_nsec)) oldest = state->began;
    }
  }
  options_.prepared.file_rules->begin_run(oldest);
}

bool LiveInstance::answers(std::chrono::milliseconds patience, int cancel_fd) {
  const Use use(*this);
  std::optional<Started> asked;
  {
    const std::lock_guard lock(send_mutex_);
    auto expected = expect();
    if (!expected) return false;
    asked = *std::move(expected);
    sandbox_.ping();
  }
  std::array<pollfd, 2> wait = {{{asked->state->wake.get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
  // To sleep and be woken takes as long as an answer: it is looked for a little first, by a thread that yields to who has work.
  bool came = false;
  for (const auto end = std::chrono::steady_clock::now() + kAnswerSoon; !came && std::chrono::steady_clock::now() < end;) {
    came = ::poll(wait.data(), wait.size(), 0) > 0;
    if (!came) ::sched_yield();
  }
  const auto end = Clock::now() + patience;
  while (!came && ::poll(wait.data(), wait.size(), static_cast<int>(patience.count())) < 0 && errno == EINTR) {
    patience = std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()));
  }
  forget(asked->id);
  const std::lock_guard lock(asked->state->mutex);
  return asked->state->settled && !asked->state->gone;
}

void LiveInstance::ping() noexcept {
  const std::unique_lock lock(send_mutex_, std::try_to_lock);
  if (!lock || !running_.load()) return;  // somebody sends: the next look asks
  const Clock::rep now = Clock::now().time_since_epoch().count(), last = last_ping_.load();
  if (Clock::duration(now - last) < std::chrono::seconds(1)) return;
  last_ping_.store(now);
  sandbox_.ping();
}

void LiveInstance::kill(const char* because) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (ended_because_.empty()) ended_because_ = because;
  }
  const std::lock_guard lock(stop_mutex_);  // until finished_ its pidfd is there
  if (finished_) return;
  if (options_.prepared.pid_namespace) {
    ::syscall(SYS_pidfd_send_signal, sandbox_.pidfd(), SIGKILL, nullptr, 0);
    // In a frozen group of cgroup v1 SIGKILL waits for the thaw; a v2 group lets it through.
    (void)kernel::thaw_process(sandbox_.init_pid());
    return;
  }
  const auto self = weak_from_this().lock();
  if (const auto reactor = Reactor::shared(); self != nullptr && reactor) (*reactor)->run_on_starter([self] { self->stop(); });
}

Result<std::optional<LiveInstance::Started>> LiveInstance::send(launch::PackedExec& request) {
  const std::lock_guard lock(send_mutex_);
  Started started = BELLJAR_TRY(expect());
  begin_run();
  const int status = sandbox_.send(request);
  if (status == 0) return std::optional(std::move(started));
  forget(started.id);
  if (status == -EAGAIN) return std::optional<Started>();
  if (!running_.load() || status == -EPIPE || status == -ECONNRESET) return not_running();
  return Error(Code::kUnavailable, "cannot reach pid 1 of the sandbox").sys(-status, "sendmsg");
}

Result<UniqueFd> LiveInstance::room() {
  const std::lock_guard lock(send_mutex_);
  if (!running_.load()) return not_running();
  // A copy: the sandbox may end and close its own while the caller still polls this one.
  UniqueFd room(::fcntl(sandbox_.control_fd(), F_DUPFD_CLOEXEC, 3));
  if (room.valid()) return room;
  return Error(Code::kResourceExhausted, "cannot start a command")
      .sys(errno, "fcntl")
      .next("raise `ulimit -n`, or run fewer at once");
}

std::optional<std::vector<int>> LiveInstance::pids_of_commands() {
  constexpr std::chrono::seconds kPatience{30};
  if (!answers(kPatience)) return {};  // what it told before the answer is known now
  const std::lock_guard lock(mutex_);
  std::vector<int> pids;
  for (const auto& [id, pid] : pids_) pids.push_back(pid);
  return pids;
}

void LiveInstance::forget(std::uint32_t id) noexcept {
  const std::lock_guard lock(mutex_);
  commands_.erase(id);
}

void LiveInstance::signal(std::uint32_t id, int number) noexcept {
  const std::lock_guard lock(send_mutex_);
  if (running_.load()) sandbox_.signal(id, number);
}

void LiveInstance::give_up(std::uint32_t id) noexcept {
  const std::lock_guard lock(send_mutex_);
  if (running_.load()) sandbox_.give_up(id);
}

void LiveInstance::take_seen(ExecResult& result) {
  {
    const std::lock_guard lock(mutex_);
    result.violations_dropped += std::exchange(violations_dropped_, 0);
    std::ranges::move(std::exchange(violations_, {}), std::back_inserter(result.violations));
  }
  std::uint64_t next = 0;  // broker and proxy count each for itself
  for (Violation& violation : result.violations) {
    violation.sequence = next;
    next += violation.count;
  }
  egress_->take(result);
}

void LiveInstance::give_back(ExecResult& unread) {
  {
    const std::lock_guard lock(mutex_);
    violations_dropped_ += std::exchange(unread.violations_dropped, 0);
    std::vector<Violation> first = std::exchange(unread.violations, {});
    std::ranges::move(violations_, std::back_inserter(first));
    violations_ = std::move(first);
  }
  egress_->give_back(unread);
}

// --- the hosts that may be reached

Result<void> LiveInstance::set_network_rules(const NetworkRules& rules) {
  auto done = egress_->set_rules(rules);
  if (!done && !running_.load()) return not_running();
  return done;
}

Result<std::unique_ptr<LiveEgress::HostGrant>> LiveInstance::open_hosts(const std::vector<std::string>& domains) {
  auto opened = egress_->open_hosts(domains);
  if (!opened && !running_.load()) return not_running();
  return opened;
}

std::optional<runtime::Hit> LiveInstance::hit() const {
  const std::lock_guard lock(mutex_);
  return hit_;
}

}  // namespace belljar::session
