// What git(1) starts, and where it writes, by its words alone.
//
// git runs programs for many of its settings (pager, editor, ssh command, filters, hooks, credential
// helpers), and `-c KEY=VALUE` sets any of them for one command. Keys are compared with a list from
// git-config(1), by name or by front and end, and the value is judged as shell text. A key that no list has,
// but whose last word says that a program is meant (`.command`, `.helper`), is unread, because git and its
// extensions get new ones. Settings by which git takes its hooks or its configuration from another place
// (core.hooksPath, include.path) are unread: what runs then is in a file.
//
// What it writes is asked of the sub-command: kMakers says which operand or option names a new file or
// directory. Changes to its own work tree and to `.git` are not among them; those are what git is called for,
// and the broker judges git's control files by themselves.
#include "shell/git.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "shell/global_options.h"
#include "shell/operands.h"
#include "shell/script.h"
#include "shell/word_list.h"
#include "shell/wrappers.h"

namespace belljar::shell {
namespace {

// git-config(1): keys whose value git hands to a shell, by the front and the end of their names.
bool is_command_setting(const std::string& key) {
  constexpr std::string_view kKeys =
      "core.pager core.editor core.sshcommand core.fsmonitor core.askpass core.gitproxy core.alternaterefscommand sequence.editor "
      "diff.external gpg.program gpg.ssh.defaultkeycommand interactive.difffilter uploadpack.packobjectshook credential.helper "
      "sendemail.tocmd sendemail.cccmd sendemail.headercmd sendemail.sendmailcmd imap.tunnel gc.recentobjectshook";
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
                                                                      {"guitool.", ".cmd"},
                                                                      {"browser.", ".path"},
                                                                      {"difftool.", ".path"},
                                                                      {"mergetool.", ".path"},
                                                                      {"man.", ".path"},
                                                                      {"hook.", ".command"},
                                                                      {"lfs.customtransfer.", ".path"},
                                                                      {"lfs.extension.", ".clean"},
                                                                      {"lfs.extension.", ".smudge"}};
  if (has_word(kKeys, key)) return true;
  return std::ranges::any_of(kParts,
                             [&](const auto& command) { return key.starts_with(command.first) && key.ends_with(command.second); });
}

// A key that no table has, and whose last name says that a program is meant: git and its extensions get new ones.
bool sounds_like_command(std::string_view key) {
  constexpr std::string_view kEnds[] = {"command", "cmd",     "program", "hook",   "editor",
                                        "pager",   "askpass", "helper",  "driver", "tunnel"};
  if (key.starts_with("color.")) return false;  // `color.pager=false`
  const std::string_view name = key.substr(key.rfind('.') + 1);
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

// Settings by which git takes what it starts from somewhere else.
bool names_elsewhere(const std::string& key) {
  constexpr std::string_view kKeys =
      "core.hookspath core.worktree include.path init.templatedir core.attributesfile protocol.ext.allow protocol.allow "
      "instaweb.httpd instaweb.browser";
  const auto is = [&](std::string_view front, std::string_view end) { return key.starts_with(front) && key.ends_with(end); };
  return has_word(kKeys, key) || key.starts_with("includeif.") || is("remote.", ".vcs");
}

// git-send-email(1): an absolute path is a program, anything else a host.
bool names_mailer(const std::string& key, const Word& value) {
  const bool server = key == "sendemail.smtpserver" || (key.starts_with("sendemail.") && key.ends_with(".smtpserver"));
  const bool host = value.lead > 0 || value.fixed;
  return server && !(host && !value.text.starts_with('/'));
}

void add_git_setting(const std::string& key, Word value, std::vector<InnerCommand>& found) {
  const std::string label = "git " + key;
  const bool helper = key == "credential.helper" || (key.starts_with("credential.") && key.ends_with(".helper"));
  const bool update = key.starts_with("submodule.") && key.ends_with(".update");
  if (key.starts_with("alias.") || helper || update) {
    if (value.text.starts_with('!')) return found.push_back(inner_script(label, tail_of(value, 1)));
    if (update && !value.fixed) return found.push_back(inner_unread(format("what {} starts is only known at run time", label)));
    if (key.starts_with("alias.")) value.text.insert(0, "git "), value.lead += 4;
    else if (update || (value.fixed && !value.text.starts_with('/'))) return;  // git-credential-NAME
    return found.push_back(inner_script(label, std::move(value)));
  }
  if (is_command_setting(key)) return found.push_back(inner_script(label, std::move(value)));
  // `url.ext::sh -c x.insteadOf=y`, `remote.o.url=ext::...`: the transport is a program.
  const bool transport = key.starts_with("url.ext::") || value.text.starts_with("ext::");
  if (transport) found.push_back(inner_unread("`ext::` of `git` starts a program"));
  else if (names_elsewhere(key) || names_mailer(key, value))
    found.push_back(inner_unread(format("`git` takes what it starts from elsewhere by {}", key)));
  else if (sounds_like_command(key)) found.push_back(inner_unread(format("`git` may start what {} says", key)));
}

// KEY=VALUE
void add_git_pair(const Word& word, std::vector<InnerCommand>& found) {
  const std::size_t equals = word.text.find('=');
  if (!word.fixed && (equals == std::string::npos || equals >= word.lead))
    return found.push_back(inner_unread("a setting of `git` is only known at run time"));
  if (equals != std::string::npos)
    add_git_setting(lower(std::string_view(word.text).substr(0, equals)), tail_of(word, equals + 1), found);
}

// `config [options] [set] KEY VALUE`.
Arguments config_arguments(const SimpleCommand& own) {
  Arguments args = arguments(own, {"f", "file blob type default value comment url", "fixed-value"});
  constexpr std::string_view kActs = "set get unset list edit rename-section remove-section get-all get-regexp get-urlmatch";
  if (!args.operands.empty() && has_word(kActs, args.operands[0].text)) args.operands.erase(args.operands.begin());
  return args;
}

void add_git_config(const SimpleCommand& own, std::vector<InnerCommand>& found) {
  const auto words = config_arguments(own).operands;
  if (words.size() < 2) return;
  if (words[0].fixed) add_git_setting(lower(words[0].text), words[1], found);
  else found.push_back(inner_unread("a setting of `git` is only known at run time"));
}

// The subcommand and what follows it, as a command of its own.
SimpleCommand own_words(const SimpleCommand& command, std::size_t at) {
  return {.argv = {command.argv.begin() + static_cast<std::ptrdiff_t>(at), command.argv.end()}, .span = command.span};
}

// Options of subcommands whose value is run.
Arguments program_options(const SimpleCommand& own) {
  const std::string_view name = own.argv[0].text;
  return arguments(own, {name == "rebase" || name == "difftool" ? "x"
                         : name == "clone"                      ? "cu"
                                                                : "",
                         "exec upload-pack receive-pack extcmd config tree-filter index-filter msg-filter env-filter parent-filter "
                         "commit-filter tag-name-filter setup to-cmd cc-cmd header-cmd sendmail-cmd access-hook",
                         "to cc header"});
}

// Whether the shell takes the word as it stands for a name, so that the words behind it stay words.
bool is_plain_name(const Word& word) noexcept {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' ||
           c == '-';
  };
  return word.fixed && !word.text.empty() && std::ranges::all_of(word.text, plain);
}

// `git bisect run WORD...`, `git submodule foreach [--recursive] WORD...`: all that stands behind, its options among them.
void add_git_command(const SimpleCommand& own, std::string_view act, std::vector<InnerCommand>& found) {
  const auto option = [](const Word& word) { return word.fixed && word.text.starts_with('-'); };
  const auto is_act = std::find_if_not(own.argv.begin() + 1, own.argv.end(), option);
  if (is_act == own.argv.end() || is_act->text != act) return;
  const std::vector<Word> words(std::find_if_not(is_act + 1, own.argv.end(), option), own.argv.end());
  if (words.empty()) return;
  std::string label = format("git {} {}", own.argv[0].text, act);
  if (words.size() > 1 && is_plain_name(words[0])) {
    found.push_back({.label = std::move(label), .argv = words});
    return;
  }
  Word text = words[0];
  for (std::size_t i = 1; i < words.size(); ++i) text.text += " " + words[i].text, text.fixed = text.fixed && words[i].fixed;
  found.push_back(inner_script(std::move(label), std::move(text)));
}

// `git merge-index PROGRAM`, `git remote-ext NAME TEXT`.
void add_git_words(const SimpleCommand& own, const std::vector<Word>& words, std::vector<InnerCommand>& found) {
  const std::string_view name = own.argv[0].text;
  if (name == "bisect") return add_git_command(own, "run", found);
  if (name == "submodule") return add_git_command(own, "foreach", found);
  const std::size_t at = name == "remote-ext" ? 1 : 0;
  if ((at == 0 && name != "merge-index") || words.size() <= at) return;
  Word text = words[at];
  const std::size_t end = at == 0 ? at + 1 : words.size();
  for (std::size_t i = at + 1; i < end; ++i) text.text += " " + words[i].text, text.fixed = text.fixed && words[i].fixed;
  found.push_back(inner_script(format("git {}", name), std::move(text)));
}

void add_git_subcommand(const SimpleCommand& command, std::size_t at, std::vector<InnerCommand>& found) {
  const SimpleCommand own = own_words(command, at);
  const std::string_view name = own.argv[0].text;
  if (name == "config") return add_git_config(own, found);
  const Arguments args = program_options(own);
  for (const auto& option : args.options) {
    if (option.name == "c" || (option.name == "config" && name == "clone")) add_git_pair(option.value, found);
    else if (option.name != "config") found.push_back(inner_script("git " + std::string(name), option.value));
  }
  for (const Word& word : own.argv) {
    constexpr std::string_view kPager = "--open-files-in-pager=";
    if (name == "grep" && word.text.starts_with("-O") && word.text.size() > 2)
      found.push_back(inner_script("git grep -O", tail_of(word, 2)));
    if (name == "grep" && word.text.starts_with(kPager)) found.push_back(inner_script("git grep -O", tail_of(word, kPager.size())));
    if ((name == "clone" || name == "init") && word.text.starts_with("--template"))
      found.push_back(inner_unread("`git --template` brings hooks from elsewhere"));
    if (name == "send-email" && word.text.starts_with("--smtp-server"))
      found.push_back(inner_unread("`git send-email` may start its server"));
  }
  if (std::ranges::any_of(args.operands, [](const Word& word) { return word.text.starts_with("ext::"); }))
    found.push_back(inner_unread("`ext::` of `git` starts a program"));
  add_git_words(own, args.operands, found);
}

// git's own options take their value from the next word.
bool takes_word(std::string_view option) noexcept { return shell::takes_word("git", option) == TakesWord::kYes; }

// Where the subcommand stands; the number of words when there is none.
std::size_t subcommand(const SimpleCommand& command) noexcept {
  std::size_t at = 1;
  while (at < command.argv.size() && command.argv[at].text.starts_with('-')) at += takes_word(command.argv[at].text) ? 2 : 1;
  return std::min(at, command.argv.size());
}

void add_git(const SimpleCommand& command, std::vector<InnerCommand>& found) {
  const std::size_t at = subcommand(command);
  for (std::size_t i = 1; i < at; ++i) {
    const Word& word = command.argv[i];
    if (word.text == "-c" && i + 1 < at) add_git_pair(command.argv[i + 1], found);
    if (word.text.starts_with("--config-env") || word.text.starts_with("--exec-path="))
      found.push_back(inner_unread(format("`git {}` names what is started elsewhere", word.text.substr(0, word.text.find('=')))));
    if (takes_word(word.text)) ++i;
  }
  if (at < command.argv.size()) add_git_subcommand(command, at, found);
}

// --- what it writes --------------------------------------------------------------------------------------------------------------

enum class Makes { kNothing, kFirst, kSecond, kThird, kAll };
struct Maker {
  std::string_view commands;
  std::string_view act;  // the first operand must be this one; empty: any
  ValueOptions valued;
  std::string_view paths;  // of the valued: those whose value is written to
  Makes operands = Makes::kNothing;
};
// clang-format off
constexpr Maker kMakers[] = {
    {"archive", "", {"o", "output format prefix remote exec add-file add-virtual-file mtime"}, "o output"},
    {"bugreport diagnose", "", {"os", "output-directory suffix mode"}, "o output-directory"},
    {"bundle", "create", {"", "version"}, "", Makes::kSecond},
    {"checkout-index", "", {"", "prefix stage"}, "prefix"},
    {"clone", "", {"bcoju", "branch config depth filter jobs origin reference reference-if-able separate-git-dir server-option shallow-exclude shallow-since template upload-pack bundle-uri ref-format revision", "reject-shallow remote-submodules"}, "separate-git-dir", Makes::kSecond},
    {"credential-store", "", {"", "file"}, "file"},
    {"diff diff-files diff-index diff-tree log range-diff reflog shortlog show stash whatchanged", "", {"", "output"}, "output"},
    {"fast-export fast-import", "", {"", "export-marks export-pack-edges import-marks import-marks-if-exists refspec"}, "export-marks export-pack-edges"},
    {"format-patch", "", {"ov", "output output-directory reroll-count start-number subject-prefix suffix base in-reply-to to cc signature signature-file", "cover-letter signoff stat"}, "o output output-directory"},
    {"index-pack", "", {"o", ""}, "o"},
    {"init", "", {"b", "separate-git-dir template initial-branch object-format ref-format"}, "separate-git-dir", Makes::kAll},
    {"mailinfo", "", {"", "encoding"}, "", Makes::kAll},
    {"mailsplit", "", {"o", ""}, "o"},
    {"merge-file", "", {"L", ""}, "", Makes::kFirst},
    {"pack-objects", "", {"", "depth window window-memory threads max-pack-size filter"}, "", Makes::kAll},
    {"read-tree", "", {"", "index-output prefix exclude-per-directory"}, "index-output"},
    {"worktree", "add", {"bB", "reason"}, "", Makes::kSecond},
    {"worktree", "move", {"", ""}, "", Makes::kThird},
};
// clang-format on

void add_made(const Maker& maker, const SimpleCommand& own, std::vector<Word>& paths) {
  Arguments args = arguments(own, maker.valued);
  for (auto& option : args.options) {
    if (has_word(maker.paths, option.name)) paths.push_back(std::move(option.value));
  }
  auto& words = args.operands;
  if (maker.operands == Makes::kAll) std::ranges::move(words, std::back_inserter(paths));
  const std::size_t index = maker.operands == Makes::kSecond ? 1 : maker.operands == Makes::kThird ? 2 : 0;
  const bool one = maker.operands != Makes::kAll && maker.operands != Makes::kNothing;
  if (one && index < words.size()) paths.push_back(std::move(words[index]));
}

// `git config --system KEY VALUE`, `-f FILE`; what only looks something up writes nothing.
void add_config_file(const SimpleCommand& own, std::vector<Word>& paths) {
  Arguments args = config_arguments(own);
  constexpr std::string_view kSets =
      "--add --unset --unset-all --replace-all --rename-section --remove-section --edit -e set unset rename-section remove-section "
      "edit";
  const bool sets =
      args.operands.size() > 1 || std::ranges::any_of(own.argv, [&](const Word& word) { return has_word(kSets, word.text); });
  if (!sets) return;
  if (std::ranges::any_of(own.argv, [](const Word& word) { return word.text == "--system"; }))
    paths.push_back({.text = "/etc/gitconfig", .span = own.span});
  for (auto& option : args.options) {
    if (option.name == "f" || option.name == "file") paths.push_back(std::move(option.value));
  }
}

// Subcommands that fill the work tree.
constexpr std::string_view kFills = "am apply checkout cherry-pick clean merge pull rebase reset restore revert stash switch";

}  // namespace

