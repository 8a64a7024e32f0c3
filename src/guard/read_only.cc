// Commands that are known to only read, with what of each program is refused.
//
// The list is an allow-list twice over: a program that is not in it may write, and of a program that is in it
// every option that writes, runs something or opens a connection is named. Options are matched as
// getopt_long(3) would take them, in any unique beginning, inside a cluster and glued to a value. A word that
// only the run decides might turn out to be such an option, unless its beginning rules that out
// (may_be_option).
//
// Where the danger is in an operand and not in an option (`sed` with a `w` command, `find -delete`, `git
// branch NAME`), the program has a check of its own. sed's little language is read only as far as needed to
// be sure; what is not understood there is not read-only.
#include "guard/read_only.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "shell/hooks.h"
#include "shell/integer_variables.h"
#include "shell/script.h"
#include "shell/word_list.h"
#include "shell/wrappers.h"

namespace belljar::guard {

using shell::Assignment;
using shell::has_word;
using shell::is_name;
using shell::is_risky_variable;
using shell::Redirect;
using shell::SimpleCommand;
using shell::system_name;
using shell::Word;

namespace {

// An option in `list`: `--output` also as `--output=x` and by every beginning of it, since getopt_long(3) takes the shortest that
// is unique; `-o` also inside a cluster and glued to its value.
bool is_refused(std::string_view list, std::string_view word) noexcept {
  const std::string_view name = word.substr(0, word.find('='));
  while (!list.empty()) {
    const std::size_t space = std::min(list.find(' '), list.size());
    const std::string_view option = list.substr(0, space);
    list.remove_prefix(std::min(space + 1, list.size()));
    if (option.starts_with("--")) {
      if (name.size() >= 3 && option.starts_with(name)) return true;
    } else if (word.starts_with('-') && !word.starts_with("--") && word.find(option[1], 1) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// It may turn out to be an option: a variable may hold one, what xargs and find put in place of a word, and the name of a file that
// a pattern finds. Not "./$x" and its kind, which is one word with a known beginning.
bool may_be_option(const Word& word) noexcept {
  if (word.fixed) return false;
  if (word.text.empty() || word.opens || (word.expands && word.splits)) return true;
  const char first = word.text[0];
  if (word.expands) return std::string_view("./_").find(first) == std::string_view::npos && !is_name(word.text.substr(0, 1));
  const bool known_start = word.pattern || first == '~';
  return !known_start || std::string_view("-*?[{").find(first) != std::string_view::npos;
}

// find(1): what -exec and its kind start is a command of its own, but find must end it where this does: at `;`, or at `+` behind
// `{}`.
std::optional<std::string> why_not_find(const SimpleCommand& command) {
  constexpr std::string_view kActs = "-delete -fls -fprint -fprint0 -fprintf";
  bool starts = false;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    if (starts ? !word.fixed : may_be_option(word)) return "an argument of `find` is only known at run time";
    if (starts && word.text == "+" && command.argv[i - 1].text != "{}") return "`find` and this list read its `+` differently";
    if (starts) starts = word.text != ";" && word.text != "+";
    else if (has_word(kActs, word.text)) return format("`find {}` changes files", word.text);
    else starts = has_word("-exec -execdir -ok -okdir", word.text);
  }
  return std::nullopt;
}

// sed(1): `rest` up to the next `delimiter` that no backslash stands before; moved behind it.
bool skip_delimited(std::string_view& rest, char delimiter) noexcept {
  std::size_t at = 0;
  while (at < rest.size() && rest[at] != delimiter) at += rest[at] == '\\' ? 2 : 1;
  if (at >= rest.size()) return false;
  rest.remove_prefix(at + 1);
  return true;
}

// `12`, `$`, `/text/`, and as the second of two `+3`.
bool skip_address(std::string_view& rest) noexcept {
  if (rest.starts_with('/')) {
    rest.remove_prefix(1);
    return skip_delimited(rest, '/');
  }
  if (rest.starts_with('$')) {
    rest.remove_prefix(1);
    return true;
  }
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  rest.remove_prefix(digits);
  return digits > 0;
}

// One command that prints, drops or changes lines: other scripts may write files and run commands.
// A bracket expression may hold the delimiter, and versions of sed do not agree whether it ends there.
bool is_plain_sed(std::string_view script) noexcept {
  if (script.find('[') != std::string_view::npos) return false;
  if (std::ranges::any_of(script, [](char c) { return c < ' ' || c > '~'; })) return false;
  if (script.find_first_of("0123456789$/") == 0) {
    if (!skip_address(script)) return false;
    if (script.starts_with(',')) {
      script.remove_prefix(script.starts_with(",+") ? 2 : 1);
      if (!skip_address(script)) return false;
    }
  }
  if (script == "p" || script == "d" || script == "q" || script == "=") return true;
  if (script.size() < 2 || script[0] != 's' || std::string_view("/|,#:@!%").find(script[1]) == std::string_view::npos) return false;
  const char delimiter = script[1];
  script.remove_prefix(2);
  return skip_delimited(script, delimiter) && skip_delimited(script, delimiter) &&
         script.find_first_not_of("gpIi0123456789") == std::string_view::npos;
}

std::optional<std::string> why_not_sed(const SimpleCommand& command) {
  constexpr std::string_view kFlags = "-n -E -r -nE -nr -En -rn";
  bool has_script = false;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    if (command.argv[i].fixed && has_word(kFlags, command.argv[i].text)) continue;
    const bool gives_script = command.argv[i].fixed && command.argv[i].text == "-e";
    if (gives_script) ++i;
    if (i == command.argv.size()) return "`sed -e` without a script";
    const Word& word = command.argv[i];
    if (gives_script || !has_script) {
      if (!word.fixed || !is_plain_sed(word.text))
        return "of `sed` only `[ADDRESS]p`, `d`, `q`, `=` and `s/A/B/` are known to read";
      has_script = true;
    } else if (may_be_option(word) || (word.text.starts_with('-') && word.text.size() > 1)) {
      return "of `sed` only the options -n, -E, -r and -e are known to read";
    }
  }
  return has_script ? std::nullopt : std::optional<std::string>("`sed` without a script");
}

// tar(1): one archive's list. `HOST:FILE` starts rsh.
std::optional<std::string> why_not_tar(const SimpleCommand& command) {
  const auto& argv = command.argv;
  const bool lists = argv.size() == 3 && argv[1].fixed && has_word("tf tvf tzf tzvf -tf -tvf -tzf -tzvf", argv[1].text);
  if (lists && argv[2].fixed && !argv[2].text.starts_with('-') && argv[2].text.find(':') == std::string::npos) return std::nullopt;
  return "of `tar` only `tar tf FILE` is known to read";
}

std::optional<std::string> why_not_env(const SimpleCommand& command) {
  if (command.argv.size() == 1) return std::nullopt;
  return "of `env` only the list of all variables is known to read";
}

// `command -v NAME` looks a name up.
std::optional<std::string> why_not_command(const SimpleCommand& command) {
  if (command.argv.size() > 1 && command.argv[1].fixed && has_word("-v -V", command.argv[1].text)) return std::nullopt;
  return "of `command` only -v and -V are known to read";
}

// read of bash(1): variables that mean something to programs or to the shell have capital letters, but for some.
std::optional<std::string> why_not_read(const SimpleCommand& command) {
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    if (word.fixed && word.text == "-r") continue;
    if (word.fixed && word.text == "-d" && i + 1 < command.argv.size() && command.argv[i + 1].fixed) {
      ++i;
      continue;
    }
    const bool small = std::ranges::none_of(word.text, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!word.fixed || !is_name(word.text) || word.text == "_" || !small || is_risky_variable(word.text))
      return "`read` sets a variable that may mean something to a program";
  }
  return std::nullopt;
}

// date(1): an operand that is no `+FORMAT` sets the clock.
std::optional<std::string> why_not_date(const SimpleCommand& command) {
  constexpr std::string_view kPlain = "-u --utc --universal -R --rfc-email -I --iso-8601";
  constexpr std::string_view kGlued[] = {"+", "-d", "-r", "-I", "--date=", "--reference=", "--iso-8601=", "--rfc-3339="};
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    const auto begins = [&](std::string_view start) { return word.text.starts_with(start); };
    if (!word.fixed) return "an argument of `date` is only known at run time";
    if (word.text == "-d" || word.text == "-r") {
      ++i;
      if (i < command.argv.size() && !command.argv[i].splits) continue;
      return "an argument of `date` is only known at run time";
    }
    if (!has_word(kPlain, word.text) && std::ranges::none_of(kGlued, begins))
      return format("`date {}` may set the clock", escaped(word.text));
  }
  return std::nullopt;
}

// hostname(1): an operand sets the name.
std::optional<std::string> why_not_hostname(const SimpleCommand& command) {
  constexpr std::string_view kShows =
      "-A -d -f -i -I -s --all-fqdns --all-ip-addresses --domain --fqdn --ip-address --long --short";
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    if (!command.argv[i].fixed || !has_word(kShows, command.argv[i].text))
      return format("`hostname {}` may set the name of the machine", escaped(command.argv[i].text));
  }
  return std::nullopt;
}

