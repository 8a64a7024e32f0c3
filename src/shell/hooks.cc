// Ordinary programs that start another one because an option says so: `sort --compress-program`, `ssh -o
// ProxyCommand=`.
//
// They are no wrappers: the program is judged as itself, and the option's value besides, as shell text. Rows
// of kHookRows are enough for programs with getopt(3) options; tar, ssh and git (git.cc) have syntax of their
// own inside the value. Where the option's name is not known before the run, that alone is unread.
//
// The second table has variables by which the environment decides what programs run or load (PATH,
// LD_PRELOAD, PAGER, GIT_*, PYTHON* ...). Whoever sets one changes commands that look harmless by their
// words. The list is by name and by prefix, and cannot be complete: it guides asking, and the sandbox holds
// what it misses.
#include "shell/hooks.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "shell/git.h"
#include "shell/operands.h"
#include "shell/script.h"
#include "shell/word_list.h"
#include "shell/wrappers.h"

namespace belljar::shell {
namespace {

// A program, its options with a value, and those of them whose value is run.
struct HookRow {
  std::string_view programs;
  ValueOptions valued;
  std::string_view runs;
};
// clang-format off
constexpr HookRow kHookRows[] = {
    {"install", {"", "strip-program"}, "strip-program"},
    {"man", {"PCMRLmSse", "pager"}, "P pager"},
    {"nc netcat", {"eipqswxXT", ""}, "e"},
    {"ncat", {"ceipqswxXgG", "exec sh-exec"}, "c e exec sh-exec"},
    {"npm npx", {"cpw", "call package workspace"}, "c call"},
    {"rsync", {"efTBM", "rsh"}, "e rsh"},
    {"scp sftp", {"cDFiJloPSXBbR", ""}, "S"},
    {"sort", {"koStT", "compress-program"}, "compress-program"},
    {"split", {"abClnt", "filter"}, "filter"},
    {"wget", {"aADeiIlOoPQRtTUwX", "use-askpass"}, "use-askpass"},
};
// clang-format on

// `tar --checkpoint-action=exec=TEXT`, `tar xIf PROGRAM FILE`.
void add_tar(const SimpleCommand& command, std::vector<InnerCommand>& found) {
  constexpr std::string_view kRuns = "I F to-command use-compress-program info-script new-volume-script rsh-command rmt-command";
  for (const auto& option : tar_arguments(command).options) {
    if (has_word(kRuns, option.name)) found.push_back(inner_script(format("tar {}", option.name), option.value));
    if (option.name != "checkpoint-action") continue;
    if (option.value.text.starts_with("exec=")) found.push_back(inner_script("tar --checkpoint-action", tail_of(option.value, 5)));
    else if (!option.value.fixed) found.push_back(inner_unread("what `tar --checkpoint-action` does is only known at run time"));
  }
}

// ssh_config(5), after -o: `ProxyCommand=TEXT`, `proxycommand TEXT`.
void add_ssh(const SimpleCommand& command, std::vector<InnerCommand>& found) {
  for (const auto& option : arguments(command, {"BbcDEeFIiJLlmOopQRSWwXP", ""}).options) {
    if (option.name != "o") continue;
    const std::string_view text = option.value.text;
    const std::size_t end = std::min(text.find_first_of("= \t"), text.size());
    const std::string key = lower(text.substr(0, end));
    if (!option.value.fixed && end == text.size()) found.push_back(inner_unread("an option of `ssh` is only known at run time"));
    if (!has_word("proxycommand localcommand knownhostscommand", key)) continue;
    const std::size_t value = std::min(text.find_first_not_of("= \t", end), text.size());
    found.push_back(inner_script("ssh -o " + key, tail_of(option.value, value)));
  }
}

constexpr std::string_view kRisky[] = {
    "PATH",        "IFS",      "ENV",        "BASH_ENV",       "SHELLOPTS",         "BASHOPTS", "PS4",          "PROMPT_COMMAND",
    "EDITOR",      "VISUAL",   "PAGER",      "LESSOPEN",       "LESSCLOSE",         "MANPAGER", "NODE_OPTIONS", "NODE_PATH",
    "PERL5OPT",    "PERL5LIB", "RUBYOPT",    "RUBYLIB",        "JAVA_TOOL_OPTIONS", "HOME",     "TERMINFO",     "GCONV_PATH",
    "HOSTALIASES", "CC",       "CXX",        "RUSTC_WRAPPER",  "MAKEFLAGS",         "TMPDIR",   "TAR_OPTIONS",  "LOCPATH",
    "NLSPATH",     "SHELL",    "EXECIGNORE", "POSIXLY_CORRECT"};
constexpr std::string_view kRiskyPrefixes[] = {
    "LD_",  "DYLD_",   "GIT_",       "PYTHON",   "BASH_FUNC_", "npm_config_", "NPM_CONFIG_", "PIP_",      "CARGO_",  "GLIBC_",
    "XDG_", "DOCKER_", "TEXTDOMAIN", "RIPGREP_", "http_proxy", "https_proxy", "ftp_proxy",   "all_proxy", "no_proxy"};

}  // namespace

std::vector<InnerCommand> started_by_options(const SimpleCommand& command) {
  std::vector<InnerCommand> found;
  const std::string_view name = program_name(command);
  if (name == "git") return started_by_git(command);
  if (name == "tar") add_tar(command, found);
  if (name == "ssh" || name == "scp" || name == "sftp") add_ssh(command, found);
  if (name == "socat" && std::ranges::any_of(command.argv, [](const Word& word) {
        const std::string text = lower(word.text);
        return text.starts_with("exec:") || text.starts_with("system:") || text.starts_with("shell:");
      }))
    found.push_back(inner_unread("`socat` starts a program"));
  const auto* row = std::ranges::find_if(kHookRows, [&](const HookRow& each) { return has_word(each.programs, name); });
  if (row == std::end(kHookRows)) return found;
  for (auto& option : arguments(command, row->valued).options) {
    if (!has_word(row->runs, option.name) || (name == "rsync" && option.value.fixed && option.value.text == "ssh")) continue;
    found.push_back(inner_script(format("{} {}", name, option.name), std::move(option.value)));
  }
  return found;
}

bool is_risky_variable(std::string_view name) noexcept {
  return std::ranges::find(kRisky, name) != std::end(kRisky) ||
         std::ranges::any_of(kRiskyPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace belljar::shell
