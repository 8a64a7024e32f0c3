#include "guard/wrappers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "guard/shell.h"

namespace belljar::guard {
namespace {

using Words = std::span<const Word>;

// How to find the inner command behind a wrapper's own words.
struct Wrapper {
  std::string_view name;
  std::string_view flags;       // short options without an argument
  std::string_view valued;      // short options with one
  std::string_view long_flags;  // long options without an argument, separated by spaces
  std::string_view long_valued;
  int operands = 0;         // words of its own before the command
  bool assigns = false;     // NAME=VALUE may stand before the command
  bool transparent = true;  // otherwise the wrapper itself is judged too
};

// clang-format off
constexpr Wrapper kWrappers[] = {
    {"builtin", "", "", "", ""},
    {"busybox", "", "", "", ""},
    {"chroot", "", "", "skip-chdir", "userspec groups", 1, false, false},
    {"chrt", "abfiorRvm", "TPD", "batch fifo idle other rr deadline reset-on-fork verbose", "", 1},
    {"command", "p", "", "", ""},
    {"doas", "nLs", "uCa", "", "", 0, true, false},
    {"env", "iv0", "uC", "ignore-environment debug null", "unset chdir", 0, true},
    {"exec", "cl", "a", "", ""},
    {"ionice", "t", "cn", "ignore", "class classdata"},
    {"nice", "", "n", "", "adjustment"},
    {"nohup", "", "", "", ""},
    {"setsid", "cfw", "", "ctty fork wait", ""},
    {"stdbuf", "", "ioe", "", "input output error"},
    {"strace", "fFqvtTrcCdhiwyY", "eEpsSabIOuP", "", "", 0, false, false},
    {"sudo", "AbEHnPSkKB", "CDghpRTUurt", "askpass background preserve-env set-home non-interactive preserve-groups stdin reset-timestamp", "close-from chdir group host prompt chroot command-timeout user other-user role type", 0, true, false},
    {"taskset", "a", "c", "all-tasks", "cpu-list", 1},
    {"time", "pvaq", "f", "portability verbose append quiet", "format"},
    {"timeout", "v", "ks", "preserve-status foreground verbose", "kill-after signal", 1},
    {"toybox", "", "", "", ""},
    {"xargs", "0rtxpo", "dEILnPsa", "null no-run-if-empty verbose exit interactive open-tty", "delimiter max-args max-procs max-chars max-lines replace arg-file", 0, false},
};
// clang-format on

constexpr std::array<std::string_view, 8> kShells{"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"};

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

bool has_word(std::string_view list, std::string_view word) noexcept {
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const bool begins = at == 0 || list[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (begins && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

Opened unread(std::string reason) { return {.kind = Opened::Kind::kUnread, .label = std::move(reason)}; }

// `-kx`, `-k x`, `--signal=x`, `--signal x`. How many words the option takes; 0: not known.
std::size_t option_words(const Wrapper& wrapper, std::string_view word) noexcept {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    if (has_word(wrapper.long_flags, name)) return 1;
    if (has_word(wrapper.long_valued, name)) return equals == std::string_view::npos ? 2 : 1;
    return 0;
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (wrapper.valued.find(word[i]) != std::string_view::npos) return i + 1 == word.size() ? 2 : 1;
    if (wrapper.flags.find(word[i]) == std::string_view::npos) return wrapper.name == "nice" && word[i] >= '0' && word[i] <= '9';
  }
  return 1;
}

bool is_assignment(std::string_view word) noexcept {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return std::ranges::all_of(word.substr(0, equals), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// Index of the first word of the inner command; nullopt: cannot be told.
std::optional<std::size_t> skip_options(const Wrapper& wrapper, Words argv) noexcept {
  std::size_t at = 1;
  const auto is_option = [&](const std::string& text) {
    return text.starts_with('-') && (text.size() > 1 || wrapper.name == "env");  // `env -` is `env -i`
  };
  while (at < argv.size() && argv[at].fixed && is_option(argv[at].text)) {
    if (argv[at].text == "--") {
      ++at;
      break;
    }
    const std::size_t words = option_words(wrapper, argv[at].text);
    if (words == 0) return std::nullopt;
    at += words;
  }
  return std::min(at, argv.size());
}

Word dynamic_word(Span span, bool splits) { return {.text = "", .fixed = false, .splits = splits, .span = span}; }

// What xargs adds: at the end, or in place of the text that -I names.
void add_xargs_input(Opened& opened, Words own) {
  std::string_view replaced;
  for (std::size_t i = 1; i < own.size(); ++i) {
    const std::string_view text = own[i].text;
    if (text == "-I" || text == "--replace") replaced = i + 1 < own.size() ? std::string_view(own[i + 1].text) : "{}";
    else if (text.starts_with("-I")) replaced = text.substr(2);
    else if (text.starts_with("--replace=")) replaced = text.substr(10);
  }
  if (replaced.empty()) {
    opened.argv.push_back(dynamic_word(opened.argv.back().span, true));
    return;
  }
  for (Word& word : opened.argv) {
    if (word.text.find(replaced) != std::string::npos) word.fixed = false;
  }
}

Opening open_plain(const Wrapper& wrapper, Words argv) {
  const std::string name(wrapper.name);
  const auto skipped = skip_options(wrapper, argv);
  if (!skipped) return {{unread(format("`{}` has an option that is not known here", name))}, false};
  std::size_t at = *skipped;
  Opened opened{.kind = Opened::Kind::kCommand, .label = name};
  for (int i = 0; i < wrapper.operands; ++i) ++at;
  while (wrapper.assigns && at < argv.size() && is_assignment(argv[at].text)) {
    const std::size_t equals = argv[at].text.find('=');
    Word value = argv[at];
    value.text.erase(0, equals + 1);
    opened.assignments.push_back({argv[at].text.substr(0, equals), std::move(value)});
    ++at;
  }
  if (at >= argv.size()) return {};  // nothing is started: judged by its own name
  // `time` is a word of the shell's grammar: any compound command may follow.
  if (name == "time" && is_reserved(argv[at].text)) return {{unread("`time` is followed by more than a simple command")}, false};
  opened.argv.assign(argv.begin() + static_cast<std::ptrdiff_t>(at), argv.end());
  if (name == "xargs") add_xargs_input(opened, argv.first(at));
  return {{std::move(opened)}, wrapper.transparent};
}

// Every word fixed: joined by spaces, as eval, watch and ssh do.
Opening open_joined(Words words, std::string label) {
  Opened opened{.kind = Opened::Kind::kScript, .label = std::move(label)};
  for (const Word& word : words) {
    if (!opened.script.text.empty()) opened.script.text += ' ';
    opened.script.text += word.text;
    opened.script.fixed = opened.script.fixed && word.fixed;
    opened.script.span = word.span;
  }
  if (words.empty()) return {};
  return {{std::move(opened)}, true};
}

// sh [options] [-c TEXT | FILE] [NAME ARG...], bash(1), dash(1).
struct ShellCall {
  bool known = true;        // every option before the first operand
  bool command = false;     // -c
  bool input = false;       // -s
  std::size_t operand = 1;  // index of the first
};

ShellCall shell_call(Words argv) noexcept {
  constexpr std::string_view kFlags = "abefhklmnpstuvxBCEHPTcoO";
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
    call.operand += static_cast<std::size_t>(std::ranges::count_if(flags, [](char c) { return c == 'o' || c == 'O'; }));
  }
  call.operand = std::min(call.operand, argv.size());
  return call;
}

Opening open_shell(const Part& part, const std::string& name) {
  const Words argv = part.argv;
  const ShellCall call = shell_call(argv);
  if (!call.known) return {{unread(format("`{}` has an option that is not known here", name))}, false};
  for (std::size_t i = 1; i < std::min(call.operand + (call.command ? 0 : 1), argv.size()); ++i) {
    if (!argv[i].fixed) return {{unread(format("an option of `{}` is only known at run time", name))}, false};
  }
  if (!call.command || call.operand == argv.size()) return {};  // a script file, or standard input
  if (argv[call.operand].splits && !argv[call.operand].fixed)
    return {{unread(format("an option of `{}` is only known at run time", name))}, false};
  return {{{.kind = Opened::Kind::kScript, .label = name + " -c", .script = argv[call.operand]}}, true};
}

// su [-] [USER] -c TEXT; otherwise it starts a shell or, as runuser -u USER, a program.
Opening open_su(Words argv, const std::string& name) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if ((argv[i].text == "-c" || argv[i].text == "--command") && i + 1 < argv.size())
      return {{{.kind = Opened::Kind::kScript, .label = name + " -c", .script = argv[i + 1]}}, false};
  }
  return {{unread(format("`{}` starts what its options say", name))}, false};
}

// trap [--] TEXT SIGNAL...
Opening open_trap(Words argv) {
  Words words = argv.subspan(1);
  if (!words.empty() && words[0].text == "--") words = words.subspan(1);
  else if (!words.empty() && words[0].fixed && words[0].text.starts_with('-')) return {};  // lists or resets
  if (words.size() < 2 || (words[0].fixed && words[0].text == "-")) return {};
  return open_joined(words.first(1), "trap");
}

// . FILE: what standard input holds is opened by reads_script_from_stdin.
Opening open_source(Words argv, const std::string& name) {
  const std::size_t file = argv.size() > 1 && argv[1].text == "--" ? 2 : 1;
  if (file >= argv.size() || argv[file].fixed) return {};
  return {{unread(format("`{}` runs a file that only the run decides", name))}, false};
}

// mapfile -C TEXT: evaluated for every so many lines.
Opening open_mapfile(Words argv, const std::string& name) {
  const bool calls = std::ranges::any_of(argv.subspan(1), [](const Word& word) {
    return !word.fixed || (word.text.starts_with('-') && word.text.find('C') != std::string::npos);
  });
  if (!calls) return {};
  return {{unread(format("`{}` may run what `-C` names", name))}, false};
}

// Every -exec, -execdir, -ok and -okdir up to `;` or `+`.
Opening open_find(Words argv) {
  Opening opening;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& text = argv[i].text;
    if (text != "-exec" && text != "-execdir" && text != "-ok" && text != "-okdir") continue;
    Opened opened{.kind = Opened::Kind::kCommand, .label = "find " + text};
    for (++i; i < argv.size() && argv[i].text != ";" && argv[i].text != "+"; ++i) {
      Word word = argv[i];
      if (word.text.find("{}") != std::string::npos) word.fixed = false, word.splits = false;
      opened.argv.push_back(std::move(word));
    }
    if (!opened.argv.empty()) opening.opened.push_back(std::move(opened));
  }
  return opening;
}

// flock [options] FILE COMMAND... | flock [options] FILE -c TEXT
Opening open_flock(Words argv) {
  constexpr Wrapper kFlock{"flock", "sxenoFu", "wE", "shared exclusive nonblock no-fork verbose", "wait timeout conflict-exit-code",
                           1};
  const auto skipped = skip_options(kFlock, argv);
  if (skipped && *skipped + 2 < argv.size() && (argv[*skipped + 1].text == "-c" || argv[*skipped + 1].text == "--command"))
    return {{{.kind = Opened::Kind::kScript, .label = "flock -c", .script = argv[*skipped + 2]}}, true};
  return open_plain(kFlock, argv);
}

// alias NAME=TEXT...: the text is what NAME will mean.
Opening open_alias(Words argv) {
  Opening opening;
  for (const Word& word : argv.subspan(1)) {
    const std::size_t equals = word.text.find('=');
    if (equals == std::string::npos) continue;
    Opened opened{.kind = Opened::Kind::kScript, .label = "alias " + word.text.substr(0, equals), .script = word};
    opened.script.text.erase(0, equals + 1);
    opening.opened.push_back(std::move(opened));
  }
  return opening;
}

Opening open_watch(Words argv) {
  constexpr Wrapper kWatch{"watch", "bcdegtwxr", "nq", "beep color differences errexit chgexit no-title no-wrap exec",
                           "interval equexit"};
  const auto skipped = skip_options(kWatch, argv);
  if (!skipped) return {{unread("`watch` has an option that is not known here")}, false};
  return open_joined(argv.subspan(*skipped), "watch");
}

}  // namespace

bool is_shell(std::string_view program) noexcept { return std::ranges::find(kShells, program) != kShells.end(); }

bool is_reserved(std::string_view word) noexcept {
  constexpr std::string_view kWords = "! { } if then elif else fi do done while until for select case esac function coproc [[ ((";
  return !word.empty() && has_word(kWords, word);
}

bool reads_script_from_stdin(const Part& part) noexcept {
  const std::string_view name = program_name(part);
  const Words argv = part.argv;
  if (name == "." || name == "source") return std::ranges::any_of(argv, [](const Word& word) { return is_stdin(word.text); });
  if (!is_shell(name)) return false;
  const ShellCall call = shell_call(argv);
  if (call.command) return false;
  return call.input || call.operand == argv.size() || is_stdin(argv[call.operand].text);
}

Opening open_wrapper(const Part& part) {
  const std::string name(program_name(part));
  const Words argv = part.argv;
  if (name.empty()) return {};
  if (is_shell(name)) return open_shell(part, name);
  if (name == "eval") return open_joined(argv.subspan(argv.size() > 1 && argv[1].text == "--" ? 2 : 1), "eval");
  if (name == "trap") return open_trap(argv);
  if (name == "." || name == "source") return open_source(argv, name);
  if (name == "mapfile" || name == "readarray") return open_mapfile(argv, name);
  if (name == "su" || name == "runuser") return open_su(argv, name);
  if (is_launcher(name)) return {{unread(format("`{}` starts another program by rules of its own", name))}, false};
  if (name == "find") return open_find(argv);
  if (name == "flock") return open_flock(argv);
  if (name == "alias") return open_alias(argv);
  if (name == "watch") return open_watch(argv);
  if (name == "command" && argv.size() > 1 && (argv[1].text == "-v" || argv[1].text == "-V")) return {};  // only looks a name up
  if (name == "env" && std::ranges::any_of(argv, [](const Word& word) {
        return word.text.starts_with("-S") || word.text.starts_with("--split-string");
      }))
    return {{unread("`env -S` splits a text into words by rules of its own")}, false};
  const auto* found = std::ranges::find(kWrappers, std::string_view(name), &Wrapper::name);
  if (found == std::end(kWrappers)) return {};
  // An option only the run decides may move the command, or be one.
  return open_plain(*found, argv);
}

}  // namespace belljar::guard
