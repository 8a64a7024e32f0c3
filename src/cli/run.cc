// belljar run [options] -- PROGRAM ARG...      belljar run [options] -c 'shell text'
#include "runtime/run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/find.h"
#include "backend/native/host.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "belljar/txn.h"
#include "belljar/violation_text.h"
#include "cli/agent_state.h"
#include "cli/answers.h"
#include "cli/audited.h"
#include "cli/beside.h"
#include "cli/choose.h"
#include "cli/command_line.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/dropped.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/output_file.h"
#include "cli/policy_flags.h"
#include "cli/recognise.h"
#include "cli/run_notes.h"
#include "cli/tls_parts.h"
#include "launch/launcher.h"
#include "policy/backends.h"
#include "policy/look.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/permit.h"
#include "runtime/json.h"
#include "runtime/pump.h"
#include "runtime/signals.h"
#include "runtime/stdio.h"
#include "runtime/violation_store.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kShownViolations = 20;
constexpr std::uint64_t kJsonOutputBytes = 200'000;  // of each stream, unless limits.output_bytes says otherwise

// What was given; lives as long as the callback.
struct GivenRun {
  PolicyFlags flags;
  std::optional<std::string> shell_text;
  bool json = false, verbose = false, txn = false;
  std::optional<std::string> txn_name;
  bool pty = false, no_pty = false;
  std::string report;
  AuditFlags audit;
  ChooseFlags choose;
  std::vector<std::string> program;    // after `--`
  std::span<const char* const> words;  // argv
};

runtime::Session make_session(const GivenRun& given, const policy::Effective& effective, const std::string& workspace) {
  const Policy& policy = effective.policy;
  runtime::Session session;
  session.origins = &effective.origins;
  session.complete = &effective.complete;
  if (given.txn || given.txn_name)
    session.transaction = txn::Place{workspace, default_state_dir(), given.txn_name.value_or("default")};
  session.signals = runtime::Signals::Take::kForwarded;
  session.time_steps = given.verbose;
  session.front_ends = true;
  session.interceptor = interceptor_of_this_program();
  if (given.json) {
    session.stdio.output = runtime::OutputTo::kCapture;
    session.stdio.cap = kJsonOutputBytes;
  }
  if (given.pty) session.stdio.pty = runtime::Pty::kYes;
  if (given.no_pty) session.stdio.pty = runtime::Pty::kNo;
  // Shell text has no input of its own unless somebody gave some: a terminal was not given, it was just there.
  if (given.shell_text && !given.pty && runtime::fd_kind(0) == runtime::FdKind::kTerminal)
    session.stdio.input = runtime::Input::kNull;
  // One after the other may be tried, and each has the same to say.
  session.on_warning = [told = std::set<std::string>()](const std::string& warning) mutable {
    if (told.insert(warning).second) print_note("warning: " + warning);
  };
  session.on_ready = [&policy](const EnforcementReport& report) { warn_of_accepted(report, policy); };
  return session;
}

std::string counted(std::uint64_t acts) { return format("{} {}", acts, acts == 1 ? "act was" : "acts were"); }

// One line each; what the sandbox wrote is escaped.
void tell_people(const runtime::Ran& ran, bool verbose) {
  const ExecResult& result = ran.result;
  for (const std::string& note : ran.notes) print_note(note);
  if (ran.start_failure) print_error(*ran.start_failure);
  else if (result.reason != Reason::kExited && (result.reason != Reason::kSignalled || verbose)) print_note(result.message);
  if (verbose) {
    tell_enforcement(result.enforcement);
    for (const launch::StepTime& step : ran.steps) print_note(format("step {}: {} us", step.name, step.nanoseconds / 1000));
    const auto micro = [](std::chrono::nanoseconds time) { return time.count() / 1000; };
    print_note(format("front: {} us before clone, {} us to exec, {} us after exit", micro(ran.times.prepare),
                      micro(ran.times.start), micro(ran.times.end)));
  }
  tell_limits(result, ran.output_dropped);
}

// What a command wrote and then closed was refused without a word to it: it may well end as if all were done.
void tell_dropped(const ExecResult& result, const std::string& hint) {
  std::set<std::string> told;
  for (const Violation& violation : result.violations) {
    if (violation.operation != "write" || violation.errnum != 0 || told.size() == kShownViolations) continue;
    if (!told.insert(violation.target).second) continue;
    print_note(format("{} is as it was: what was written there was refused when it was closed; {}", quoted(violation.target),
                      hint.empty() ? "--verbose tells why" : hint));
  }
}

