// Whether the grammar's tree shows every substitution that the shell would run.
//
// The reader walks the tree, so what the grammar takes for plain letters would be passed over, and run. The
// check works by subtraction: a copy of the text is made, and everything whose meaning is certain is blanked
// out of it, which is single-quoted strings, comments, here-documents with a quoted delimiter, and the
// opening of each substitution that has a node. If an opening (a back-quote, `$(`, `${`, `$[`, `<(`, `>(`) is
// left over at the end, grammar and shell disagree about it, and the place is reported as hidden. It does not
// matter which of the two is right.
//
// The walk also collects where the substitutions of the tree begin; Reader::check compares them with those
// that were read, so a node kind that the reader does not enter cannot hide one either.
//
// Three more disagreements are looked for on the way. A `$'...'` that the grammar ends at another quote than
// bash. `$"..."`, whose text gettext(3) may replace. And backslashes inside back-quotes, which the shell
// removes before it parses the text a second time (bash(1), Command Substitution). For `sh` text, which may
// be run by dash, whatever dash reads differently is hidden as well (is_of_bash).
#include "shell/grammar_check.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"

namespace belljar::shell {
namespace {

// What holds for the pieces of a node.
struct NodeContext {
  TSNode node;
  bool quoted = false;       // inside "..." or a here-document, where a single quote is a letter
  bool back_quoted = false;  // inside `...`, where the shell takes backslashes away before it parses
  bool literal = false;      // a here-document with a quoted delimiter
};

class Walk {
 public:
  Walk(const Grammar& grammar, std::string_view text, ShellDialect dialect)
      : grammar_(grammar), text_(text), dialect_(dialect), left_(text) {}

  GrammarCheck all(TSNode root);

