// The sandbox of the backends that run on this machine's kernel.
//
// life_ is held through a start or a stop, and taken before mutex_. A start holds mutex_ as well, so other
// calls wait for it. A stop takes the instance out under mutex_ and ends it without, so other calls fail at
// once and do not wait for the end.
//
// make_instance() may go round more than once. What the host lacks is sometimes known only when the kernel
// refused it. Then drop_unavailable() takes what a start can do without out of the plan, and the start is tried
// again.
//
// A snapshot or a rollback changes the layers of an overlay mount, and a mounted overlay must not be changed
// from outside: the result is undefined (Documentation/filesystems/overlayfs.rst of the kernel). So the sandbox
// is ended, changed and started again, and only when nothing runs in it. Whether something runs is read from
// /proc, with patience for processes that are on their way out.
#include "session/live.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/owner.h"
#include "base/patience.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "belljar/state_dir.h"
#include "command/ending.h"
#include "command/process.h"
#include "command/request.h"
#include "kernel/process_tree.h"
#include "policy/defaults.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/tls_interception.h"
#include "runtime/embed.h"
#include "runtime/interception.h"
#include "runtime/kept_caches.h"
#include "runtime/start_inputs.h"
#include "runtime/transaction.h"
#include "runtime/unsupported.h"
#include "session/ended.h"
#include "session/in_time.h"
#include "session/watch.h"
#include "txn/base.h"
#include "txn/store.h"

namespace belljar::session {
namespace {

constexpr std::chrono::seconds kAnswer{5};
constexpr char kNoLiveStop[] = "cannot stop the sandbox";
constexpr char kNoLiveLook[] = "cannot look at the sandbox";
constexpr char kNoLiveUse[] = "cannot use the sandbox";  // it is being started, or made anew

// It is gone, on its way out with no thread that goes on, or SIGKILL waits for it.
bool is_ending(int pid) {
  constexpr unsigned long kExiting =
      0x4;  // PF_EXITING, linux/sched.h: from the start of exit on, when no signal is pending any more
  std::ifstream stat(format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(stat, line)) return true;
  // proc(5): the name in brackets may hold anything; state is the field behind it, flags are 6 and the number of threads is 17
  // further.
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  const std::vector<std::string> all{std::istream_iterator<std::string>(fields), {}};
  if (all.size() > 17 && (std::strtoul(all[6].c_str(), nullptr, 10) & kExiting) != 0 &&
      std::strtoul(all[17].c_str(), nullptr, 10) <= 1)
    return true;
  std::ifstream status(format("/proc/{}/status", pid));
  while (std::getline(status, line)) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    const std::uint64_t pending = std::strtoull(line.c_str() + line.find('\t') + 1, nullptr, 16);
    if ((pending >> (SIGKILL - 1) & 1U) != 0) return true;
  }
  return !status.is_open();
}

// What runs in it besides its pid 1. Children of a command that was killed may end a moment after it, and are waited for. Between
// taking the signal and beginning to exit, or thread by thread, such a one looks as if it ran on: hence a second look.
std::vector<int> processes_of(int init_pid) {
  constexpr std::chrono::milliseconds kWhileEnding(10'000), kWhileRunning(100), kPause(1);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    std::vector<int> pids = kernel::list_tree(init_pid);
    std::erase(pids, init_pid);
    const auto patience = std::ranges::all_of(pids, is_ending) ? kWhileEnding : kWhileRunning;
    if (pids.empty() || std::chrono::steady_clock::now() - begin >= patience) return pids;
    std::this_thread::sleep_for(kPause);
  }
}

std::string names_of(const std::vector<int>& pids) {
  constexpr std::size_t kMost = 5;
  std::string names;
  for (std::size_t i = 0; i < pids.size() && i < kMost; ++i) {
    std::ifstream file(format("/proc/{}/comm", pids[i]));
    std::string name;
    std::getline(file, name);  // nothing: it is gone, or has taken its name off
    names += (names.empty() ? "" : ", ") + (name.empty() ? format("process {}", pids[i]) : escaped(name));
  }
  if (pids.size() > kMost) names += format(" and {} more", pids.size() - kMost);
  return names;
}

Result<void> check_quiet(const LiveInstance& instance) {
  const Error refused = Error(Code::kFailedPrecondition, "cannot change the layers of the workspace");
  if (const auto pids = processes_of(instance.init_pid()); !pids.empty())
    return Error(refused)
        .reason(format("processes run in the sandbox: {}", names_of(pids)))
        .next("end them, or stop() the sandbox");
  if (!instance.in_use()) return {};
  return Error(refused).reason("a call of another thread is under way").next("wait for its end");
}

}  // namespace

