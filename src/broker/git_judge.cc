// What git does with the content of a control file, and which of it is inert.
//
// The rule is an allow list: a setting is accepted if it is known to run nothing, to write nowhere and to ask
// no server (git_keys.cc). What stood in the file before may stay, entry by entry, since the user or their
// tools wrote it; what the command itself took away and brings back counts as that, too (former_contents.h).
// So a tool that rewrites the file with one more harmless setting works although the file has an alias or a
// filter of the user's.
//
// The content is read as git reads it, and where versions of git or other programs read it differently it is
// refused: NUL bytes, a configuration that git would refuse, a `<` at the start of a line (rerere takes that
// for a conflict and writes through links).
//
// Pointers (`.git` files, gitdir, commondir, alternates, core.worktree) are judged by where they lead. They
// are followed step by step (pointer_target_objection): `link/..` is not where its text says, so a link on
// the way inside the roots refuses it, for the command could turn that link later. `commondir` may lead to
// the repository it lies in and nowhere else: git reads settings and hooks there.
//
// A hook is refused whatever its content is.
#include "broker/git_judge.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"
#include "base/paths.h"
#include "broker/git_config.h"
#include "broker/git_index.h"
#include "broker/git_keys.h"
#include "broker/git_names.h"
#include "policy/paths.h"
#include "policy/protected.h"

namespace belljar::broker {
namespace {

using Objection = std::optional<std::string>;
using policy::is_within;

std::string_view parent_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || slash == 0 ? std::string_view("/") : path.substr(0, slash);
}

std::string resolved(std::string_view base, std::string_view target) {
  if (target.starts_with('/')) return policy::normal(target);
  return policy::normal(std::string(base).append("/").append(target));
}

bool in_roots(std::string_view path, const GitContext& context) {
  return std::any_of(context.roots.begin(), context.roots.end(), [&](const std::string& root) { return is_within(path, root); });
}

template <class Visit>
bool any_component(std::string_view path, const Visit& visit) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (!part.empty() && visit(part)) return true;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return false;
}

// A path below a work tree that leads into a git directory or to a name that an agent or an editor reads.
bool holds_special(std::string_view path) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (is_dot_git(part) || policy::protected_length(path) > 0) return true;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return false;
}

