// Checks by meaning: what a command would destroy, open or run, whatever it is called with.
//
// Each check looks at one simple command with its words after quote removal and its directory, and at the
// script around it where a pipe matters. So it does not matter how the words were quoted, split or prefixed,
// and a word that only happens to be in an argument (`echo sudo`) is no finding. A check forbids what no
// ordinary work needs, like a recursive removal of the system or of a home, and asks about what work does
// need at times.
//
// The same holds for what is uncertain. If a word is only known at run time and might name such a place, the
// check asks; it forbids only what is certain. Options count in any spelling that getopt_long(3) takes
// (operands.h).
//
// Each check has a name by which a user's rules file can switch it off (`disable`), so one that is wrong for
// somebody's work costs a line and not a workaround. The list says what an agent should not do unasked. It
// holds no program back: a script in another language can do all of it, and there only the sandbox holds.
#include "guard/hazards.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/paths.h"
#include "guard/modes.h"
#include "shell/hooks.h"
#include "shell/operands.h"
#include "shell/system_paths.h"
#include "shell/wrappers.h"

namespace belljar::guard {

using shell::Arguments;
using shell::Assignment;
using shell::is_below;
using shell::is_own_tree;
using shell::is_risky_variable;
using shell::is_shell;
using shell::is_system;
using shell::is_vital;
using shell::normal_path;
using shell::Range;
using shell::Reach;
using shell::Redirect;
using shell::Script;
using shell::SimpleCommand;
using shell::ValueOptions;
using shell::Word;

namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kDownloaders[] = {"curl", "wget",  "fetch", "http", "https", "xh",    "aria2c",
                                             "lynx", "links", "w3m",   "nc",   "ncat",  "socat", "ftp"};
constexpr std::string_view kInterpreters[] = {"python", "python2", "python3", "perl", "ruby", "node",
                                              "nodejs", "deno",    "bun",     "php",  "lua",  "pwsh"};
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

// --- the checks ------------------------------------------------------------------------------------------------------------------

// Programs that take away or change what they are given, as `find -exec` starts them.
constexpr std::string_view kTakers[] = {"rm", "rmdir", "unlink", "shred", "truncate", "mv", "chmod", "chown", "chgrp", "setfacl"};

// What of find(1) says which files are meant, with no `-o`, `,` or `!` that lets others in.
bool is_filtered(const SimpleCommand& command) noexcept {
  constexpr std::string_view kTests[] = {"-name",  "-iname", "-path",  "-ipath", "-wholename", "-regex", "-iregex",
                                         "-mtime", "-mmin",  "-atime", "-amin",  "-ctime",     "-cmin",  "-newer",
                                         "-empty", "-size",  "-user",  "-group", "-perm",      "-links", "-inum"};
  constexpr std::string_view kWidens[] = {"-o", "-or", ",", "!", "-not"};
  bool filtered = false, acts = false;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string_view text = command.argv[i].text;
    if (is_one_of(kWidens, text)) return false;
    acts = acts || text == "-delete" || text.starts_with("-exec") || text.starts_with("-ok");
    // `*`, `./*`, `.*` let everything through, and a test behind the act comes too late.
    const bool all = i + 1 < command.argv.size() && text != "-empty" &&
                     (command.argv[i + 1].text.find_first_not_of("*?./") == std::string::npos || !command.argv[i + 1].fixed);
    filtered = filtered || (is_one_of(kTests, text) && !all && !acts);
  }
  return filtered;
}

// The name of what find(1) does to the files it finds: `-delete`, or a program that takes them away.
std::string_view find_takes(const SimpleCommand& command) noexcept {
  constexpr std::string_view kStarts[] = {"-exec", "-execdir", "-ok", "-okdir"};
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string_view text = command.argv[i].text;
    if (text == "-delete") return text;
    if (!is_one_of(kStarts, text) || i + 1 == command.argv.size()) continue;
    const std::string_view program = command.argv[i + 1].text;
    if (is_one_of(kTakers, file_name(program))) return program;
  }
  return {};
}

// Where find(1) begins, behind its options: -H -L -P -D -O and `--`.
std::vector<const Word*> find_starts(const SimpleCommand& command) {
  std::vector<const Word*> starts;
  bool options = true;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    const bool option = options && word.fixed;
    if (option && (word.text == "-H" || word.text == "-L" || word.text == "-P" || word.text.starts_with("-O"))) continue;
    if (option && word.text == "-D") {
      ++i;
      continue;
    }
    options = false;
    if (option && word.text == "--") continue;
    if (word.text.starts_with('-') || word.text == "(" || word.text == "!") break;
    starts.push_back(&word);
  }
  return starts;
}

