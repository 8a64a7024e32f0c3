#include "guard/read_only.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "guard/shell.h"

namespace belljar::guard {
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

bool has_word(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    const std::size_t space = std::min(list.find(' '), list.size());
    if (list.substr(0, space) == word) return true;
    list.remove_prefix(std::min(space + 1, list.size()));
  }
  return false;
}

// It may turn out to be an option: a variable may hold one, what xargs and find put in place of a word, and the name of a file that
// a pattern finds.
bool may_be_option(const Word& word) noexcept {
  if (word.fixed) return false;
  const bool known_start = word.pattern || word.text.starts_with('~');
  return word.expands || !known_start || word.text.empty() ||
         std::string_view("-*?[{").find(word.text[0]) != std::string_view::npos;
}

// find(1): what -exec and its kind start is a part of its own, but find must end it where this does: at `;`, or at `+` behind `{}`.
std::optional<std::string> why_not_find(const Part& part) {
  constexpr std::string_view kActs = "-delete -fls -fprint -fprint0 -fprintf";
  bool starts = false;
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    if (starts ? !word.fixed : may_be_option(word)) return "an argument of `find` is only known at run time";
    if (starts && word.text == "+" && part.argv[i - 1].text != "{}") return "`find` and this list read its `+` differently";
    if (starts) starts = word.text != ";" && word.text != "+";
    else if (has_word(kActs, word.text)) return format("`find {}` changes files", word.text);
    else starts = has_word("-exec -execdir -ok -okdir", word.text);
  }
  return std::nullopt;
}

// sed(1): only `-n` with line addresses and p, such as `sed -n 1,20p FILE`: scripts may write files and run commands.
std::optional<std::string> why_not_sed(const Part& part) {
  const bool quiet = part.argv.size() >= 3 && part.argv[1].text == "-n";
  const std::string_view script = quiet ? std::string_view(part.argv[2].text) : std::string_view();
  const bool prints = script.ends_with('p') && script.size() > 1 &&
                      script.substr(0, script.size() - 1).find_first_not_of("0123456789,$") == std::string_view::npos;
  const bool fixed = std::ranges::all_of(part.argv, &Word::fixed);
  const bool plain = std::all_of(part.argv.begin() + (quiet ? 3 : 1), part.argv.end(),
                                 [](const Word& word) { return !word.text.starts_with('-'); });
  if (prints && fixed && plain) return std::nullopt;
  return "of `sed` only `sed -n M,Np FILE` is known to read";
}

// date(1): an operand that is no `+FORMAT` sets the clock.
std::optional<std::string> why_not_date(const Part& part) {
  constexpr std::string_view kPlain = "-u --utc --universal -R --rfc-email -I --iso-8601";
  constexpr std::string_view kGlued[] = {"+", "-d", "-r", "-I", "--date=", "--reference=", "--iso-8601=", "--rfc-3339="};
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    const auto begins = [&](std::string_view start) { return word.text.starts_with(start); };
    if (!word.fixed) return "an argument of `date` is only known at run time";
    if (word.text == "-d" || word.text == "-r") {
      ++i;
      if (i < part.argv.size() && !part.argv[i].splits) continue;
      return "an argument of `date` is only known at run time";
    }
    if (!has_word(kPlain, word.text) && std::ranges::none_of(kGlued, begins))
      return format("`date {}` may set the clock", escaped(word.text));
  }
  return std::nullopt;
}

// hostname(1): an operand sets the name.
std::optional<std::string> why_not_hostname(const Part& part) {
  constexpr std::string_view kShows =
      "-A -d -f -i -I -s --all-fqdns --all-ip-addresses --domain --fqdn --ip-address --long --short";
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    if (!part.argv[i].fixed || !has_word(kShows, part.argv[i].text))
      return format("`hostname {}` may set the name of the machine", escaped(part.argv[i].text));
  }
  return std::nullopt;
}

// uniq(1): the second operand is written to. The value of an option counts as one, too: `-f1` is read, `-f 1` is not.
std::optional<std::string> why_not_uniq(const Part& part) {
  std::size_t operands = 0;
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    if (word.splits || word.text == "--") return "how many files `uniq` gets is only known at run time";
    if (!word.fixed || word.text == "-" || !word.text.starts_with('-')) ++operands;
  }
  if (operands < 2) return std::nullopt;
  return "`uniq` writes to the second file it gets";
}

// printf(1) in bash: -v, which stands first, sets a variable.
std::optional<std::string> why_not_printf(const Part& part) {
  if (part.argv.size() < 2 || (!may_be_option(part.argv[1]) && !part.argv[1].text.starts_with("-v"))) return std::nullopt;
  return "`printf -v` sets a variable";
}

// git(1): %G in a format runs gpg.
std::optional<std::string> why_not_git(const Part& part) {
  const bool signs = std::ranges::any_of(part.argv, [](const Word& word) { return word.text.find("%G") != std::string::npos; });
  return signs ? std::optional<std::string>("`%G` in a format of `git` runs gpg") : std::nullopt;
}