template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    visit(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

// config:

// The directory that holds the outermost `.git` of `path`; for a git directory of another name, the one it lies in.
std::string_view work_tree_of(std::string_view config) noexcept {
  std::string_view top = parent_of(parent_of(config));
  for (std::string_view at = config; at.size() > 1; at = parent_of(at)) {
    if (is_dot_git(file_name(at))) top = parent_of(at);
  }
  return top;
}

bool climbs_only(std::string_view path) noexcept {
  return !path.starts_with('/') && !any_component(path, [](std::string_view part) { return part != ".." && part != "."; });
}

// A checkout on the host writes where core.worktree leads, and any name on the way may be a link by then. So it is what needs no
// name, `..` up to the work tree that the git directory lies in, or what git itself writes for a submodule: a relative path below
// that work tree, never into a git directory or under a name that an agent or an editor reads.
bool is_own_work_tree(std::string_view config, std::string_view value, const GitContext& context) {
  const std::string target = resolved(parent_of(config), value);
  const std::string_view top = work_tree_of(config);
  if (!is_within(target, top) || !in_roots(target, context)) return false;
  const bool of_module = any_component(config.substr(std::min(config.size(), top.size())),
                                       [](std::string_view part) { return folds_to(part, "modules"); });
  if (!of_module) return target == top && climbs_only(value);
  if (target == top || value.starts_with('/')) return false;
  const std::string_view below = std::string_view(target).substr(std::min(target.size(), top.size()));
  return !holds_special(below) && !policy::is_protected_parent(file_name(below));
}

// Whether git on the host, which asks a promisor remote unbidden, sends nothing where the command could not. A path is no server.
bool is_reached(std::string_view url, const GitContext& context) {
  const std::size_t colon = url.find(':');
  const bool local = colon == std::string_view::npos || url.find('/') < colon || url.starts_with("file://");
  return local || (context.reaches && context.reaches(url));
}

// A promisor's URLs stand in the same file (git writes them there), so that no other file gives it one that nobody asked about.
// What stood there before may stay with the URLs that stood there.
bool is_own_promisor(const GitConfigEntry& entry, std::string_view path, const GitConfig& config, const GitConfig& old,
                     const GitContext& context) {
  if (entry.value && (*entry.value == "false" || *entry.value == "0" || *entry.value == "no")) return true;
  const bool by_name = entry.key == "extensions.partialclone";
  if (!folds_to(file_name(path), "config") || (by_name && !entry.value)) return false;
  const std::string remote = by_name ? format("remote.{}.", *entry.value) : entry.key.substr(0, entry.key.rfind('.') + 1);
  const auto stood = [&](const GitConfigEntry& one) {
    return std::find(old.entries.begin(), old.entries.end(), one) != old.entries.end();
  };
  return std::all_of(config.entries.begin(), config.entries.end(), [&](const GitConfigEntry& one) {
    const bool is_url = one.key == remote + "url" || one.key == remote + "pushurl";
    return !is_url || (stood(entry) && stood(one)) || (one.value && is_reached(*one.value, context));
  });
}

bool is_bare(const GitConfig& config) {
  return std::any_of(config.entries.begin(), config.entries.end(),
                     [](const GitConfigEntry& one) { return one.key == "core.bare" && is_inert_value(GitValue::kOn, one.value); });
}

bool is_inert(const GitConfigEntry& entry, std::string_view path, const GitContext& context) {
  const std::optional<GitValue> kind = find_git_key(entry.key);
  if (!kind) return false;
  if (*kind == GitValue::kWorkTree) return entry.value && is_own_work_tree(path, *entry.value, context);
  return is_inert_value(*kind, entry.value);
}

Objection config_objection(std::string_view path, std::string_view content, const GitContext& context) {
  if (content.find('\0') != std::string_view::npos) return "it holds a NUL byte, where git and others read on differently";
  const GitConfig config = parse_git_config(content);
  if (config.excessive) return "its keys are longer than any configuration's";
  if (config.broken) return "git would refuse to read it, and every command in the repository with it";
  std::optional<GitConfig> old;
  const auto before = [&]() -> const GitConfig& {
    if (!old) old = context.old_content ? parse_git_config(*context.old_content) : GitConfig();
    return *old;
  };
  for (const GitConfigEntry& entry : config.entries) {
    if (find_git_key(entry.key) == GitValue::kPromisor) {
      if (is_own_promisor(entry, path, config, before(), context)) continue;
      return format("the setting {} makes git on the host ask a server, unbidden, that the command may not reach",
                    quoted(entry.key));
    }
    if (is_inert(entry, path, context)) continue;
    if (find_git_key(entry.key) == GitValue::kMirror && (is_inert_value(GitValue::kOff, entry.value) || is_bare(config))) continue;
    if (std::find(before().entries.begin(), before().entries.end(), entry) != before().entries.end()) continue;
    const std::string value = entry.value ? format(" = {}", quoted(std::string_view(*entry.value).substr(0, 200))) : "";
    return format("the setting {}{} is not one that is known to run nothing", quoted(entry.key), value);
  }
  return std::nullopt;
}

// pointers:

// A tracked file that any clone brings along. Git takes paths, URLs and a few words from it and ignores the rest; what it has
// refused itself since CVE-2018-11235, CVE-2018-17456 and CVE-2019-19604 is refused here for an older git.
Objection modules_file_objection(std::string_view content) {
  if (content.find('\0') != std::string_view::npos) return "it holds a NUL byte, where git and others read on differently";
  const GitConfig config = parse_git_config(content);
  if (config.excessive) return "its keys are longer than any configuration's";
  for (const GitConfigEntry& entry : config.entries) {
    if (!entry.key.starts_with("submodule.") || !entry.value) continue;
    const std::size_t last = entry.key.rfind('.');
    const std::string_view name = std::string_view(entry.key).substr(last + 1);
    const std::size_t first = entry.key.find('.');
    const std::string_view module = first < last ? std::string_view(entry.key).substr(first + 1, last - first - 1) : "";
    const bool climbs = any_component(module, [](std::string_view part) { return part == ".."; });
    // An older git writes a path's last carriage return without quotes and reads another path back (CVE-2025-48384).
    const bool strays = entry.value->starts_with('-') || entry.value->find_first_of("\r\n") != std::string::npos;
    const bool runs = (name == "url" && !is_harmless_url(*entry.value)) || (name == "path" && strays) ||
                      (name == "update" && entry.value->starts_with('!'));
    if (runs || climbs)
      return format("the setting {} = {} could run a command", quoted(entry.key),
                    quoted(std::string_view(*entry.value).substr(0, 200)));
  }
  return std::nullopt;
}

std::string_view without_line_ends(std::string_view text) noexcept {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// Where a pointer leads from the directory `base`, which no link is on the way to. Written step by step, since `link/..` is not
// where it seems to be.
Objection pointer_target_objection(std::string_view base, std::string_view pointer, const GitContext& context) {
  std::string at = pointer.starts_with('/') ? "/" : std::string(base);
  while (!pointer.empty()) {
    const std::string_view part = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(std::min(pointer.size(), part.size() + 1));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at = parent_of(at);
      continue;
    }
    if (!at.ends_with('/')) at += '/';
    at += part;
    if (context.is_link && context.is_link(at) && in_roots(at, context))
      return format("it leads through {}, a symbolic link", quoted(at));
  }
  if (!in_roots(at, context)) return format("it leads to {}, which lies outside of what is writable here", quoted(at));
  return std::nullopt;
}

// `.git` as a file: "gitdir: PATH". setup.c, read_gitfile_gently.
Objection git_file_objection(std::string_view path, std::string_view content, const GitContext& context) {
  constexpr std::string_view kKey = "gitdir: ";
  if (without_line_ends(content).empty()) return std::nullopt;
  if (!content.starts_with(kKey)) return "it is no pointer to a git directory";
  return pointer_target_objection(parent_of(path), without_line_ends(content.substr(kKey.size())), context);
}

// Git reads config and hooks where commondir leads, so only the repository that the worktree belongs to will do:
// T/worktrees/NAME/commondir leads to T.
Objection common_dir_objection(std::string_view path, std::string_view content, const GitContext& context) {
  const std::string_view git_dir = parent_of(path);
  const std::string target = resolved(git_dir, without_line_ends(content));
  const std::string_view worktrees = parent_of(git_dir);
  if (folds_to(file_name(worktrees), "worktrees") && target == parent_of(worktrees))
    return pointer_target_objection(git_dir, without_line_ends(content), context);
  return format("it makes git read settings and hooks from {}, not from the repository it lies in", quoted(target));
}

Objection pointer_objection(std::string_view path, std::string_view content, const GitContext& context) {
  if (content.find('\0') != std::string_view::npos) return "it holds a NUL byte";
  if (without_line_ends(content).find('\n') != std::string_view::npos) return "it holds more than one line";
  if (folds_to(file_name(path), "commondir")) return common_dir_objection(path, content, context);
  if (!folds_to(file_name(path), "gitdir")) return git_file_objection(path, content, context);
  const std::string target = resolved(parent_of(path), without_line_ends(content));
  if (auto why = pointer_target_objection(parent_of(path), without_line_ends(content), context)) return why;
  return is_dot_git(file_name(target)) ? std::nullopt : Objection("it does not lead to the `.git` file of a work tree");
}

// the others:

// Objects are data, but `git fetch` asks an alternate's repository for its refs, and a path that leads out reads what is not ours.
Objection alternates_objection(std::string_view path, std::string_view content, const GitContext& context) {
  if (!folds_to(file_name(path), "alternates")) return "git on the host would fetch objects from there";
  Objection result;
  for_each_line(content, [&](std::string_view line) {
    if (result || line.empty() || line.starts_with('#')) return;
    if (line.starts_with('"') || line.find('\0') != std::string_view::npos) {
      result = "it holds a quoted path";
      return;
    }
    result = pointer_target_objection(parent_of(parent_of(path)), line, context);
  });
  return result;
}

// Attributes that select a command of the user's configuration. What git has built in runs nothing.
Objection attributes_objection(std::string_view content) {
  constexpr std::string_view kDrivers[] = {"filter=", "diff=", "merge="};
  constexpr std::string_view kBuiltIn[] = {"filter=lfs", "diff=lfs", "merge=lfs", "merge=text", "merge=binary", "merge=union"};
  Objection result;
  for_each_line(content, [&](std::string_view line) {
    while (!line.empty() && !result) {
      const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
      const bool driver =
          std::any_of(std::begin(kDrivers), std::end(kDrivers), [&](std::string_view key) { return word.starts_with(key); });
      if (!driver || std::find(std::begin(kBuiltIn), std::end(kBuiltIn), word) != std::end(kBuiltIn)) continue;
      result = format("the attribute {} selects a command", quoted(word.substr(0, 200)));
    }
  });
  return result;
}

// A strategy that is none of git's own is a program that git looks for, also below the work tree where it has a slash.
bool is_built_in_strategy(std::string_view name) noexcept {
  constexpr std::string_view kKnown[] = {"ort", "recursive", "resolve", "octopus", "ours", "subtree"};
  return name.empty() || std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown);
}

