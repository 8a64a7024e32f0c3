// The order of a run. What can be refused is refused before anything starts: the proxy's plan and
// its ports, the limits with the required clauses, the streams. Signals are taken over before the
// start, so that one that comes in between gives the start up and does not kill this process with a
// sandbox half made.
//
// After the start: our copies of the command's stream ends are closed first, because a pipe whose
// write end we hold never ends. The proxy begins to serve before the broker is made; credentials
// are read into it only now, when the sandbox's first process exists and cannot have a copy in its
// memory (interception.h).
//
// At the end the broker is asked before the proxy, and the violations of limits come last, since
// the records of the proxy show whether its bytes were used up. Runner holds the limits, so the
// groups are removed after everything in go() is gone.
//
// A spare is the same run with a pause in it: everything that is of the sandbox comes before, all that is of its caller (streams,
// signals, warnings, the time from which a socket counts as made inside) after it.
//
// run() starts again with less when a kernel feature is not to be had: drop_unavailable()
// (start_inputs.cc) turns one feature off for each failure, so the loop ends. A transaction is run
// once: it needs the overlays. Where its command never began, a transaction that was made for it is
// ended.
#include "runtime/run.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/real_path.h"
#include "base/remove_tree.h"
#include "belljar/state_dir.h"
#include "broker/broker.h"
#include "front/terminal.h"
#include "policy/defaults.h"
#include "policy/ignore.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/tls_interception.h"
#include "runtime/enforcement.h"
#include "runtime/interception.h"
#include "runtime/kept_caches.h"
#include "runtime/limits.h"
#include "runtime/living.h"
#include "runtime/sandbox_egress.h"
#include "runtime/start_failure.h"
#include "runtime/start_inputs.h"
#include "runtime/supervise.h"
#include "runtime/transaction.h"
#include "runtime/unsupported.h"
#include "runtime/used_names.h"
#include "txn/base.h"
#include "txn/store.h"

namespace belljar::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// What this room holds itself.
void add_own_clauses(const Policy& policy, EnforcementReport& report) {
  const auto add = [&](const char* clause, std::string asked, const char* mechanism) {
    report.push_back({clause, std::move(asked), mechanism, Enforced::kFull, {}});
  };
  if (const auto timeout = effective_timeout(policy.limits))
    add("limits.timeout", to_string(*timeout), "front process: TERM, then KILL of the tree");
  if (policy.limits.idle_timeout)
    add("limits.idle_timeout", to_string(*policy.limits.idle_timeout), "front process: streams and processor time watched");
  if (policy.limits.output_bytes)
    add("limits.output_bytes", to_string(*policy.limits.output_bytes),
        policy.limits.output_action == OutputAction::kKill ? "relay: KILL of the tree"
                                                           : "relay: the rest is read, counted and dropped");
}

front::StdioOptions stream_options(const RunSettings& settings, const Policy& policy, const launch::Plan& plan) {
  front::StdioOptions options = settings.stdio;
  if (policy.limits.output_bytes) options.cap = policy.limits.output_bytes->count;
  if (policy.limits.idle_timeout) options.watch = true;
  if (plan.identity == launch::Identity::kRootMapped) options.owner = {plan.outside_uid, plan.outside_gid};
  return options;
}

// Everything of one run, so that its end comes in the right order: the sandbox dies first, then its broker, then its groups.
class Runner {
 public:
  Runner(backend::Prepared prepared, const Policy& policy, const Command& command, const std::string& workspace,
         const RunSettings& settings, const Interception* interception)
      : prepared_(std::move(prepared)),
        policy_(policy),
        command_(command),
        workspace_(workspace),
        settings_(settings),
        interception_(interception),
        remove_after_(std::move(prepared_.remove_after)) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  // Also when the start failed. What cannot be removed is not worth losing a result for.
  ~Runner() {
    for (const std::string& path : remove_after_) (void)remove_tree(path);
  }

