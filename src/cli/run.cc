// belljar run: from words to a run on one of our own backends, and what is said and kept of it.
//
// The order in run_it() follows from who must not be surprised by whom. The trail is opened first, so that
// even a policy that is refused leaves a record. The report is made before the start: a wrong place is an
// error before anything ran. The backend is chosen before anything of the agent's state is laid out, and
// nothing runs before that backend has said that it holds what the policy requires.
//
// After the end an interrupt is ignored until everything is written: the ^C that ended the command is
// delivered to us as well, and it must not cut off what is kept of the run. Refusals are kept for `belljar
// explain`, then what the user answered to an agent inside, then what the agent changed in layers that are
// dropped.
//
// Backends that are a Sandbox and not a plan of ours (containers, clouds) have the same options and the same
// end, and another middle: container/sandboxed.cc.
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
#include "cli/spare.h"
#include "cli/tls_program.h"
#include "cli/txn_flags.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "launch/launcher.h"
#include "policy/backends.h"
#include "policy/choice.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/permit.h"
#include "runtime/violation_store.h"
#include "warm/door.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kShownViolations = 20;

bool has_transaction(const RunFlags& flags) { return flags.txn || flags.txn_name; }

txn::Place transaction_of(const RunFlags& flags, const std::string& workspace) {
  return {workspace, default_state_dir(), flags.txn_name.value_or("default")};
}

runtime::RunSettings make_settings(const RunFlags& flags, const policy::Effective& effective, const std::string& workspace) {
  const Policy& policy = effective.policy;
  runtime::RunSettings settings;
  settings.origins = &effective.origins;
  settings.complete = &effective.complete;
  if (has_transaction(flags)) settings.transaction = transaction_of(flags, workspace);
  settings.signals = front::Signals::Mode::kForwarded;
  settings.time_steps = flags.verbose;
  settings.front_ends = true;
  settings.interceptor = interceptor_of_this_program();
  settings.stdio = streams_of(flags);
  // One after the other may be tried, and each has the same to say.
  settings.on_warning = [told = std::set<std::string>()](const std::string& warning) mutable {
    if (told.insert(warning).second) print_note("warning: " + warning);
  };
  settings.on_ready = [&policy](const EnforcementReport& report) { warn_of_accepted(report, policy); };
  return settings;
}

std::string counted(std::uint64_t acts) { return format("{} {}", acts, acts == 1 ? "act was" : "acts were"); }

