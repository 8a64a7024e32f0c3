// A unified diff, as text and as a value. Pure: nothing is read or written here.
//
// Both dialects are read: plain ("--- a/x", "+++ b/x", "@@ ... @@") and git's extended headers (new and deleted files, renames,
// copies, modes, quoted names). What could not be done faithfully is refused by name: binary patches, symbolic links, submodules.
// Text around the diffs (the mail of `git format-patch`) is passed over; inside a hunk every line counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"

namespace belljar::tools {

enum class LineKind { kContext, kRemoved, kAdded };

struct PatchLine {
  LineKind kind = LineKind::kContext;
  std::string_view text;    // without its end
  bool has_newline = true;  // false: "\ No newline at end of file" follows
};

struct Hunk {
  std::uint64_t old_start = 0, old_count = 0, new_start = 0, new_count = 0;
  std::vector<PatchLine> lines;
  std::size_t at = 0;  // line of the patch, from 1
};

struct FilePatch {
  std::optional<std::string> from, to;  // as named, prefixes taken off; unset: there is no such file on that side
  std::optional<unsigned> new_mode;     // permission bits
  bool copies = false;                  // `from` stays
  std::vector<Hunk> hunks;
  std::size_t at = 0;
  std::size_t commit = 0;  // of a series (`git format-patch`, `git log -p`) which one it is of: names on the left are of before it
};

// The views of the result point into `text`. Errors: kInvalidArgument with the line; kUnimplemented, see above.
Result<std::vector<FilePatch>> parse_patch(std::string_view text);

struct PatchedText {
  std::string text;
  std::uint64_t added = 0, removed = 0;  // lines
};
// `before` with all hunks applied. A hunk that does not fit at its line is looked for above and below, nearest first; nothing of
// its context may differ. Errors: kFailedPrecondition, a hunk fits nowhere, with its line.
Result<PatchedText> apply_hunks(std::string_view before, const FilePatch& patch);

}  // namespace belljar::tools