  Result<RunOutcome> go(Clock::time_point begun) {
    SandboxEgress egress(policy_, command_, settings_.origins, interception_);
    BELLJAR_CHECK(egress.plan(prepared_.plan.env, prepared_.report));
    BELLJAR_CHECK(make_limits());
    if (settings_.observer) BELLJAR_CHECK(make_observed());
    launch::Sandbox made;
    if (settings_.spare != nullptr) {
      made = BELLJAR_TRY(launch::start(prepared_.plan, nullptr, {.first_later = true, .time_steps = settings_.time_steps}));
      if (settings_.launched != nullptr) *settings_.launched = true;
      remote_ = BELLJAR_TRY(settings_.spare->await_use(made.pidfd(), prepared_.plan.env));
      begun = Clock::now();
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME, &now);
      if (prepared_.file_rules) prepared_.file_rules->begin_run(now);
    }
    front::Signals signals =
        BELLJAR_TRY(remote_ != nullptr ? front::Signals::open_remote(*remote_) : front::Signals::open(settings_.signals));
    const front::StdioOptions options = stream_options(settings_, policy_, prepared_.plan);
    front::Stdio stdio = BELLJAR_TRY(front::Stdio::open(options));
    front::RawTerminal terminal(stdio.pty() && options.output == front::OutputTo::kInherit ? options.host[0] : -1);
    if (stdio.pty()) plan_pty(options);
    const launch::ExecRequest request = make_request(stdio);
    if (settings_.on_ready) settings_.on_ready(prepared_.report);
    if (settings_.on_warning) std::ranges::for_each(prepared_.warnings, settings_.on_warning);
    ran_.times.prepare = Clock::now() - begun;

