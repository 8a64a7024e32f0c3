// Protected names in every spelling that a file system may take for them. Pure; allocates only for non-ASCII names.
//
// Compared as git and the file systems that ignore case do: ASCII case, code points that HFS+ and casefolded ext4 ignore, two
// letters that casefold to ASCII (long s, Kelvin sign).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar::policy {

// How the directory begins in which a commit lays out, in the workspace, what it has judged (txn/journal.cc): where the
// broker protects names, no command touches it until it is in place.
inline constexpr std::string_view kCommitStage = ".belljar-commit-";

// A component with case and ignorable code points removed.
std::string fold_name(std::string_view name);
// fold_name(name) == lower, for a lower-case ASCII `lower`.
bool folds_to(std::string_view name, std::string_view lower);

// The same of a pattern with at most one `*`, which stands for any text.
bool folds_to_pattern(std::string_view name, std::string_view pattern);

// How much of `rest`, a path without a leading slash, is one of protected_names(); 0: it starts with none.
std::size_t protected_length(std::string_view rest);
// The table of protected_names() for people (`belljar policy names`).
std::string protected_names_markdown();
// The outermost one in `path`, `.git` included, as it is spelled there; empty: there is none.
std::string_view protected_name_in(std::string_view path);
// The first component of a protected name with two, `.github/...`.
bool is_protected_parent(std::string_view part);

}  // namespace belljar::policy
