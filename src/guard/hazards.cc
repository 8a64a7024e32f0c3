#include "guard/hazards.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "guard/places.h"
#include "guard/wrappers.h"

namespace belljar::guard {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kDownloaders[] = {"curl", "wget",  "fetch", "http", "https", "xh",    "aria2c",
                                             "lynx", "links", "w3m",   "nc",   "ncat",  "socat", "ftp"};
constexpr std::string_view kInterpreters[] = {"python", "python2", "python3", "perl", "ruby", "node",
                                              "nodejs", "deno",    "bun",     "php",  "lua",  "pwsh"};
constexpr std::string_view kRisky[] = {
    "PATH",        "IFS",      "ENV",        "BASH_ENV",       "SHELLOPTS",         "BASHOPTS", "PS4",          "PROMPT_COMMAND",
    "EDITOR",      "VISUAL",   "PAGER",      "LESSOPEN",       "LESSCLOSE",         "MANPAGER", "NODE_OPTIONS", "NODE_PATH",
    "PERL5OPT",    "PERL5LIB", "RUBYOPT",    "RUBYLIB",        "JAVA_TOOL_OPTIONS", "HOME",     "TERMINFO",     "GCONV_PATH",
    "HOSTALIASES", "CC",       "CXX",        "RUSTC_WRAPPER",  "MAKEFLAGS",         "TMPDIR",   "TAR_OPTIONS",  "LOCPATH",
    "NLSPATH",     "SHELL",    "EXECIGNORE", "POSIXLY_CORRECT"};
constexpr std::string_view kRiskyPrefixes[] = {
    "LD_",  "DYLD_",   "GIT_",       "PYTHON",   "BASH_FUNC_", "npm_config_", "NPM_CONFIG_", "PIP_",      "CARGO_",  "GLIBC_",
    "XDG_", "DOCKER_", "TEXTDOMAIN", "RIPGREP_", "http_proxy", "https_proxy", "ftp_proxy",   "all_proxy", "no_proxy"};

bool is_one_of(Names names, std::string_view name) noexcept { return std::ranges::find(names, name) != names.end(); }

bool writes(const Redirect& redirect) noexcept {
  const bool is_descriptor = redirect.target.fixed && redirect.target.text.find_first_not_of("0123456789-") == std::string::npos;
  return redirect.op == ">" || redirect.op == ">>" || redirect.op == ">|" || redirect.op == "&>" || redirect.op == "&>>" ||
         redirect.op == "<>" || (redirect.op == ">&" && !is_descriptor);
}

Finding forbid(std::string_view rule, std::string reason) {
  return {.decision = Decision::kForbid, .rule = std::string(rule), .reason = std::move(reason)};
}
Finding ask(std::string_view rule, std::string reason) {
  return {.decision = Decision::kPrompt, .rule = std::string(rule), .reason = std::move(reason)};
}

Finding ask_where(std::string_view who, const Word& place) {
  return ask("system-write", format("where {} goes is only known at run time: {}", who, quoted(shown(place))));
}

// A short option in a cluster (`-rf`) or a long one.
bool has_option(const Part& part, std::string_view letters, std::string_view long_name) noexcept {
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const std::string& text = part.argv[i].text;
    if (text == "--") return false;
    if (text.starts_with("--")) {
      // getopt_long(3) takes any unambiguous beginning.
      const std::string_view name = std::string_view(text).substr(2, text.find('=') - 2);
      if (name.size() > 2 && long_name.starts_with(name)) return true;
    } else if (text.starts_with('-') && text.find_first_of(letters, 1) != std::string::npos) {
      return true;
    }
  }
  return false;
}

std::vector<const Word*> operands(const Part& part) {
  std::vector<const Word*> result;
  bool only = false;
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    if (!only && word.text == "--" && word.fixed) only = true;
    else if (only || !word.text.starts_with('-') || word.text == "-") result.push_back(&word);
  }
  return result;
}

// --- the checks ------------------------------------------------------------------------------------------------------------------

std::optional<Finding> check_remove(const Script&, const Part& part) {
  const std::string_view name = program_name(part);
  const bool changes = name == "chmod" || name == "chown" || name == "chgrp";
  const bool finds = name == "find" && std::ranges::any_of(part.argv, [](const Word& word) { return word.text == "-delete"; });
  if (name != "rm" && !changes && !finds && name != "shred") return std::nullopt;
  const bool recursive = name == "find" || has_option(part, "rR", "recursive");
  if (name == "rm" && has_option(part, "", "no-preserve-root")) return forbid("remove-root", "rm is told to take / itself");
  if (changes && !recursive) return std::nullopt;
  for (const Word* word : operands(part)) {
    const bool whole = is_vital(word->text) && (word->fixed || word->pattern || word->text.starts_with('~'));
    if (whole && (recursive || word->pattern))
      return forbid("remove-root", format("{} of {}: the system or a whole home", name, quoted(shown(*word))));
    if (name == "rm" && recursive && !word->fixed) {
      const bool all = is_vital(word->text) || word->text.empty();
      return ask("remove-root", format("what it deletes is only known at run time{}: {}", all ? ", and may be everything" : "",
                                       quoted(shown(*word))));
    }
    if (name == "rm" && recursive && is_own_tree(word->text))
      return ask("remove-root", format("deletes {} with all that is in it", quoted(word->text)));
    if (name == "find") break;  // only the first operands are places
  }
  return std::nullopt;
}

