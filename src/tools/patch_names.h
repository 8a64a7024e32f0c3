// Names in the headers of a diff.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace belljar::tools {

// git's C-style quotes taken off ("a\303\244.txt"); what has none comes back as it is. nullopt: the quotes are broken.
std::optional<std::string> unquote_name(std::string_view text);
// "--- a/x.cc\t2024-01-01": the name, without a time stamp.
std::optional<std::string> name_of_header(std::string_view rest);
// The two names of "diff --git a/x b/x", prefixes taken off, where they can be told apart.
std::optional<std::pair<std::string, std::string>> names_of_git_line(std::string_view rest);
// Without the first component, "a/x/y" -> "x/y"; nullopt: it has only one.
std::optional<std::string> without_first(std::string_view name);

}  // namespace belljar::tools
