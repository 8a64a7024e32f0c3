// Which variables are followed, and what ends it.
//
// Before the first assignment is noted, the whole tree is looked through once (scan) for everything that
// could set a variable behind the reader's back. The rule is by exclusion: a variable is followed only if
// each thing in the text that may touch it is a plain assignment, an `export` or a `for` over words. So three
// sets are made:
//
// - `doubted_`: names that something else may set: `read x`, `((x=1))`, `${x:=y}`, `x+=y`, arrays,
//   assignments in functions or before a command.
// - `stopped_`: nothing is followed at all, because something may set any variable or run any text in this
//   shell: `eval`, `trap`, `.`, `let`, `&`, an option of `set` that is not known, a program whose name is not
//   plain.
// - `assigned_`: where in the text each assignment stands, so that forget() can take back exactly what a
//   branch did.
//
// The scan looks at bytes as well as at nodes for `${`, `((` and `$[`: some of them stand where the grammar
// shows none. A name that is doubted for nothing costs a question; one that is followed wrongly would let a
// command pass under a value that it does not have. Special variables of bash(1) are never followed, since
// the shell sets or ignores them itself.
#include "shell/variables.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shell/grammar.h"
#include "shell/hooks.h"
#include "shell/integer_variables.h"
#include "shell/script.h"
#include "shell/word_list.h"

