// What the process does that `belljar create` starts: it makes the sandbox, tells its id, and keeps it until
// it ends.
//
// The caller may go, or we may be told to end, while the sandbox is being started, which can take long.
// Nothing arrives on the channel in that time, so a watch on it and on the ending signals cancels the start
// (StartWatch). Signals are blocked in every thread and read by signalfd(2); those that come during the start
// stay pending for the keeper.
//
// Claiming the entry in the user's directory comes before the start, because the name has to be unique. If
// anything fails behind it, the entry is discarded. Once the sandbox runs, the caller is told, and then has
// to say that it heard: a sandbox that nobody knows would stay until its expiry. From then on the channel is
// closed, and everything comes over the keeper's socket.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/find.h"
#include "backend/paths/host.h"
#include "base/fd_watch.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/events.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/state_dir.h"
#include "cli/load.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"
#include "cli/sandbox/create_flags.h"
#include "cli/secrets.h"
#include "keeper/about.h"
#include "keeper/directory.h"
#include "keeper/event_log.h"
#include "keeper/keeper.h"
#include "keeper/wire.h"
#include "launch/detached.h"
#include "policy/defaults.h"
#include "policy/merge.h"
#include "policy/names.h"
#include "policy/tls_interception.h"
#include "runtime/json.h"
#include "session/live.h"

namespace belljar::cli {
namespace {

using keeper::Json;
using std::chrono::milliseconds;

constexpr milliseconds kSetupPatience{10'000};

void block_signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
}

// Each connection is a few descriptors here. After the start: commands inside keep the limit that the caller had.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Only what the policy passes on stays here, and where values of credentials come from: the keeper lives long.
std::map<std::string, std::string> filtered(const Policy& rules, const std::map<std::string, std::string>& given) {
  std::vector<std::string> all;
  std::map<std::string, std::string> kept;
  for (const auto& [name, text] : given) {
    all.push_back(name + "=" + text);
    if (policy::is_credential_source(rules.network, all.back())) kept[name] = text;
  }
  for (const std::string& entry : policy::build_environment(rules.environment, all)) {
    const std::size_t equals = entry.find('=');
    kept[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  // Where the policy's own paths are looked for; whether commands see them is the policy's.
  for (const char* name : {"HOME", "TMPDIR", "XDG_RUNTIME_DIR"}) {
    if (const auto found = given.find(name); found != given.end()) kept.insert(*found);
  }
  return kept;
}

// What is made of the words, step by step.
struct PreparedSandbox {
  CreateFlags flags;
  std::optional<milliseconds> expires, sample_every;
  std::optional<LoadedPolicy> loaded;
  std::shared_ptr<session::LiveSandbox> sandbox;
  std::vector<std::string> notes;
  std::map<std::string, std::string> visible;  // of the caller's variables
};

Result<PreparedSandbox> prepare(Json& setup, const CancelToken& cancel) {
  PreparedSandbox prepared;
  BELLJAR_CHECK(parse_create(setup.at("words").get<std::vector<std::string>>(), prepared.flags));
  prepared.expires = BELLJAR_TRY(expiry_of(prepared.flags));
  prepared.sample_every = BELLJAR_TRY(sampling_of(prepared.flags));
  prepared.loaded = BELLJAR_TRY(load_policy(prepared.flags.policy));
  prepared.notes = prepared.loaded->effective.warnings;
  SandboxConfig config;
  config.policy = prepared.loaded->effective.policy;
  config.origins = prepared.loaded->effective.origins;
  config.cancel = cancel;
  config.siblings = Siblings::kHidden;
  // Not `fallback`: a sandbox that stays is one of our own processes.
  const backend::RealHost host;
  const auto backend = backend::find_backend(config.policy.backend, host);
  if (!backend)
    return Error(Code::kUnimplemented, format("a sandbox of backend {} cannot be kept", belljar::quoted(config.policy.backend)));
  config.backend = (*backend)->name();
  const std::string& workspace = prepared.loaded->context.workspace;
  config.workspace = name_of_workspace(prepared.flags.policy.workspace, setup.at("env").value("PWD", ""), workspace);
  config.caller_env = filtered(config.policy, setup.at("env").get<std::map<std::string, std::string>>());
  prepared.visible = config.caller_env;
  setup.erase("env");
  // Whatever else the policy says, the way to the keepers is nobody's inside.
  policy::hide_state(config.policy.filesystem.entries, BELLJAR_TRY(keeper::sandboxes_path()));
  prepared.sandbox = std::dynamic_pointer_cast<session::LiveSandbox>(BELLJAR_TRY(make_sandbox(config)));
  if (prepared.sandbox == nullptr)
    return Error(Code::kUnimplemented, format("a sandbox of backend {} cannot be kept", belljar::quoted(config.backend)));
  if (prepared.sandbox->workspace() != workspace)
    return Error(Code::kFailedPrecondition, format("cannot use workspace {}", belljar::quoted(config.workspace)))
        .reason("it was made another directory meanwhile");
  return prepared;
}

keeper::About about_of(const PreparedSandbox& prepared) {
  const Policy& policy = prepared.loaded->effective.policy;
  keeper::About about;
  about.name = prepared.flags.name;
  about.workspace = prepared.sandbox->workspace();
  about.policy = prepared.flags.policy.policy.empty() ? std::string(to_string(policy.mode)) : prepared.flags.policy.policy;
  about.backend = prepared.sandbox->backend();
  about.created_ms = now_ms();
  if (prepared.expires) about.expires_ms = about.created_ms + prepared.expires->count();
  if (policy.limits.idle_timeout) about.idle_timeout_ms = policy.limits.idle_timeout->count();
  if (policy.limits.output_bytes)
    about.output_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(policy.limits.output_bytes->count, INT64_MAX));
  about.output_kills = policy.limits.output_action == OutputAction::kKill;
  return about;
}

std::vector<std::string> accepted(const EnforcementReport& report, const Policy& policy) {
  std::vector<std::string> notes;
  // Once, of how many rules it may be true.
  const auto add = [&notes](std::string note) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  };
  for (const EnforcementClause& clause : report) {
    const bool named = std::ranges::find(policy.accept, clause.clause) != policy.accept.end();
    if (named && clause.enforced != Enforced::kFull)
      add(format("{} is {}, as accepted: {}", clause.clause, to_string(clause.enforced), clause.detail));
    // A default of ours, so nobody asked for it, but who has several counts on it.
    else if (clause.clause == "filesystem.siblings" && clause.enforced == Enforced::kNone)
      add(format("workspaces of other sandboxes are not hidden: {}", clause.detail));
  }
  return notes;
}

Json ready_message(const PreparedSandbox& prepared, const keeper::About& about) {
  std::vector<std::string> notes = prepared.notes;
  const EnforcementReport report = prepared.sandbox->enforcement();
  for (std::string& note : accepted(report, prepared.loaded->effective.policy)) notes.push_back(std::move(note));
  for (std::string& note : notes) note = escaped(note);
  ExecResult carrier;
  carrier.enforcement = report;
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(keeper::to_json(about));
  object["enforcement"] = nlohmann::ordered_json::parse(runtime::to_json(carrier, runtime::JsonStreams::kOmit)).at("enforcement");
  return {{"id", about.id}, {"about", object.dump()}, {"notes", notes}};
}

// Who asked for the sandbox may go while it starts, or we be told to end: then nobody waits for the start. Nothing comes from the
// channel before the sandbox runs; the signals, which are blocked in every thread, stay pending.
struct StartWatch {
  UniqueFd signals;
  CancelToken cancel;
  std::unique_ptr<FdWatch> watch;  // last: it waits for those above
};

Result<StartWatch> watch_start(int channel) {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, signal);
  StartWatch start{UniqueFd(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK)), BELLJAR_TRY(CancelToken::create()), nullptr};
  if (!start.signals.valid())
    return Error(Code::kResourceExhausted, "cannot watch over the start").sys(errno, "signalfd").next("raise `ulimit -n`");
  start.watch = BELLJAR_TRY(FdWatch::begin({{channel, POLLIN | POLLRDHUP, 0}, {start.signals.get(), POLLIN, 0}},
                                           [cancel = start.cancel] { return cancel.cancel(), false; }));
  return start;
}

