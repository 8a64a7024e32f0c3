// Checks that the grammar and the shell agree which bytes are plain letters.
//
// The grammar takes some substitutions for letters: back-quotes in a here-document, "${a:-`b`}",
// "${a:-'$(b)'}", ${a%%$(b)}. So each opening of a substitution in the text must be a node of the tree; any
// other one is hidden from the reader. The same holds for text that the shell ends elsewhere ($'a\\' 'b'),
// text that a catalogue of translations decides ($"a"), and text that another shell reads differently than
// bash.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "shell/grammar.h"
#include "shell/script.h"

namespace belljar::shell {

// Which shell runs the text. `sh` may be any: dash runs what stands in [[ a || b ]] or behind `&>` and ends $'a\' at its last
// quote.
enum class ShellDialect : std::uint8_t { kBash, kAnyShell };

struct GrammarCheck {
  std::optional<Span> hidden;                // the first place that the shell may run and the tree does not show
  std::vector<std::uint32_t> substitutions;  // where those of the tree begin, in order: the reader must come by each
};

GrammarCheck check_grammar(const Grammar& grammar, TSNode root, std::string_view text, ShellDialect dialect);

// [begin, end) holds escaped newlines only, and the shell joins what stands around them into one word or operator.
bool is_glued(std::string_view text, std::size_t begin, std::size_t end) noexcept;

}  // namespace belljar::shell
