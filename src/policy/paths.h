// Paths and patterns as text: normal form, whole components, globs. No system calls: a path here is what somebody wrote; which
// object it names is resolved by the backend.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar::policy {

struct Key;

inline constexpr std::size_t kMaxPath = 4095;  // PATH_MAX less its NUL, limits.h

// What a path in a policy may look like: not empty, no NUL, at most kMaxPath bytes, no `$VAR` and no `~user` (both would mean one
// thing to the writer and another to us).
Result<void> check_path(std::string_view path);
// The same for a pattern; also the syntax of `[...]`, and wildcards in moderation.
Result<void> check_glob(std::string_view glob);
// NAME of NAME=value: not empty, no '=', no NUL.
Result<void> check_variable(std::string_view name);
// The same for a pattern of name_match(), which knows no `[...]`, `{...}` and `\`.
Result<void> check_name_pattern(std::string_view pattern);
// The same for a name where no pattern is taken.
Result<void> check_exact_name(std::string_view name);
// The check that fits one element of a list, or the value of a path key.
Result<void> check_element(const Key& key, std::string_view text);

// Collapses "//", "." and ".." as text and drops a trailing slash; `path` must be absolute. ".." above the root stays at the root.
std::string normal(std::string_view path);
// `~` and relative paths resolved against home and base, then normal. A `~` without a home is an error.
Result<std::string> absolute(std::string_view path, std::string_view home, std::string_view base);
// A pattern that matches exactly this path.
std::string literal_glob(std::string_view path);

// Whether `path` is `root` or below it, by whole components: "/ab" is not below "/a".
bool is_within(std::string_view path, std::string_view root) noexcept;
std::size_t components(std::string_view path) noexcept;

// `*` and `?` stay within a component, `**` as a whole component spans any number of them (also none), `[a-z]` and `[!a-z]` are
// classes.
bool glob_match(std::string_view glob, std::string_view path) noexcept;
// What a search below a directory looks for: `glob` relative to it, without `.` components. An absolute one may begin with the
// directory's name, or with `other` (empty: it has none). Errors: as check_glob; kInvalidArgument, "path escapes workspace: ...",
// a `..` or a place elsewhere.
Result<std::string> glob_below(std::string_view glob, std::string_view top, std::string_view other = {});
// Length of the longest prefix of `path` that `glob` matches at a component's end; what lies below a matched directory is covered
// too.
std::optional<std::size_t> glob_covers(std::string_view glob, std::string_view path) noexcept;
// `*` and `?` over a whole name, letters of either case: environment variables.
bool name_match(std::string_view pattern, std::string_view name) noexcept;

}  // namespace belljar::policy