// uniq(1): the second operand is written to. The value of an option counts as one, too: `-f1` is read, `-f 1` is not.
std::optional<std::string> why_not_uniq(const SimpleCommand& command) {
  std::size_t operands = 0;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    if (word.splits || word.text == "--") return "how many files `uniq` gets is only known at run time";
    if (!word.fixed || word.text == "-" || !word.text.starts_with('-')) ++operands;
  }
  if (operands < 2) return std::nullopt;
  return "`uniq` writes to the second file it gets";
}

std::optional<std::string> why_not_printf(const SimpleCommand& command) {
  if (!printf_sets(command.argv)) return std::nullopt;
  return "`printf` may set a variable by -v or %n";
}

// Whether %G stands in a format, also as %+G, %-G and `% G`: it runs gpg.
bool shows_signatures(std::string_view text) noexcept {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const std::size_t letter = text.find_first_not_of("-+ ", at + 1);
    if (letter != std::string_view::npos && text[letter] == 'G') return true;
  }
  return false;
}

// git(1): `branch`, `tag` and `remote` list what there is when they get nothing else.
std::optional<std::string> why_not_git(const SimpleCommand& command) {
  constexpr std::pair<std::string_view, std::string_view> kLists[] = {
      {"branch", "-a -r -v -vv --all --list --remotes --show-current --verbose"}, {"remote", "-v --verbose"}, {"tag", "-l --list"}};
  if (std::ranges::any_of(command.argv, [](const Word& word) { return shows_signatures(word.text); }))
    return "`%G` in a format of `git` runs gpg";
  for (const auto& [subcommand, options] : kLists) {
    if (command.argv.size() < 3 || command.argv[1].text != subcommand) continue;
    for (std::size_t i = 2; i < command.argv.size(); ++i) {
      if (!command.argv[i].fixed || !has_word(options, command.argv[i].text))
        return format("`git {}` may change something", subcommand);
    }
  }
  return std::nullopt;
}