    if (settings_.spare != nullptr) settings_.spare->starting();
    const Clock::time_point starting = Clock::now();
    ::clock_gettime(CLOCK_REALTIME_COARSE, &began_);
    auto begun_sandbox =
        settings_.spare != nullptr
            ? begin(std::move(made), request)
            : launch::start(prepared_.plan, &request,
                            {.time_steps = settings_.time_steps, .stop = {signals.ending_fd(), settings_.cancel_fd}});
    if (!begun_sandbox && begun_sandbox.error().code() == Code::kCanceled) return cancelled(begun_sandbox.error(), signals);
    launch::Sandbox sandbox = BELLJAR_TRY(std::move(begun_sandbox));
    const Clock::time_point started = Clock::now();
    if (settings_.launched != nullptr) *settings_.launched = true;
    ran_.times.start = started - starting;
    stdio.close_command_ends();
    if (stdio.pty()) {
      stdio.attach_pty(sandbox.take_pty_master());
      terminal.enter();
    }
    PassedSockets inside = passed_sockets(sandbox, prepared_.plan);
    broker::Inner inner = take_inner(inside);
    BELLJAR_CHECK(egress.open(std::move(inside), prepared_.report, settings_.front_ends));
    SuperviseOptions supervision{.signals = &signals, .terminal = &terminal, .cancel_fd = settings_.cancel_fd};
    supervision.front_ends = settings_.front_ends && prepared_.plan.cgroup_fd < 0 && prepared_.plan.join_files.empty();
    std::optional<broker::Broker> broker;
    if (UniqueFd listener = sandbox.take_listener(); listener.valid()) {
      broker::BrokerOptions rules = broker_options(prepared_, policy_, settings_.origins);
      rules.began = began_;
      rules.state_dir = settings_.transaction ? settings_.transaction->state_dir : default_state_dir();
      if (!prepared_.pid_namespace) rules.guard = sandbox.init_pid();
      rules.observer = settings_.observer;
      if (settings_.complete != nullptr) rules.explain = explainer(*settings_.complete, settings_.origins);
      broker = BELLJAR_TRY(broker::Broker::create(std::move(listener), std::move(rules), std::move(inner)));
      supervision.broker = &*broker;
      if (const std::string& why = broker->why_alone(); !why.empty()) {
        lower_alone(why, prepared_.report);
        BELLJAR_CHECK(check_required(prepared_.report, policy_));  // what is judged waits for the broker, so nothing was
        if (settings_.on_warning) settings_.on_warning("other sandboxes in the same directories are not waited for: " + why);
      }
    }
    if (settings_.on_started) settings_.on_started(sandbox.init_pid());
    limits_->attach(sandbox.init_pid());
    if (settings_.spare != nullptr) settings_.spare->begun();
    supervision.limit_set = &*limits_;
    Supervised supervised = supervise(sandbox, stdio, policy_.limits, supervision);
    terminal.restore();
    const Clock::time_point ended = supervised.ended;
    if (broker) {
      supervised.result.violations = broker->take_violations();
      supervised.result.violations_dropped = broker->dropped();
      supervised.result.violations_hidden = broker->hidden();
    }
    egress.close(supervised.result);
    add_limit_violations(supervised.result, policy_, settings_.origins, command_.argv[0], {});
    ran_.steps = sandbox.steps();
    take(std::move(supervised), sandbox);
    if (settings_.front_ends) {
      ran_.rest.push_back(std::make_shared<launch::Sandbox>(std::move(sandbox)));
      ran_.rest.push_back(std::make_shared<std::optional<broker::Broker>>(std::move(broker)));
      ran_.rest.push_back(std::make_shared<backend::Prepared>(std::move(prepared_)));
    }
    ran_.times.end = Clock::now() - ended;
    return std::move(ran_);
  }

 private:
  static Result<launch::Sandbox> begin(launch::Sandbox made, const launch::ExecRequest& request) {
    BELLJAR_TRY(made.exec(request));
    return made;
  }

  Result<void> make_limits() {
    limits_ = BELLJAR_TRY(LimitSet::create(policy_.limits, limit_context(prepared_, policy_, workspace_)));
    const EnforcementReport& clauses = limits_->clauses();
    prepared_.report.insert(prepared_.report.end(), clauses.begin(), clauses.end());
    const auto& rlimits = limits_->rlimits();
    prepared_.plan.rlimits.insert(prepared_.plan.rlimits.end(), rlimits.begin(), rlimits.end());
    prepared_.plan.cgroup_fd = limits_->cgroup_fd();
    prepared_.plan.join_files = limits_->join_files();
    add_own_clauses(policy_, prepared_.report);
    return check_required(prepared_.report, policy_);
  }

  // The same filter, with the calls that name files notified.
  Result<void> make_observed() {
    if (!prepared_.plan.seccomp_listener)
      return Error(Code::kFailedPrecondition, "cannot see which files the command uses")
          .reason(
              "this policy runs it without the broker that would be told (mode danger-full-access, or another sandbox around it)")
          .next("learn under a policy that has it");
    kernel::SeccompSpec& spec = prepared_.plan.seccomp_spec;
    spec.observe = true;
    // All of it comes to the broker now, which performs what it is told to judge, or none of it.
    if (spec.file_calls == kernel::FileCalls::kLinks) spec.file_calls = kernel::FileCalls::kWrites;
    prepared_.plan.seccomp = kernel::build_filter(prepared_.plan.seccomp_spec);
    return {};
  }

  void plan_pty(const front::StdioOptions& options) {
    prepared_.plan.want_pty = true;
    const winsize size = front::window_size(options.host[1]).value_or(winsize{24, 80, 0, 0});
    prepared_.plan.pty_rows = size.ws_row;
    prepared_.plan.pty_columns = size.ws_col;
  }

  launch::ExecRequest make_request(const front::Stdio& stdio) const {
    launch::ExecRequest request;
    request.argv = command_.argv;
    for (int n = 0; n < 3; ++n) request.stdio[n] = stdio.command_fd(n);
    request.pty = stdio.pty();
    if (settings_.spare != nullptr) request.env = prepared_.plan.env;
    return request;
  }

  // The start did not end and was given up, by a signal or by the caller. The signals are taken: what is left is ours to do.
  RunOutcome cancelled(const Error& error, front::Signals& signals) {
    int signal = SIGTERM;
    while (const auto next = signals.next()) {
      if (*next == SIGINT || *next == SIGHUP || *next == SIGQUIT || *next == SIGTERM) signal = *next;
    }
    Error failure = Error(Code::kCanceled, error.what()).reason(error.reason()).exit_code(128 + signal);
    ran_.result = failed_start(failure);
    ran_.result.reason = Reason::kCancelled;
    ran_.result.enforcement = std::move(prepared_.report);
    ran_.start_failure = std::move(failure);
    return std::move(ran_);
  }

  void take(Supervised supervised, launch::Sandbox& sandbox) {
    ran_.result = std::move(supervised.result);
    ran_.notes = std::move(supervised.notes);
    ran_.output_dropped = supervised.output_dropped;
    ran_.leaving = std::move(supervised.leaving);
    if (supervised.exec_errno != 0) {
      Error failure =
          explain_start_failure(supervised.exec_errno, supervised.failed_call, command_.argv[0], prepared_.plan.default_cwd);
      ExecResult failed = failed_start(failure);
      failed.violations = std::move(ran_.result.violations);
      failed.violations_dropped = ran_.result.violations_dropped;
      failed.violations_hidden = ran_.result.violations_hidden;
      failed.egress = std::move(ran_.result.egress);
      ran_.result = std::move(failed);
      ran_.start_failure = std::move(failure);
    }
    ran_.result.enforcement = std::move(prepared_.report);
    lower_skipped(prepared_.plan, sandbox.skipped(), ran_.result.enforcement);
    std::vector<UniqueFd> given = sandbox.take_exported();
    for (std::size_t i = 0; i < given.size() && i < prepared_.scratch.size(); ++i)
      ran_.scratch.push_back({prepared_.scratch[i], std::move(given[i])});
    UsedNames::of(prepared_, std::move(given)).add_violations(ran_.result, policy_, settings_.complete, settings_.origins);
  }

  backend::Prepared prepared_;
  const Policy& policy_;
  const Command& command_;
  const std::string& workspace_;
  const RunSettings& settings_;
  const Interception* interception_;
  std::vector<std::string> remove_after_;
  front::RemoteEnd* remote_ = nullptr;
  std::optional<LimitSet> limits_;
  timespec began_{};
  RunOutcome ran_;
};

}  // namespace

