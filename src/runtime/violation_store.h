// The last runs with refusals, in the user's state directory, for `belljar explain`.
//
// A file for each run, mode 0600, in a directory of mode 0700 that must be ours; whole or not there at all (a file without a name
// is written first and then linked). At most kMaxRuns are kept: writing one removes the oldest. Any number of processes may write
// at the same time. The state directory is hidden from every sandbox (policy/merge.h, hide_state).
// Of a run without refusals only that it was the last of its workspace is noted, where the directory is there already: a file for
// each workspace, of which as many are kept.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "runtime/kept_run.h"

namespace belljar::runtime {

class ViolationStore {
 public:
  static constexpr std::size_t kMaxRuns = 50;

  // `state_dir` (default_state_dir(), or empty) need not exist yet.
  explicit ViolationStore(std::string state_dir) : state_(std::move(state_dir)) {}

  // Keeps `run` and returns its id, which is the time in UTC: "20261121-064030-123456". Errors, each with the reason:
  // kFailedPrecondition, no state directory or one that is not ours; kPermissionDenied, kUnavailable, kResourceExhausted from the
  // file system.
  Result<std::string> keep(KeptRun run) const;

  // `id`: a whole id, a start or an end of one that fits one run only, or "last". Errors: kNotFound, with why there is nothing;
  // kInvalidArgument, several fit; kDataLoss.
  Result<KeptRun> load(std::string_view id) const;

  // Notes that `run`, which was refused nothing, was the last of its workspace; where nothing was ever kept nothing is written.
  // Best effort: a run that cannot be noted is left out.
  void note_last(KeptRun run) const;

  // The last run, with refusals or without, of a workspace at or above `directory`. Errors as load().
  Result<KeptRun> load_last(std::string_view directory) const;

  // Oldest first. Empty when there is no directory.
  Result<std::vector<std::string>> list() const;

 private:
  std::string path() const { return state_ + "/violations"; }
  Result<UniqueFd> open_for_keeping() const;
  Error nothing() const;

  std::string state_;
};

}  // namespace belljar::runtime