LiveSandbox::LiveSandbox(std::unique_ptr<backend::Backend> backend, std::shared_ptr<const backend::RealHost> host,
                         runtime::Embedded embedded, Lifecycle lifecycle, CancelToken cancel)
    : backend_(std::move(backend)),
      host_(std::move(host)),
      embedded_(std::move(embedded)),
      lifecycle_(std::move(lifecycle)),
      cancel_(std::move(cancel)),
      id_(next_id()) {}

LiveSandbox::~LiveSandbox() {
  if (owner_.is_this()) {
    (void)stop({});
    return;
  }
  abandon(instance_);
  abandon(transaction_);
  abandon(detached_);
}

EnforcementReport LiveSandbox::enforcement() const {
  if (!owner_.is_this()) return {};
  const std::lock_guard lock(mutex_);
  return enforcement_;
}

Result<std::shared_ptr<LiveInstance>> LiveSandbox::make_instance(const CancelToken& cancel) {
  InstanceOptions options;
  options.policy = embedded_.policy;
  options.origins = embedded_.origins;
  if (network_rules_) {  // made anew while they hold
    apply(*network_rules_, options.policy.network);
    options.given_rules = rules_of_policy();
  }
  BELLJAR_CHECK(runtime::check_supported(options.policy));
  Limits& limits = options.policy.limits;
  options.idle_timeout = limits.idle_timeout ? limits.idle_timeout : lifecycle_.idle_timeout;
  if (options.idle_timeout && *options.idle_timeout <= std::chrono::milliseconds(0))
    return Error(Code::kInvalidArgument, format("cannot use an idle timeout of {} ms", options.idle_timeout->count()))
        .next("give a positive one, or none");
  if (options.idle_timeout) options.idle_timeout = bounded(*options.idle_timeout);
  limits.idle_timeout.reset();  // of one command that is: here it is the sandbox's
  if (limits.disk) options.policy.filesystem.tmp_size = std::min(options.policy.filesystem.tmp_size, *limits.disk);
  backend::Workplace place = embedded_.place;
  place.cwd = place.workspace;
  options.state_dir = lifecycle_.transaction ? lifecycle_.transaction->state_dir : default_state_dir();
  policy::hide_state(options.policy.filesystem.entries, options.state_dir);
  place.env = policy::build_environment(options.policy.environment, embedded_.caller_env);
  policy::hide_credentials(options.policy.filesystem.entries, options.policy.network, place.home);
  if (lifecycle_.remove_workspace && options.policy.filesystem.caches == Caches::kWorkspace)
    place.kept_caches = backend::KeptCaches{"", "the workspace goes with the sandbox", nullptr};
  else place.kept_caches = runtime::keep_caches(options.policy, place.workspace, options.state_dir);
  const auto record = BELLJAR_TRY(enter_living(options.policy, lifecycle_, place));
  options.workspace = options.growing = place.workspace;
  options.named = embedded_.named;
  if (lifecycle_.transaction) {
    BELLJAR_CHECK(runtime::check_transaction_mode(options.policy));
    if (!transaction_)
      transaction_ = BELLJAR_TRY(txn::Transaction::open(*lifecycle_.transaction, txn::Store::Open::kCreate, txn::Access::kChange));
    const txn::Layers layers = BELLJAR_TRY(txn::begin_run(*transaction_));
    transaction_->note_running(0);
    place.layers = runtime::to_layers(layers);
    options.growing = layers.pool + "/" + place.layers->upper;
  }
  Policy looked_into = options.policy;  // rules may return to what they were
  looked_into.network = embedded_.policy.network;
  auto look = BELLJAR_TRY(runtime::Interception::create(looked_into, runtime::library_interceptor(), embedded_.caller_env, place));
  if (look) options.interception = std::make_shared<const runtime::Interception>(*std::move(look));
  for (;;) {
    InstanceOptions attempt{.prepared = {},
                            .policy = options.policy,
                            .workspace = options.workspace,
                            .named = options.named,
                            .roots = roots(),
                            .growing = options.growing,
                            .rules = embedded_.rules,
                            .idle_timeout = options.idle_timeout,
                            .interception = options.interception,
                            .on_end = on_end_,
                            .origins = options.origins,
                            .given_rules = options.given_rules,
                            .state_dir = options.state_dir,
                            .remove_when_idle = lifecycle_.remove_workspace ? place.workspace : ""};
    attempt.prepared = BELLJAR_TRY(backend_->prepare(options.policy, place));
    attempt.prepared.held =
        std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(attempt.prepared.held, record);
    attempt.prepared.report.push_back(command::timeout_clause(options.policy.limits));
    if (transaction_) attempt.prepared.report.push_back(runtime::transaction_clause(*lifecycle_.transaction));
    auto started = LiveInstance::start(std::move(attempt), cancel);
    if (started && transaction_) transaction_->note_running((*started)->init_pid());
    if (!started && transaction_ && started.error().call().starts_with("tree: overlay"))
      return runtime::explain_overlay(started.error(), *lifecycle_.transaction);
    if (started || !runtime::drop_unavailable(started.error(), place)) return started;
  }
}