// A key's name, address or fingerprint, which gpg gets as an argument.
bool is_signing_key(std::string_view name) noexcept {
  return !name.starts_with('-') && std::all_of(name.begin(), name.end(), [](char c) {
    return is_alnum(c) || std::string_view("@._-+ <>!").find(c) != std::string_view::npos;
  });
}

// sequencer/opts: the options of a cherry-pick or revert that waits (sequencer.c, populate_opts_cb).
Objection sequencer_objection(std::string_view content) {
  constexpr std::string_view kFree[] = {
      "no-commit",     "edit",     "allow-empty", "allow-empty-message", "keep-redundant-commits", "signoff",
      "record-origin", "allow-ff", "mainline",    "strategy-option",     "allow-rerere-auto",      "default-msg-cleanup"};
  const GitConfig config = parse_git_config(content);
  if (config.broken || config.excessive) return "git would refuse to read it";
  for (const GitConfigEntry& entry : config.entries) {
    constexpr std::string_view kSection = "options.";
    const std::string_view key = std::string_view(entry.key).substr(std::min(entry.key.size(), kSection.size()));
    const std::string_view value = entry.value ? std::string_view(*entry.value) : std::string_view();
    const bool known = entry.key.starts_with(kSection) && std::find(std::begin(kFree), std::end(kFree), key) != std::end(kFree);
    const bool inert = known || (entry.key == "options.strategy" && is_built_in_strategy(value)) ||
                       (entry.key == "options.gpg-sign" && is_signing_key(value));
    if (!inert) return format("the option {} is not one that is known to run nothing", quoted(entry.key));
  }
  return std::nullopt;
}

