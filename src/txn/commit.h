// Applies a transaction to the workspace: plan, stage, journal, apply (commit.cc).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "belljar/txn.h"

namespace belljar::txn {

// A change that is put to a judge, with the questions it may ask.
struct Candidate {
  const Change& change;
  // The bytes that would stand at the name, at most `most`. Of a symbolic link: its text.
  std::function<Result<std::string>(std::uint64_t most)> content;
  std::function<Result<std::string>(std::uint64_t most)> old_content;  // that stand there now
  // Whether `path`, relative to the workspace, will exist after the commit. True where that cannot be told.
  std::function<bool(const std::string& path)> exists;
  // Whether a symbolic link will be there.
  std::function<bool(const std::string& path)> is_link;
  // Whether `path` is part of this commit: then it is put to the judge by itself.
  std::function<bool(const std::string& path)> is_chosen;
  // The host's own directory of that name, to look at; invalid where there is none.
  std::function<UniqueFd(const std::string& path)> host_dir;
};
// The reason why the change may not be applied, or nothing.
using Objection = std::function<std::optional<std::string>(const Candidate&)>;

Result<CommitResult> commit_with(const Place& place, const CommitOptions& options, const Objection& objection);

}  // namespace belljar::txn
