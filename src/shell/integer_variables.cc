// Which variables may stand in arithmetic without running anything.
//
// The shell evaluates a variable's text again as an expression, with the subscripts in it, and a subscript
// may hold a command substitution (integer_variables.h has the example). So a name in arithmetic is fine only
// if every assignment in the same text gives it an integer, and nothing else can set it: `read`, `declare`, a
// builtin with names as arguments, a program whose name is not known, or the shell itself (REPLY, OLDPWD).
// The question is answered after the whole text was read, since an assignment further down counts too, for a
// loop may come back.
//
// UID and EUID are not among the variables that are integers from the start: bash takes them from the
// environment, and evaluates that.
#include "shell/integer_variables.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "shell/script.h"

namespace belljar::shell {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
constexpr std::string_view kDigits = "0123456789";

// Builtins that give the variables which their arguments name another value.
bool sets_arguments(const SimpleCommand& command) noexcept {
  constexpr std::string_view kSetters[] = {"read",  "readarray", "mapfile", "getopts",  "let",   "wait",
                                           "local", "declare",   "typeset", "readonly", "export"};
  const std::string_view name = program_name(command);
  if (name == "printf") return printf_sets(command.argv);
  return std::ranges::find(kSetters, name) != std::end(kSetters);
}

// The shell gives these what it likes: lines of a file, words of a match.
bool is_set_by_shell(std::string_view name) noexcept {
  constexpr std::string_view kNames[] = {
      "BASH_ARGV", "BASH_COMMAND", "BASH_REMATCH", "COMP_LINE",     "COMP_WORDS",     "COPROC", "DIRSTACK", "FUNCNAME",
      "MAPFILE",   "OLDPWD",       "OPTARG",       "READLINE_LINE", "READLINE_POINT", "REPLY",  "PWD",      "_"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Integers from the shell's start on, until the text gives them something else. Not UID and EUID: bash takes them from the
// environment, and evaluates that.
bool is_integer_at_start(std::string_view name) noexcept {
  constexpr std::string_view kNames[] = {"LINENO", "PPID", "RANDOM", "SECONDS"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// printf(1) of bash: flags, width, precision and length may stand between % and n.
bool has_count_conversion(std::string_view text) noexcept {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const std::size_t letter = text.find_first_not_of("#'-+ .*0123456789hjlLtz", at + 1);
    if (letter != std::string_view::npos && text[letter] == 'n') return true;
  }
  return false;
}

}  // namespace

bool is_integer(std::string_view text) noexcept {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.find_first_not_of(kDigits) == std::string_view::npos;
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && kDigits.find(text[0]) == std::string_view::npos &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

bool is_integer_variable(std::string_view name) noexcept {
  constexpr std::string_view kNames[] = {"BASHPID", "BASH_MONOSECONDS", "EPOCHSECONDS", "EUID",    "HISTCMD", "LINENO", "OPTIND",
                                         "PPID",    "RANDOM",           "SECONDS",      "SRANDOM", "UID"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

bool is_count(std::string_view text) noexcept {
  if (text.size() > 2 && text.starts_with('"') && text.ends_with('"')) text = text.substr(1, text.size() - 2);
  if (text == "$?" || text == "$#" || text == "$$" || text == "$!") return true;
  if (!text.starts_with("${#") || !text.ends_with('}')) return false;
  std::string_view name = text.substr(3, text.size() - 4);
  for (const std::string_view all : {"[@]", "[*]"}) {
    if (name.ends_with(all)) name.remove_suffix(all.size());
  }
  return name.find_first_not_of(kLetters) == std::string_view::npos;
}

bool looks_up_subscript(std::span<const Word> argv) noexcept {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const Word& word = argv[i];
    const bool begins_open =
        word.expands || word.text.empty() || std::string_view("-*?[{").find(word.text[0]) != std::string_view::npos;
    if (word.splits && begins_open) return true;
    // Of "$x" and "-$x" the text is what is fixed.
    const bool looks_up =
        word.fixed ? word.text == "-v" : word.expands && std::string_view("-v").find(word.text) != std::string_view::npos;
    if (looks_up && i + 1 < argv.size() && !(argv[i + 1].fixed && argv[i + 1].text.find('[') == std::string::npos)) return true;
  }
  return false;
}

bool printf_sets(std::span<const Word> argv) noexcept {
  const std::size_t at = argv.size() > 2 && argv[1].fixed && argv[1].text == "--" ? 2 : 1;
  if (at >= argv.size()) return false;
  const Word& word = argv[at];
  return !word.fixed || (at == 1 && word.text.starts_with("-v")) || has_count_conversion(word.text);
}

void IntegerVariables::assign(std::string_view name, bool integer) {
  const auto [entry, is_new] = assigned_.try_emplace(std::string(name), integer);
  if (!is_new) entry->second = entry->second && integer;
}

void IntegerVariables::evaluate(std::string_view name, Span where) { evaluated_.try_emplace(std::string(name), where); }

std::optional<Span> IntegerVariables::doubtful(const Script& script) const {
  if (evaluated_.empty()) return std::nullopt;
  std::set<std::string_view> set;
  bool any = doubt_all_;
  for (const SimpleCommand& command : script.commands) {
    if (!command.argv.empty() && program_name(command).empty()) any = true;
    if (!sets_arguments(command)) continue;
    for (std::size_t i = 1; i < command.argv.size(); ++i) {
      any = any || !command.argv[i].fixed;
      set.insert(command.argv[i].text);
    }
  }
  for (const auto& [name, where] : evaluated_) {
    const auto found = assigned_.find(name);
    const bool integer = found == assigned_.end() ? is_integer_at_start(name) : found->second;
    if (any || is_set_by_shell(name) || !integer || set.contains(name)) return where;
  }
  return std::nullopt;
}

}  // namespace belljar::shell