std::optional<Finding> check_find(const SimpleCommand& command) {
  const std::string_view act = find_takes(command);
  if (act.empty()) return std::nullopt;
  const auto reads_starts = [](const Word& word) { return word.text == "-files0-from"; };
  if (std::ranges::any_of(command.argv, reads_starts)) return ask("remove-root", "a file says where `find` begins");
  std::optional<Finding> doubt;
  const auto starts = find_starts(command);
  for (const Word* const start : starts) {
    const Word& word = *start;
    if (is_vital(resolved_word(command, word).text) && (word.fixed || word.pattern || word.text.starts_with('~')))
      return forbid("remove-root", format("find {} of {}: the system or a whole home", act, quoted(shown(word))));
    const bool home = word.text.starts_with("~/") && !word.expands && !word.pattern;
    if (!word.fixed && !home)
      doubt = ask("remove-root", format("where `find {}` begins is only known at run time: {}", act, quoted(shown(word))));
    else if (is_own_tree(word.text) && !is_filtered(command))
      doubt = ask("remove-root", format("find {} of {} with all that is in it", act, quoted(word.text)));
  }
  if (starts.empty() && !command.directory.empty() && is_vital(command.directory))
    return forbid("remove-root", format("find {} of {}: the system or a whole home", act, quoted(command.directory)));
  if (starts.empty() && !is_filtered(command)) return ask("remove-root", format("find {} of the directory it is called in", act));
  return doubt;
}

bool may_hold_options(const Word& word) noexcept {
  return word.expands && (word.text.empty() || word.text.starts_with('-') || (word.opens && word.splits));
}

// `find / | xargs rm`
bool gets_files_of_the_system(const Script& script, const SimpleCommand& command) {
  if (command.argv.empty() || command.argv.back().fixed || !command.argv.back().splits) return false;
  return std::ranges::any_of(command.upstream, [&](Range range) {
    for (std::size_t i = range.first; i < std::min(range.last, script.commands.size()); ++i) {
      const SimpleCommand& from = script.commands[i];
      if (program_name(from) != "find") continue;
      const auto starts = find_starts(from);
      if (starts.empty() && !from.directory.empty() && is_vital(from.directory)) return true;
      if (std::ranges::any_of(starts, [&](const Word* word) { return is_vital(resolved_word(from, *word).text); })) return true;
    }
    return false;
  });
}

// `chmod -w f`, `chmod -077 f`: the mode looks like an option, and no operand is one.
bool has_dashed_mode(const SimpleCommand& command) noexcept {
  return std::ranges::any_of(command.argv, [](const Word& word) {
    const std::string_view text = word.text;
    return text.starts_with('-') && !text.starts_with("--") &&
           (!word.fixed || (text.size() > 1 && std::string_view("cfvR").find(text[1]) == std::string_view::npos));
  });
}

// The files that `command` takes away or changes: without where mv moves them to, without the owner or the mode.
std::vector<Word> taken_words(const SimpleCommand& command, std::string_view name) {
  ValueOptions valued;
  if (name == "mv") valued = {"tS", "target-directory suffix"};
  else if (name == "chown" || name == "chgrp") valued = {"", "from reference"};
  else if (name == "chmod") valued = {"", "reference"};
  else if (name == "setfacl") valued = {"mxM", "modify remove modify-file remove-file set set-file restore"};
  Arguments given = arguments(command, valued);
  auto& words = given.operands;
  if (given.unsure) {  // any of them
    words.clear();
    for (const Word* word : operands(command)) words.push_back(*word);
    return words;
  }
  const auto has = [&](std::string_view option) {
    return std::ranges::any_of(given.options, [&](const auto& each) { return each.name == option; });
  };
  if (name == "mv" && words.size() > 1 && !has("t") && !has("target-directory")) words.pop_back();
  const bool owner = name == "chown" || name == "chgrp" || (name == "chmod" && !has_dashed_mode(command));
  // One that the shell splits may hold files too.
  if (owner && !words.empty() && !words[0].splits && !has("reference")) words.erase(words.begin());
  return words;
}