 private:
  std::string_view raw(TSNode node) const noexcept {
    return text_.substr(ts_node_start_byte(node), ts_node_end_byte(node) - ts_node_start_byte(node));
  }
  void hide(std::size_t begin, std::size_t end) {
    if (!result_.hidden || begin < result_.hidden->begin)
      result_.hidden = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  void blank_out(TSNode node) { std::fill(left_.begin() + ts_node_start_byte(node), left_.begin() + ts_node_end_byte(node), ' '); }
  bool enter(TSNode node);
  bool is_misread(TSNode node, const NodeContext& parent) const noexcept;
  bool is_of_bash(TSNode node, const NodeContext& parent) const noexcept;
  void leaf(TSNode node, const NodeContext& parent);
  void quote(TSNode node);
  void unquote(TSNode node);
  void back_quotes(TSNode node);
  void scan();

  const Grammar& grammar_;
  std::string_view text_;
  ShellDialect dialect_;
  std::string left_;  // the text, without what the grammar and the shell agree on
  std::vector<NodeContext> around_;
  GrammarCheck result_;
};

bool is_escape(std::string_view text, std::size_t at, std::string_view of) noexcept {
  return text[at] == '\\' && at + 1 < text.size() && of.find(text[at + 1]) != std::string_view::npos;
}

// bash(1), Command Substitution: a backslash before $, ` and \ goes away before the text is parsed, in double quotes one before ",
// too.
void Walk::back_quotes(TSNode node) {
  const std::string_view inside = raw(node);
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (is_escape(inside, i, "$`\\\"")) return hide(ts_node_start_byte(node) + i, ts_node_end_byte(node));
  }
}

// The grammar's $'...' may go on behind the quote that ends it. Where a dollar stands before "...", gettext(3) puts in other text.
bool Walk::is_misread(TSNode node, const NodeContext& parent) const noexcept {
  if (parent.quoted) return false;
  const std::string_view letters = raw(node);
  if (grammar_.kind(node) == Kind::kAnsiC) {
    std::size_t end = 2;
    while (end < letters.size() && letters[end] != '\'') end += letters[end] == '\\' ? 2 : 1;
    return end + 1 != letters.size();
  }
  const std::size_t end = ts_node_end_byte(node);
  const bool quoted = grammar_.kind(node) == Kind::kRawString || grammar_.kind(node) == Kind::kComment;
  if (quoted || !letters.ends_with('$') || end >= text_.size() || text_[end] != '"') return false;
  const std::string_view before = letters.substr(0, letters.size() - 1);
  return (before.size() - (before.find_last_not_of('\\') + 1)) % 2 == 0;  // no escaped dollar
}

// What dash, which is `sh` here and there, takes for other words and commands than bash.
bool Walk::is_of_bash(TSNode node, const NodeContext& parent) const noexcept {
  constexpr std::string_view kTokens[] = {"[[", "((", "&>", "&>>", "|&", "$["};
  const Kind kind = grammar_.kind(node);
  const Kind above = grammar_.kind(parent.node);
  if (kind == Kind::kAnsiC) return !parent.quoted;
  if (above == Kind::kAssignment && (kind == Kind::kSubscript || kind == Kind::kArray || raw(node) == "+=")) return true;
  const bool groups = kind == Kind::kGroup || kind == Kind::kTest || kind == Kind::kCommand;
  if (groups && (raw(node).starts_with("((") || raw(node).starts_with("[["))) return true;
  return kind == Kind::kToken && std::ranges::find(kTokens, without_blanks(raw(node))) != std::end(kTokens);
}

void Walk::leaf(TSNode node, const NodeContext& parent) {
  const Kind kind = grammar_.kind(node);
  const Kind above = grammar_.kind(parent.node);
  const bool opens =
      above == Kind::kSubstitution || above == Kind::kParameter || above == Kind::kArithmetic || above == Kind::kExpansion;
  const std::size_t begin = ts_node_start_byte(node);
  // A `#` inside a word is a letter to the shell.
  const bool comment =
      kind == Kind::kComment && (begin == 0 || std::string_view(" \t\n;&|()").find(text_[begin - 1]) != std::string_view::npos);
  const bool plain = (kind == Kind::kRawString || kind == Kind::kAnsiC) && !parent.quoted;
  const std::string_view token = without_blanks(raw(node));
  const bool first =
      begin == ts_node_start_byte(parent.node) && std::string_view("$<>").find(token.substr(0, 1)) != std::string_view::npos;
  if (comment || plain || (kind == Kind::kToken && opens && (first || token == "`"))) blank_out(node);
}

// In double quotes and here-documents <( and >( are letters, but not in a substitution there.
void Walk::quote(TSNode node) {
  const auto end = left_.begin() + ts_node_end_byte(node);
  std::replace_if(left_.begin() + ts_node_start_byte(node), end, [](char c) { return c == '<' || c == '>'; }, ' ');
}

void Walk::unquote(TSNode node) { left_.replace(ts_node_start_byte(node), raw(node).size(), raw(node)); }

// Whether to look at its children.
bool Walk::enter(TSNode node) {
  const std::string_view type = ts_node_type(node);
  if (dialect_ == ShellDialect::kAnyShell && is_of_bash(node, around_.back()))
    hide(ts_node_start_byte(node), ts_node_end_byte(node));
  if (type == "heredoc_start") around_.back().literal = raw(node).find_first_of("'\"\\") != std::string_view::npos;
  if (type == "heredoc_body" && around_.back().literal) {
    blank_out(node);
    return false;
  }
  if (type == "heredoc_body") quote(node);
  if (ts_node_child_count(node) == 0) {
    if (is_misread(node, around_.back())) hide(ts_node_start_byte(node), ts_node_end_byte(node));
    leaf(node, around_.back());
    return false;
  }
  NodeContext here = around_.back();
  here.node = node;
  here.literal = false;
  const Kind kind = grammar_.kind(node);
  if (kind == Kind::kString) quote(node);
  if (kind == Kind::kString || type == "heredoc_body") here.quoted = true;
  if (kind == Kind::kSubstitution) {
    result_.substitutions.push_back(ts_node_start_byte(node));
    if (std::exchange(here.quoted, false)) unquote(node);
    if (without_blanks(raw(node)).starts_with('`') && !here.back_quoted) {
      here.back_quoted = true;
      back_quotes(node);
    }
  }
  around_.push_back(here);
  return true;
}

// What is left: a back-quote, or a dollar or an angle with a bracket, with escaped newlines between them or not.
void Walk::scan() {
  char before = 0;
  for (std::size_t i = 0; i < left_.size(); ++i) {
    const char c = left_[i];
    if (c == '\\') {
      if (!is_escape(left_, i, "\n")) before = 0;
      ++i;
      continue;
    }
    const bool opens = (before == '$' && std::string_view("({[").find(c) != std::string_view::npos) ||
                       ((before == '<' || before == '>') && c == '(');
    if (c == '`' || opens) return hide(i, i + 1);
    before = c;
  }
}

GrammarCheck Walk::all(TSNode root) {
  around_.push_back({.node = root});
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  while (around_.size() > 0) {
    if (enter(ts_tree_cursor_current_node(&cursor)) && ts_tree_cursor_goto_first_child(&cursor)) continue;
    while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
      around_.pop_back();
      if (!ts_tree_cursor_goto_parent(&cursor)) {
        around_.clear();
        break;
      }
    }
  }
  ts_tree_cursor_delete(&cursor);
  scan();
  return std::move(result_);
}

}  // namespace

GrammarCheck check_grammar(const Grammar& grammar, TSNode root, std::string_view text, ShellDialect dialect) {
  return Walk(grammar, text, dialect).all(root);
}

bool is_glued(std::string_view text, std::size_t begin, std::size_t end) noexcept {
  if (begin == 0 || begin == end || end >= text.size()) return false;
  for (std::size_t i = begin; i < end; i += 2) {
    if (!is_escape(text, i, "\n")) return false;
  }
  const auto is_operator = [](char c) { return std::string_view("&|;()").find(c) != std::string_view::npos; };
  const char before = text[begin - 1];
  const char behind = text[end];
  const bool apart = behind != '(' && behind != '<' && behind != '>' && is_operator(before) != is_operator(behind);
  return !apart;
}

}  // namespace belljar::shell
