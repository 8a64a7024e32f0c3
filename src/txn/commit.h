// A transaction applied to the workspace: judged, compared with what became of the host, prepared, written down, done.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"

namespace belljar::txn {

// What a judge may ask about a change.
struct Candidate {
  const Change& change;
  // The bytes that would stand at the name, at most `most`. Of a symbolic link: its text.
  std::function<Result<std::string>(std::uint64_t most)> content;
  std::function<Result<std::string>(std::uint64_t most)> old_content;  // that stand there now
  // Whether `path`, relative to the workspace, is there on the host or in the transaction. What cannot be told is there.
  std::function<bool(const std::string& path)> exists;
};
// Why it may not be applied, or nothing.
using Objection = std::function<std::optional<std::string>(const Candidate&)>;

Result<CommitResult> commit_with(const Place& place, const CommitOptions& options, const Objection& objection);

}  // namespace belljar::txn