// `hint`: how to ask for more; empty when nothing was kept.
void tell_refusals(const ExecResult& result, bool verbose, const std::string& hint) {
  std::uint64_t acts = result.violations_dropped, limits = 0;
  for (const Violation& violation : result.violations) {
    if (!policy::is_intended(violation)) (violation.operation == "limit" ? limits : acts) += violation.count;
  }
  if (verbose) {
    const std::vector<Violation> kinds = merge_alike(result.violations);
    const std::size_t shown = std::min(kinds.size(), kShownViolations);
    std::uint64_t rest = result.violations_dropped;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (i < shown) print_note("refused: " + to_line(kinds[i]));
      else rest += kinds[i].count;
    }
    if (rest > 0) print_note(format("{} refused as well; --report FILE lists up to 1000", counted(rest)));
    if (result.violations_hidden > 0)
      print_note(format("{} refused and hidden by ignore_violations", counted(result.violations_hidden)));
  }
  tell_dropped(result, hint);
  // A limit is the result's reason, and was told above.
  if (acts == 0 || result.exit_code == 0) return;
  print_note(format("{} refused{}; {}", counted(acts), name_refused(result), hint.empty() ? "--verbose tells which" : hint));
}

// What was refused is kept for `belljar explain`; returns how to ask for it. That it could not be kept is no fault of the run.
std::string keep_refusals(ExecResult& result, bool verbose, const std::string& program, const policy::MergeContext& context) {
  const runtime::ViolationStore store(default_state_dir());
  if (result.violations.empty()) return store.note_last({program, context.workspace, result}), "";
  auto id = store.keep({program, context.workspace, result});
  if (!id) {
    if (verbose) print_note(id.error().line());
    return "";
  }
  result.id = *std::move(id);
  return "belljar explain " + (policy::is_within(context.cwd, context.workspace) ? "last" : result.id);
}

std::vector<std::string> words_of(const GivenRun& given) {
  std::vector<std::string> words = given.program;
  if (given.shell_text) words.insert(words.begin(), {"-c", *given.shell_text});
  return words;
}

// The policy, and the trail that also tells of a policy that was refused.
Result<LoadedPolicy> load_audited(const GivenRun& given, Command& command, RunAudit& audit) {
  auto loaded = load_policy_for(command, given.flags);
  // Asked here as well, so that a plain run touches no page of what looks into TLS.
  if (loaded && loaded->effective.policy.network.mode == NetMode::kProxy)
    BELLJAR_CHECK(become_tls_program(loaded->effective.policy));
  audit = BELLJAR_TRY(RunAudit::open(given.audit, given.flags, loaded ? &*loaded : nullptr));
  return loaded;
}

// Tries one backend after the other; nothing runs before one has said that it holds what the policy requires.
Result<runtime::Ran> run_first(const GivenRun& given, Choice& choice, LoadedPolicy& loaded, Command& command,
                               const backend::Workplace& place, const std::vector<std::string>& caller_env, RunAudit& audit) {
  const backend::RealHost host;
  runtime::Session session = make_session(given, loaded.effective, place.workspace);
  session.on_ready = [&, told = session.on_ready](const EnforcementReport& report) {
    if (!choice.tried().empty()) print_note(policy::fallback_note(loaded.effective.policy.backend, choice.tried()));
    told(report);
  };
  bool launched = false;
  session.launched = &launched;
  for (std::string name = choice.next(); !name.empty(); name = choice.next()) {
    if (part_of_backend(name) != nullptr && given.words.size() > 1) {
      choice.failed(choice.hand_on(name, given.words.subspan(1), given.program));
      continue;
    }
    loaded.effective.policy.backend = name;
    const auto backend = BELLJAR_TRY(backend::find_backend(name, host));
    BELLJAR_CHECK(audit.start(command, loaded));
    auto ran = runtime::run(*backend, loaded.effective.policy, command, place, caller_env, session);
    if (ran) ran->result.backend = name;
    if (ran || launched || !policy::is_worth_another(ran.error())) return ran;
    choice.failed(ran.error());
    if (!choice.next().empty()) BELLJAR_CHECK(audit.refused(words_of(given), ran.error()));
  }
  return choice.refusal();
}

// The command has ended: a ^C that was meant for it must not cut short what is kept of its run.
class IgnoredInterrupt {
 public:
  IgnoredInterrupt() noexcept : before_(std::signal(SIGINT, SIG_IGN)) {}
  IgnoredInterrupt(const IgnoredInterrupt&) = delete;
  IgnoredInterrupt& operator=(const IgnoredInterrupt&) = delete;
  ~IgnoredInterrupt() {
    if (before_ != SIG_ERR) std::signal(SIGINT, before_);
  }

 private:
  void (*before_)(int);
};

