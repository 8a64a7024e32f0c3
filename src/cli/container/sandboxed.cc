// `belljar run` on a backend that is a Sandbox (an engine's container, a machine of a cloud) and not a plan
// for our launcher.
//
// Options, trail, report and result are those of every run (run_flags.h). Different is the middle: a sandbox
// is made and started, one process is spawned in it, its streams and signals are joined to ours (relay.h),
// and the sandbox is stopped.
//
// Signals decide the order. A start may take as long as an image is pulled, and a signal that ended us then
// would leave a container or a paid machine behind. So signals are taken over before the start, the first
// that would have ended us cancels it, and they are held until the sandbox is stopped. One that comes later
// than the command's end is read and dropped: the result is to be told.
//
// When this backend cannot start and others follow, the signals are given back before the next program takes
// over.
//
// A sandbox that cannot be ended is an error beside the result and never instead of it (`unstopped`).
#include "cli/container/sandboxed.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/fd_watch.h"
#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "cli/audited.h"
#include "cli/choose.h"
#include "cli/command_line.h"
#include "cli/command_words.h"
#include "cli/container/relay.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/policy_flags.h"
#include "cli/refused_run.h"
#include "cli/run_flags.h"
#include "cli/run_notes.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "policy/backends.h"
#include "policy/choice.h"