std::optional<Finding> check_format(const Script&, const Part& part) {
  constexpr std::string_view kTools[] = {"mke2fs", "mkswap", "wipefs",     "fdisk",      "sfdisk",   "cfdisk", "gdisk",
                                         "sgdisk", "parted", "blkdiscard", "cryptsetup", "pvcreate", "shred"};
  const std::string_view name = program_name(part);
  if (!name.starts_with("mkfs") && !is_one_of(kTools, name)) return std::nullopt;
  if (name != "shred" && has_option(part, "l", "list")) return std::nullopt;
  for (const Word* word : operands(part)) {
    if (is_below(normal_place(word->text), "/dev"))
      return forbid("format-disk", format("{} on the device {}", name, quoted(word->text)));
    if (!word->fixed) return ask("format-disk", format("what {} overwrites is only known at run time", name));
  }
  return std::nullopt;
}

std::optional<Finding> check_dd(const Script&, const Part& part) {
  if (program_name(part) != "dd") return std::nullopt;
  for (const Word& word : part.argv) {
    if (!word.text.starts_with("of=")) continue;
    const std::string_view target = std::string_view(word.text).substr(3);
    if (is_system(target)) return forbid("raw-disk", format("dd writes to {}", quoted(target)));
    if (!word.fixed) return ask("raw-disk", "where dd writes is only known at run time");
  }
  return std::nullopt;
}

// Whether the word is sed's script and not a file: quoted, behind -e, or the first where no option brings one.
bool is_sed_script(const Part& part, const Word& word) noexcept {
  if (program_name(part) != "sed" || word.splits) return false;
  const auto awaits = [](const Word& each) {
    return each.text == "-e" || each.text == "-f" || each.text == "--expression" || each.text == "--file";
  };
  const auto brings = [&](const Word& each) {
    const std::string_view text = each.text;
    return awaits(each) || text.starts_with("--expression=") || text.starts_with("--file=") ||
           (text.size() > 2 && !text.starts_with("--") && (text.starts_with("-e") || text.starts_with("-f")));
  };
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    if (&part.argv[i] == &word) return awaits(part.argv[i - 1]) || std::ranges::none_of(part.argv, brings);
    if (!part.argv[i].text.starts_with('-')) return false;
  }
  return false;
}

// The words that `part` writes to, redirections apart.
std::vector<const Word*> written_places(const Part& part) {
  constexpr std::string_view kCopiers[] = {"cp", "mv", "install", "ln", "rsync"};
  const std::string_view name = program_name(part);
  auto words = operands(part);
  if (is_one_of(kCopiers, name)) {
    const bool has_target = words.size() > 1 || (words.size() == 1 && words[0]->expands && words[0]->splits);
    return has_target ? std::vector<const Word*>{words.back()} : std::vector<const Word*>();
  }
  if (name == "sed" && has_option(part, "i", "in-place")) {
    std::erase_if(words, [&](const Word* word) { return !word->fixed && is_sed_script(part, *word); });
    return words;
  }
  return name == "tee" || name == "truncate" ? words : std::vector<const Word*>();
}

std::optional<Finding> check_system_write(const Script&, const Part& part) {
  std::optional<Finding> doubt;
  for (const Redirect& redirect : part.redirects) {
    const Reach reach = writes(redirect) ? reaches_system(redirect.target, true) : Reach::kNo;
    if (reach == Reach::kYes) return forbid("system-write", format("output goes to {}", quoted(shown(redirect.target))));
    if (reach == Reach::kMaybe) doubt = ask_where("output", redirect.target);
    if (is_below(redirect.target.text, "/dev/tcp") || is_below(redirect.target.text, "/dev/udp"))
      doubt = ask("system-write", "the shell opens a network connection");
  }
  const std::string_view name = program_name(part);
  for (const Word* word : written_places(part)) {
    const Reach reach = reaches_system(*word, false);
    if (reach == Reach::kYes) return forbid("system-write", format("{} writes to {}", name, quoted(shown(*word))));
    if (reach == Reach::kMaybe) doubt = ask_where(format("what {} writes", name), *word);
  }
  return doubt;
}