std::optional<Finding> check_remove(const Script& script, const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  if (name == "find") return check_find(command);
  const bool changes = name == "chmod" || name == "chown" || name == "chgrp" || name == "setfacl";
  if (name != "rm" && name != "mv" && !changes && name != "shred") return std::nullopt;
  const bool recursive = name == "mv" || has_option(command, "rR", "recursive");
  if (name == "rm" && has_option(command, "", "no-preserve-root")) return forbid("remove-root", "rm is told to take / itself");
  if ((name == "rm" || name == "shred") && gets_files_of_the_system(script, command))
    return ask("remove-root", format("{} of all that find finds in the system", name));
  if (changes && !recursive) return std::nullopt;
  const auto words = taken_words(command, name);
  for (const Word& each : words) {
    const Word* const word = &each;
    const bool whole =
        is_vital(resolved_word(command, *word).text) && (word->fixed || word->pattern || word->text.starts_with('~'));
    if (whole && (recursive || word->pattern))
      return forbid("remove-root", format("{} of {}: the system or a whole home", name, quoted(shown(*word))));
    // `rm $x /`: the variable may hold `-r`.
    if (whole && name == "rm" && std::ranges::any_of(command.argv, may_hold_options))
      return ask("remove-root",
                 format("an option of rm is only known at run time, and {} is the system or a home", quoted(shown(*word))));
    if (recursive && (changes ? word->expands : name == "rm" && !word->fixed)) {
      const bool all = is_vital(word->text) || word->text.empty();
      return ask("remove-root", format("what it {} is only known at run time{}: {}", changes ? "changes" : "deletes",
                                       all ? ", and may be everything" : "", quoted(shown(*word))));
    }
    if (name == "rm" && recursive && is_own_tree(word->text))
      return ask("remove-root", format("deletes {} with all that is in it", quoted(word->text)));
  }
  return std::nullopt;
}

std::optional<Finding> check_format(const Script&, const SimpleCommand& command) {
  constexpr std::string_view kTools[] = {"mke2fs", "mkswap", "wipefs",     "fdisk",      "sfdisk",   "cfdisk", "gdisk",
                                         "sgdisk", "parted", "blkdiscard", "cryptsetup", "pvcreate", "shred"};
  const std::string_view name = program_name(command);
  if (!name.starts_with("mkfs") && !is_one_of(kTools, name)) return std::nullopt;
  if (name != "shred" && has_option(command, "l", "list")) return std::nullopt;
  for (const Word* word : operands(command)) {
    if (is_below(normal_path(word->text), "/dev"))
      return forbid("format-disk", format("{} on the device {}", name, quoted(word->text)));
    if (!word->fixed) return ask("format-disk", format("what {} overwrites is only known at run time", name));
  }
  return std::nullopt;
}

std::optional<Finding> check_dd(const Script&, const SimpleCommand& command) {
  if (program_name(command) != "dd") return std::nullopt;
  for (const Word& word : command.argv) {
    if (!word.text.starts_with("of=")) continue;
    const std::string_view target = std::string_view(word.text).substr(3);
    if (is_system(resolved_word(command, tail_of(word, 3)).text))
      return forbid("raw-disk", format("dd writes to {}", quoted(target)));
    if (!word.fixed) return ask("raw-disk", "where dd writes is only known at run time");
  }
  return std::nullopt;
}

// sed(1): `w FILE` in a script, as a command or a flag of `s`. Only by letters, so it is asked about.
bool script_writes_system(const SimpleCommand& command) {
  if (program_name(command) != "sed") return false;
  return std::ranges::any_of(command.argv, [](const Word& word) {
    const std::string_view text = word.text;
    for (std::size_t at = text.find_first_of("wW"); at != std::string_view::npos; at = text.find_first_of("wW", at + 1)) {
      const std::size_t file = text.find_first_not_of(" \t", at + 1);
      if (file != std::string_view::npos && text[file] == '/' && is_system(text.substr(file, text.find('\n', file) - file)))
        return true;
    }
    return false;
  });
}

