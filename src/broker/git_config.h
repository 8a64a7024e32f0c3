// The text of a git configuration file as entries, read as git reads it (config.c, git_parse_source; git-config(1), "Syntax").
// Pure.
//
// Faithful on purpose where git is odd: CR LF is a line end, a lone CR is space; a byte order mark is skipped; an entry may follow
// a section on its line; a value goes on after a backslash at the line's end, in comments not; space inside a value is kept as
// spaces; names are folded, subsections in quotes are not. Includes are entries like any other here: nobody follows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::broker {

struct GitConfigEntry {
  std::string key;                   // "section.name" or "section.sub.section.name"; all but the subsection in lower case
  std::optional<std::string> value;  // none: `name` without '=', which git takes for true
  bool operator==(const GitConfigEntry&) const = default;
};

struct GitConfig {
  std::vector<GitConfigEntry> entries;
  // Git stops here and refuses the file; `entries` holds what it had taken by then.
  bool broken = false;
  // The same of ours: keys together are longer than any configuration's. A long section with many short names would otherwise take
  // its length times their number, a hundred gigabytes from one megabyte.
  bool excessive = false;
};

GitConfig parse_git_config(std::string_view text);

}  // namespace belljar::broker