std::vector<InnerCommand> started_by_git(const SimpleCommand& command) {
  std::vector<InnerCommand> found;
  add_git(command, found);
  return found;
}

std::vector<Word> git_written_paths(const SimpleCommand& command) {
  const std::size_t at = subcommand(command);
  if (at == command.argv.size()) return {};
  const SimpleCommand own = own_words(command, at);
  const std::string_view name = own.argv[0].text;
  std::vector<Word> paths;
  Word directory;
  for (std::size_t i = 1; i < at; ++i) {
    const Word& word = command.argv[i];
    constexpr std::string_view kTree = "--work-tree";
    if (word.text == "-C" && i + 1 < at) directory = seen_from(directory, command.argv[i + 1]);
    if (word.text == kTree && i + 1 < at && has_word(kFills, name)) paths.push_back(command.argv[i + 1]);
    if (word.text.starts_with("--work-tree=") && has_word(kFills, name)) paths.push_back(tail_of(word, kTree.size() + 1));
    if (takes_word(word.text)) ++i;
  }
  if (name == "config") add_config_file(own, paths);
  for (const Maker& maker : kMakers) {
    const bool is = has_word(maker.commands, name) &&
                    (maker.act.empty() || std::ranges::any_of(own.argv, [&](const Word& word) { return word.text == maker.act; }));
    if (is) add_made(maker, own, paths);
  }
  for (Word& path : paths) path = seen_from(directory, std::move(path));
  return paths;
}

}  // namespace belljar::shell