Result<RunOutcome> run_prepared(backend::Prepared prepared, const Policy& policy, const Command& command,
                                const std::string& workspace, const RunSettings& settings, const Interception* interception) {
  return Runner(std::move(prepared), policy, command, workspace, settings, interception).go(Clock::now());
}

namespace {

Result<RunOutcome> run_in_transaction(backend::Backend& backend, const Policy& policy, const Command& command,
                                      backend::Workplace place, const RunSettings& settings, const Interception* interception,
                                      Clock::time_point begun) {
  const txn::Place& where = *settings.transaction;
  BELLJAR_CHECK(check_transaction_mode(policy));
  txn::Transaction transaction = BELLJAR_TRY(txn::Transaction::open(where, txn::Store::Open::kCreate, txn::Access::kChange));
  const txn::Layers layers = BELLJAR_TRY(txn::begin_run(transaction));
  transaction.note_running(0);
  place.layers = to_layers(layers);
  const std::string growing = layers.pool + "/" + place.layers->upper;
  bool launched = false;
  RunSettings watched = settings;
  if (watched.launched == nullptr) watched.launched = &launched;
  watched.on_started = [&](int init_pid) {
    transaction.note_running(init_pid);
    if (settings.on_started) settings.on_started(init_pid);
  };
  Result<RunOutcome> ran = RunOutcome();
  do {
    auto prepared = backend.prepare(policy, place);
    if (!prepared) {
      transaction.note_ended();
      (void)transaction.end_if_new();
      return std::move(prepared).error();
    }
    prepared->report.push_back(transaction_clause(where));
    if (std::string groups = group_limit(where); !groups.empty()) prepared->warnings.push_back(std::move(groups));
    ran = Runner(*std::move(prepared), policy, command, growing, watched, interception).go(begun);
    // The overlay is the transaction itself; without the rest it goes on, as any run.
  } while (!ran && !ran.error().call().starts_with("tree: overlay") && drop_unavailable(ran.error(), place));
  // Nobody else works on the layer while something in it may still write.
  if (ran) {
    launch::await_end(std::exchange(ran->leaving, UniqueFd()));
    ran->rest.clear();
  }
  transaction.note_ended();
  const bool never_began = ran ? ran->start_failure.has_value() : !*watched.launched;
  const bool ended = never_began && transaction.end_if_new();
  if (!ran) return explain_overlay(std::move(ran).error(), where);
  // What the host has now under the names that changed, while it is fresh. What cannot be noted now counts as changed at the commit
  // unless its ctime is older than this run; nothing is lost.
  if (!ended) (void)txn::observe(transaction);
  return ran;
}

}  // namespace