struct OwnCheck {
  std::string_view name;
  std::optional<std::string> (*why_not)(const Part&);
};
constexpr OwnCheck kOwnChecks[] = {{"date", why_not_date},         {"find", why_not_find},     {"git", why_not_git},
                                   {"hostname", why_not_hostname}, {"printf", why_not_printf}, {"sed", why_not_sed},
                                   {"uniq", why_not_uniq}};

std::optional<std::string> why_not_redirects(const Part& part) {
  for (const Redirect& redirect : part.redirects) {
    if (writes_a_file(redirect)) return format("writes to {}", quoted(redirect.target.text));
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
      {"comm", "", ""}, {"cut", "", ""}, {"date", "(an operand but +FORMAT, -s, -f)", ""}, {"df", "", ""}, {"diff", "-l --paginate", ""},
      {"dirname", "", ""}, {"du", "", ""}, {"echo", "", ""}, {"egrep", "", ""}, {"expr", "", ""}, {"fgrep", "", ""},
      {"file", "-C -S -z -Z --compile --no-sandbox --uncompress --uncompress-noreport", ""}, {"fold", "", ""},
      {"find", "-delete -fls -fprint -fprint0 -fprintf", ""},
      {"grep", "", ""}, {"head", "", ""}, {"hexdump", "", ""}, {"hostname", "(an operand, -F, -b)", ""}, {"id", "", ""}, {"jq", "", ""}, {"ls", "", ""},
      {"md5sum", "", ""}, {"nl", "", ""}, {"nproc", "", ""}, {"numfmt", "", ""}, {"od", "", ""}, {"paste", "", ""}, {"printf", "-v", ""}, {"ps", "", ""},
      {"pwd", "", ""}, {"readlink", "", ""}, {"realpath", "", ""}, {"rev", "", ""}, {"rg", "-z --pre --hostname-bin --search-zip", ""},
      {"sed", "(all but -n M,Np)", ""}, {"seq", "", ""}, {"sha256sum", "", ""}, {"sleep", "", ""},
      {"sort", "-o -T --output --compress-program --temporary-directory", ""},
      {"stat", "", ""}, {"strings", "", ""}, {"tac", "", ""}, {"tail", "", ""}, {"tr", "", ""}, {"type", "", ""}, {"uname", "", ""},
      {"uniq", "(a second operand)", ""}, {"uptime", "", ""}, {"wc", "", ""}, {"which", "", ""}, {"whoami", "", ""},
      {"git", "-O --output --ext-diff --textconv --exec --filters --show-signature --open-files-in-pager", "blame cat-file describe diff grep log ls-files ls-tree merge-base rev-list rev-parse shortlog show show-ref status"},
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

std::optional<std::string> why_not_surroundings(const Part& part) {
  if (auto why = why_not_redirects(part)) return why;
  constexpr std::string_view kHarmless = "LANG LC_ALL LC_CTYPE TZ NO_COLOR TERM COLUMNS LINES";
  for (const Assignment& assignment : part.assignments) {
    if (!part.argv.empty() && !has_word(kHarmless, assignment.name))
      return format("sets {} for the command", quoted(assignment.name));
  }
  return std::nullopt;
}

std::optional<std::string> why_not_read_only(const Part& part) {
  if (auto why = why_not_surroundings(part)) return why;
  if (part.argv.empty()) return std::nullopt;
  if (!part.argv[0].fixed) return "which program runs is only known at run time";
  std::string_view name = part.argv[0].text;
  for (const std::string_view directory : {"/bin/", "/usr/bin/", "/usr/local/bin/"}) {
    if (name.starts_with(directory) && name.find('/', directory.size()) == std::string_view::npos)
      name.remove_prefix(directory.size());
  }
  const auto found = std::ranges::find(read_only_programs(), name, &ReadOnlyProgram::name);
  if (found == read_only_programs().end()) return format("{} is not in the list of commands that only read", quoted(name));
  const auto* own = std::ranges::find(kOwnChecks, name, &OwnCheck::name);
  if (own != std::end(kOwnChecks)) {
    if (auto why = own->why_not(part); why || found->only.empty()) return why;
  }
  // Also behind `--`, which may be the value of an option and end nothing.
  for (std::size_t i = 1; !found->refused.empty() && i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    if (may_be_option(word)) return format("an argument of `{}` is only known at run time, and may be an option", name);
    if (is_refused(found->refused, word.text)) return format("`{} {}` may write or run something", name, escaped(word.text));
  }
  if (found->only.empty()) return std::nullopt;
  if (part.argv.size() < 2) return format("`{}` alone is not in the list of commands that only read", name);
  if (!part.argv[1].fixed || !has_word(found->only, part.argv[1].text))
    return format("of `{}` only {} are known to read", name, found->only);
  // `--version` ends what it is given to only when it stands alone.
  if (part.argv[1].text.starts_with('-') && part.argv.size() > 2)
    return format("`{} {}` has further arguments", name, part.argv[1].text);
  return std::nullopt;
}

}  // namespace belljar::guard