// rebase-apply/apply-opt: arguments for git apply, quoted for a shell, of which some name files.
Objection apply_objection(std::string_view content) {
  Objection result;
  for_each_line(content, [&](std::string_view line) {
    while (!line.empty() && !result) {
      std::string_view word = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
      if (word.size() >= 2 && word.front() == '\'' && word.back() == '\'') word = word.substr(1, word.size() - 2);
      const auto number = [&](std::string_view option) {
        return word.starts_with(option) && std::ranges::all_of(word.substr(option.size()), is_digit);
      };
      const bool plain = word.find_first_of("'\\\"") == std::string_view::npos;
      const bool inert = word.empty() || number("-p") || number("-C") || word == "--ignore-whitespace" ||
                         word == "--ignore-space-change" || word == "--reject" || (plain && word.starts_with("--whitespace=")) ||
                         (plain && (word.starts_with("--exclude=") || word.starts_with("--include=")));
      if (!inert) result = format("the option {} is not one that is known to write nothing else", quoted(word.substr(0, 200)));
    }
  });
  return result;
}

// BISECT_NAMES: paths as sq_quote_argv() of git's writes them. `git bisect visualize` gave them to eval before Git 2.34.
Objection bisect_objection(std::string_view content) {
  while (!content.empty()) {
    if (content.starts_with(' ') || content.starts_with('\n')) {
      content.remove_prefix(1);
    } else if (content.starts_with("\\'") || content.starts_with("\\!")) {
      content.remove_prefix(2);
    } else {
      const std::size_t end = content.starts_with('\'') ? content.find('\'', 1) : std::string_view::npos;
      if (end == std::string_view::npos) return "it holds a word without quotes, which an older git would run";
      content.remove_prefix(end + 1);
    }
  }
  return std::nullopt;
}