// What `command` makes, or takes away one by one: less than to write what others read, so it is asked about. Only what is named for
// sure counts: `rm "$f"` is asked about where a rule says so.
std::optional<Finding> check_system_entry(const SimpleCommand& command) {
  constexpr std::string_view kPrograms[] = {"rm", "rmdir", "unlink", "mv", "touch", "mkdir", "mkfifo", "chattr"};
  constexpr std::string_view kPackers[] = {"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz"};  // in place, but for -c, -l and -t
  const std::string_view name = program_name(command);
  const bool packs = is_one_of(kPackers, name) && !has_option(command, "clt", "stdout") && !has_option(command, "", "list") &&
                     !has_option(command, "", "test");
  if (!packs && !is_one_of(kPrograms, name)) return std::nullopt;
  ValueOptions valued;
  if (name == "mv") valued = {"tS", "target-directory suffix"};
  else if (name == "touch") valued = {"drt", "date reference time"};
  else if (name == "mkdir" || name == "mkfifo") valued = {"m", "mode"};
  for (const Word& word : arguments(command, valued).operands) {
    const bool known = word.fixed || (word.pattern && !word.expands);
    if (known && reaches_system(resolved_word(command, word), false) == Reach::kYes)
      return ask("system-write", format("{} of {}, a place of the system", name, quoted(shown(word))));
  }
  return std::nullopt;
}

std::optional<Finding> check_system_write(const Script&, const SimpleCommand& command) {
  std::optional<Finding> doubt = check_system_entry(command);
  for (const Redirect& redirect : command.redirects) {
    const Reach reach = writes(redirect) ? reaches_system(resolved_word(command, redirect.target), true) : Reach::kNo;
    if (reach == Reach::kYes) return forbid("system-write", format("output goes to {}", quoted(shown(redirect.target))));
    if (reach == Reach::kMaybe) doubt = ask_where("output", redirect.target);
    if (is_below(redirect.target.text, "/dev/tcp") || is_below(redirect.target.text, "/dev/udp"))
      doubt = ask("system-write", "the shell opens a network connection");
  }
  const std::string_view name = program_name(command);
  if (script_writes_system(command)) doubt = ask("system-write", "a script of sed may write to a file of the system");
  for (const Word& word : written_paths(command)) {
    const Reach reach = reaches_system(resolved_word(command, word), false);
    if (reach == Reach::kYes) return forbid("system-write", format("{} writes to {}", name, quoted(shown(word))));
    if (reach == Reach::kMaybe) doubt = ask_where(format("what {} writes", name), word);
    // Below `/` lies all of it: an archive, a tree or a patch says what is replaced.
    if (word.fixed && normal_path(resolved_word(command, word).text) == "/")
      doubt = ask("system-write", format("{} writes to `/`", name));
  }
  return doubt;
}

// The first command of `range` that fetches from the network.
const SimpleCommand* downloader(const Script& script, Range range) noexcept {
  for (std::size_t i = range.first; i < std::min(range.last, script.commands.size()); ++i) {
    if (is_one_of(kDownloaders, program_name(script.commands[i]))) return &script.commands[i];
  }
  return nullptr;
}

const SimpleCommand* downloader(const Script& script, const SimpleCommand& command) noexcept {
  for (const Range& range : command.upstream) {
    if (const SimpleCommand* found = downloader(script, range)) return found;
  }
  return nullptr;
}

// An interpreter without a program of its own takes it from standard input.
bool interprets_stdin(const SimpleCommand& command) noexcept {
  if (reads_script_from_stdin(command)) return true;
  const std::string_view name = program_name(command);
  const std::string_view plain = name.substr(0, name.find_first_of("0123456789."));
  if (!is_one_of(kInterpreters, name) && !is_one_of(kInterpreters, plain)) return false;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string& text = command.argv[i].text;
    if (text == "-") return true;
    if (!text.starts_with('-') || text.starts_with("-c") || text.starts_with("-m") || text.starts_with("-e") ||
        text.starts_with("-p") || text == "--eval" || text.starts_with("-r"))
      return false;
  }
  return true;
}

// Where `command` saves what it fetches: `curl -o x`, `wget u/x`, `curl u > x`.
std::vector<std::string> saved_by(const SimpleCommand& command) {
  std::vector<std::string> files;
  for (const Word& place : written_paths(command)) {
    if (place.fixed) files.push_back(normal_path(resolved_word(command, place).text));
  }
  for (const Redirect& redirect : command.redirects) {
    if (writes(redirect) && redirect.target.fixed) files.push_back(normal_path(resolved_word(command, redirect.target).text));
  }
  for (const Word* word : operands(command)) {
    const std::size_t slash = word->text.rfind('/');
    const Word name{.text = word->text.substr(slash == std::string::npos ? 0 : slash + 1)};
    if (word->fixed && !name.text.empty()) files.push_back(normal_path(resolved_word(command, name).text));
  }
  return files;
}