// What the host has now under the names that changed is noted, while it is fresh; the rest can be told later from times.
void LiveSandbox::leave_transaction() noexcept {
  if (transaction_) {
    transaction_->note_ended();
    (void)txn::observe(*transaction_);
  }
  transaction_.reset();
}

Result<void> LiveSandbox::start(const CallOptions& options) {
  if (!owner_.is_this() && instance_ != nullptr)
    return OwningProcess::not_this();  // before the locks: a thread of the parent may hold them here
  owner_.take();
  const auto life = BELLJAR_TRY(lock_in_time(life_, options, kNoStart));
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoStart));
  if (instance_ != nullptr && instance_->running()) return Error(Code::kFailedPrecondition, kNoStart).reason("it runs already");
  BELLJAR_CHECK(check_not_cancelled(cancel_));
  BELLJAR_CHECK(options.check(kNoStart));
  const CancelToken end = BELLJAR_TRY(options.token(cancel_));
  if (instance_ != nullptr) instance_->stop();  // it ended by itself, perhaps just now
  instance_ = nullptr;
  network_rules_.reset();
  leave_transaction();
  volume_.reset();  // ours, of the one that ended
  volume_ = BELLJAR_TRY(ready_workspace(workspace(), lifecycle_));
  auto made = make_instance(end);
  host_->forget();
  if (!made) {
    if (transaction_ && transaction_->end_if_new()) transaction_.reset();
    leave_transaction();
    volume_.reset();
    return start_error(made.error(), options);
  }
  instance_ = *std::move(made);
  enforcement_ = instance_->enforcement();
  return {};
}

// Once begun it is done whole: its own end of a sandbox knows no long wait, and what was ended by half could not be told.
Result<void> LiveSandbox::stop(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const auto life = BELLJAR_TRY(lock_in_time(life_, options, kNoLiveStop));
  std::shared_ptr<LiveInstance> instance;
  {
    const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoLiveStop));
    BELLJAR_CHECK(options.check(kNoLiveStop));
    instance = std::exchange(instance_, nullptr);
    network_rules_.reset();
  }
  if (instance != nullptr) instance->stop();
  {
    const std::lock_guard lock(mutex_);
    leave_transaction();
    volume_.reset();
  }
  command::clear(*detached_);
  if (lifecycle_.remove_workspace) return remove_tree(workspace());
  return {};
}

