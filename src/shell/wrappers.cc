// How a command that starts another one is opened: where its own words end and the inner command begins.
//
// Most wrappers have the same form, `NAME [options] [operands] [NAME=VALUE] COMMAND`, and are rows of
// kWrappers; those with a form of their own (`sh -c`, `find -exec`, `su`, `flock`, `watch`, `trap`, `alias`)
// have a function each. To find the beginning of the inner command one has to know of every option whether it
// takes the next word. So the tables list options with and without a value, and one that is not listed makes
// the rest unread: read wrongly it would shift all words behind it, and another program than the one that was
// judged would run. The same holds for a word that only the run decides, where it may become no word or
// several (moves_others).
//
// A doubt does not end the reading. What seems to be the inner command is opened all the same, since a rule
// may forbid it, and an unread entry is added beside it, so that nothing passes on the strength of a guess.
//
// `transparent` wrappers do nothing of their own, and only what they start is judged: `nice`, `timeout`,
// `env`. Others are judged by their name as well: `sudo` changes who runs it, `nohup` writes a file. A name
// with a slash (`./nice`) may be any program, so it is opened for what must not run and still judged by
// itself.
//
// kLaunchers start programs by rules that no table here has. They are always unread.
#include "shell/wrappers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "shell/hooks.h"
#include "shell/script.h"
#include "shell/word_list.h"