namespace belljar::shell {
namespace {

constexpr std::size_t kMaxValue = 4096;
constexpr std::uint32_t kMaxInspected = 1024;  // words of one command: the tree finds each by counting
constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

// The shell gives these values of its own, or refuses or ignores what they are given.
bool is_special(std::string_view name) noexcept {
  constexpr std::string_view kNames =
      "_ COLUMNS DIRSTACK FUNCNAME GROUPS HISTCMD IFS LINES MAPFILE OLDPWD OPTARG OPTERR PIPESTATUS PWD REPLY SHLVL HOME";
  constexpr std::string_view kFronts[] = {"BASH", "COMP", "COPROC", "EPOCH", "READLINE", "HIST"};
  return has_word(kNames, name) || is_integer_variable(name) || is_risky_variable(name) ||
         std::ranges::any_of(kFronts, [&](std::string_view front) { return name.starts_with(front); });
}

// Builtins that may set any variable, change what a line means or run a text in this shell.
constexpr std::string_view kMeddlers =
    ". source eval trap mapfile readarray getopts let alias unalias enable builtin time coproc shopt complete compgen compopt bind "
    "fc history wait jobs select function";

bool is_plain(std::string_view word) noexcept {
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:@%,[]") ==
         std::string_view::npos;
}

// printf of bash(1) sets a variable by -v or by %n.
bool printf_may_set(std::string_view format) noexcept {
  if (format.find("$'") != std::string_view::npos) return true;
  const std::string_view inside = format.substr(std::min(format.find_first_not_of("'\""), format.size()));
  if (inside.empty() || std::string_view("-$\\`*?[{").find(inside[0]) != std::string_view::npos) return true;
  for (std::size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%', at + 1)) {
    const std::size_t letter = format.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ$`", at + 1);
    constexpr std::string_view kSizes = "hlLtz";
    std::size_t conversion = letter;
    while (conversion < format.size() && kSizes.find(format[conversion]) != std::string_view::npos) ++conversion;
    if (conversion < format.size() && std::string_view("n$`").find(format[conversion]) != std::string_view::npos) return true;
  }
  return false;
}

bool changes_numbers(std::string_view arithmetic) noexcept {
  return arithmetic.find('=') != std::string_view::npos || arithmetic.find("++") != std::string_view::npos ||
         arithmetic.find("--") != std::string_view::npos;
}

bool is_arithmetic_test(std::string_view test) noexcept {
  constexpr std::string_view kComparisons[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
  return std::ranges::any_of(kComparisons, [&](std::string_view sign) { return test.find(sign) != std::string_view::npos; });
}

}  // namespace

std::string_view Variables::raw(TSNode node) const noexcept {
  return text_.substr(ts_node_start_byte(node), ts_node_end_byte(node) - ts_node_start_byte(node));
}

void Variables::assign(std::string_view name, const Word& value) {
  if (!follows(name)) return;
  values_.erase(values_.lower_bound(name), values_.upper_bound(name));
  // A tilde that was fixed stands in quotes, or behind a colon, where the shell expands it all the same.
  const bool tilde = value.fixed && value.text.find('~') != std::string::npos;
  if (!tilde && value.text.size() <= kMaxValue) values_.emplace(name, value);
}

const Word* Variables::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

bool Variables::follows(std::string_view name) {
  if (!scanned_ && !stopped_) scan();
  return !stopped_ && is_name(name) && !doubted_.contains(name) && !is_special(name);
}

void Variables::forget(TSNode node) {
  if (values_.empty()) return;
  const std::uint32_t begin = ts_node_start_byte(node);
  auto at = std::ranges::lower_bound(assigned_, begin, {}, [](const auto& place) { return place.first; });
  for (; at != assigned_.end() && at->first < ts_node_end_byte(node); ++at)
    values_.erase(values_.lower_bound(at->second), values_.upper_bound(at->second));
}

void Variables::scan() {
  scanned_ = true;
  // `{fd}>x` sets fd; `${ a; }` and `${| a; }` run a in this shell (bash 5.3).
  for (const std::string_view sign : {"}>", "}<", "}&>", "${ ", "${|", "${\t", "${\n"})
    stopped_ |= text_.find(sign) != std::string_view::npos;
  // By letters, not by nodes: some stand where the grammar shows none.
  doubt_between("${", "}");
  doubt_between("((", "))");
  doubt_between("$[", "]");
  TSTreeCursor cursor = ts_tree_cursor_new(root_);
  std::vector<TSNode> parents;
  for (bool more = true; more && !stopped_;) {
    const TSNode node = ts_tree_cursor_current_node(&cursor);
    inspect(node, parents.empty() ? node : parents.back());
    if (ts_tree_cursor_goto_first_child(&cursor)) {
      parents.push_back(node);
      continue;
    }
    while (!(more = ts_tree_cursor_goto_next_sibling(&cursor)) && ts_tree_cursor_goto_parent(&cursor)) parents.pop_back();
  }
  ts_tree_cursor_delete(&cursor);
}

// Every name in `letters`, also glued behind an option's letters: `read -af`.
void Variables::doubt_names(std::string_view letters) {
  while (!letters.empty()) {
    const std::size_t length = std::min(letters.find_first_not_of(kNameLetters), letters.size());
    const std::string_view name = letters.substr(0, length);
    if (is_name(name)) doubted_.emplace(name);
    letters.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

// `((f=1))`, `${f:=x}`, `a[f++]`.
void Variables::doubt_changed(std::string_view letters) {
  if (changes_numbers(letters)) doubt_names(letters);
}

void Variables::doubt_between(std::string_view open, std::string_view close) {
  for (std::size_t at = text_.find(open); at != std::string_view::npos; at = text_.find(open, at + 1))
    doubt_changed(text_.substr(at, text_.find(close, at) - at));
}

void Variables::inspect(TSNode node, TSNode parent) {
  const std::uint32_t begin = ts_node_start_byte(node);
  const bool in_function = begin < function_end_;
  switch (grammar_.kind(node)) {
    case Kind::kToken:
      if (std::string_view(ts_node_type(node)) == "&") stopped_ = true;
      return;
    case Kind::kOther:
      stopped_ = stopped_ || ts_node_symbol(node) == static_cast<TSSymbol>(-1);  // an error
      return;
    case Kind::kFunction:
      function_end_ = std::max(function_end_, ts_node_end_byte(node));
      return;
    case Kind::kAssignment: {
      const TSNode name = ts_node_child_by_field_name(node, "name", 4);
      const TSNode value = ts_node_child_by_field_name(node, "value", 5);
      const std::string_view letters = raw(name).substr(0, raw(name).find('['));
      assigned_.emplace_back(begin, letters);
      const bool appends = raw(node).substr(std::min(raw(name).size(), raw(node).size())).starts_with("+=");
      const bool array =
          grammar_.kind(name) == Kind::kSubscript || (!ts_node_is_null(value) && grammar_.kind(value) == Kind::kArray);
      if (in_function || appends || array || grammar_.kind(parent) == Kind::kCommand) doubted_.emplace(letters);
      return;
    }
    case Kind::kLoop: {
      const TSNode name = ts_node_child_by_field_name(node, "variable", 8);
      const TSNode body = ts_node_child_by_field_name(node, "body", 4);
      if (ts_node_is_null(name)) {  // `for ((i=0;...))`, `while`
        const std::uint32_t end = ts_node_is_null(body) ? ts_node_end_byte(node) : ts_node_start_byte(body);
        if (raw(node).starts_with("for")) doubt_names(text_.substr(begin, end - begin));
        return;
      }
      assigned_.emplace_back(begin, raw(name));
      if (in_function || !raw(node).starts_with("for")) doubted_.emplace(raw(name));
      return;
    }
    case Kind::kDeclaration:
      return inspect_declaration(node);
    case Kind::kCommand:
      return inspect_command(node);
    case Kind::kTest:  // `[[ f=1 -eq 1 ]]` is arithmetic
      if (raw(node).starts_with("[[") && is_arithmetic_test(raw(node))) doubt_names(raw(node));
      return;
    case Kind::kSubscript:
      doubt_changed(raw(node));
      return;
    default:
      return;
  }
}

// `export A=x` assigns; what else gives a variable another kind, another scope or no value.
void Variables::inspect_declaration(TSNode node) {
  const std::string_view text = raw(node);
  const std::uint32_t count = ts_node_child_count(node);
  if (count > kMaxInspected) stopped_ = true;
  if (stopped_) return;
  bool plain = text.starts_with("export");
  for (std::uint32_t i = 1; i < count; ++i) {
    const TSNode child = ts_node_child(node, i);
    const Kind kind = grammar_.kind(child);
    plain = plain && (kind == Kind::kAssignment || kind == Kind::kName);
    // A name that only the run decides, or a name for another variable.
    const std::string_view word = raw(child);
    if (kind == Kind::kAssignment || kind == Kind::kName) continue;
    if (!is_plain(word) ||
        (word.size() > 1 && (word[0] == '-' || word[0] == '+') && word.find_first_of("nfi") != std::string_view::npos))
      stopped_ = true;
  }
  if (plain) return;
  for (std::uint32_t i = 1; i < count; ++i) {
    const TSNode child = ts_node_child(node, i);
    const std::string_view word = raw(child);
    doubt_names(grammar_.kind(child) == Kind::kAssignment ? word.substr(0, word.find('=')) : word);
  }
}

void Variables::inspect_command(TSNode node) {
  const TSNode head = ts_node_child_by_field_name(node, "name", 4);
  if (ts_node_is_null(head)) return;
  const std::string_view name = raw(head);
  if (!is_plain(name) || has_word(kMeddlers, name)) {
    stopped_ = true;
    return;
  }
  const bool sets = name == "read" || name == "unset", options = name == "set", asks = name == "command";
  if (!sets && !options && !asks && name != "printf") return;
  bool first = true;
  const std::uint32_t count = ts_node_child_count(node);
  if (count > kMaxInspected) stopped_ = true;
  for (std::uint32_t i = 0; i < count && !stopped_; ++i) {
    const TSNode child = ts_node_child(node, i);
    if (ts_node_start_byte(child) < ts_node_end_byte(head) || !is_word(grammar_.kind(child))) continue;
    const std::string_view word = raw(child);
    if (name == "printf") {
      const bool ends_options = word == "--";
      if (first && !ends_options && printf_may_set(word)) stopped_ = true;
      first = first && ends_options;
    } else if (asks) {
      if (first && word != "-v" && word != "-V") stopped_ = true;
      first = false;
    } else if (options) {
      if (!has_word("-e -u -x -eu -ex -ux -eux -euo -eo -uo -exo -euxo -o +e +x pipefail", word)) stopped_ = true;
    } else if (!is_plain(word) && word != "''" && word != "' '") {
      stopped_ = true;  // `read "$x"`
    } else {
      for (std::size_t at = 0; at < word.size() && word[0] == '-'; ++at) doubt_names(word.substr(at));
      doubt_names(word);
    }
  }
}

}  // namespace belljar::shell