Result<std::shared_ptr<LiveInstance>> LiveSandbox::running_instance() const {
  if (instance_ == nullptr)
    return Error(Code::kFailedPrecondition, "the sandbox does not run")
        .reason("it was not started, or it was stopped")
        .next("start() it");
  if (!instance_->running()) return instance_->not_running();
  return instance_;
}

Result<std::shared_ptr<LiveInstance>> LiveSandbox::instance_to_inspect(const CallOptions& options) const {
  BELLJAR_CHECK(owner_.check());
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoLiveLook));
  return running_instance();
}

Result<LiveSandbox::InUse> LiveSandbox::instance(const CallOptions& options) const {
  BELLJAR_CHECK(owner_.check());
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoLiveUse));
  auto alive = BELLJAR_TRY(running_instance());
  auto use = std::make_unique<LiveInstance::Use>(*alive);
  return InUse{std::move(alive), std::move(use)};
}

// A program that cannot be there: init's answer proves that it takes requests and can make a process.
Result<void> LiveSandbox::health(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const auto alive = instance(options);
  if (!alive) return not_healthy(alive.error());
  BELLJAR_CHECK(options.check(kNoLiveLook));
  const CancelToken end = BELLJAR_TRY(options.token());
  if (!alive->instance->answers(kAnswer, end.fd())) {
    BELLJAR_CHECK(options.check(kNoLiveLook));
    return Error(Code::kUnavailable, "the sandbox does not answer");
  }
  command::Request request;
  request.command.argv = {"/dev/null/health"};
  request.timeout = kAnswer;
  request.cancel = end;
  request.limits = alive->instance->policy().limits;
  const auto running = LiveCommand::start(alive->instance, std::move(request));
  if (!running) return Error(Code::kUnavailable, "the sandbox takes no commands").reason(running.error().line());
  ExecResult result = BELLJAR_TRY((*running)->finish());
  alive->instance->give_back(result);
  if (result.reason == Reason::kStartFailed && (result.exit_code == 127 || result.exit_code == 126)) return {};
  if (result.reason == Reason::kCancelled) BELLJAR_CHECK(options.check(kNoLiveLook));
  return Error(Code::kUnavailable, "the sandbox takes no commands").reason(result.message);
}

Result<void> LiveSandbox::answer() {
  const auto alive = instance_to_inspect();
  if (alive && (*alive)->answers(kAnswer)) return {};
  return Error(Code::kUnavailable, "the sandbox does not answer");
}

Result<SandboxStats> LiveSandbox::stats(const CallOptions& options) {
  const std::shared_ptr<LiveInstance> alive = BELLJAR_TRY(instance_to_inspect(options));
  BELLJAR_CHECK(options.check(kNoLiveLook));
  const kernel::TreeUsage usage = kernel::measure_tree(kernel::list_tree(alive->init_pid()), true);
  return SandboxStats{usage.cpu, usage.memory, usage.tasks, execs_.load(), written_.load()};
}

Result<ExecResult> LiveSandbox::exec(const Command& command, const ExecOptions& options) {
  BELLJAR_CHECK(command::check(command, options));
  const auto [alive, use] = BELLJAR_TRY(instance());
  if (options.cancel.cancelled()) return command::cancelled_before_start();
  const auto running = BELLJAR_TRY(LiveCommand::start(alive, command::make_request(command, options, alive->policy().limits)));
  ++execs_;
  return running->finish();
}

Result<std::unique_ptr<Process>> LiveSandbox::spawn(const Command& command, const SpawnOptions& options) {
  BELLJAR_CHECK(command::check(command, options));
  const auto [alive, use] = BELLJAR_TRY(instance());
  if (options.cancel.cancelled()) return command::make_cancelled_process();
  auto running = BELLJAR_TRY(LiveCommand::start(alive, command::make_request(command, options, alive->policy().limits)));
  ++execs_;
  return command::follow(std::move(running), detached_);
}