// `curl -o x u; sh x`, `wget u/x && ./x`: what came before in the same text saved what is run here.
std::optional<Finding> check_saved(const Script& script, const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  std::vector<std::string> runs;
  const bool interprets = is_shell(name) || name == "source" || name == "." || is_one_of(kInterpreters, name);
  if (name.empty()) return std::nullopt;
  if (command.argv[0].text.find('/') != std::string::npos)
    runs.push_back(normal_path(resolved_word(command, command.argv[0]).text));
  if (interprets) {
    for (const Word* word : operands(command)) {
      if (word->fixed) runs.push_back(normal_path(resolved_word(command, *word).text));
    }
  }
  if (runs.empty()) return std::nullopt;
  constexpr int kMostLooked = 64;  // the time grows with downloads times shells
  int looked = 0;
  for (const SimpleCommand& from : script.commands) {
    if (&from == &command) break;
    if (!is_one_of(kDownloaders, program_name(from))) continue;
    if (++looked > kMostLooked) return ask("download-to-shell", format("{} may run one of many downloads", name));
    for (const std::string& file : saved_by(from)) {
      if (std::ranges::find(runs, file) != runs.end())
        return ask("download-to-shell", format("{} runs what {} downloads to {}", name, program_name(from), quoted(file)));
    }
  }
  return std::nullopt;
}

std::optional<Finding> check_download(const Script& script, const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  if (interprets_stdin(command)) {
    if (const SimpleCommand* from = downloader(script, command))
      return forbid("download-to-shell", format("{} runs what {} downloads", name, program_name(*from)));
    if (!command.upstream.empty()) return ask("shell-input", format("{} runs text that comes through a pipe", name));
  }
  const bool runs_words = is_shell(name) || name == "eval" || name == "source" || name == "." || is_one_of(kInterpreters, name);
  if (!runs_words) return check_saved(script, command);
  for (const Word& word : command.argv) {
    if (const SimpleCommand* from = downloader(script, word.from))
      return forbid("download-to-shell", format("{} runs what {} downloads", name, program_name(*from)));
  }
  for (const Redirect& redirect : command.redirects) {
    if (const SimpleCommand* from = downloader(script, redirect.target.from))
      return forbid("download-to-shell", format("{} runs what {} downloads", name, program_name(*from)));
  }
  return check_saved(script, command);
}

std::optional<Finding> check_sudo(const Script&, const SimpleCommand& command) {
  constexpr std::string_view kTools[] = {"sudo", "su", "doas", "pkexec", "sudoedit", "run0", "runuser"};
  const std::string_view name = program_name(command);
  if (!is_one_of(kTools, name)) return std::nullopt;
  return forbid("sudo", format("{} acts as another user", name));
}

std::optional<Finding> check_shutdown(const Script&, const SimpleCommand& command) {
  constexpr std::string_view kTools[] = {"shutdown", "reboot", "halt", "poweroff", "telinit"};
  constexpr std::string_view kUnits[] = {"reboot",  "poweroff",  "halt",   "kexec",    "soft-reboot",
                                         "suspend", "hibernate", "rescue", "emergency"};
  const std::string_view name = program_name(command);
  const auto words = operands(command);
  const bool init = name == "init" && !words.empty() && (words[0]->text == "0" || words[0]->text == "6");
  const bool unit = name == "systemctl" && !words.empty() && is_one_of(kUnits, words[0]->text);
  if (!is_one_of(kTools, name) && !init && !unit) return std::nullopt;
  return forbid("shutdown", "ends the machine");
}

std::optional<Finding> check_bomb(const Script& script, const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  if (name.empty() || command.inside.empty()) return std::nullopt;
  const auto label = "function " + std::string(name);
  if (std::ranges::find(command.inside, label) == command.inside.end()) return std::nullopt;
  const auto calls = std::ranges::count_if(script.commands, [&](const SimpleCommand& other) {
    return program_name(other) == name && std::ranges::find(other.inside, label) != other.inside.end();
  });
  if (calls > 1) return forbid("fork-bomb", format("the function {} starts itself more than once", quoted(name)));
  return ask("fork-bomb", format("the function {} calls itself", quoted(name)));
}

