// belljar run [options] -- PROGRAM ARG...      belljar run [options] -c 'shell text'
#include "runtime/run.h"

#include <sys/stat.h>

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

#include "backend/backend.h"
#include "backend/find.h"
#include "backend/paths/host.h"
#include "base/format.h"
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
#include "cli/choose.h"
#include "cli/command_line.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/dropped.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/policy_flags.h"
#include "cli/recognise.h"
#include "cli/run_flags.h"
#include "cli/run_notes.h"
#include "cli/tls_parts.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "launch/launcher.h"
#include "policy/backends.h"
#include "policy/choice.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/permit.h"
#include "runtime/violation_store.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kShownViolations = 20;

runtime::RunSettings make_session(const RunFlags& given, const policy::Effective& effective, const std::string& workspace) {
  const Policy& policy = effective.policy;
  runtime::RunSettings session;
  session.origins = &effective.origins;
  session.complete = &effective.complete;
  if (given.txn || given.txn_name)
    session.transaction = txn::Place{workspace, default_state_dir(), given.txn_name.value_or("default")};
  session.signals = front::Signals::Mode::kForwarded;
  session.time_steps = given.verbose;
  session.front_ends = true;
  session.interceptor = interceptor_of_this_program();
  session.stdio = streams_of(given);
  // One after the other may be tried, and each has the same to say.
  session.on_warning = [told = std::set<std::string>()](const std::string& warning) mutable {
    if (told.insert(warning).second) print_note("warning: " + warning);
  };
  session.on_ready = [&policy](const EnforcementReport& report) { warn_of_accepted(report, policy); };
  return session;
}

std::string counted(std::uint64_t acts) { return format("{} {}", acts, acts == 1 ? "act was" : "acts were"); }

// One line each; what the sandbox wrote is escaped.
void tell_people(const runtime::RunOutcome& ran, bool verbose) {
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

Result<LoadedPolicy> load(const RunFlags& given, Command& command) {
  auto loaded = load_policy_for(command, given.flags);
  // Asked here as well, so that a plain run touches no page of what looks into TLS.
  if (loaded && loaded->effective.policy.network.mode == NetMode::kProxy)
    BELLJAR_CHECK(become_tls_program(loaded->effective.policy));
  return loaded;
}

// Nothing runs before a backend has said that it holds what the policy requires.
Result<runtime::RunOutcome> run_first(const RunFlags& given, policy::Choice& choice, LoadedPolicy& loaded, Command& command,
                                      const backend::Workplace& place, const std::vector<std::string>& caller_env,
                                      RunRecord& record) {
  const backend::RealHost host;
  runtime::RunSettings session = make_session(given, loaded.effective, place.workspace);
  session.on_ready = [&, told = session.on_ready](const EnforcementReport& report) {
    if (!choice.tried().empty()) print_note(policy::fallback_note(loaded.effective.policy.backend, choice.tried()));
    told(report);
  };
  session.launched = choice.settled();
  return start_first(given, choice, "", record, [&](const std::string& name) -> Result<runtime::RunOutcome> {
    loaded.effective.policy.backend = name;
    const auto backend = backend::find_backend(name, host);
    if (!backend) return choice.settle(), backend.error();
    if (const auto told = record.audit.start(command, loaded); !told) return choice.settle(), told.error();
    auto ran = runtime::run(**backend, loaded.effective.policy, command, place, caller_env, session);
    if (ran) ran->result.backend = name;
    return ran;
  });
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

Result<runtime::RunOutcome> run_it(const RunFlags& given, RunRecord& record, std::string& hint) {
  Command command =
      BELLJAR_TRY(command_from(given, given.flags.login, "belljar run -- PROGRAM ARGUMENTS, or belljar run -c 'shell text'"));
  LoadedPolicy loaded = BELLJAR_TRY(begin_record(given, load(given, command), record));
  const Policy& policy = loaded.effective.policy;
  policy::Choice choice = BELLJAR_TRY(make_choice(given.choose, loaded.effective, ""));
  make_agent_state(loaded);
  BELLJAR_CHECK(open_report(given, loaded, record));
  std::vector<std::string> caller_env = caller_environment(policy.network);
  const policy::MergeContext& context = loaded.context;
  const std::string cwd = BELLJAR_TRY(find_start(given.flags.cwd, context));
  command.cwd = cwd;
  backend::Workplace place = workplace_of(context, cwd);
  lay_answers(loaded, place);
  auto ran = run_first(given, choice, loaded, command, place, caller_env, record);
  const IgnoredInterrupt ended;
  if (ran && ran->result.exit_code != 0) tell_why(ran->result, given.all(), loaded, cwd, given.verbose);
  if (ran) hint = keep_refusals(ran->result, given.verbose, command.argv[0], context);
  if (ran) keep_answers(*ran, loaded);
  if (ran) keep_dropped(*ran, loaded);
  return ran;
}

int run_command(const RunFlags& given) {
  RunRecord record;
  std::string hint;
  auto ran = run_it(given, record, hint);
  if (!ran) return end_record(given, record, ran.error(), false);
  tell_people(*ran, given.verbose);
  tell_refusals(ran->result, given.verbose, hint);
  const int exit_code = end_record(given, record, std::move(ran->result), !ran->notes.empty());
  launch::await_end(ran->leaving);
  return exit_code;
}

}  // namespace

void add_run(const OptionParser& app, std::span<const char* const> words, std::vector<std::string> program, int& exit_code) {
  const OptionParser run = app.add_subcommand("run", "Run a program in a sandbox");
  auto given = std::make_shared<RunFlags>();
  given->program = std::move(program);
  given->words = words.empty() ? words : words.subspan(1);
  add_run_options(run, *given, words, {});
  on_run(run, *given, exit_code, [given] { return run_command(*given); });
}

}  // namespace belljar::cli
