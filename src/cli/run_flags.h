// The common part of every `belljar run`, whatever its backend: options, the trail, the report, the result.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "cli/audited.h"
#include "cli/choose.h"
#include "cli/command_line.h"
#include "cli/command_words.h"
#include "cli/components.h"
#include "cli/load.h"
#include "cli/policy_flags.h"
#include "policy/choice.h"

namespace belljar::cli {

// What the first word of a spare says, see read_spare_word() in spare.h.
using WallTime = std::chrono::system_clock::time_point;
struct SpareWord {
  WallTime since = std::chrono::system_clock::now();  // when it was asked for
  int ignored = 0;                                    // signals of libc's own that whoever asked ignored
};

// The options of `run` as text. Must outlive the parsing of the command that its options are registered on.
struct RunFlags : CommandWords {
  PolicyFlags policy;
  AuditFlags audit;
  ChooseFlags choose;
  bool verbose = false, txn = false, commit = false;
  std::optional<std::string> txn_name;
  std::string report;
  std::span<const char* const> words;  // argv from `run` on, without `--` and what follows
  std::optional<SpareWord> spare;      // make a sandbox for the next run like this (spare.h)
};

// `words` as add_policy_options() has it. `own`: options of a backend that is a Sandbox and has no transactions; unset: of
// `belljar` itself. `act` returns the exit code.
void add_run_options(const OptionParser& run, RunFlags& flags, std::span<const char* const> words,
                     const std::function<void(const OptionParser&)>& own);
void on_run(const OptionParser& run, RunFlags& flags, int& exit_code, std::function<int()> act);

// The records of a run: the trail and the report.
struct RunRecord {
  RunAudit audit;
  UniqueFd report;  // not valid without --report
  std::vector<TriedBackend> tried;
  std::string commit;        // with --commit: the JSON of what came of it; empty: nothing to tell
  bool uncommitted = false;  // it was to be, and is not: no success, whatever the command said
};

// Opens the trail, which also tells of a policy that was refused, and tells the policy's warnings.
Result<LoadedPolicy> begin_record(const RunFlags& flags, Result<LoadedPolicy> loaded, RunRecord& record);
// Made before the start, so that a wrong place is an error before anything ran.
Result<void> open_report(const RunFlags& flags, const LoadedPolicy& loaded, RunRecord& record);

// What `start(name)` returns of the first backend that starts (policy/choice.h). `ours`: the backend whose program this is; empty:
// `belljar`. Those of other programs replace this one. What failed while others follow is in the trail.
template <class Start>
auto start_first(const RunFlags& flags, policy::Choice& choice, std::string_view ours, RunRecord& record, const Start& start)
    -> decltype(start(std::string())) {
  auto started = choice.first([&](const std::string& name) -> decltype(start(name)) {
    if (component_of_backend(name) != component_of_backend(ours) && !flags.words.empty())
      return exec_backend_program(choice, name, flags.words, flags.program);
    auto tried = start(name);
    if (tried || !choice.goes_on(tried.error())) return tried;
    if (const auto told = record.audit.refused(flags.all(), tried.error()); !told) return choice.settle(), told.error();
    return tried;
  });
  record.tried = choice.tried();
  return started;
}

// Tells the trail, --report and --json what came of the run, and stderr why it was refused. Returns the exit code: the result's,
// but never success when it could not be told, or when `lost` says that something else is missing.
int end_record(const RunFlags& flags, RunRecord& record, Result<ExecResult> outcome, bool lost);

}  // namespace belljar::cli
