#include "guard/hooks.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "guard/operands.h"
#include "guard/shell.h"
#include "guard/wrappers.h"

namespace belljar::guard {
namespace {

bool has_word(std::string_view list, std::string_view word) noexcept {
  for (std::size_t at = list.find(word); !word.empty() && at != std::string_view::npos; at = list.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

Opened script(std::string label, Word text) {
  return {.kind = Opened::Kind::kScript, .label = std::move(label), .script = std::move(text)};
}
Opened unread(std::string reason) { return {.kind = Opened::Kind::kUnread, .label = std::move(reason)}; }

// A program, its options with a value, and those of them whose value is run.
struct Row {
  std::string_view programs;
  Valued valued;
  std::string_view runs;
};
// clang-format off
constexpr Row kRows[] = {
    {"install", {"", "strip-program"}, "strip-program"},
    {"man", {"PCMRLmSse", "pager"}, "P pager"},
    {"nc netcat", {"eipqswxXT", ""}, "e"},
    {"ncat", {"ceipqswxXgG", "exec sh-exec"}, "c e exec sh-exec"},
    {"rsync", {"efTBM", "rsh"}, "e rsh"},
    {"scp sftp", {"cDFiJloPSXBbR", ""}, "S"},
    {"sort", {"koStT", "compress-program"}, "compress-program"},
    {"split", {"abClnt", "filter"}, "filter"},
    {"tar", {"bCfFgHIKLNTVX", "to-command use-compress-program info-script new-volume-script rsh-command rmt-command"},
     "I F to-command use-compress-program info-script new-volume-script rsh-command rmt-command"},
    {"wget", {"aADeiIlOoPQRtTUwX", "use-askpass"}, "use-askpass"},
};
// clang-format on

// `tar --checkpoint-action=exec=TEXT`, and letters without a dash: `tar xIf PROGRAM FILE`.
void add_tar(const Part& part, std::vector<Opened>& found) {
  for (const auto& option : arguments(part, {"bCfFgHIKLNTVX", "checkpoint-action"}).options) {
    if (option.name != "checkpoint-action") continue;
    if (option.value.text.starts_with("exec=")) found.push_back(script("tar --checkpoint-action", tail_of(option.value, 5)));
    else if (!option.value.fixed) found.push_back(unread("what `tar --checkpoint-action` does is only known at run time"));
  }
  const bool cluster = part.argv.size() > 1 && !part.argv[1].text.starts_with('-');
  if (cluster && part.argv[1].text.find_first_of("IF") != std::string::npos)
    found.push_back(unread("`tar` starts a program that one of its words names"));
}

// ssh_config(5), after -o: `ProxyCommand=TEXT`, `proxycommand TEXT`.
void add_ssh(const Part& part, std::vector<Opened>& found) {
  for (const auto& option : arguments(part, {"BbcDEeFIiJLlmOopQRSWwXP", ""}).options) {
    if (option.name != "o") continue;
    const std::string_view text = option.value.text;
    const std::size_t end = std::min(text.find_first_of("= \t"), text.size());
    const std::string key = lower(text.substr(0, end));
    if (!option.value.fixed && end == text.size()) found.push_back(unread("an option of `ssh` is only known at run time"));
    if (!has_word("proxycommand localcommand knownhostscommand", key)) continue;
    const std::size_t value = std::min(text.find_first_not_of("= \t", end), text.size());
    found.push_back(script("ssh -o " + key, tail_of(option.value, value)));
  }
}

// git-config(1): keys whose value git hands to a shell, by the front and the end of their names.
bool is_command_key(const std::string& key) {
  constexpr std::string_view kKeys =
      "core.pager core.editor core.sshcommand core.fsmonitor core.askpass core.gitproxy core.alternaterefscommand sequence.editor "
      "diff.external gpg.program gpg.ssh.defaultkeycommand interactive.difffilter uploadpack.packobjectshook credential.helper "
      "sendemail.tocmd sendemail.cccmd sendemail.headercmd sendemail.sendmailcmd";
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {{"pager.", ""},
                                                                      {"diff.", ".textconv"},
                                                                      {"diff.", ".command"},
                                                                      {"merge.", ".driver"},
                                                                      {"mergetool.", ".cmd"},
                                                                      {"difftool.", ".cmd"},
                                                                      {"filter.", ".clean"},
                                                                      {"filter.", ".smudge"},
                                                                      {"filter.", ".process"},
                                                                      {"credential.", ".helper"},
                                                                      {"gpg.", ".program"},
                                                                      {"remote.", ".uploadpack"},
                                                                      {"remote.", ".receivepack"},
                                                                      {"trailer.", ".command"},
                                                                      {"trailer.", ".cmd"},
                                                                      {"browser.", ".cmd"},
                                                                      {"man.", ".cmd"},
                                                                      {"tar.", ".command"},
                                                                      {"guitool.", ".cmd"}};
  if (has_word(kKeys, key)) return true;
  return std::ranges::any_of(kParts, [&](const auto& part) { return key.starts_with(part.first) && key.ends_with(part.second); });
}

void add_git_setting(const std::string& key, Word value, std::vector<Opened>& found) {
  const std::string label = "git " + key;
  if (key.starts_with("alias.") || key == "credential.helper" || (key.starts_with("credential.") && key.ends_with(".helper"))) {
    if (value.text.starts_with('!')) return found.push_back(script(label, tail_of(value, 1)));
    if (key.starts_with("alias.")) value.text.insert(0, "git "), value.lead += 4;
    else if (value.fixed && !value.text.starts_with('/')) return;  // git-credential-NAME
    return found.push_back(script(label, std::move(value)));
  }
  if (is_command_key(key)) return found.push_back(script(label, std::move(value)));
  const bool elsewhere = has_word("core.hookspath include.path init.templatedir core.attributesfile protocol.ext.allow", key) ||
                         key.starts_with("includeif.");
  if (elsewhere) found.push_back(unread(format("`git` takes what it starts from elsewhere by {}", key)));
}

// KEY=VALUE
void add_git_pair(const Word& word, std::vector<Opened>& found) {
  const std::size_t equals = word.text.find('=');
  if (!word.fixed && (equals == std::string::npos || equals >= word.lead))
    return found.push_back(unread("a setting of `git` is only known at run time"));
  if (equals != std::string::npos)
    add_git_setting(lower(std::string_view(word.text).substr(0, equals)), tail_of(word, equals + 1), found);
}

void add_git_subcommand(const Part& part, std::size_t at, std::vector<Opened>& found) {
  const Part own{.argv = {part.argv.begin() + static_cast<std::ptrdiff_t>(at), part.argv.end()}, .span = part.span};
  const std::string_view name = own.argv[0].text;
  const Arguments args =
      arguments(own, {name == "rebase" || name == "difftool" ? "x"
                      : name == "clone"                      ? "cu"
                                                             : "",
                      "exec upload-pack receive-pack extcmd config tree-filter index-filter msg-filter env-filter "
                      "parent-filter commit-filter tag-name-filter"});
  for (const auto& option : args.options) {
    if (option.name == "c" || (option.name == "config" && name == "clone")) add_git_pair(option.value, found);
    else if (name != "config") found.push_back(script("git " + std::string(name), option.value));
  }
  if (name == "grep") {
    for (const Word& word : own.argv) {
      if (word.text.starts_with("-O") && word.text.size() > 2) found.push_back(script("git grep -O", tail_of(word, 2)));
    }
  }
  auto words = args.operands;
  if (std::ranges::any_of(words, [](const Word& word) { return word.text.starts_with("ext::"); }))
    found.push_back(unread("`ext::` of `git` starts a program"));
  if (name == "config") {
    if (!words.empty() && (words[0].text == "set" || words[0].text == "add")) words.erase(words.begin());
    if (words.size() > 1 && words[0].fixed) add_git_setting(lower(words[0].text), words[1], found);
    else if (words.size() > 1) found.push_back(unread("a setting of `git` is only known at run time"));
  }
  if (words.size() > 1 && ((name == "bisect" && words[0].text == "run") || (name == "submodule" && words[0].text == "foreach"))) {
    Word text = words[1];
    for (std::size_t i = 2; i < words.size(); ++i) text.text += " " + words[i].text, text.fixed = text.fixed && words[i].fixed;
    found.push_back(script("git " + std::string(name) + " " + words[0].text, std::move(text)));
  }
}

void add_git(const Part& part, std::vector<Opened>& found) {
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const Word& word = part.argv[i];
    if (word.text == "-c" && i + 1 < part.argv.size()) {
      add_git_pair(part.argv[++i], found);
    } else if (word.text.starts_with("--config-env") || word.text.starts_with("--exec-path=")) {
      found.push_back(unread(format("`git {}` names what is started elsewhere", word.text.substr(0, word.text.find('=')))));
    } else if (has_word("-C --git-dir --work-tree --namespace --super-prefix", word.text)) {
      ++i;
    } else if (!word.text.starts_with('-')) {
      return add_git_subcommand(part, i, found);
    }
  }
}

}  // namespace

std::vector<Opened> started_by_options(const Part& part) {
  std::vector<Opened> found;
  const std::string_view name = program_name(part);
  if (name == "git") {
    add_git(part, found);
    return found;
  }
  if (name == "tar") add_tar(part, found);
  if (name == "ssh" || name == "scp" || name == "sftp") add_ssh(part, found);
  if (name == "socat" && std::ranges::any_of(part.argv, [](const Word& word) {
        const std::string text = lower(word.text);
        return text.starts_with("exec:") || text.starts_with("system:") || text.starts_with("shell:");
      }))
    found.push_back(unread("`socat` starts a program"));
  const auto* row = std::ranges::find_if(kRows, [&](const Row& each) { return has_word(each.programs, name); });
  if (row == std::end(kRows)) return found;
  for (auto& option : arguments(part, row->valued).options) {
    if (!has_word(row->runs, option.name) || (name == "rsync" && option.value.fixed && option.value.text == "ssh")) continue;
    found.push_back(script(format("{} {}", name, option.name), std::move(option.value)));
  }
  return found;
}

}  // namespace belljar::guard