namespace belljar::shell {
namespace {

using Argv = std::span<const Word>;

// How to find the inner command behind a wrapper's own words.
struct Wrapper {
  std::string_view name;
  std::string_view flags;       // short options without an argument
  std::string_view valued;      // short options with one
  std::string_view long_flags;  // long options without an argument, separated by spaces
  std::string_view long_valued;
  int operands = 0;                // words of its own before the command
  bool assigns = false;            // NAME=VALUE may stand before the command
  bool transparent = true;         // otherwise the wrapper itself is judged too
  std::string_view optional = "";  // short options whose argument is glued to them or missing; the long ones stand in `long_flags`
};

// clang-format off
constexpr Wrapper kWrappers[] = {
    {"builtin", "", "", "", ""},
    {"busybox", "", "", "", ""},
    {"chroot", "", "", "skip-chdir", "userspec groups", 1, false, false},
    {"chrt", "abdfiorRvm", "TPD", "batch fifo idle other rr deadline reset-on-fork verbose", "", 1},
    {"command", "p", "", "", ""},
    {"doas", "nLs", "uCa", "", "", 0, true, false},
    {"env", "iv0", "uC", "ignore-environment debug null", "unset chdir", 0, true},
    {"exec", "cl", "", "", ""},  // not -a: by that name a program may choose what it does
    {"ionice", "t", "cn", "ignore", "class classdata"},
    {"nice", "", "n", "", "adjustment"},
    {"nohup", "", "", "", "", 0, false, false},  // writes nohup.out when it has a terminal
    {"setsid", "cfw", "", "ctty fork wait", ""},
    {"stdbuf", "", "ioe", "", "input output error"},
    {"strace", "fFqvtTrcCdhiwyY", "eEpsSabIOuP", "", "", 0, false, false},
    {"sudo", "AbEHnPSkKB", "CDghpRTUurt", "askpass background preserve-env set-home non-interactive preserve-groups stdin reset-timestamp", "close-from chdir group host prompt chroot command-timeout user other-user role type", 0, true, false},
    {"taskset", "ac", "", "all-tasks cpu-list", "", 1},
    {"time", "pvaq", "f", "portability verbose append quiet", "format"},
    {"timeout", "v", "ks", "preserve-status foreground verbose", "kill-after signal", 1},
    {"toybox", "", "", "", ""},
    {"xargs", "0rtxpo", "dEILnPsa", "null no-run-if-empty verbose exit interactive open-tty eof replace max-lines", "delimiter max-args max-procs max-chars arg-file", 0, false, true, "eil"},
};
constexpr Wrapper kFlock{"flock", "sxenoFu", "wE", "shared exclusive unlock nonblock close no-fork verbose", "wait timeout conflict-exit-code", 1, false, false};
constexpr Wrapper kWatch{"watch", "bcegtwxrp", "nq", "beep color differences errexit chgexit no-title no-wrap exec precise", "interval equexit", 0, false, true, "d"};
// clang-format on

constexpr std::array<std::string_view, 8> kShells{"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"};
constexpr std::string_view kOtherGrammars[] = {"zsh", "ksh", "mksh"};  // they run what bash takes for letters
// The shell itself does what they name; a file of that name is a program like any other.
constexpr std::string_view kBuiltins[] = {"builtin", "command", "eval", "exec", "trap"};

// They start a program by rules of their own, which no table here has.
constexpr std::string_view kLaunchers[] = {
    "aarch64",   "at",          "batch",      "bwrap",       "capsh",
    "cgexec",    "chpst",       "crontab",    "dbus-launch", "dbus-run-session",
    "entr",      "expect",      "fakechroot", "fakeroot",    "faketime",
    "firejail",  "gosu",        "i386",       "linux32",     "linux64",
    "ltrace",    "nsenter",     "numactl",    "parallel",    "pkexec",
    "prlimit",   "proot",       "rlwrap",     "run-parts",   "run0",
    "screen",    "script",      "scriptlive", "setarch",     "setpriv",
    "setuidgid", "sg",          "softlimit",  "ssh-agent",   "start-stop-daemon",
    "su-exec",   "systemd-run", "tmux",       "uname26",     "unbuffer",
    "unshare",   "valgrind",    "x86_64",     "xvfb-run",
};

bool is_launcher(std::string_view name) noexcept {
  const bool loader = name.starts_with("ld.so") || name.starts_with("ld-linux") || name.starts_with("ld-musl");
  return loader || std::ranges::find(kLaunchers, name) != std::end(kLaunchers);
}

// Where a script comes from when it is not a file.
bool is_stdin(std::string_view path) noexcept { return path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0"; }

// An option by its name without dashes, and what it was given.
struct Option {
  std::string_view name;
  Word value;
};

// A wrapper's own words.
struct Front {
  std::vector<Option> options;
  std::size_t end = 1;  // of the options: the first operand
  bool known = true;    // every option
  std::string doubt;    // why another command may be started than the one behind these words; otherwise empty
};

// It may become no word or several, and then others than those read here are options and operands.
bool moves_others(const Word& word) noexcept { return !word.fixed && (word.splits || word.pattern); }

// `--signal=x`, `--signal x`. How many words the option takes; 0: not known.
std::size_t long_option(const Wrapper& wrapper, Argv argv, std::vector<Option>& options) {
  const std::string_view word = argv[0].text;
  const std::size_t equals = word.find('=');
  Option option{.name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2), .value = argv[0]};
  option.value.text.erase(0, equals == std::string_view::npos ? equals : equals + 1);
  const bool takes_next = equals == std::string_view::npos && has_word(wrapper.long_valued, option.name);
  if (!takes_next && !has_word(wrapper.long_flags, option.name) && !has_word(wrapper.long_valued, option.name)) return 0;
  if (equals == std::string_view::npos) option.value = takes_next && argv.size() > 1 ? argv[1] : Word{};
  options.push_back(std::move(option));
  return takes_next ? 2 : 1;
}

// `-kx`, `-k x`, `-vk x`.
std::size_t short_options(const Wrapper& wrapper, Argv argv, std::vector<Option>& options) {
  const std::string_view word = argv[0].text;
  for (std::size_t i = 1; i < word.size(); ++i) {
    const bool valued = wrapper.valued.find(word[i]) != std::string_view::npos;
    Option option{.name = word.substr(i, 1)};
    if (valued || wrapper.optional.find(word[i]) != std::string_view::npos) {
      const bool takes_next = valued && i + 1 == word.size();
      if (takes_next && argv.size() > 1) option.value = argv[1];
      else option.value.text = word.substr(i + 1);
      options.push_back(std::move(option));
      return takes_next ? 2 : 1;
    }
    if (wrapper.flags.find(word[i]) == std::string_view::npos) return wrapper.name == "nice" && word[i] >= '0' && word[i] <= '9';
    options.push_back(std::move(option));
  }
  return 1;
}

Front read_front(const Wrapper& wrapper, Argv argv) {
  Front front;
  while (front.end < argv.size()) {
    const Word& word = argv[front.end];
    if (!word.fixed) {
      front.doubt = format("a word of `{}` is only known at run time", wrapper.name);
      break;
    }
    const bool lone = word.text == "-" && wrapper.name == "env";  // `env -` is `env -i`, and the last option
    if (!lone && (word.text.size() < 2 || word.text[0] != '-')) break;
    if (lone || word.text == "--") {
      ++front.end;
      break;
    }
    const Argv rest = argv.subspan(front.end);
    const std::size_t words =
        word.text.starts_with("--") ? long_option(wrapper, rest, front.options) : short_options(wrapper, rest, front.options);
    if (words == 0) {
      front.known = false;
      break;
    }
    if (words == 2 && rest.size() > 1 && moves_others(rest[1]))
      front.doubt = format("a word of `{}` is only known at run time", wrapper.name);
    front.end += words;
  }
  front.end = std::min(front.end, argv.size());
  return front;
}

// env(1) takes any word with `=`, sudo(8) one without a slash before it.
bool is_assignment(std::string_view word, bool env) noexcept {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  return env || (equals > 0 && word.substr(0, equals).find('/') == std::string_view::npos);
}

Word dynamic_word(Span span, bool splits) { return {.text = "", .fixed = false, .splits = splits, .span = span}; }

// What xargs adds: at the end, or in place of the text that -I names. An option that counts lines or words ends -I.
void add_xargs_input(InnerCommand& inner, Front& front) {
  constexpr std::string_view kReplaces = "I i replace";
  constexpr std::string_view kCounts = "L l n max-lines max-args";
  const Word* replaced = nullptr;
  bool counts = false;
  for (const Option& option : front.options) {
    if (has_word(kReplaces, option.name)) replaced = &option.value;
    counts = counts || has_word(kCounts, option.name);
  }
  if (replaced == nullptr) {
    inner.argv.push_back(dynamic_word(inner.argv.back().span, true));
    return;
  }
  if (counts || !replaced->fixed) front.doubt = "what `xargs` replaces is only known at run time";
  const std::string_view text = replaced->text.empty() ? std::string_view("{}") : replaced->text;
  for (Word& word : inner.argv) {
    if (word.fixed && word.text.find(text) == std::string::npos) continue;  // of others only the run knows what they hold
    if (word.fixed) word.written = word.text, word.lead = word.text.find(text);
    else word.lead = std::min(word.lead, word.text.find(text));
    word.fixed = word.bounded = false;
    word.opens = word.expands = true;
  }
}

// A duration, a mask, a priority: what else stands there, another version of the program may take for the command.
bool is_number_operand(const Word& word) noexcept {
  const std::size_t first = word.text.starts_with('.') ? 1 : 0;
  return word.fixed && word.text.size() > first && word.text[first] >= '0' && word.text[first] <= '9';
}

Unwrapped open_plain(const Wrapper& wrapper, Argv argv) {
  const std::string name(wrapper.name);
  Front front = read_front(wrapper, argv);
  if (!front.known) return {{inner_unread(format("`{}` has an option that is not known here", name))}, false};
  std::size_t at = front.end;
  InnerCommand inner{.kind = InnerCommand::Kind::kCommand, .label = name};
  for (int i = 0; i < wrapper.operands; ++i, ++at) {
    if (at >= argv.size() || !front.doubt.empty()) continue;
    if (moves_others(argv[at])) front.doubt = format("a word of `{}` is only known at run time", name);
    else if (wrapper.transparent && !is_number_operand(argv[at]))
      front.doubt = format("what stands behind `{}` is no number", name);
  }
  while (wrapper.assigns && at < argv.size() && is_assignment(argv[at].text, name == "env")) {
    // Also of `"$x"y=z` the text is a name and a value.
    if (!argv[at].fixed) front.doubt = format("a variable that `{}` sets is only known at run time", name);
    const std::size_t equals = argv[at].text.find('=');
    Word value = argv[at];
    value.text.erase(0, equals + 1);
    value.written.clear();
    value.lead -= std::min(value.lead, equals + 1);
    inner.assignments.push_back({argv[at].text.substr(0, equals), std::move(value)});
    ++at;
  }
  // `time` is a word of the shell's grammar: any compound command may follow.
  if (name == "time" && at < argv.size() && is_reserved(argv[at].text))
    front.doubt = "`time` is followed by more than a simple command";
  Unwrapped unwrapped;
  if (at < argv.size()) {  // otherwise nothing is started: judged by its own name
    inner.argv.assign(argv.begin() + static_cast<std::ptrdiff_t>(at), argv.end());
    if (name == "xargs") add_xargs_input(inner, front);
    for (const Option& option : front.options) {
      const bool changes =
          (name == "env" && option.name == "C") || (name == "sudo" && option.name == "D") || option.name == "chdir";
      if (changes) inner.directory = option.value;
    }
    unwrapped.commands.push_back(std::move(inner));
  }
  unwrapped.transparent = wrapper.transparent && front.doubt.empty();
  // What seems to be the command is opened all the same: it may be forbidden.
  if (!front.doubt.empty()) unwrapped.commands.push_back(inner_unread(std::move(front.doubt)));
  return unwrapped;
}

// Every word fixed: joined by spaces, as eval, watch and ssh do.
Unwrapped open_joined(Argv words, std::string label) {
  InnerCommand inner{.kind = InnerCommand::Kind::kScript, .label = std::move(label)};
  for (const Word& word : words) {
    if (!inner.script.text.empty()) inner.script.text += ' ';
    inner.script.text += word.text;
    inner.script.fixed = inner.script.fixed && word.fixed;
    inner.script.span = word.span;
  }
  if (words.empty()) return {};
  return {{std::move(inner)}, true};
}

// sh [options] [-c TEXT | FILE] [NAME ARG...], bash(1), dash(1).
struct ShellCall {
  bool known = true;        // every option before the first operand
  bool command = false;     // -c
  bool input = false;       // -s
  std::size_t operand = 1;  // index of the first
};

ShellCall shell_call(Argv argv) noexcept {
  // Not -a and -k, which hand variables and `NAME=VALUE` words on to what is started; nor of -o and -O what changes the grammar.
  constexpr std::string_view kFlags = "befhlmnpstuvxBCEHPTcoO";
  constexpr std::string_view kNamed = "errexit extglob globstar noglob nounset nullglob pipefail";
  constexpr std::string_view kLong = "--login --noediting --noprofile --norc --posix --verbose";
  ShellCall call;
  for (; call.operand < argv.size(); ++call.operand) {
    const std::string_view text = argv[call.operand].text;
    if (!argv[call.operand].fixed) break;
    if (text == "-" || text == "--") {
      ++call.operand;
      break;
    }
    if (has_word(kLong, text)) continue;
    if (text.size() < 2 || (text[0] != '-' && text[0] != '+')) break;
    const std::string_view flags = text.substr(1);
    call.known = call.known && flags.find_first_not_of(kFlags) == std::string_view::npos;
    call.command = call.command || flags.find('c') != std::string_view::npos;
    call.input = call.input || flags.find('s') != std::string_view::npos;
    for (const char flag : flags) {
      if (flag != 'o' && flag != 'O') continue;
      ++call.operand;
      call.known =
          call.known && call.operand < argv.size() && argv[call.operand].fixed && has_word(kNamed, argv[call.operand].text);
    }
  }
  call.operand = std::min(call.operand, argv.size());
  call.known = call.known && !(call.command && call.input);  // dash goes on with standard input behind the text of -c
  return call;
}

Unwrapped open_shell(const SimpleCommand& command, const std::string& name) {
  const Argv argv = command.argv;
  const ShellCall call = shell_call(argv);
  if (!call.known) return {{inner_unread(format("`{}` has an option that is not known here", name))}, false};
  for (std::size_t i = 1; i < std::min(call.operand + (call.command ? 0 : 1), argv.size()); ++i) {
    if (!argv[i].fixed) return {{inner_unread(format("an option of `{}` is only known at run time", name))}, false};
  }
  if (std::ranges::find(kOtherGrammars, name) != std::end(kOtherGrammars) && (call.command || reads_script_from_stdin(command)))
    return {{inner_unread(format("`{}` reads its text by a grammar of its own", name))}, false};
  if (!call.command || call.operand == argv.size()) return {};  // a script file, or standard input
  if (argv[call.operand].splits && !argv[call.operand].fixed)
    return {{inner_unread(format("an option of `{}` is only known at run time", name))}, false};
  return {{{.kind = InnerCommand::Kind::kScript, .label = name + " -c", .script = argv[call.operand]}}, true};
}

// su [-] [USER] -c TEXT; otherwise it starts a shell or, as runuser -u USER, a program.
Unwrapped open_su(Argv argv, const std::string& name) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if ((argv[i].text == "-c" || argv[i].text == "--command") && i + 1 < argv.size())
      return {{{.kind = InnerCommand::Kind::kScript, .label = name + " -c", .script = argv[i + 1]}}, false};
  }
  return {{inner_unread(format("`{}` starts what its options say", name))}, false};
}

