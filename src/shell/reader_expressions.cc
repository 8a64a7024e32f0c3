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
#include "shell/integer_variables.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/variables.h"

namespace belljar::shell {

void Expressions::read(TSNode node) {
  const DepthScope deeper(in_.depth);
  if (full(node)) return;
  if (kind(node) == Kind::kSubstitution) {
    substitutions_.push_back(ts_node_start_byte(node));
    if (without_blanks(raw(node)).starts_with("$((")) doubt(node);  // arithmetic to the shell
    const LabelScope label(in_.inside, "substitution");
    const RestoreOnExit outside_cwd(in_.cwd);
    auto outside = std::exchange(in_.upstream, {});
    with_.statements.read_all(node);
    in_.variables.forget(node);
    in_.upstream = std::move(outside);
    return;
  }
  if (kind(node) == Kind::kRedirected || kind(node) == Kind::kCommand)
    return with_.statements.read(node);  // `[[ a < b ]]` as the grammar sees it
  if (kind(node) == Kind::kParameter) parameter(node);
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kOther && ts_node_child_count(child.node) > 0)
      unread(span(child.node), "the shell's grammar does not cover this");
    else if (ts_node_child_count(child.node) > 0) read(child.node);
    // What a[...] and $((...)) hold is evaluated, and `[x]=` at the front of an array's element.
    if (kind(child.node) == Kind::kToken) continue;
    const bool index = kind(node) == Kind::kSubscript && ts_node_start_byte(child.node) > ts_node_start_byte(node);
    if (kind(node) == Kind::kArithmetic || (index && raw(child.node) != "@" && raw(child.node) != "*")) evaluated(child.node);
  }
}

std::vector<std::uint32_t> Expressions::substitutions() const {
  std::vector<std::uint32_t> found = substitutions_;
  std::ranges::sort(found);
  return found;
}

// ${x@P} expands what x holds like a prompt, ${!x} what it names, ${x:=y} assigns, ${x:y:z} evaluates y and z.
void Expressions::parameter(TSNode node) {
  const std::string_view text = without_blanks(raw(node));
  const auto names = [&](std::string_view ending) {  // ${!x@}, ${!x[@]}: names and subscripts, which run nothing
    return text.ends_with(ending) && text.size() > 3 + ending.size() && is_name(text.substr(3, text.size() - 3 - ending.size()));
  };
  if (text.ends_with("@P}") || text.find("\\\n") != std::string_view::npos) return doubt(node);
  if (text.starts_with("${!") && !names("@}") && !names("*}") && !names("[@]}") && !names("[*]}")) return doubt(node);
  std::string_view name;
  bool offset = false;
  for (const Child& child : children(node)) {
    const std::string_view letters = raw(child.node);
    if (kind(child.node) == Kind::kToken) {
      offset = offset || letters == ":";
      if (letters == "=" || letters == ":=") in_.numbers.assign(name, false);
    } else if (offset) {
      evaluated(child.node);
    } else if (name.empty()) {
      name = letters.substr(0, letters.find('['));
    }
  }
}

// --- arithmetic and tests --------------------------------------------------------------------------------------------------------

// `node` is evaluated: numbers, names that hold numbers for sure, and operators between them.
void Expressions::evaluated(TSNode node) {
  const DepthScope deeper(in_.depth);
  if (full(node) || is_number(node)) return;
  std::string_view text = without_blanks(raw(node));
  if (kind(node) != Kind::kOperation && text.starts_with('$')) {
    text.remove_prefix(1);
    if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
    return is_name(text) ? in_.numbers.evaluate(text, span(node)) : doubt(node);
  }
  if (ts_node_child_count(node) == 0) return evaluated_letters(node);
  switch (kind(node)) {
    case Kind::kOperation:
    case Kind::kString:
    case Kind::kAssignment: {
      std::uint32_t end = UINT32_MAX;  // of the piece before: `a$i` is one name
      for (const Child& child : children(node)) {
        if (kind(child.node) == Kind::kToken) continue;
        if (ts_node_start_byte(child.node) == end) return doubt(node);
        end = ts_node_end_byte(child.node);
        evaluated(child.node);
      }
      return;
    }
    default:
      doubt(node);
  }
}

void Expressions::evaluated_letters(TSNode node) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789#";
  constexpr std::string_view kOperators = "+-*/%<>=!&|^~?:,() \t\n";
  std::string_view rest = raw(node);
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find_first_not_of(kLetters), rest.size());
    const std::string_view name = rest.substr(0, length);
    if (is_name(name)) in_.numbers.evaluate(name, span(node));
    else if (length == 0 ? kOperators.find(rest[0]) == std::string_view::npos : !is_integer(name.substr(0, 1))) return doubt(node);
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

void Expressions::test_pieces(TSNode node, std::vector<TSNode>& pieces) {
  const DepthScope deeper(in_.depth);
  if (full(node)) return;
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kOperation) test_pieces(child.node, pieces);
    else pieces.push_back(child.node);
  }
}

// The word as `test` looks at it: what is a number for sure cannot become an operator.
Word Expressions::test_word(TSNode node, const Word& word) {
  const std::string_view text = raw(node);
  if (!is_number(node)) {
    if (!word.splits || !text.starts_with('$') || !is_name(text.substr(1))) return word;
    in_.numbers.evaluate(text.substr(1), span(node));
  }
  return {.text = "0"};
}

void Expressions::test(TSNode node) {
  std::vector<TSNode> pieces;
  test_pieces(node, pieces);
  if (raw(node).starts_with("((")) {
    for (const TSNode piece : pieces) {
      if (kind(piece) != Kind::kToken) evaluated(piece);
    }
    return read(node);
  }
  if (!raw(node).starts_with("[[")) {
    std::vector<Word> words;
    for (const TSNode piece : pieces) {
      if (is_word(kind(piece))) {
        words.push_back(test_word(piece, with_.words.read(piece)));
      } else {
        words.push_back({.text = std::string(raw(piece))});
        if (ts_node_child_count(piece) > 0) with_.statements.read(piece);
      }
    }
    return looks_up_subscript(words) ? doubt(node) : void();
  }
  constexpr std::string_view kArithmetic[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
  for (std::size_t i = 1; i + 1 < pieces.size(); ++i) {
    const std::string_view text = raw(pieces[i]);
    if (text == "-v" && !is_name(raw(pieces[i + 1]))) doubt(pieces[i + 1]);
    if (std::ranges::find(kArithmetic, text) == std::end(kArithmetic)) continue;
    evaluated(pieces[i - 1]);
    evaluated(pieces[i + 1]);
  }
  read(node);
}

}  // namespace belljar::shell