// author-script of a rebase or am: three variables with text that git's sq_quote() has quoted. A shell read it before Git 2.17.
Objection author_objection(std::string_view content) {
  constexpr std::string_view kNames[] = {"GIT_AUTHOR_NAME=", "GIT_AUTHOR_EMAIL=", "GIT_AUTHOR_DATE="};
  while (!content.empty()) {
    const auto* const name =
        std::find_if(std::begin(kNames), std::end(kNames), [&](std::string_view one) { return content.starts_with(one); });
    if (name == std::end(kNames)) return "it holds more than an author's name, address and date";
    content.remove_prefix(name->size());
    if (!content.starts_with('\'')) return "it holds a word without quotes, which an older git would run";
    while (!content.empty() && content.front() != '\n') {
      if (content.starts_with("\\'") || content.starts_with("\\!")) {
        content.remove_prefix(2);
        continue;
      }
      const std::size_t end = content.starts_with('\'') ? content.find('\'', 1) : std::string_view::npos;
      if (end == std::string_view::npos) return "it holds a word without quotes, which an older git would run";
      content.remove_prefix(end + 1);
    }
    content.remove_prefix(std::min<std::size_t>(content.size(), 1));
  }
  return std::nullopt;
}

Objection option_objection(std::string_view name, std::string_view content) {
  const std::string_view text = without_line_ends(content);
  if (folds_to(name, "opts")) return sequencer_objection(content);
  if (folds_to(name, "apply-opt")) return apply_objection(content);
  if (folds_to(name, "bisect_names")) return bisect_objection(content);
  if (folds_to(name, "author-script")) return author_objection(content);
  if (folds_to(name, "strategy"))
    return is_built_in_strategy(text) ? Objection() : format("the strategy {} is a program", quoted(text.substr(0, 200)));
  if (folds_to(name, "gpg_sign_opt")) {
    const bool inert = text.empty() || (text.starts_with("-S") && is_signing_key(text.substr(2)));
    return inert ? Objection() : format("the key {} is none", quoted(text.substr(0, 200)));
  }
  return std::nullopt;  // strategy_opts: git's own strategies take no program and no file
}