// trap [--] TEXT SIGNAL...
Unwrapped open_trap(Argv argv) {
  Argv words = argv.subspan(1);
  if (!words.empty() && words[0].text == "--") words = words.subspan(1);
  else if (!words.empty() && words[0].fixed && words[0].text.starts_with('-')) return {};  // lists or resets
  if (words.size() < 2 || (words[0].fixed && words[0].text == "-")) return {};
  return open_joined(words.first(1), "trap");
}

// . FILE: what standard input holds is opened by reads_script_from_stdin.
Unwrapped open_source(Argv argv, const std::string& name) {
  const std::size_t file = argv.size() > 1 && argv[1].text == "--" ? 2 : 1;
  if (file >= argv.size() || argv[file].fixed) return {};
  return {{inner_unread(format("`{}` runs a file that only the run decides", name))}, false};
}

// mapfile -C TEXT: evaluated for every so many lines.
Unwrapped open_mapfile(Argv argv, const std::string& name) {
  const bool calls = std::ranges::any_of(argv.subspan(1), [](const Word& word) {
    return !word.fixed || (word.text.starts_with('-') && word.text.find('C') != std::string::npos);
  });
  if (!calls) return {};
  return {{inner_unread(format("`{}` may run what `-C` names", name))}, false};
}

// Every -exec, -execdir, -ok and -okdir up to `;` or `+`.
Unwrapped open_find(Argv argv) {
  Unwrapped unwrapped;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& text = argv[i].text;
    if (text != "-exec" && text != "-execdir" && text != "-ok" && text != "-okdir") continue;
    InnerCommand inner{.kind = InnerCommand::Kind::kCommand, .label = "find " + text};
    for (++i; i < argv.size() && argv[i].text != ";" && argv[i].text != "+"; ++i) {
      Word word = argv[i];
      if (word.text.find("{}") != std::string::npos) word.fixed = false, word.splits = false;
      inner.argv.push_back(std::move(word));
    }
    if (!inner.argv.empty()) unwrapped.commands.push_back(std::move(inner));
  }
  return unwrapped;
}

