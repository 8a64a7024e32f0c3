// Quote removal: the text of one word of the syntax tree, and whether it is fixed before the run.
#pragma once

#include <string>
#include <string_view>

#include "shell/script.h"

namespace belljar::shell {

// Adds the characters of an unquoted piece, backslashes taken away, to `word`; notes patterns, braces and a leading tilde.
void add_bare(Word& word, std::string_view raw);
// The inside of "...", without expansions. An unescaped `$` or back-quote that is left there makes the word dynamic: grammar and
// shell disagree about it.
void add_double_quoted(Word& word, std::string_view raw);
// The inside of $'...': the escapes of bash(1), QUOTING.
void add_ansi_c(Word& word, std::string_view raw);
// Something only the run decides; `quoted` when it cannot split.
void add_dynamic(Word& word, bool quoted) noexcept;

}  // namespace belljar::shell
