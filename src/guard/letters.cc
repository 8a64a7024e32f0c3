#include "guard/letters.h"

#include <algorithm>
#include <string>

namespace belljar::guard {
namespace {

// What holds for the pieces of a node.
struct Around {
  TSNode node;
  bool quoted = false;       // inside "..." or a here-document, where a single quote is a letter
  bool parameter = false;    // inside ${...}
  bool back_quoted = false;  // inside `...`, where the shell takes backslashes away before it parses
  bool literal = false;      // a here-document with a quoted delimiter
};

class Walk {
 public:
  Walk(const Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text), left_(text) {}

  Letters all(TSNode root);

 private:
  std::string_view raw(TSNode node) const noexcept {
    return text_.substr(ts_node_start_byte(node), ts_node_end_byte(node) - ts_node_start_byte(node));
  }
  void hide(std::size_t begin, std::size_t end) {
    if (!result_.hidden || begin < result_.hidden->begin)
      result_.hidden = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  void take(TSNode node) { std::fill(left_.begin() + ts_node_start_byte(node), left_.begin() + ts_node_end_byte(node), ' '); }
  bool enter(TSNode node);
  void leaf(TSNode node, const Around& parent);
  void back_quotes(TSNode node);
  void scan();

  const Grammar& grammar_;
  std::string_view text_;
  std::string left_;  // the text, without what the grammar and the shell agree on
  std::vector<Around> around_;
  Letters result_;
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

void Walk::leaf(TSNode node, const Around& parent) {
  const Kind kind = grammar_.kind(node);
  const Kind above = grammar_.kind(parent.node);
  const bool opens =
      above == Kind::kSubstitution || above == Kind::kParameter || above == Kind::kArithmetic || above == Kind::kExpansion;
  if (kind == Kind::kComment || ((kind == Kind::kRawString || kind == Kind::kAnsiC) && !parent.quoted)) return take(node);
  if (kind == Kind::kToken) {
    const bool first = ts_node_start_byte(node) == ts_node_start_byte(parent.node);
    const std::string_view token = without_blanks(raw(node));
    if (opens && (token == "`" || (first && token.starts_with('$')))) take(node);
    return;
  }
  if (parent.quoted && !parent.parameter) return;  // <( and >( are letters there
  const std::string_view letters = raw(node);
  for (std::size_t i = 0; i + 1 < letters.size(); ++i) {
    if (letters[i] == '\\') ++i;
    else if ((letters[i] == '<' || letters[i] == '>') && letters[i + 1] == '(')
      hide(ts_node_start_byte(node) + i, ts_node_end_byte(node));
  }
}

// Whether to look at its children.
bool Walk::enter(TSNode node) {
  const std::string_view type = ts_node_type(node);
  if (type == "heredoc_start") around_.back().literal = raw(node).find_first_of("'\"\\") != std::string_view::npos;
  if (type == "heredoc_body" && around_.back().literal) {
    take(node);
    return false;
  }
  if (ts_node_child_count(node) == 0) {
    leaf(node, around_.back());
    return false;
  }
  Around here = around_.back();
  here.node = node;
  here.literal = false;
  switch (grammar_.kind(node)) {
    case Kind::kSubstitution:
      result_.substitutions.push_back(ts_node_start_byte(node));
      here.quoted = here.parameter = false;
      if (without_blanks(raw(node)).starts_with('`') && !here.back_quoted) {
        here.back_quoted = true;
        back_quotes(node);
      }
      break;
    case Kind::kParameter:
      here.parameter = true;
      break;
    case Kind::kString:
      here.quoted = true;
      here.parameter = false;
      break;
    default:
      if (type == "heredoc_body") here.quoted = true;
  }
  around_.push_back(here);
  return true;
}

// What is left: a back-quote, or a dollar with a bracket, with escaped newlines between them or not.
void Walk::scan() {
  bool dollar = false;
  for (std::size_t i = 0; i < left_.size(); ++i) {
    if (left_[i] == '\\') {
      if (!is_escape(left_, i, "\n")) dollar = false;
      ++i;
      continue;
    }
    if (left_[i] == '`' || (dollar && std::string_view("({[").find(left_[i]) != std::string_view::npos))
      return hide(i, std::min(i + 1, left_.size()));
    dollar = left_[i] == '$';
  }
}

Letters Walk::all(TSNode root) {
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

Letters read_letters(const Grammar& grammar, TSNode root, std::string_view text) { return Walk(grammar, text).all(root); }

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

}  // namespace belljar::guard