// flock [options] FILE COMMAND... | flock [options] FILE -c TEXT; it makes the file.
Unwrapped open_flock(Argv argv) {
  const Front front = read_front(kFlock, argv);
  const std::size_t text = front.end + 2;
  if (front.known && front.doubt.empty() && text < argv.size() && !moves_others(argv[front.end]) &&
      (argv[text - 1].text == "-c" || argv[text - 1].text == "--command"))
    return {{{.kind = InnerCommand::Kind::kScript, .label = "flock -c", .script = argv[text]}}, false};
  return open_plain(kFlock, argv);
}

// alias NAME=TEXT...: the text is what NAME will mean.
Unwrapped open_alias(Argv argv) {
  Unwrapped unwrapped;
  for (const Word& word : argv.subspan(1)) {
    const std::size_t equals = word.text.find('=');
    if (equals == std::string::npos) continue;
    InnerCommand inner{.kind = InnerCommand::Kind::kScript, .label = "alias " + word.text.substr(0, equals), .script = word};
    inner.script.text.erase(0, equals + 1);
    unwrapped.commands.push_back(std::move(inner));
  }
  return unwrapped;
}

// watch [options] TEXT... | watch -x COMMAND...
Unwrapped open_watch(Argv argv) {
  const Front front = read_front(kWatch, argv);
  const bool runs =
      std::ranges::any_of(front.options, [](const Option& option) { return option.name == "x" || option.name == "exec"; });
  if (runs || !front.known || !front.doubt.empty()) return open_plain(kWatch, argv);
  return open_joined(argv.subspan(front.end), "watch");
}

