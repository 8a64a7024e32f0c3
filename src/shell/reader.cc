#include "shell/reader.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/processor_time.h"
#include "shell/grammar.h"
#include "shell/grammar_check.h"
#include "shell/reader_state.h"
#include "shell/script.h"

namespace belljar::shell {

namespace {

// As a function or an alias: what its name means then, nobody knows.
bool defines(std::string_view text, std::string_view name) noexcept {
  constexpr std::string_view kBlank = " \t\r\n\\";
  constexpr std::string_view kFunction = "function";
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t before = text.substr(0, at).find_last_not_of(kBlank);
    if (before != std::string_view::npos && before + 1 < at && text.substr(0, before + 1).ends_with(kFunction)) return true;
    const std::size_t next = std::min(text.find_first_not_of(kBlank, at + name.size()), text.size());
    if (text.substr(next).starts_with('=')) return true;
    if (!text.substr(next).starts_with('(')) continue;
    const std::size_t close = text.find_first_not_of(kBlank, next + 1);
    if (close != std::string_view::npos && text[close] == ')') return true;
  }
  return false;
}

}  // namespace

void Reader::read() {
  if (defines(in.text, "exit") || defines(in.text, "return")) in.own_exit = false;
  if (const char* reason = unreadable(in.text)) return in.unread(in.whole(), reason);
  const bool late = processor_time() > in.deadline;
  TSTree* tree = late ? nullptr : in.grammar.parse(in.text);
  if (tree == nullptr) return in.unread(in.whole(), "the text takes too long to parse");
  const TSNode root = ts_tree_root_node(tree);
  // The root spans what it holds; what lies around it must be blank too.
  const bool placed = in.kind(root) == Kind::kGroup && is_blank(in.between(0, ts_node_start_byte(root))) &&
                      is_blank(in.between(ts_node_end_byte(root), in.text.size()));
  if (!placed) {
    in.unread(in.span(root), "the shell's grammar does not cover this");
  } else {
    const GrammarCheck letters = check_grammar(in.grammar, root, in.text, in.dialect);
    in.variables.of(root);
    if (!in.follows_variables || letters.hidden) in.variables.stop();
    statements.read_all(root);
    check(letters);
  }
  ts_tree_delete(tree);
}

// Nothing that the shell may run is left: not as letters, not in a node that this file passed by, not in a variable.
void Reader::check(const GrammarCheck& letters) {
  if (letters.hidden) in.unread(in.shown_at(*letters.hidden), "the shell may run what the grammar takes for letters");
  const std::vector<std::uint32_t> read = expressions.substitutions();
  for (const std::uint32_t begin : letters.substitutions) {
    if (std::ranges::binary_search(read, begin)) continue;
    in.unread(in.shown_at({begin, begin + 1}), "a substitution stands where none is read");
    break;
  }
  if (in.outer != nullptr) in.numbers.doubt_all();  // the text around it may have assigned something else
  if (const auto where = in.numbers.doubtful(in.out))
    in.unread(*where, "arithmetic evaluates what a variable holds, and only the run decides that");
}

}  // namespace belljar::shell