// `git log -SOpen`: the letters behind -S and -G are what is looked for.
bool is_searched(const SimpleCommand& command, const Word& word) noexcept {
  return system_name(command.argv[0].text) == "git" && has_word("diff log show", command.argv[1].text) &&
         (word.text.starts_with("-S") || word.text.starts_with("-G"));
}

struct OwnCheck {
  std::string_view name;
  std::optional<std::string> (*why_not)(const SimpleCommand&);
};
constexpr OwnCheck kOwnChecks[] = {{"command", why_not_command}, {"date", why_not_date}, {"env", why_not_env},
                                   {"find", why_not_find},       {"git", why_not_git},   {"hostname", why_not_hostname},
                                   {"printf", why_not_printf},   {"read", why_not_read}, {"sed", why_not_sed},
                                   {"tar", why_not_tar},         {"uniq", why_not_uniq}};

std::optional<std::string> why_not_redirects(const SimpleCommand& command) {
  for (const Redirect& redirect : command.redirects) {
    if (writes_a_file(redirect)) return format("writes to {}", quoted(shown(redirect.target)));
    if (redirect.op == "<" && redirect.target.expands)
      return "reads what only the run decides: bash connects to /dev/tcp/HOST/PORT";
  }
  return std::nullopt;
}

}  // namespace