// hash -p, enable -f, complete -C, bind -x, fc: builtins of bash(1) that give a name another program, or run one later.
bool renames_commands(const SimpleCommand& command) noexcept {
  constexpr std::pair<std::string_view, char> kOptions[] = {{"hash", 'p'},    {"enable", 'f'}, {"complete", 'C'}, {"complete", 'F'},
                                                            {"compgen", 'C'}, {"bind", 'x'},   {"fc", 'e'},       {"fc", 's'}};
  const std::string_view name = program_name(command);
  return std::ranges::any_of(kOptions, [&](const auto& option) {
    return option.first == name && std::ranges::any_of(command.argv, [&](const Word& word) {
             return word.text.starts_with('-') && word.text.find(option.second) != std::string::npos;
           });
  });
}

Unwrapped open_by_name(const SimpleCommand& command) {
  const std::string name(program_name(command));
  const Argv argv = command.argv;
  if (name.empty()) return {};
  if (is_shell(name)) return open_shell(command, name);
  if (name == "eval") return open_joined(argv.subspan(argv.size() > 1 && argv[1].text == "--" ? 2 : 1), "eval");
  if (name == "trap") return open_trap(argv);
  if (name == "." || name == "source") return open_source(argv, name);
  if (name == "mapfile" || name == "readarray") return open_mapfile(argv, name);
  if (renames_commands(command)) return {{inner_unread(format("`{}` changes which program a name means", name))}, false};
  if (name == "su" || name == "runuser") return open_su(argv, name);
  if (is_launcher(name)) return {{inner_unread(format("`{}` starts another program by rules of its own", name))}, false};
  if (name == "find") return open_find(argv);
  if (name == "flock") return open_flock(argv);
  if (name == "alias") return open_alias(argv);
  if (name == "watch") return open_watch(argv);
  if (name == "command" && argv.size() > 1 && (argv[1].text == "-v" || argv[1].text == "-V")) return {};  // only looks a name up
  if (name == "env" && std::ranges::any_of(argv, [](const Word& word) {
        return word.text.starts_with("-S") || word.text.starts_with("--split-string");
      }))
    return {{inner_unread("`env -S` splits a text into words by rules of its own")}, false};
  const auto* found = std::ranges::find(kWrappers, std::string_view(name), &Wrapper::name);
  if (found == std::end(kWrappers)) return {started_by_options(command), false};
  return open_plain(*found, argv);
}

}  // namespace

