#include "guard/read_only.h"

#include <algorithm>

#include "base/format.h"

namespace belljar::guard {
namespace {

// An option in `list`: `--output` also as `--output=x` and by any beginning of five letters or more (getopt_long(3) takes them),
// `-o` also inside a cluster and glued to its value.
bool is_refused(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    const std::size_t space = std::min(list.find(' '), list.size());
    const std::string_view option = list.substr(0, space);
    list.remove_prefix(std::min(space + 1, list.size()));
    if (word == option || (word.starts_with(option) && word.size() > option.size() && word[option.size()] == '=')) return true;
    if (option.starts_with("--")) {
      const std::string_view name = word.substr(0, word.find('='));
      if (name.size() >= 5 && option.starts_with(name)) return true;
    } else if (option.size() == 2 && option[0] == '-' && word.starts_with('-') && !word.starts_with("--") &&
               word.find(option[1], 1) != std::string_view::npos) {
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

// It may turn out to be an option: a variable may hold one, and so may the name of a file that a pattern finds.
bool may_be_option(const Word& word) noexcept {
  if (word.fixed) return false;
  return word.expands || word.text.empty() || std::string_view("-*?[{").find(word.text[0]) != std::string_view::npos;
}

// find(1): -exec and its kind are parts of their own.
std::optional<std::string> why_not_find(const Part& part) {
  constexpr std::string_view kActs = "-delete -fls -fprint -fprint0 -fprintf";
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    if (word.text == "-exec" || word.text == "-execdir" || word.text == "-ok" || word.text == "-okdir") {
      while (i < part.argv.size() && part.argv[i].text != ";" && part.argv[i].text != "+") ++i;
      continue;
    }
    if (may_be_option(word)) return "an argument of `find` is only known at run time";
    if (has_word(kActs, word.text)) return format("`find {}` changes files", word.text);
  }
  return std::nullopt;
}

// sed(1): only `-n` with line addresses and p, such as `sed -n 1,20p FILE`: scripts may write files and run commands.
std::optional<std::string> why_not_sed(const Part& part) {
  const bool quiet = part.argv.size() >= 3 && part.argv[1].text == "-n";
  const std::string_view script = quiet ? std::string_view(part.argv[2].text) : std::string_view();
  const bool prints = script.ends_with('p') && script.size() > 1 &&
                      script.substr(0, script.size() - 1).find_first_not_of("0123456789,$") == std::string_view::npos;
  const bool plain = std::all_of(part.argv.begin() + (quiet ? 3 : 1), part.argv.end(),
                                 [](const Word& word) { return word.fixed && !word.text.starts_with('-'); });
  if (prints && plain) return std::nullopt;
  return "of `sed` only `sed -n M,Np FILE` is known to read";
}

}  // namespace

const std::vector<ReadOnlyProgram>& read_only_programs() {
  // clang-format off
  static const std::vector<ReadOnlyProgram> kPrograms{
      {":", "", ""}, {"[", "", ""}, {"test", "", ""}, {"true", "", ""}, {"false", "", ""},
      {"basename", "", ""}, {"base64", "-o --output", ""}, {"cal", "", ""}, {"cat", "", ""}, {"cd", "", ""}, {"cmp", "", ""}, {"column", "", ""},
      {"comm", "", ""}, {"cut", "--output", ""}, {"date", "-s --set", ""}, {"df", "", ""}, {"diff", "--output", ""}, {"dirname", "", ""}, {"du", "", ""},
      {"echo", "", ""}, {"egrep", "", ""}, {"expr", "", ""}, {"fgrep", "", ""}, {"file", "-C --compile", ""}, {"fold", "", ""},
      {"find", "-delete -fls -fprint -fprint0 -fprintf", ""},
      {"grep", "", ""}, {"head", "", ""}, {"hexdump", "", ""}, {"hostname", "-F -b --file --boot", ""}, {"id", "", ""}, {"jq", "", ""}, {"ls", "", ""},
      {"md5sum", "", ""}, {"nl", "", ""}, {"nproc", "", ""}, {"numfmt", "", ""}, {"od", "", ""}, {"paste", "", ""}, {"printf", "-v", ""}, {"ps", "", ""},
      {"pwd", "", ""}, {"readlink", "", ""}, {"realpath", "", ""}, {"rev", "", ""}, {"rg", "--pre --hostname-bin --search-zip -z", ""},
      {"sed", "(all but -n M,Np)", ""}, {"seq", "", ""}, {"sha256sum", "", ""}, {"sleep", "", ""}, {"sort", "-o --output --compress-program", ""},
      {"stat", "", ""}, {"strings", "", ""}, {"tac", "", ""}, {"tail", "", ""}, {"tr", "", ""}, {"type", "", ""}, {"uname", "", ""}, {"uniq", "", ""},
      {"uptime", "", ""}, {"wc", "", ""}, {"which", "", ""}, {"whoami", "", ""},
      {"git", "--output --ext-diff --textconv --exec --open-files-in-pager -O", "blame cat-file describe diff grep log ls-files ls-tree merge-base rev-list rev-parse shortlog show show-ref status"},
      {"cargo", "", "--version version tree metadata"}, {"go", "", "version env list"}, {"npm", "", "--version ls view"}, {"docker", "", "ps images version info"},
      {"node", "", "--version -v"}, {"python3", "", "--version -V"}, {"rustc", "", "--version -V"}, {"gcc", "", "--version"},
  };
  // clang-format on
  return kPrograms;
}

std::optional<std::string> why_not_read_only(const Part& part) {
  for (const Redirect& redirect : part.redirects) {
    const bool reads = redirect.op.starts_with('<') && redirect.op != "<>";
    const bool duplicates =
        redirect.op == ">&-" || (redirect.op == ">&" && redirect.target.text.find_first_not_of("0123456789-") == std::string::npos);
    if (!reads && !duplicates && redirect.target.text != "/dev/null") return format("writes to {}", quoted(redirect.target.text));
  }
  if (!part.assignments.empty() && part.assignments[0].name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos) {
    constexpr std::string_view kHarmless = "LANG LC_ALL LC_CTYPE TZ NO_COLOR TERM COLUMNS LINES";
    for (const Assignment& assignment : part.assignments) {
      if (!has_word(kHarmless, assignment.name) && !part.argv.empty())
        return format("sets {} for the command", quoted(assignment.name));
    }
  }
  if (part.argv.empty()) return std::nullopt;
  if (!part.argv[0].fixed) return "which program runs is only known at run time";
  std::string_view name = part.argv[0].text;
  for (const std::string_view directory : {"/bin/", "/usr/bin/", "/usr/local/bin/"}) {
    if (name.starts_with(directory) && name.find('/', directory.size()) == std::string_view::npos)
      name.remove_prefix(directory.size());
  }
  const auto found = std::ranges::find(read_only_programs(), name, &ReadOnlyProgram::name);
  if (found == read_only_programs().end()) return format("{} is not in the list of commands that only read", quoted(name));
  if (name == "find") return why_not_find(part);
  if (name == "sed") return why_not_sed(part);
  bool only_operands = false;
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    if (word.text == "--" && word.fixed) only_operands = true;
    if (only_operands) continue;
    if (!found->refused.empty() && may_be_option(word))
      return format("an argument of `{}` is only known at run time, and may be an option", name);
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