// read, printf -v, mapfile, getopts: they set a variable by its name.
bool sets_risky(const SimpleCommand& command) noexcept {
  constexpr std::string_view kSetters[] = {"read", "mapfile", "readarray", "getopts"};
  const std::string_view name = program_name(command);
  const bool prints = name == "printf" && command.argv.size() > 2 && command.argv[1].text == "-v";
  if (prints) return is_risky_variable(command.argv[2].text);
  return is_one_of(kSetters, name) &&
         std::ranges::any_of(command.argv, [](const Word& word) { return word.fixed && is_risky_variable(word.text); });
}

std::optional<Finding> check_environment(const Script&, const SimpleCommand& command) {
  if (sets_risky(command)) return ask("environment", "it sets a variable that changes what other programs run or load");
  for (const Assignment& assignment : command.assignments) {
    const bool reads_fields =
        assignment.name == "IFS" && command.argv.size() > 1 && command.argv[0].text == "read";  // for it alone
    if (is_risky_variable(assignment.name) && !reads_fields)
      return ask("environment", format("{} changes what other programs run or load", quoted(assignment.name)));
  }
  return std::nullopt;
}

std::optional<Finding> check_program(const Script&, const SimpleCommand& command) {
  if (command.argv.empty() || (command.argv[0].fixed && !command.argv[0].text.empty())) return std::nullopt;
  return ask("unknown-program", "which program runs is only known at run time");
}

std::optional<Finding> check_mode(const Script&, const SimpleCommand& command) {
  auto doubt = open_mode(command);
  if (!doubt) return std::nullopt;
  return doubt->known ? forbid("world-writable", std::move(doubt->reason)) : ask("world-writable", std::move(doubt->reason));
}

std::optional<Finding> check_setuid(const Script&, const SimpleCommand& command) {
  auto reason = setuid_mode(command);
  if (!reason) return std::nullopt;
  return ask("setuid", std::move(*reason));
}

// A `cd` that may have failed: what would be found where it began is asked about.
template <auto kCheck>
std::optional<Finding> wherever_it_runs(const Script& script, const SimpleCommand& command) {
  auto finding = kCheck(script, command);
  for (const std::string& place : command.possible_directories) {
    if (finding) break;
    SimpleCommand there = command;
    there.directory = place;
    finding = kCheck(script, there);
    if (finding) finding = ask(finding->rule, format("it may run in {}: {}", quoted(place), finding->reason));
  }
  return finding;
}

constexpr Hazard kHazards[] = {
    {"remove-root",
     "rm -r, mv, chmod -R, chown -R, find -delete or find -exec rm on /, a system directory or a home, or where only the run "
     "decides",
     wherever_it_runs<check_remove>},
    {"format-disk", "mkfs, fdisk and their like on a device", check_format},
    {"raw-disk", "dd that writes to a device or system directory", wherever_it_runs<check_dd>},
    {"system-write",
     "redirections, tee, cp, mv, rm, mkdir, sed -i, curl -o, chown ... into /etc, /usr, /dev ... (not /dev/null and its kind), or "
     "where only the run decides",
     wherever_it_runs<check_system_write>},
    {"world-writable", "chmod 777, umask 0 and every other mode or acl that lets everybody write, or that only the run decides",
     check_mode},
    {"setuid", "modes that make a program run as its owner or group (chmod u+s, install -m 4755)", check_setuid},
    {"download-to-shell",
     "a download that an interpreter runs: through a pipe, $(...), <(...), eval, a file of the same text; other text that a pipe "
     "feeds to a shell",
     check_download},
    {"sudo", "sudo, su, doas, pkexec", check_sudo},
    {"shutdown", "shutdown, reboot, halt, poweroff, by systemctl too", check_shutdown},
    {"fork-bomb", "a function that calls itself", check_bomb},
    {"environment", "variables that change what other programs run (PATH, LD_*, GIT_*, NODE_OPTIONS ...)", check_environment},
    {"unknown-program", "a program whose name only the run decides", check_program},
};

}  // namespace

std::span<const Hazard> hazards() noexcept { return kHazards; }

bool is_hazard(std::string_view name) noexcept { return std::ranges::find(kHazards, name, &Hazard::name) != std::end(kHazards); }

}  // namespace belljar::guard
