// What every `run` has in common at its beginning and its end, whatever the backend.
//
// The end is one function (end_record), because three readers wait for the same result: the trail, the file
// of --report, and stdout with --json. Each is told even if another fails, and a failure of any of them turns
// success into 125: whoever reads the exit code must not believe that a record exists which does not.
//
// Before the report is written it is checked that the file behind the descriptor is still the one at the path
// (check_report). A command that could write there may have put another file in its place. That check comes
// last, when nothing of the command runs any more.
#include "cli/run_flags.h"

#include <unistd.h>

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "cli/audited.h"
#include "cli/choose.h"
#include "cli/command_line.h"
#include "cli/command_words.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/output_file.h"
#include "cli/policy_flags.h"
#include "runtime/json.h"
#include "runtime/run.h"

namespace belljar::cli {

void add_run_options(const OptionParser& run, RunFlags& flags, std::span<const char* const> words,
                     const std::function<void(const OptionParser&)>& own) {
  add_policy_options(run, flags.policy, words);
  add_cwd_option(run, flags.policy, words);
  add_login_flag(run, flags.policy, words);
  if (own) own(run);
  run.add_option("-c", flags.shell_text,
                 own ? "Run this shell text with /bin/sh" : "Run this shell text with /bin/sh (with --login: in your shell)")
      .type_name("TEXT");
  run.add_flag("--json", flags.json, "Capture both streams and print one JSON object at the end");
  run.add_option("--report", flags.report, "Write what came of it and what was enforced to FILE, as JSON")
      .not_empty()
      .type_name("FILE");
  add_audit_options(run, flags.audit);
  const Option txn =
      run.add_flag("--txn", flags.txn, "Keep what the command writes to the workspace until `belljar commit` or `rollback`");
  const Option txn_name = run.add_option("--txn-name", flags.txn_name, "The transaction's name (default: `default`); implies --txn")
                              .not_empty()
                              .type_name("NAME");
  const Option commit = run.add_flag("--commit", flags.commit, "With --txn: commit when the command has ended with exit code 0");
  // Refused by name, so help has them not.
  if (own) txn.group(""), txn_name.group(""), commit.group("");
  run.add_flag("--verbose", flags.verbose,
               own ? "Say on stderr what is enforced by what" : "Say on stderr what is enforced by what, and where the time went");
  add_pty_options(run, flags);
}

void on_run(const OptionParser& run, RunFlags& flags, int& exit_code, std::function<int()> act) {
  add_choose_options(run, flags.choose, flags.words);
  run.callback([&flags, run, &exit_code, act = std::move(act)] {
    note_given(run, flags.choose);
    exit_code = act();
  });
}

Result<LoadedPolicy> begin_record(const RunFlags& flags, Result<LoadedPolicy> loaded, RunRecord& record) {
  record.audit = BELLJAR_TRY(RunAudit::open(flags.audit, flags.policy, loaded ? &*loaded : nullptr));
  if (!loaded) return loaded;
  for (const std::string& warning : loaded->effective.warnings) print_note("warning: " + warning);
  return loaded;
}

Result<void> open_report(const RunFlags& flags, const LoadedPolicy& loaded, RunRecord& record) {
  if (!flags.report.empty()) record.report = BELLJAR_TRY(create_output(flags.report, "the report", "--report", loaded));
  return {};
}

int end_record(const RunFlags& flags, RunRecord& record, Result<ExecResult> outcome, bool lost) {
  std::optional<Error> refused;
  if (!outcome) {
    refused = outcome.error();
    print_error(*refused);
    if (!record.report.valid()) record.report = create_report_of_refusal(flags.report, *refused);
  }
  ExecResult result = refused ? runtime::failed_start(*refused) : *std::move(outcome);
  result.tried = std::move(record.tried);
  int exit_code = result.exit_code == 0 && (lost || record.uncommitted) ? 125 : result.exit_code;
  const auto check = [&exit_code](const Result<void>& told) {
    if (told) return;
    print_error(told.error());
    if (exit_code == 0) exit_code = 125;
  };
  check(refused ? record.audit.refused(flags.all(), *refused) : record.audit.end(result));
  const auto deliver = [&](int fd, runtime::JsonStreams streams, std::string_view what) {
    std::string text = runtime::to_json(result, streams);
    if (!record.commit.empty()) text.insert(text.size() - 1, ",\"commit\":" + record.commit);  // the last of its members
    check(write_line(fd, text, what));
  };
  if (const auto whole = record.report.valid() ? check_report(record.report.get(), flags.report) : Result<void>(); !whole) {
    print_error(whole.error());
    exit_code = 125;
  } else if (record.report.valid()) {
    deliver(record.report.get(), flags.json ? runtime::JsonStreams::kInclude : runtime::JsonStreams::kOmit, "the report");
  }
  if (flags.json) deliver(STDOUT_FILENO, runtime::JsonStreams::kInclude, "the result to stdout");
  return exit_code;
}

}  // namespace belljar::cli