Result<runtime::Ran> run_it(const GivenRun& given, UniqueFd& report, RunAudit& audit, std::vector<TriedBackend>& tried,
                            std::string& hint) {
  Command command = BELLJAR_TRY(command_from(given.shell_text, given.program, given.flags.login,
                                             "belljar run -- PROGRAM ARGUMENTS, or belljar run -c 'shell text'"));
  LoadedPolicy loaded = BELLJAR_TRY(load_audited(given, command, audit));
  for (const std::string& warning : loaded.effective.warnings) print_note("warning: " + warning);
  const Policy& policy = loaded.effective.policy;
  Choice choice = BELLJAR_TRY(Choice::make(given.choose, loaded.effective, ""));
  make_agent_state(loaded);
  // Made before the start, so that a wrong place is an error before anything ran.
  if (!given.report.empty()) report = BELLJAR_TRY(create_output(given.report, "the report", "--report", loaded));
  std::vector<std::string> caller_env = caller_environment(policy.network);
  const policy::MergeContext& context = loaded.context;
  // Without one the command starts where the caller is, if that is inside the workspace.
  std::string cwd = BELLJAR_TRY(absolute_cwd(given.flags.cwd, context));
  if (cwd.empty() && runtime::find_cwd(context.workspace, context.cwd)) cwd = context.cwd;
  command.cwd = cwd;
  backend::Workplace place{.workspace = context.workspace,
                           .cwd = cwd,
                           .home = context.home,
                           .tmpdir = context.tmpdir,
                           .runtime_dir = context.runtime_dir};
  lay_answers(loaded, place);
  auto ran = run_first(given, choice, loaded, command, place, caller_env, audit);
  const IgnoredInterrupt ended;
  tried = choice.tried();
  if (ran && ran->result.exit_code != 0) tell_why(ran->result, words_of(given), loaded, cwd, given.verbose);
  if (ran) hint = keep_refusals(ran->result, given.verbose, command.argv[0], context);
  if (ran) keep_answers(*ran, loaded);
  if (ran) keep_dropped(*ran, loaded);
  return ran;
}

int run_command(const GivenRun& given) {
  UniqueFd report;
  RunAudit audit;
  std::vector<TriedBackend> tried;
  std::string hint;
  auto ran = run_it(given, report, audit, tried, hint);
  ExecResult failed;
  if (!ran) {
    print_error(ran.error());
    failed = runtime::failed_start(ran.error());
    failed.tried = std::move(tried);
    if (!report.valid()) report = create_report_of_refusal(given.report, ran.error());
  } else {
    ran->result.tried = std::move(tried);
    tell_people(*ran, given.verbose);
    tell_refusals(ran->result, given.verbose, hint);
  }
  const ExecResult& result = ran ? ran->result : failed;
  // Lost output or an unwritten report is no success, whatever the program said.
  int exit_code = result.exit_code == 0 && ran && !ran->notes.empty() ? 125 : result.exit_code;
  const auto deliver = [&](int fd, runtime::JsonStreams streams, std::string_view what) {
    if (const auto wrote = write_line(fd, runtime::to_json(result, streams), what); !wrote) {
      print_error(wrote.error());
      if (exit_code == 0) exit_code = 125;
    }
  };
  if (const auto recorded = ran ? audit.end(result) : audit.refused(words_of(given), ran.error()); !recorded) {
    print_error(recorded.error());
    if (exit_code == 0) exit_code = 125;
  }
  if (const auto whole = report.valid() ? check_report(report.get(), given.report) : Result<void>(); !whole) {
    print_error(whole.error());
    exit_code = 125;
  } else if (report.valid()) {
    deliver(report.get(), given.json ? runtime::JsonStreams::kInclude : runtime::JsonStreams::kOmit, "the report");
  }
  if (given.json) deliver(STDOUT_FILENO, runtime::JsonStreams::kInclude, "the result to stdout");
  if (ran) launch::await_end(ran->leaving);
  return exit_code;
}

}  // namespace

void add_run(const OptionParser& app, std::span<const char* const> words, std::vector<std::string> program, int& exit_code) {
  const OptionParser run = app.add_subcommand("run", "Run a program in a sandbox");
  auto given = std::make_shared<GivenRun>();
  given->program = std::move(program);
  given->words = words;
  add_policy_options(run, given->flags, words);
  add_cwd_option(run, given->flags, words);
  add_login_flag(run, given->flags, words);
  run.add_option("-c", given->shell_text, "Run this shell text with /bin/sh (with --login: in your shell)").type_name("TEXT");
  run.add_flag("--json", given->json, "Capture both streams and print one JSON object at the end");
  run.add_option("--report", given->report, "Write what came of it and what was enforced to FILE, as JSON")
      .not_empty()
      .type_name("FILE");
  add_audit_options(run, given->audit);
  run.add_flag("--txn", given->txn, "Keep what the command writes to the workspace until `belljar commit` or `rollback`");
  run.add_option("--txn-name", given->txn_name, "The transaction's name (default: `default`); implies --txn")
      .not_empty()
      .type_name("NAME");
  run.add_flag("--verbose", given->verbose, "Say on stderr what is enforced by what, and where the time went");
  const Option pty =
      run.add_flag("--pty", given->pty, "Give the command a terminal of its own (default: when stdin and stdout are terminals)");
  run.add_flag("--no-pty", given->no_pty, "Give it pipes, whatever stdin and stdout are").excludes(pty);
  add_choose_options(run, given->choose, words);
  run.callback([given, run, &exit_code] {
    note_given(run, given->choose);
    exit_code = run_command(*given);
  });
}

}  // namespace belljar::cli