// Until the sandbox has ended. An error before it runs is the caller's to tell.
Result<void> keep_sandbox(Json& setup, std::optional<keeper::Channel>& channel) {
  StartWatch start = BELLJAR_TRY(watch_start(channel->fd()));
  PreparedSandbox prepared = BELLJAR_TRY(prepare(setup, start.cancel));
  const keeper::Directory directory = BELLJAR_TRY(keeper::Directory::open());
  keeper::Claim claim = BELLJAR_TRY(directory.claim(about_of(prepared)));
  const keeper::About about = claim.about;
  const auto give_up = [&](Error error) {
    directory.discard(about.id);
    return error;
  };
  // Of all fronts. What one of them knows besides it redacts itself.
  auto log = keeper::EventLog::open(UniqueFd(::fcntl(claim.directory.get(), F_DUPFD_CLOEXEC, 3)), about.id,
                                    secrets_of(prepared.loaded->effective.policy, prepared.visible));
  if (!log) return give_up(log.error());
  const Policy& policy = prepared.loaded->effective.policy;
  keeper::Keeper keeper({prepared.sandbox, *log, policy.limits, policy.network.mode, default_state_dir()}, std::move(claim),
                        directory, prepared.expires);
  EventOptions sampling{
      .sample_every = prepared.sample_every, .measure_disk = true, .alerts = {.memory_limit = policy.limits.memory}};
  if (policy.limits.cpus) sampling.alerts.cpus = *policy.limits.cpus;
  sampling.alerts.disk_limit = policy.limits.disk;
  const auto watched = with_events(prepared.sandbox, *log, std::move(sampling));
  if (auto started = watched->start(); !started) return give_up(started.error());
  start.watch.reset();
  // Nobody's file system is held by us.
  if (::chdir("/") != 0) return give_up(Error(Code::kInternal, "cannot leave the caller's directory"));
  allow_descriptors();
  const auto sent = channel->send(ready_message(prepared, about));
  const auto word = sent ? channel->receive(kSetupPatience) : Result<std::optional<keeper::Received>>(sent.error());
  // Interrupted before anybody was told of it.
  if (!word || !*word) return give_up(Error(Code::kCanceled, "nobody knows the sandbox"));
  channel.reset();
  keeper.run();
  return {};
}

}  // namespace

int run_keeper() {
  block_signals();
  ::fcntl(launch::kDetachedChannel, F_SETFD, FD_CLOEXEC);
  std::optional<keeper::Channel> channel(std::in_place, UniqueFd(launch::kDetachedChannel));
  auto setup = channel->receive(kSetupPatience);
  if (!setup || !*setup) return 125;
  std::optional<Error> failed;
  try {
    if (const auto kept = keep_sandbox((*setup)->message, channel); !kept) failed = kept.error();
  } catch (const std::exception& bug) {
    failed = Error(Code::kInternal, escaped(bug.what()));
  }
  if (!failed) return 0;
  if (channel) (void)channel->send({{"error", keeper::to_message(*failed)}}, {}, milliseconds(1000));
  return failed->exit_code();
}

}  // namespace belljar::cli