bool is_shell(std::string_view program) noexcept { return std::ranges::find(kShells, program) != kShells.end(); }

bool is_reserved(std::string_view word) noexcept {
  constexpr std::string_view kWords = "! { } if then elif else fi do done while until for select case esac function coproc [[ ((";
  return !word.empty() && has_word(kWords, word);
}

bool reads_script_from_stdin(const SimpleCommand& command) noexcept {
  const std::string_view name = program_name(command);
  const Argv argv = command.argv;
  if (name == "." || name == "source") return std::ranges::any_of(argv, [](const Word& word) { return is_stdin(word.text); });
  if (!is_shell(name)) return false;
  const ShellCall call = shell_call(argv);
  return call.input || (!call.command && (call.operand == argv.size() || is_stdin(argv[call.operand].text)));
}

std::string_view system_name(std::string_view program) noexcept {
  for (const std::string_view directory : {"/bin/", "/usr/bin/", "/usr/local/bin/"}) {
    if (program.starts_with(directory) && program.find('/', directory.size()) == std::string_view::npos)
      return program.substr(directory.size());
  }
  return program;
}

InnerCommand inner_script(std::string label, Word text) {
  return {.kind = InnerCommand::Kind::kScript, .label = std::move(label), .script = std::move(text)};
}
InnerCommand inner_unread(std::string reason) { return {.kind = InnerCommand::Kind::kUnread, .label = std::move(reason)}; }

Unwrapped unwrap(const SimpleCommand& command) {
  Unwrapped unwrapped = open_by_name(command);
  if (unwrapped.commands.empty()) return unwrapped;
  // `./nice ls` starts what lies there: opened as if it were nice, for what must not run, and judged by itself.
  const std::string_view text = command.argv[0].text;
  const std::string_view name = system_name(text);
  const bool is_builtin = std::ranges::find(kBuiltins, name) != std::end(kBuiltins);
  if (name.find('/') != std::string_view::npos || (is_builtin && name.size() != text.size())) unwrapped.transparent = false;
  return unwrapped;
}

}  // namespace belljar::shell