const std::vector<ReadOnlyProgram>& read_only_programs() {
  // clang-format off
  static const std::vector<ReadOnlyProgram> kPrograms{
      {":", "", ""}, {"[", "", ""}, {"test", "", ""}, {"true", "", ""}, {"false", "", ""},
      {"basename", "", ""}, {"base64", "-o --output", ""}, {"cal", "", ""}, {"cat", "", ""}, {"cd", "", ""}, {"cmp", "", ""}, {"column", "", ""},
      {"comm", "", ""}, {"command", "(all but -v, -V)", ""}, {"cut", "", ""}, {"date", "(an operand but +FORMAT, -s, -f)", ""}, {"df", "", ""}, {"diff", "-l --paginate", ""},
      {"dirname", "", ""}, {"du", "", ""}, {"echo", "", ""}, {"egrep", "", ""}, {"env", "(a word)", ""}, {"expr", "", ""}, {"fgrep", "", ""}, {"free", "", ""},
      {"file", "-C -p -S -z -Z --compile --no-sandbox --preserve-date --uncompress --uncompress-noreport", ""}, {"fold", "", ""},
      {"find", "-delete -fls -fprint -fprint0 -fprintf", ""},
      {"grep", "", ""}, {"head", "", ""}, {"hexdump", "", ""}, {"hostname", "(an operand, -F, -b)", ""}, {"id", "", ""}, {"jq", "", ""}, {"ls", "", ""},
      {"md5sum", "", ""}, {"nl", "", ""}, {"nproc", "", ""}, {"numfmt", "", ""}, {"od", "", ""}, {"paste", "", ""}, {"printenv", "", ""}, {"printf", "(-v, %n)", ""}, {"ps", "", ""},
      {"pwd", "", ""}, {"read", "(a name with capitals)", ""}, {"readlink", "", ""}, {"realpath", "", ""}, {"rev", "", ""}, {"rg", "-z --pre --hostname-bin --search-zip", ""},
      {"sed", "(all but p, d, q, =, s/A/B/)", ""}, {"seq", "", ""}, {"sha1sum", "", ""}, {"sha256sum", "", ""}, {"sleep", "", ""},
      {"sort", "-o -T --output --compress-program --temporary-directory", ""},
      {"stat", "", ""}, {"strings", "", ""}, {"tac", "", ""}, {"tail", "", ""}, {"tar", "(all but tf FILE)", ""}, {"tr", "", ""}, {"tree", "-o -R --output", ""}, {"type", "", ""}, {"uname", "", ""},
      {"uniq", "(a second operand)", ""}, {"uptime", "", ""}, {"wc", "", ""}, {"which", "", ""}, {"whoami", "", ""},
      {"git", "-O --output --ext-diff --textconv --exec --filters --show-signature --open-files-in-pager", "blame branch cat-file describe diff grep log ls-files ls-tree merge-base remote rev-list rev-parse shortlog show show-ref status tag"},
      {"docker", "", "ps images version"},
      {"node", "", "--version -v"}, {"python3", "", "--version -V"}, {"gcc", "", "--version"},
  };
  // clang-format on
  return kPrograms;
}

bool writes_a_file(const Redirect& redirect) noexcept {
  if (redirect.op.find('>') == std::string::npos || redirect.op == ">&-" || redirect.op == "<&-") return false;
  // A target that the run completes is a file until it is known: `>&$x`, `>&1$x`.
  const std::string& text = redirect.target.text;
  const bool is_descriptor = redirect.op == ">&" && !text.empty() && text.find_first_not_of("0123456789-") == std::string::npos;
  return !redirect.target.fixed || (!is_descriptor && text != "/dev/null");
}

std::optional<std::string> why_not_surroundings(const SimpleCommand& command) {
  if (auto why = why_not_redirects(command)) return why;
  constexpr std::string_view kHarmless = "LANG LC_ALL LC_CTYPE TZ NO_COLOR TERM COLUMNS LINES";
  for (const Assignment& assignment : command.assignments) {
    // Whatever follows in this shell sees it.
    if (command.argv.empty() && is_risky_variable(assignment.name))
      return format("sets {}, which changes what other programs run or load", quoted(assignment.name));
    const bool reads_fields = assignment.name == "IFS" && !command.argv.empty() && command.argv[0].text == "read";
    if (!command.argv.empty() && !has_word(kHarmless, assignment.name) && !reads_fields)
      return format("sets {} for the command", quoted(assignment.name));
  }
  return std::nullopt;
}

std::optional<std::string> why_not_read_only(const SimpleCommand& command) {
  if (auto why = why_not_surroundings(command)) return why;
  if (command.argv.empty()) return std::nullopt;
  if (!command.argv[0].fixed) return "which program runs is only known at run time";
  const std::string_view name = system_name(command.argv[0].text);
  const auto found = std::ranges::find(read_only_programs(), name, &ReadOnlyProgram::name);
  if (found == read_only_programs().end()) return format("{} is not in the list of commands that only read", quoted(name));
  const auto* own = std::ranges::find(kOwnChecks, name, &OwnCheck::name);
  if (own != std::end(kOwnChecks)) {
    if (auto why = own->why_not(command); why || found->only.empty()) return why;
  }
  // Also behind `--`, which may be the value of an option and end nothing.
  for (std::size_t i = 1; !found->refused.empty() && i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    if (may_be_option(word)) return format("an argument of `{}` is only known at run time, and may be an option", name);
    if (is_refused(found->refused, word.text) && !is_searched(command, word))
      return format("`{} {}` may write or run something", name, escaped(word.text));
  }
  if (found->only.empty()) return std::nullopt;
  if (command.argv.size() < 2) return format("`{}` alone is not in the list of commands that only read", name);
  if (!command.argv[1].fixed || !has_word(found->only, command.argv[1].text))
    return format("of `{}` only {} are known to read", name, found->only);
  // `--version` ends what it is given to only when it stands alone.
  if (command.argv[1].text.starts_with('-') && command.argv.size() > 2)
    return format("`{} {}` has further arguments", name, command.argv[1].text);
  return std::nullopt;
}

}  // namespace belljar::guard