// MERGE_RR (rerere.c, read_rr): ID[.VARIANT], a tab, a file's path and a NUL byte each. `git commit` writes to those files what
// rr-cache says, whatever their paths. A long variant is a negative number to git, and then the file need not look conflicted.
Objection merge_records_objection(std::string_view content) {
  while (!content.empty()) {
    const std::size_t end = content.find('\0');
    const std::string_view record = content.substr(0, end);
    const std::size_t tab = record.find('\t');
    if (end == std::string_view::npos || tab == std::string_view::npos) return "git could not read it";
    content.remove_prefix(end + 1);
    std::string_view id = record.substr(0, tab);
    const std::string_view path = record.substr(tab + 1);
    if (const std::size_t dot = id.find('.'); dot != std::string_view::npos) {
      const std::string_view variant = id.substr(dot + 1);
      id = id.substr(0, dot);
      if (variant.size() > 4 || !is_number(variant)) return "a variant in it is no small number";
    }
    if ((id.size() != 40 && id.size() != 64) || !is_small_hex(id)) return "git could not read it";
    const bool climbs = any_component(path, [](std::string_view part) { return part == "." || part == ".."; });
    if (path.empty() || path.starts_with('/') || climbs || holds_special(path))
      return format("git on the host would write to {}", quoted(path.substr(0, 200)));
  }
  return std::nullopt;
}

// git-rebase(1): what a later `git rebase --continue` does line by line.
Objection todo_objection(std::string_view content) {
  constexpr std::string_view kSteps[] = {"pick",  "p",     "reword", "r",          "edit",  "e",     "squash", "s",
                                         "fixup", "f",     "drop",   "d",          "label", "l",     "reset",  "t",
                                         "m",     "merge", "b",      "update-ref", "u",     "break", "noop",   "revert"};
  Objection result;
  for_each_line(content, [&](std::string_view line) {
    while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
    const std::string_view step = line.substr(0, line.find_first_of(" \t\r"));
    if (result || step.empty() || step.starts_with('#')) return;
    if (std::find(std::begin(kSteps), std::end(kSteps), step) == std::end(kSteps))
      result = format("the step {} is not one that is known to run nothing", quoted(step.substr(0, 200)));
  });
  return result;
}

// Git's rerere takes a line that begins so for the start of a conflict, with marks of any length (gitattributes(5),
// conflict-marker-size), and what it resolves it writes through any link of the work tree, without a look at this file's name.
bool looks_conflicted(std::string_view content) noexcept { return content.starts_with('<') || content.find("\n<") != content.npos; }

}  // namespace

std::size_t max_control_file(GitName kind) noexcept { return kind == GitName::kIndex ? kMaxIndex : kMaxControlFile; }

Objection git_objection(GitName kind, std::string_view path, std::string_view content, const GitContext& context) {
  if (content.size() > max_control_file(kind)) return format("it is longer than {} MiB", max_control_file(kind) >> 20);
  if (context.old_content && *context.old_content == content) return std::nullopt;
  // An index is binary to it, and .gitmodules is a file of the work tree like any other.
  const bool by_lines = kind != GitName::kIndex && kind != GitName::kModulesFile && kind != GitName::kSampleHook;
  if (by_lines && looks_conflicted(content)) return "git on the host could take a line of it that begins with < for a conflict";
  switch (kind) {
    case GitName::kNone:
    case GitName::kDotGit:
    case GitName::kControlDir:
    case GitName::kSampleHook:
      return std::nullopt;
    case GitName::kConfig:
      return config_objection(path, content, context);
    case GitName::kPointer:
      return pointer_objection(path, content, context);
    case GitName::kHook:
      return "git on the host would run it as a hook";
    case GitName::kAttributes:
      return attributes_objection(content);
    case GitName::kAlternates:
      return alternates_objection(path, content, context);
    case GitName::kTodo:
      return todo_objection(content);
    case GitName::kModulesFile:
      return modules_file_objection(content);
    case GitName::kIndex:
      return index_objection(content);
    case GitName::kOption:
      return option_objection(file_name(path), content);
    case GitName::kMergeRecords:
      return merge_records_objection(content);
    case GitName::kProgram:
      return content.empty() ? Objection() : "a program that works with git on the host would run what it says";
    case GitName::kLegacyRemote:
      return content.empty() ? Objection() : "it describes a remote outside of the configuration, which nobody judges";
  }
  return "it is a name of git that nobody judges";
}

}  // namespace belljar::broker