Result<RunOutcome> run(backend::Backend& backend, const Policy& policy, const Command& command, backend::Workplace place,
                       const std::vector<std::string>& caller_env, const RunSettings& settings) {
  const Clock::time_point begun = Clock::now();
  if (command.argv.empty() || command.argv[0].empty())
    return Error(Code::kInvalidArgument, "there is no command to run")
        .next("belljar run -- PROGRAM ARGUMENTS, or belljar run -c 'shell text'");
  BELLJAR_CHECK(check_supported(policy));
  const auto own_policy = std::make_shared<Policy>(policy);  // which the broker refers to
  Policy& sized = *own_policy;
  sized.filesystem.tmp_size = tmp_limit(policy.limits, policy.filesystem.tmp_size);
  place.one_command = true;
  place.env = policy::build_environment(policy.environment, caller_env, command.env);
  place.cwd = BELLJAR_TRY(find_cwd(place.workspace, place.cwd.empty() ? command.cwd : place.cwd));
  policy::hide_state(sized.filesystem.entries, settings.transaction ? settings.transaction->state_dir : default_state_dir());
  place.kept_caches =
      keep_caches(sized, place.workspace, settings.transaction ? settings.transaction->state_dir : default_state_dir());
  const bool hides = sized.filesystem.siblings == Siblings::kHidden;
  if (settings.spare != nullptr && (hides || settings.transaction))
    return Error(Code::kInternal, "no sandbox is kept ready for a run in a transaction, or one that hides other workspaces");
  const Living living = enter_living(default_state_dir(), {place.workspace}, hides ? Others::kAsked : Others::kNotAsked);
  place.siblings = BELLJAR_TRY(hide_siblings(sized, Siblings::kShown, place, living));
  std::optional<Interception> interception;
  if (policy.network.mode == NetMode::kProxy) {
    policy::hide_credentials(sized.filesystem.entries, sized.network, place.home);
    interception = BELLJAR_TRY(Interception::create(sized, settings.interceptor, caller_env, place));
  }
  const Interception* const look = interception ? &*interception : nullptr;
  if (settings.transaction) return run_in_transaction(backend, sized, command, std::move(place), settings, look, begun);
  for (;;) {
    auto ran = Runner(BELLJAR_TRY(backend.prepare(sized, place)), sized, command, place.workspace, settings, look).go(begun);
    if (ran && settings.front_ends) ran->rest.insert(ran->rest.end(), {living.record, own_policy});
    if (ran || !drop_unavailable(ran.error(), place)) return ran;
  }
}

Result<std::string> find_cwd(const std::string& workspace, const std::string& cwd) {
  if (cwd.empty()) return workspace;
  const std::string full = cwd.starts_with('/') ? cwd : workspace + "/" + cwd;
  const auto refused = [&](Code code) { return Error(code, format("cannot use {} as working directory", quoted(cwd))); };
  if (full.size() >= PATH_MAX)
    return refused(Code::kInvalidArgument).reason(format("the path is longer than {} bytes", PATH_MAX - 1));
  std::string real = real_path(full);
  if (real.empty())
    return refused(errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied)
        .sys(errno, "realpath")
        .next("name an existing directory inside the workspace");
  if (!policy::is_within(real, workspace))
    return Error(Code::kInvalidArgument, format("workdir escapes workspace: {} is not inside {}", quoted(real), quoted(workspace)))
        .next("choose a directory inside it, or another --workspace");
  struct stat status{};
  if (stat(real.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return refused(Code::kInvalidArgument).reason("it is not a directory");
  return real;
}

ExecResult failed_start(const Error& error) {
  ExecResult result;
  result.reason = Reason::kStartFailed;
  result.exit_code = error.exit_code();
  result.message = error.line();
  return result;
}

}  // namespace belljar::runtime
