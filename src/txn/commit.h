// A transaction applied to the workspace: judged, compared with what became of the host, prepared, written down, done.
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

// What a judge may ask about a change.
struct Candidate {
  const Change& change;
  // The bytes that would stand at the name, at most `most`. Of a symbolic link: its text.
  std::function<Result<std::string>(std::uint64_t most)> content;
  std::function<Result<std::string>(std::uint64_t most)> old_content;  // that stand there now
  // Whether `path`, relative to the workspace, will be there: on the host as it is, with what was asked for applied. What cannot be
  // told is there.
  std::function<bool(const std::string& path)> exists;
  // Whether a symbolic link will be there.
  std::function<bool(const std::string& path)> is_link;
  // Whether what stands at `path` is part of what was asked for: it is put to the judge by itself.
  std::function<bool(const std::string& path)> is_chosen;
  // The host's own directory of that name, to look at; invalid where there is none.
  std::function<UniqueFd(const std::string& path)> host_dir;
};
// Why it may not be applied, or nothing.
using Objection = std::function<std::optional<std::string>(const Candidate&)>;

Result<CommitResult> commit_with(const Place& place, const CommitOptions& options, const Objection& objection);

}  // namespace belljar::txn
