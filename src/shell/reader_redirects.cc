#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"
#include "shell/integer_variables.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/words.h"

namespace belljar::shell {

// `([x]=1)`: x is evaluated.
void Redirections::array(TSNode node) {
  for (const Child& child : children(node)) {
    const std::string_view text = raw(child.node);
    const std::size_t end = text.find(']');
    if (text.starts_with('[') && end != std::string_view::npos && !is_integer(text.substr(1, end - 1))) doubt(child.node);
  }
}

Assignment Redirections::assignment(TSNode node) {
  Assignment result;
  bool integer = true;   // `x=` is 0 to arithmetic
  bool appends = false;  // `x+=1` keeps what x holds
  for (const Child& child : children(node)) {
    appends = appends || raw(child.node) == "+=";
    if (child.field == "name") {
      result.name = raw(child.node).substr(0, raw(child.node).find('['));
      if (kind(child.node) == Kind::kSubscript) with_.expressions.read(child.node);
    } else if (child.field == "value") {
      result.value = with_.words.read(child.node);
      integer = with_.expressions.is_number(child.node) || (result.value.fixed && is_integer(result.value.text));
      if (kind(child.node) == Kind::kArray) array(child.node);
    }
  }
  if (!integer && is_integer_variable(result.name)) doubt(node);
  if (!integer || !appends) in_.numbers.assign(result.name, integer);
  return result;
}

namespace {

// `{fd}<file`, `{a[x]}<file`: the shell evaluates the subscript. `${x}<file` and `{ a; }<file` are none.
bool names_descriptor(std::string_view before) noexcept {
  if (before.size() < 2 || !before.ends_with('}')) return false;
  const char last = before[before.size() - 2];
  if (last != ']' && !is_name(std::string("x") + last)) return false;
  const std::size_t open = before.rfind("${");
  return open == std::string_view::npos || !is_name("x" + std::string(before.substr(open + 2, before.size() - open - 3)));
}

}  // namespace

void Redirections::redirect(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more) {
  Redirect result;
  bool has_target = false;
  if (names_descriptor(in_.text.substr(0, ts_node_start_byte(node)))) doubt(node);
  for (const Child& child : children(node)) {
    if (child.field == "descriptor") continue;
    if (kind(child.node) == Kind::kToken) {
      result.op = raw(child.node);
    } else if (!has_target) {
      result.target = with_.words.read(child.node);
      has_target = true;
    } else {
      more.push_back(with_.words.read(child.node));  // the grammar takes the command's next words for further targets
    }
  }
  redirects.push_back(std::move(result));
}

void Redirections::here_string(TSNode node, std::vector<Redirect>& redirects) {
  Redirect result{.op = "<<<"};
  for (const Child& child : children(node)) {
    if (kind(child.node) != Kind::kToken && child.field != "descriptor") result.target = with_.words.read(child.node);
  }
  redirects.push_back(std::move(result));
}

namespace {

// The line that ends a here-document must be the first that equals the delimiter, or shell and grammar read it differently.
bool ends_where_the_shell_does(std::string_view body, std::string_view end, const std::string& delimiter, bool strip) {
  const auto line_is = [&](std::string_view line) {
    if (strip) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
    return line == delimiter;
  };
  while (!body.empty()) {
    const std::size_t newline = body.find('\n');
    // Of `<<-` the grammar leaves the tabs before the end in the body.
    if (newline == std::string_view::npos) return strip && body.find_first_not_of('\t') == std::string_view::npos && line_is(end);
    if (line_is(body.substr(0, newline))) return false;
    body.remove_prefix(newline + 1);
  }
  return line_is(end);
}

}  // namespace

void Redirections::here_document(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more,
                                 std::vector<TSNode>& behind) {
  Redirect result{.op = "<<"};
  Word delimiter;
  bool literal = false;
  bool strip = false;
  std::string_view body;
  std::string_view end;
  for (const Child& child : children(node)) {
    const std::string_view type = ts_node_type(child.node);
    if (type == "<<-") {
      strip = true;
    } else if (type == "heredoc_start") {
      literal = raw(child.node).find_first_of("'\"\\") != std::string_view::npos;
      for (const char c : raw(child.node)) {
        if (std::string_view("'\"\\").find(c) == std::string_view::npos) delimiter.text += c;
      }
    } else if (type == "heredoc_body") {
      body = raw(child.node);
      result.target = here_body(child.node, literal, strip);
    } else if (type == "heredoc_end") {
      end = raw(child.node);
    } else if (kind(child.node) == Kind::kFileRedirect) {
      redirect(child.node, redirects, more);
    } else if (kind(child.node) == Kind::kHereString) {
      here_string(child.node, redirects);
    } else if (child.field == "argument") {
      more.push_back(with_.words.read(child.node));
    } else if (kind(child.node) != Kind::kToken && child.field != "descriptor") {
      behind.push_back(child.node);
    }
  }
  // The grammar may leave blanks of the last line to the end marker.
  if (!ends_where_the_shell_does(body, end, delimiter.text, strip))
    unread(span(node), "shell and grammar disagree where a here-document ends");
  redirects.push_back(std::move(result));
}

Word Redirections::here_body(TSNode node, bool literal, bool strip) {
  Word body{.span = span(node)};
  if (literal) {
    body.text = raw(node);
  } else {
    std::size_t at = ts_node_start_byte(node);
    for (const Child& child : children(node, false)) {
      if (std::string_view(ts_node_type(child.node)) == "heredoc_content") continue;
      add_double_quoted(body, between(at, ts_node_start_byte(child.node)));
      with_.words.add_expansion(body, child.node, true);
      at = ts_node_end_byte(child.node);
    }
    add_double_quoted(body, between(at, ts_node_end_byte(node)));
  }
  if (!strip) return body;
  std::string stripped;
  bool at_start = true;
  for (const char c : body.text) {
    if (!(at_start && c == '\t')) stripped += c;
    at_start = c == '\n' || (at_start && c == '\t');
  }
  body.text = std::move(stripped);
  return body;
}

}  // namespace belljar::shell
