// belljar-container: `belljar run --backend container`, handed over by `belljar` (cli/hand_over.cc), so that a plain run links no
// HTTP.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "belljar/sandbox.h"
#include "cli/audited.h"
#include "cli/container/flags.h"
#include "cli/container/relay.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/output_file.h"
#include "cli/policy_flags.h"
#include "runtime/json.h"
#include "runtime/pump.h"
#include "runtime/run.h"
#include "runtime/stdio.h"

namespace belljar::cli {
namespace {

constexpr std::uint64_t kJsonOutputBytes = 200'000;

struct Given {
  PolicyFlags flags;
  ContainerFlags container;
  AuditFlags audit;
  std::optional<std::string> shell_text;
  bool json = false, verbose = false, txn = false, pty = false, no_pty = false;
  std::string txn_name, report;
  std::vector<std::string> program;
};

Result<Command> find_command(const Given& given) {
  if (given.txn || !given.txn_name.empty())
    return Error(Code::kUnimplemented, "the container backend does not serve --txn")
        .reason("transactions are overlays of our own mount namespaces")
        .next("use the native backend, or drop --txn");
  if (given.flags.login && !given.shell_text)
    return Error(Code::kInvalidArgument, "--login is for shell text here").next("use it with -c 'shell text'");
  Command command;
  if (given.shell_text) {
    // The caller's $SHELL need not be in the image.
    command = given.flags.login ? login_shell_command(*given.shell_text, "/bin/sh") : shell_command(*given.shell_text);
    command.argv.insert(command.argv.end(), given.program.begin(), given.program.end());
  } else {
    command.argv = given.program;
  }
  if (command.argv.empty() || command.argv[0].empty())
    return Error(Code::kInvalidArgument, "there is no command to run")
        .next("belljar run --backend container --image NAME -- PROGRAM ARGUMENTS");
  return command;
}

std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// As `run` everywhere: where the caller is, if that is inside the workspace.
std::string cwd_of(const Given& given, const policy::MergeContext& context) {
  std::string cwd = given.flags.cwd;
  if (!cwd.empty()) return cwd.starts_with('/') ? cwd : context.cwd + "/" + cwd;
  return runtime::find_cwd(context.workspace, context.cwd) ? context.cwd : std::string();
}

// A path of the host as the sandbox calls it.
std::string inside(std::string cwd, const policy::MergeContext& context, const std::string& shown_at) {
  if (cwd.starts_with(context.workspace)) return shown_at + cwd.substr(context.workspace.size());
  return cwd;
}

// --image with the backend of another name would be two wishes.
Result<void> check_backend(const policy::Effective& effective) {
  constexpr std::string_view kOurs = "container";
  const auto said = effective.origins.find("backend");
  if (said == effective.origins.end() || kOurs == effective.policy.backend) return {};
  return Error(Code::kInvalidArgument, format("cannot use an image with the backend {}", belljar::quoted(effective.policy.backend)))
      .reason(format("backend comes from {}", to_string(said->second)))
      .next("say --backend container, or drop --image and --engine");
}

// `run` has no timeout unless one is given, whatever exec() of the library has.
void tell_timeout(const Limits& limits, EnforcementReport& report) {
  const auto clause = std::ranges::find(report, "limits.timeout", &EnforcementClause::clause);
  if (clause == report.end()) return;
  if (limits.timeout) clause->asked = to_string(*limits.timeout);
  else report.erase(clause);
}

Result<ExecResult> run_it(const Given& given, RunAudit& audit, UniqueFd& report) {
  Command command = BELLJAR_TRY(find_command(given));
  auto loaded = load_policy(given.flags);
  audit = BELLJAR_TRY(RunAudit::open(given.audit, loaded ? &*loaded : nullptr));
  if (!loaded) return loaded.error();
  for (const std::string& warning : loaded->effective.warnings) print_note("warning: " + warning);
  BELLJAR_CHECK(check_backend(loaded->effective));
  if (!given.report.empty()) report = BELLJAR_TRY(create_output(given.report, "the report", "--report", *loaded));
  SandboxConfig config;
  config.backend = "container";
  config.policy = loaded->effective.policy;
  config.workspace = loaded->context.workspace;
  config.caller_env = environment();
  config.container = BELLJAR_TRY(container_options(given.container));
  const auto sandbox = BELLJAR_TRY(make_sandbox(config));
  command.cwd = inside(cwd_of(given, loaded->context), loaded->context, sandbox->workspace());
  BELLJAR_CHECK(audit.start(command, *loaded));
  BELLJAR_CHECK(sandbox->start());
  const Limits& limits = config.policy.limits;
  SpawnOptions options;
  options.timeout = limits.timeout;
  options.output_bytes = limits.output_bytes ? limits.output_bytes->count : given.json ? kJsonOutputBytes : 0;
  const bool at_terminal = ::isatty(0) == 1 && ::isatty(1) == 1;
  RelayOptions how{.terminal = given.pty || (at_terminal && !given.no_pty && !given.json), .capture = given.json};
  // Shell text has no input of its own unless somebody gave some: a terminal was not given, it was just there.
  how.input = !(given.shell_text && !given.pty && runtime::fd_kind(0) == runtime::FdKind::kTerminal);
  ExecResult result = BELLJAR_TRY(relay(*sandbox, command, options, how));
  // Without a cap nothing was kept and nothing was lost.
  if (!given.json && !limits.output_bytes) std::erase(result.limits_hit, "output");
  result.enforcement = sandbox->enforcement();
  tell_timeout(limits, result.enforcement);
  BELLJAR_CHECK(sandbox->stop());
  return result;
}

void tell(const ExecResult& result, bool verbose) {
  if (result.reason != Reason::kExited && (result.reason != Reason::kSignalled || verbose)) print_note(result.message);
  if (!verbose) return;
  for (const EnforcementClause& clause : result.enforcement)
    print_note(format("{}: {} ({}{}{}){}{}", clause.clause, to_string(clause.enforced), clause.asked,
                      clause.mechanism.empty() ? "" : "; ", clause.mechanism, clause.detail.empty() ? "" : ": ",
                      escaped(clause.detail)));
}

int run_command(const Given& given) {
  RunAudit audit;
  UniqueFd report;
  const auto ran = run_it(given, audit, report);
  if (ran) tell(*ran, given.verbose);
  else print_error(ran.error());
  const ExecResult result = ran ? *ran : runtime::failed_start(ran.error());
  int exit_code = result.exit_code;
  std::vector<std::string> words = given.program;
  if (given.shell_text) words.insert(words.begin(), {"-c", *given.shell_text});
  if (const auto recorded = ran ? audit.end(result) : audit.refused(words, ran.error()); !recorded) {
    print_error(recorded.error());
    if (exit_code == 0) exit_code = 125;
  }
  const auto deliver = [&](int fd, runtime::JsonStreams streams, std::string_view what) {
    if (const auto wrote = write_line(fd, runtime::to_json(result, streams), what); !wrote) {
      print_error(wrote.error());
      if (exit_code == 0) exit_code = 125;
    }
  };
  if (const auto whole = report.valid() ? check_report(report.get(), given.report) : Result<void>(); !whole) {
    print_error(whole.error());
    exit_code = 125;
  } else if (report.valid()) {
    deliver(report.get(), given.json ? runtime::JsonStreams::kInclude : runtime::JsonStreams::kOmit, "the report");
  }
  if (given.json) deliver(STDOUT_FILENO, runtime::JsonStreams::kInclude, "the result to stdout");
  return exit_code;
}

void add_options(CLI::App& run, Given& given) {
  add_policy_options(run, given.flags);
  add_container_options(run, given.container);
  run.add_option("-c", given.shell_text, "Run this shell text with /bin/sh")->type_name("TEXT");
  run.add_flag("--json", given.json, "Capture both streams and print one JSON object at the end");
  run.add_option("--report", given.report, "Write what came of it and what was enforced to FILE, as JSON")->type_name("FILE");
  run.add_option("--audit", given.audit.file, "Append what is run, refused and what came of it to the audit trail FILE")
      ->type_name("FILE");
  run.add_option("--audit-rotate", given.audit.rotate, "Begin a new file of the trail when it has reached this size")
      ->type_name("SIZE");
  run.add_flag("--txn", given.txn, "Refused here: transactions are the native backend's");
  run.add_option("--txn-name", given.txn_name, "Refused here")->type_name("NAME");
  run.add_flag("--verbose", given.verbose, "Say on stderr what is enforced by what");
  CLI::Option* const pty = run.add_flag("--pty", given.pty, "Give the command a terminal of its own (default: at a terminal)");
  run.add_flag("--no-pty", given.no_pty, "Give it pipes, whatever stdin and stdout are")->excludes(pty);
}

}  // namespace
}  // namespace belljar::cli

int main(int argc, char** argv) {
  using namespace belljar::cli;
  belljar::runtime::reopen_closed_stdio();
  // `belljar` passes its own words on: argv[0] is `run`. Run directly, `run` is the first argument.
  std::vector<std::string> words(argv, argv + argc);
  if (words.size() > 1 && words[0] != "run") words.erase(words.begin());
  Given given;
  if (const auto end = std::ranges::find(words, "--"); end != words.end()) {
    given.program.assign(end + 1, words.end());
    words.erase(end, words.end());
  }
  int exit_code = 0;
  CLI::App app("belljar run --backend container: run a program in a container of an engine", "belljar");
  app.require_subcommand(1);
  CLI::App* run =
      app.add_subcommand("run", "Run a program in a container: belljar run --backend container --image NAME -- PROGRAM ARG...");
  add_options(*run, given);
  run->callback([&] { exit_code = run_command(given); });
  std::ranges::reverse(words);  // CLI11 takes them from the back
  return parse_and_run(app, [&] { app.parse(words); }, exit_code);
}