namespace belljar::cli {
namespace {

Result<Command> find_command(const RunFlags& flags, const SandboxedBackend& backend) {
  if (flags.txn || flags.txn_name || flags.commit)
    return Error(Code::kUnimplemented, format("the {} backend does not serve --txn", backend.name))
        .reason("transactions are overlays of our own mount namespaces")
        .next("use the native backend, or drop --txn");
  if (flags.policy.login && !flags.shell_text)
    return Error(Code::kInvalidArgument, "--login is for shell text here").next("use it with -c 'shell text'");
  Command command;
  if (flags.shell_text) {
    // The caller's $SHELL need not be there.
    command = flags.policy.login ? login_shell_command(*flags.shell_text, "/bin/sh") : shell_command(*flags.shell_text);
    command.argv.insert(command.argv.end(), flags.program.begin(), flags.program.end());
  } else {
    command.argv = flags.program;
  }
  if (command.argv.empty() || command.argv[0].empty())
    return Error(Code::kInvalidArgument, "there is no command to run").next(backend.usage);
  return command;
}

// `run` has no timeout unless one is given, whatever exec() of the library has.
void tell_timeout(const Limits& limits, EnforcementReport& report) {
  const auto clause = std::ranges::find(report, "limits.timeout", &EnforcementClause::clause);
  if (clause == report.end()) return;
  if (limits.timeout) clause->asked = to_string(*limits.timeout);
  else report.erase(clause);
}

bool ends_us(int number) { return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT; }

// The first that would have ended us, of all that came until now.
std::optional<int> first_ending(front::Signals& signals) {
  std::optional<int> first;
  while (const auto number = signals.next()) {
    if (!first && ends_us(*number)) first = number;
  }
  return first;
}

ExecResult ended_before(int number) {
  ExecResult result;
  result.exit_code = 128 + number;
  result.signal = number;
  result.reason = Reason::kCancelled;
  result.message = "a signal came before the command was started";
  return result;
}

// A sandbox that runs, and what is to run in it.
struct StartedSandbox {
  Command command;
  std::shared_ptr<Sandbox> sandbox;
};

Result<StartedSandbox> begin(const RunFlags& flags, const SandboxedBackend& backend, const LoadedPolicy& loaded, RunAudit& audit,
                             const CancelToken& cancel) {
  StartedSandbox begun{BELLJAR_TRY(find_command(flags, backend)), nullptr};
  SandboxConfig config;
  config.backend = backend.name;
  config.policy = loaded.effective.policy;
  // The sandbox has a cap of its own, and this is no limit without one that was asked for.
  if (!config.policy.limits.output_bytes) config.policy.limits.output_action = OutputAction::kDrain;
  config.caller_env = by_name(own_environment());
  config.cancel = cancel;
  begun.sandbox = BELLJAR_TRY(backend.make(loaded, config));
  begun.command.cwd = backend.find_cwd(flags.policy.cwd, loaded, *begun.sandbox);
  BELLJAR_CHECK(audit.start(begun.command, loaded));
  BELLJAR_CHECK(begun.sandbox->start());
  return begun;
}

// This program's backend if its turn comes, or what the next ones make of the run. `ended`: a signal that came meanwhile.
Result<StartedSandbox> begin_first(const RunFlags& flags, const SandboxedBackend& backend, policy::Choice& choice,
                                   LoadedPolicy& loaded, RunRecord& record, std::optional<front::Signals>& signals,
                                   std::optional<int>& ended) {
  return start_first(flags, choice, backend.name, record, [&](const std::string& name) -> Result<StartedSandbox> {
    // Longer than the sandbox: a signal while it starts or stops would leave it behind. Not in what we hand on to.
    auto taken = front::Signals::open(front::Signals::Mode::kForwarded);
    if (!taken) return choice.settle(), taken.error();
    signals.emplace(*std::move(taken));
    loaded.effective.policy.backend = name;
    const auto cancel = CancelToken::create();
    if (!cancel) return choice.settle(), cancel.error();
    // A start may take as long as an image is pulled: the first signal that would have ended us cancels it.
    auto watch = FdWatch::begin({{signals->ending_fd(), POLLIN, 0}}, [end = *cancel] { return end.cancel(), false; });
    if (!watch) return choice.settle(), watch.error();
    auto begun = begin(flags, backend, loaded, record.audit, *cancel);
    watch->reset();
    ended = first_ending(*signals);
    if (ended) choice.settle();
    else if (begun && !choice.tried().empty()) print_note(policy::fallback_note(name, choice.tried()));
    else if (!begun && policy::is_worth_another(begun.error())) signals.reset();
    return begun;
  });
}

// `unstopped`: what came of the command is known, but the sandbox could not be ended.
Result<RelayResult> run_it(const RunFlags& flags, const SandboxedBackend& backend, RunRecord& record,
                           std::optional<Error>& unstopped) {
  LoadedPolicy loaded = BELLJAR_TRY(begin_record(flags, load_policy(flags.policy), record));
  policy::Choice choice = BELLJAR_TRY(make_choice(flags.choose, loaded.effective, backend.name));
  BELLJAR_CHECK(open_report(flags, loaded, record));
  std::optional<front::Signals> signals;
  std::optional<int> ended;
  auto begun = begin_first(flags, backend, choice, loaded, record, signals, ended);
  if (!begun && ended) return RelayResult{ended_before(*ended)};
  if (!begun) return begun.error();
  const auto& [command, sandbox] = *begun;
  if (backend.started) backend.started(*sandbox);
  warn_of_accepted(sandbox->enforcement(), loaded.effective.policy);
  if (ended) {
    if (const auto stopped = sandbox->stop(); !stopped) unstopped = stopped.error();
    return RelayResult{ended_before(*ended)};
  }
  const Limits& limits = loaded.effective.policy.limits;
  SpawnOptions options;
  options.timeout = limits.timeout;
  options.output_bytes = limits.output_bytes ? limits.output_bytes->count : flags.json ? kJsonOutputBytes : 0;
  front::StdioOptions streams = streams_of(flags);
  if (limits.output_bytes) streams.cap = limits.output_bytes->count;
  // Shell text at a terminal has one of its own here.
  if (!flags.json && !flags.no_pty && ::isatty(0) == 1 && ::isatty(1) == 1)
    streams.pty = front::Pty::kYes, streams.input = front::Input::kInherit;
  RelayResult ran = BELLJAR_TRY(relay(*sandbox, command, options, streams, limits.kill_grace, *signals));
  ExecResult& result = ran.result;
  // Without a cap nothing was kept and nothing was lost.
  if (!flags.json && !limits.output_bytes) std::erase(result.limits_hit, "output");
  result.enforcement = sandbox->enforcement();
  tell_timeout(limits, result.enforcement);
  if (const auto stopped = sandbox->stop(); !stopped) unstopped = stopped.error();
  while (signals->next()) {  // too late for the command, and its result is to be told
  }
  result.backend = backend.name;
  return ran;
}

void tell(const RelayResult& ran, bool verbose) {
  const ExecResult& result = ran.result;
  if (is_worth_a_note(to_string(result.reason), result.message) || (verbose && result.reason == Reason::kSignalled))
    print_note(result.message);
  if (verbose) tell_enforcement(result.enforcement);
  tell_limits(result, ran.output_dropped);
}

int run_command(const RunFlags& flags, const SandboxedBackend& backend) {
  RunRecord record;
  std::optional<Error> unstopped;
  auto ran = run_it(flags, backend, record, unstopped);
  if (ran) tell(*ran, flags.verbose);
  if (unstopped) print_error(*unstopped);
  return end_record(flags, record, ran ? Result<ExecResult>(std::move(ran->result)) : ran.error(), unstopped.has_value());
}

}  // namespace

int run_sandboxed(int argc, char** argv, const SandboxedBackend& backend) {
  front::reopen_closed_stdio();
  const auto empty = find_empty_option({argv, static_cast<std::size_t>(argc)});
  // `belljar` passes its own words on: argv[0] is `run`. Run directly, `run` is the first argument.
  std::vector<std::string> words = own_words(argc, argv);
  RunFlags flags;
  if (!words.empty() && words[0] == "run") flags.program = split_program(words);
  int exit_code = 0;
  CommandLine app(backend.summary, "belljar");
  app.require_subcommand();
  const OptionParser run = app.add_subcommand("run", backend.summary);
  const std::vector<std::string> kept = words;  // the parser takes its own apart
  std::vector<const char*> known;
  for (const std::string& word : kept) known.push_back(word.c_str());
  flags.words = known;
  add_run_options(run, flags, {}, backend.add_options);
  on_run(run, flags, exit_code, [&] { return run_command(flags, backend); });
  if (empty) return refuse_empty_option(app, std::move(words), *empty);
  return app.parse_and_run(std::move(words), exit_code, [&](const Error& refused) { report_refusal(app, refused); });
}

}  // namespace belljar::cli