// Gives everybody the right to write: chmod(1), octal and symbolic. With the sticky bit it is what /tmp has.
bool opens_to_all(std::string_view mode) noexcept {
  const bool octal = !mode.empty() && mode.find_first_not_of("01234567") == std::string_view::npos;
  if (octal) {
    const int others = mode.back() - '0';
    const bool sticky = mode.size() >= 4 && ((mode[mode.size() - 4] - '0') & 1) != 0;
    return (others & 2) != 0 && !sticky;
  }
  while (!mode.empty()) {
    const std::size_t comma = std::min(mode.find(','), mode.size());
    const std::string_view clause = mode.substr(0, comma);
    const std::size_t sign = clause.find_first_of("+=");
    if (sign != std::string_view::npos && clause.substr(0, sign).find_first_of("oa") != std::string_view::npos &&
        clause.find('w', sign) != std::string_view::npos)
      return true;
    mode.remove_prefix(std::min(comma + 1, mode.size()));
  }
  return false;
}

// `chmod -x f`: a mode that looks like an option, and only takes away.
const Word* mode_like_an_option(const Part& part) noexcept {
  for (std::size_t i = 1; i < part.argv.size() && part.argv[i].text != "--"; ++i) {
    const Word& word = part.argv[i];
    const std::string_view text = word.text;
    if (word.fixed && text.size() > 1 && text[0] == '-' && text.find_first_of("rwxXst") != std::string_view::npos &&
        text.find_first_not_of("-rwxXstugoa,+=") == std::string_view::npos)
      return &word;
  }
  return nullptr;
}

std::optional<Finding> check_mode(const Script&, const Part& part) {
  const std::string_view name = program_name(part);
  std::string_view mode;
  const Word* from = nullptr;
  const auto take = [&](const Word& word, std::size_t skip) { from = &word, mode = std::string_view(word.text).substr(skip); };
  if (name == "chmod") {
    const auto words = operands(part);
    const Word* const taken_away = mode_like_an_option(part);
    if (taken_away != nullptr) take(*taken_away, 0);
    else if (!words.empty() && !has_option(part, "", "reference")) take(*words[0], 0);
  } else if (name == "install" || name == "mkdir") {
    for (std::size_t i = 1; i < part.argv.size(); ++i) {
      const std::string_view text = part.argv[i].text;
      if (text.starts_with("--mode=")) take(part.argv[i], 7);
      else if (text == "-m" && part.argv[i].fixed && i + 1 < part.argv.size()) take(part.argv[i + 1], 0);
      else if (text.starts_with("-m")) take(part.argv[i], 2);
    }
  }
  if (from == nullptr) return std::nullopt;
  if (!from->fixed)
    return ask("world-writable",
               format("the mode is only known at run time, and may let everybody write: {}", quoted(shown(*from))));
  if (!opens_to_all(mode)) return std::nullopt;
  return forbid("world-writable", format("mode {} lets everybody write", quoted(mode)));
}

// The first part of `range` that fetches from the network.
const Part* downloader(const Script& script, Range range) noexcept {
  for (std::size_t i = range.first; i < std::min(range.last, script.parts.size()); ++i) {
    if (is_one_of(kDownloaders, program_name(script.parts[i]))) return &script.parts[i];
  }
  return nullptr;
}

const Part* downloader(const Script& script, const Part& part) noexcept {
  for (const Range& range : part.upstream) {
    if (const Part* found = downloader(script, range)) return found;
  }
  return nullptr;
}

// An interpreter without a program of its own takes it from standard input.
bool interprets_stdin(const Part& part) noexcept {
  if (reads_script_from_stdin(part)) return true;
  const std::string_view name = program_name(part);
  const std::string_view plain = name.substr(0, name.find_first_of("0123456789."));
  if (!is_one_of(kInterpreters, name) && !is_one_of(kInterpreters, plain)) return false;
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const std::string& text = part.argv[i].text;
    if (text == "-") return true;
    if (!text.starts_with('-') || text.starts_with("-c") || text.starts_with("-m") || text.starts_with("-e") ||
        text.starts_with("-p") || text == "--eval" || text.starts_with("-r"))
      return false;
  }
  return true;
}