// One line each; what the sandbox wrote is escaped.
void tell_people(const runtime::RunOutcome& ran, bool verbose) {
  const ExecResult& result = ran.result;
  for (const std::string& note : ran.notes) print_note(note);
  if (ran.start_failure) print_error(*ran.start_failure);
  else if (is_worth_a_note(to_string(result.reason), result.message) || (verbose && result.reason == Reason::kSignalled))
    print_note(result.message);
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

Result<LoadedPolicy> load(const RunFlags& flags, Command& command, const RunSpare* spare) {
  auto loaded = load_policy_for(command, flags.policy);
  if (loaded && spare != nullptr) {
    spare->note_files(*loaded);
    loaded = load_policy_for(command, flags.policy);
  }
  // Asked here as well, so that a plain run touches no page of what looks into TLS.
  if (loaded && loaded->effective.policy.network.mode == NetMode::kProxy) BELLJAR_CHECK(exec_tls_program(loaded->effective.policy));
  return loaded;
}

// Nothing runs before a backend has said that it holds what the policy requires.
Result<runtime::RunOutcome> run_first(const RunFlags& flags, policy::Choice& choice, LoadedPolicy& loaded, Command& command,
                                      const backend::Workplace& place, const std::vector<std::string>& caller_env,
                                      RunRecord& record, RunSpare* spare) {
  const backend::RealHost plain;
  const backend::Host& host = spare != nullptr ? spare->host() : plain;
  runtime::RunSettings settings = make_settings(flags, loaded.effective, place.workspace);
  settings.spare = spare;
  const bool leaves_spare = spare == nullptr && loaded.effective.policy.warm && can_be_warm(flags, loaded);
  const warm::wire::Inherited begun = leaves_spare ? warm::own_inherited() : warm::wire::Inherited();
  if (spare == nullptr) {
    settings.on_started = [&](int) {
      plain.forget();  // while the command runs, and not when somebody waits for its end
      if (leaves_spare) start_spare(words_of_run(flags), begun);
    };
  }
  settings.on_ready = [&, told = settings.on_ready](const EnforcementReport& report) {
    if (!choice.tried().empty()) print_note(policy::fallback_note(loaded.effective.policy.backend, choice.tried()));
    told(report);
  };
  settings.launched = choice.settled();
  return start_first(flags, choice, "", record, [&](const std::string& name) -> Result<runtime::RunOutcome> {
    loaded.effective.policy.backend = name;
    const auto backend = backend::find_backend(name, host);
    if (!backend) return choice.settle(), backend.error();
    if (const auto told = record.audit.start(command, loaded); !told) return choice.settle(), told.error();
    auto ran = runtime::run(**backend, loaded.effective.policy, command, place, caller_env, settings);
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

// --commit: what the transaction held before the run, too, goes with it.
class CommitAtEnd {
 public:
  CommitAtEnd(const RunFlags& flags, const std::string& workspace)
      : asked_(flags.commit), place_(transaction_of(flags, workspace)) {
    if (!asked_) return;
    const auto changes = txn::diff(place_);
    held_before_ = changes && !changes->empty();
  }

  // By the rules of this run's policy.
  void carry_out(runtime::RunOutcome& ran, const Policy& policy, RunRecord& record) const {
    if (!asked_ || ran.start_failure) return;
    const std::string name = place_.name == txn::Place().name ? "" : " --txn-name " + place_.name;
    const std::string kept = format(
        "the changes are kept: `belljar diff{0}` shows them, `belljar commit{0}` applies them, `belljar rollback{0}` drops them",
        name);
    if (ran.result.reason != Reason::kExited || ran.result.exit_code != 0 || !ran.notes.empty()) {
      record.commit = commit_json({});
      return print_note(
          format("not committed, since {}; {}", ran.notes.empty() ? "the command failed" : "not all of its output is there", kept));
    }
    txn::CommitOptions options;
    options.filesystem = policy.filesystem;
    options.keep_git = true;  // `belljar commit` takes its removal: who gives it could see it in the diff
    const auto committed = txn::commit(place_, options);
    record.uncommitted = !committed || !committed->applied;
    record.commit = commit_json(committed ? *committed : txn::CommitResult());
    if (!committed) print_error(committed.error());
    else tell_commit(*committed);
    if (record.uncommitted) print_note(kept);
    else if (held_before_) print_note("what the transaction held before this run was committed with it");
    if (const auto swept = txn::sweep(place_); !swept) print_error(swept.error());
  }

 private:
  bool asked_, held_before_ = false;
  txn::Place place_;
};

Result<runtime::RunOutcome> run_it(const RunFlags& flags, RunRecord& record, std::string& hint, RunSpare* spare) {
  if (flags.commit && !has_transaction(flags))
    return Error(Code::kInvalidArgument, "cannot use --commit without --txn")
        .reason("only a transaction is committed; without one the host has each change at once")
        .next("belljar run --txn --commit -- PROGRAM ARGUMENTS");
  Command command =
      BELLJAR_TRY(command_from(flags, flags.policy.login, "belljar run -- PROGRAM ARGUMENTS, or belljar run -c 'shell text'"));
  auto read = load(flags, command, spare);
  LoadedPolicy loaded = BELLJAR_TRY(spare != nullptr ? std::move(read) : begin_record(flags, std::move(read), record));
  const Policy& policy = loaded.effective.policy;
  policy::Choice choice = BELLJAR_TRY(make_choice(flags.choose, loaded.effective, ""));
  // Before the plan, which hides the state directory where it is there: who makes it later could be a command.
  if (policy.warm) warm::make_directory();
  if (spare != nullptr) {
    if (!can_be_warm(flags, loaded)) return Error(Code::kFailedPrecondition, "no spare can stand for this run");
    spare->attend(command, loaded, record);
  } else {
    make_agent_state(loaded);
    BELLJAR_CHECK(open_report(flags, loaded, record));
  }
  std::vector<std::string> caller_env = caller_environment(policy.network);
  const policy::MergeContext& context = loaded.context;
  const std::string cwd = BELLJAR_TRY(find_start(flags.policy.cwd, context));
  command.cwd = cwd;
  backend::Workplace place = workplace_of(context, cwd);
  lay_answers(loaded, place);
  const CommitAtEnd commit(flags, place.workspace);
  auto ran = run_first(flags, choice, loaded, command, place, caller_env, record, spare);
  if (spare != nullptr && !spare->is_used()) return ran;
  const IgnoredInterrupt ended;
  if (spare != nullptr) spare->watch_client();
  if (ran && ran->result.exit_code != 0) tell_why(ran->result, flags.all(), loaded, cwd, flags.verbose);
  if (ran) hint = keep_refusals(ran->result, flags.verbose, command.argv[0], context);
  if (ran) keep_answers(*ran, loaded);
  if (ran) keep_dropped(*ran, loaded);
  if (ran) commit.carry_out(*ran, loaded.effective.policy, record);
  return ran;
}

int run_and_tell(const RunFlags& flags, RunSpare* spare) {
  RunRecord record;
  std::string hint;
  auto ran = run_it(flags, record, hint, spare);
  if (spare != nullptr && !spare->is_used()) return 0;
  int exit_code = 0;
  if (!ran) {
    exit_code = end_record(flags, record, ran.error(), false);
  } else {
    tell_people(*ran, flags.verbose);
    tell_refusals(ran->result, flags.verbose, hint);
    exit_code = end_record(flags, record, std::move(ran->result), !ran->notes.empty());
  }
  if (spare != nullptr) spare->finish(exit_code);
  if (ran) {
    ran->rest.clear();
    launch::await_end(ran->leaving);
  }
  return exit_code;
}

int run_command(RunFlags& flags) {
  if (!flags.spare) return run_and_tell(flags, nullptr);
  const auto spare = RunSpare::create(flags);
  return spare ? run_and_tell(flags, spare->get()) : 0;
}

}  // namespace

void add_run(const OptionParser& app, std::span<const char* const> words, std::vector<std::string> program, const SpareWord* spare,
             int& exit_code) {
  const OptionParser run = app.add_subcommand("run", "Run a program in a sandbox");
  auto flags = std::make_shared<RunFlags>();
  flags->program = std::move(program);
  flags->words = words.empty() ? words : words.subspan(1);
  if (spare != nullptr) flags->spare = *spare;
  add_run_options(run, *flags, words, {});
  on_run(run, *flags, exit_code, [flags] { return run_command(*flags); });
}

}  // namespace belljar::cli
