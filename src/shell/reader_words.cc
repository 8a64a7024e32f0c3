#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "shell/grammar.h"
#include "shell/integer_variables.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/variables.h"
#include "shell/words.h"

namespace belljar::shell {

Word Words::read(TSNode node) {
  Word result{.lead = std::string::npos, .bounded = true, .span = span(node)};
  const std::size_t first = in_.out.commands.size();
  const auto outside = std::exchange(borrowed_, std::nullopt);
  result.from.first = result.from.last = first;
  add_word(result, node);
  result.from.last = in_.out.commands.size();
  if (result.from.empty() && borrowed_) result.from = *borrowed_;
  borrowed_ = outside;
  result.lead = result.fixed ? 0 : std::min(result.lead, result.text.size());
  result.bounded = result.bounded && !result.fixed;
  if (!result.fixed) result.written = raw(node);
  return result;
}

void Words::add_word(Word& word, TSNode node) {
  const DepthScope deeper(in_.depth);
  if (full(node)) return add_dynamic(word, false);
  const std::string_view text = raw(node);
  switch (kind(node)) {
    case Kind::kName:
      word.text += text;
      return;
    case Kind::kWord:
      if (ts_node_child_count(node) > 0) return add_expansion(word, node, false);
      return add_bare(word, text);
    case Kind::kRawString:
      if (text.size() >= 2) word.text += text.substr(1, text.size() - 2);
      return;
    case Kind::kAnsiC:
      if (text.size() >= 3) add_ansi_c(word, text.substr(2, text.size() - 3));
      return;
    case Kind::kString:
      return add_string(word, node);
    case Kind::kConcatenation:
      return add_concatenation(word, node);
    default:
      if (is_word(kind(node))) return add_expansion(word, node, false);
      unread(span(node), "the shell's grammar does not cover this");
      add_dynamic(word, false);
  }
}

// From quote to quote by position: the grammar leaves some blanks out of its pieces.
void Words::add_string(Word& word, TSNode node) {
  std::size_t at = ts_node_start_byte(node);
  std::size_t end = ts_node_end_byte(node);
  if (end < at + 2 || in_.text[at] != '"' || in_.text[end - 1] != '"') return add_dynamic(word, false);
  ++at;
  --end;
  TSTreeCursor cursor = ts_tree_cursor_new(node);
  for (bool more = ts_tree_cursor_goto_first_child(&cursor); more; more = ts_tree_cursor_goto_next_sibling(&cursor)) {
    const TSNode child = ts_tree_cursor_current_node(&cursor);
    if (kind(child) == Kind::kToken || std::string_view(ts_node_type(child)) == "string_content") continue;
    if (ts_node_start_byte(child) < at || ts_node_end_byte(child) > end) continue;
    add_double_quoted(word, between(at, ts_node_start_byte(child)));
    add_expansion(word, child, true);
    at = ts_node_end_byte(child);
  }
  ts_tree_cursor_delete(&cursor);
  add_double_quoted(word, between(at, end));
}

void Words::add_expansion(Word& word, TSNode node, bool quoted) {
  const std::size_t first = in_.out.commands.size();
  // "$@" and "${a[@]}" become several words even in quotes.
  const std::string_view text = raw(node);
  if (add_value(word, text, quoted)) return with_.expressions.read(node);
  const bool home = word.text.empty() && (text == "$HOME" || text == "${HOME}");
  const std::size_t lead = word.lead;
  const bool bounded = word.bounded;
  if (home) word.text = "~";  // for the checks that look for a home
  add_dynamic(word, quoted && text.find('@') == std::string_view::npos);
  if (home) word.lead = lead;
  // The working directory stays where a relative name would be.
  const bool here = word.text.empty() && (text == "$PWD" || text == "${PWD}" || text == "$(pwd)");
  const bool number = with_.expressions.is_number(node) || text == "$RANDOM" || text == "${RANDOM}";
  if (home || here || number) word.bounded = bounded;
  if (kind(node) == Kind::kOther) unread(span(node), "the shell's grammar does not cover this");
  else with_.expressions.read(node);
  if (in_.out.commands.size() > first && word.from.empty()) word.from = {first, in_.out.commands.size()};
  if (!word.from.empty()) word.from.last = in_.out.commands.size();
}

// `$x` and `${x}` where the text says what x holds: the value as it was written. False when only the run decides.
bool Words::add_value(Word& word, std::string_view expansion, bool quoted) {
  constexpr std::string_view kOneWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=+@%^-";
  std::string_view name = expansion.substr(std::min<std::size_t>(1, expansion.size()));
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  const Word* const value = expansion.starts_with('$') && is_name(name) ? in_.variables.find(name) : nullptr;
  if (value == nullptr) return false;
  const std::string_view text = value->text;
  const bool home = text == "~" || text.starts_with("~/");
  const bool stays_one =
      !text.empty() && text.find_first_not_of(kOneWord) == std::string_view::npos && in_.variables.splits_as_usual();
  if (!value->fixed && text.starts_with('~') && (!home || !word.text.empty())) return false;
  if (!quoted && !(value->fixed && stays_one) && !((home || text.empty()) && value->bounded)) return false;
  const std::size_t before = word.text.size();
  word.text += text;
  if (!value->from.empty() && !borrowed_) borrowed_ = value->from;
  if (value->fixed) return true;
  word.fixed = false;
  word.pattern = word.pattern || value->pattern;
  word.splits = word.splits || !quoted;
  if (value->pattern) return true;
  word.expands = word.expands || value->expands;
  word.opens = word.opens || (before == 0 && value->opens);
  word.bounded = word.bounded && value->bounded;
  word.lead = std::min(word.lead, value->lead < text.size() || !value->bounded ? before + value->lead : std::string::npos);
  return true;
}

void Words::add_concatenation(Word& word, TSNode node) {
  bool brace = false;
  std::size_t end = ts_node_start_byte(node);
  for (const Child& child : children(node)) {
    if (ts_node_start_byte(child.node) != end && between(end, ts_node_start_byte(child.node)) != "\\\n") add_dynamic(word, false);
    end = ts_node_end_byte(child.node);
    if (kind(child.node) == Kind::kToken) {
      add_bare(word, raw(child.node));
      continue;
    }
    brace = brace || (kind(child.node) == Kind::kWord && raw(child.node).find('{') != std::string_view::npos);
    add_word(word, child.node);
  }
  const std::string_view text = raw(node);
  if (brace && (text.find(',') != std::string_view::npos || text.find("..") != std::string_view::npos)) {
    word.pattern = word.splits = true;
    word.fixed = false;
  }
}

}  // namespace belljar::shell
