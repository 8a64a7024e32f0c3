// What an agent changed of its own state in the layers that are dropped at the end (filesystem.scratch): kept of its last run, to
// be looked at and applied by hand. It came from inside: nothing here runs it, and nothing applies it without a person's word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "cli/load.h"
#include "runtime/run.h"

namespace belljar::cli {

struct DroppedFile {
  std::string path;       // where it would be on the host
  bool removed = false;   // the agent removed what is there
  bool left_out = false;  // too large, no regular file, or unreadable: that it changed is all that is kept
};

// The text of a regular file of at most `most` bytes; nothing else, and never through a link.
std::optional<std::string> read_plain(const std::string& path, std::uint64_t most);
std::optional<std::string> read_plain_at(int folder, const std::string& name, std::uint64_t most);

// Keeps what changed, at most 16 MiB in 2000 files, in place of what an earlier run left, and says on stderr how many they are.
// Files that only serve a run (policy::private_to_run) are passed over. What the profile lets persist and was not there at the
// start goes to its place now.
void keep_dropped(const runtime::RunOutcome& ran, const LoadedPolicy& loaded);

// Of the last run of `agent` ("claude"). Empty: it changed nothing, or never ran. Errors: kNotFound, no agent of that name.
Result<std::vector<DroppedFile>> dropped_files(std::string_view agent);
// The change as text: a line, and hunks where both sides are text.
std::string show_dropped(std::string_view agent, const DroppedFile& file);
// Puts it where it would be, by rename in its directory; never through a link below the home. Errors: kPermissionDenied,
// kFailedPrecondition, left out.
Result<void> apply_dropped(std::string_view agent, const DroppedFile& file);

}  // namespace belljar::cli