std::optional<Finding> check_download(const Script& script, const Part& part) {
  const std::string_view name = program_name(part);
  if (interprets_stdin(part)) {
    if (const Part* from = downloader(script, part))
      return forbid("download-to-shell", format("{} runs what {} downloads", name, program_name(*from)));
    if (!part.upstream.empty()) return ask("shell-input", format("{} runs text that comes through a pipe", name));
  }
  const bool runs_words = is_shell(name) || name == "eval" || name == "source" || name == "." || is_one_of(kInterpreters, name);
  if (!runs_words) return std::nullopt;
  for (const Word& word : part.argv) {
    if (const Part* from = downloader(script, word.from))
      return forbid("download-to-shell", format("{} runs what {} downloads", name, program_name(*from)));
  }
  for (const Redirect& redirect : part.redirects) {
    if (const Part* from = downloader(script, redirect.target.from))
      return forbid("download-to-shell", format("{} runs what {} downloads", name, program_name(*from)));
  }
  return std::nullopt;
}

std::optional<Finding> check_sudo(const Script&, const Part& part) {
  constexpr std::string_view kTools[] = {"sudo", "su", "doas", "pkexec", "sudoedit", "run0", "runuser"};
  const std::string_view name = program_name(part);
  if (!is_one_of(kTools, name)) return std::nullopt;
  return forbid("sudo", format("{} acts as another user", name));
}

std::optional<Finding> check_shutdown(const Script&, const Part& part) {
  constexpr std::string_view kTools[] = {"shutdown", "reboot", "halt", "poweroff", "telinit"};
  constexpr std::string_view kUnits[] = {"reboot",  "poweroff",  "halt",   "kexec",    "soft-reboot",
                                         "suspend", "hibernate", "rescue", "emergency"};
  const std::string_view name = program_name(part);
  const auto words = operands(part);
  const bool init = name == "init" && !words.empty() && (words[0]->text == "0" || words[0]->text == "6");
  const bool unit = name == "systemctl" && !words.empty() && is_one_of(kUnits, words[0]->text);
  if (!is_one_of(kTools, name) && !init && !unit) return std::nullopt;
  return forbid("shutdown", "ends the machine");
}

std::optional<Finding> check_bomb(const Script& script, const Part& part) {
  const std::string_view name = program_name(part);
  if (name.empty() || part.inside.empty()) return std::nullopt;
  const auto label = "function " + std::string(name);
  if (std::ranges::find(part.inside, label) == part.inside.end()) return std::nullopt;
  const auto calls = std::ranges::count_if(script.parts, [&](const Part& other) {
    return program_name(other) == name && std::ranges::find(other.inside, label) != other.inside.end();
  });
  if (calls > 1) return forbid("fork-bomb", format("the function {} starts itself more than once", quoted(name)));
  return ask("fork-bomb", format("the function {} calls itself", quoted(name)));
}

std::optional<Finding> check_environment(const Script&, const Part& part) {
  for (const Assignment& assignment : part.assignments) {
    const bool reads_fields = assignment.name == "IFS" && part.argv.size() > 1 && part.argv[0].text == "read";  // for it alone
    if (is_risky_variable(assignment.name) && !reads_fields)
      return ask("environment", format("{} changes what other programs run or load", quoted(assignment.name)));
  }
  return std::nullopt;
}

std::optional<Finding> check_program(const Script&, const Part& part) {
  if (part.argv.empty() || (part.argv[0].fixed && !part.argv[0].text.empty())) return std::nullopt;
  return ask("unknown-program", "which program runs is only known at run time");
}

constexpr Hazard kHazards[] = {
    {"remove-root",
     "rm -r, chmod -R, chown -R or find -delete on /, a system directory or a home; rm -r of what only the run decides",
     check_remove},
    {"format-disk", "mkfs, fdisk and their like on a device", check_format},
    {"raw-disk", "dd that writes to a device or system directory", check_dd},
    {"system-write",
     "redirections, tee, cp, mv, sed -i into /etc, /usr, /dev ... (not /dev/null and its kind), or where only the run decides",
     check_system_write},
    {"world-writable", "chmod 777 and every other mode that lets everybody write, or that only the run decides", check_mode},
    {"download-to-shell",
     "a download that an interpreter runs: through a pipe, $(...), <(...), eval; other text that a pipe feeds to a shell",
     check_download},
    {"sudo", "sudo, su, doas, pkexec", check_sudo},
    {"shutdown", "shutdown, reboot, halt, poweroff, by systemctl too", check_shutdown},
    {"fork-bomb", "a function that calls itself", check_bomb},
    {"environment", "variables that change what other programs run (PATH, LD_*, GIT_*, NODE_OPTIONS ...)", check_environment},
    {"unknown-program", "a program whose name only the run decides", check_program},
};

}  // namespace

bool is_risky_variable(std::string_view name) noexcept {
  return is_one_of(kRisky, name) ||
         std::ranges::any_of(kRiskyPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::span<const Hazard> hazards() noexcept { return kHazards; }

bool is_hazard(std::string_view name) noexcept { return std::ranges::find(kHazards, name, &Hazard::name) != std::end(kHazards); }

}  // namespace belljar::guard