Result<SpawnedProcess> LiveSandbox::spawn_with_fds(const Command& command, const SpawnOptions& options,
                                                   std::array<UniqueFd, 3> ends) {
  BELLJAR_CHECK(command::check(command, options));
  const auto [alive, use] = BELLJAR_TRY(instance());
  if (options.cancel.cancelled()) return Error(Code::kCanceled, "cannot start a command").reason("the caller cancelled it");
  const auto running =
      BELLJAR_TRY(LiveCommand::start(alive, command::make_request(command, options, alive->policy().limits), std::move(ends)));
  ++execs_;
  UniqueFd master = running->take_master();
  return SpawnedProcess{BELLJAR_TRY(command::follow(running, detached_)), std::move(master)};
}

ExecResult LiveSandbox::take_seen() {
  ExecResult seen;
  if (const auto alive = instance_to_inspect()) (*alive)->take_seen(seen);
  return seen;
}

Result<std::shared_ptr<const Files>> LiveSandbox::files(const CallOptions& options) const {
  const auto held = std::make_shared<InUse>(BELLJAR_TRY(instance(options)));
  return std::shared_ptr<const Files>(held, &held->instance->files());
}

Result<std::unique_ptr<FileWatch>> LiveSandbox::watch(const std::string& path, const WatchOptions& options) {
  const auto [alive, use] = BELLJAR_TRY(instance());
  return open_watch(alive, path, options);
}

// --- the hosts that may be reached

Result<void> LiveSandbox::set_network_rules(const NetworkRules& rules) {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<LiveInstance> alive = BELLJAR_TRY(running_instance());
  BELLJAR_CHECK(alive->set_network_rules(rules));
  network_rules_ = rules;
  for (EnforcementClause& clause : enforcement_) {
    if (clause.clause == runtime::kDomainsClause)
      clause.asked = runtime::describe_domains(rules.allowed_domains, rules.denied_domains);
  }
  return {};
}

NetworkRules LiveSandbox::rules_of_policy() const { return rules_of(embedded_.policy.network); }

Result<NetworkRules> LiveSandbox::network_rules() const {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard lock(mutex_);
  BELLJAR_CHECK(running_instance());
  return network_rules_.value_or(rules_of_policy());
}

// --- layers

Result<std::vector<txn::Change>> LiveSandbox::changes() {
  if (!lifecycle_.transaction) return Sandbox::changes();
  BELLJAR_CHECK(instance_to_inspect());
  return txn::diff(*lifecycle_.transaction);
}

Result<void> LiveSandbox::change_layers(const std::function<Result<void>(const txn::Transaction&)>& check,
                                        const std::function<Result<void>(txn::Transaction&)>& act) {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard life(life_);
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<LiveInstance> alive = BELLJAR_TRY(running_instance());
  BELLJAR_CHECK(check(*transaction_));
  BELLJAR_CHECK(check_quiet(*alive));
  instance_ = nullptr;
  alive->stop();
  Result<void> done = act(*transaction_);
  auto made = make_instance({});  // the caller asked for no start, and did not cancel this
  if (!made) {
    leave_transaction();
    return made.error();
  }
  instance_ = *std::move(made);
  enforcement_ = instance_->enforcement();
  (void)txn::sweep(*lifecycle_.transaction);
  return done;
}

Result<void> LiveSandbox::snapshot(const std::string& name) {
  if (!lifecycle_.transaction) return Sandbox::snapshot(name);
  return change_layers([&](const txn::Transaction& transaction) { return txn::check_new_snapshot(transaction, name); },
                       [&](txn::Transaction& transaction) { return txn::take_snapshot(transaction, name); });
}

Result<void> LiveSandbox::rollback(const std::string& snapshot) {
  if (!lifecycle_.transaction) return Sandbox::rollback(snapshot);
  return change_layers([&](const txn::Transaction& transaction) { return txn::check_snapshot(transaction, snapshot); },
                       [&](txn::Transaction& transaction) { return txn::roll_back(transaction, snapshot); });
}

}  // namespace belljar::session
