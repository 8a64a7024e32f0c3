// The rules by name, asked in an order that rule_for() states and that matters:
//   1. held_ruling: plain paths, where no mount holds them (second tier). It is the only lock there, so it comes first.
//   2. in_place_ruling: directories above what a mount hides keep their names (EBUSY), or it would be elsewhere for the next run.
//   3. entry_ruling: patterns of the policy.
//   4. agent_ruling, git_ruling: protected names below the roots; reads are free. None can allow what an earlier one refused.
// Git names need more than the path, because a git directory need not be called `.git` (bare repositories, worktrees, `git init
// --separate-git-dir`). `hooks/x` is a hook if the directory above *is* a git directory, by what stands in it. So git_names.h
// lists what a path may mean, and each meaning is asked of Surroundings, nearest first.
// A directory becomes one with its last marker, and the definition here is wider than git's own is_git_directory(): objects and
// refs without HEAD are enough, for a worktree's commondir may name such a directory and git then reads its config. Hence
// Answer::kMakesGitDir: the act is allowed only after all that stands there was judged. `commondir`, the one marker whose own
// content counts, may not be the one that completes it.
// Agent and editor names count in work trees that stood before the run (birth time, statx(2)): a repository that was cloned
// inside brings its own files, and nobody has worked in it yet.
#include "broker/file_rules.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "belljar/policy.h"
#include "broker/git_names.h"
#include "policy/defaults.h"
#include "policy/paths.h"
#include "policy/protected.h"
#include "policy/refusal.h"

namespace belljar::broker {
namespace {

using policy::is_within;

constexpr std::string_view kJudgedName = ".gitmodules";  // by content, for `git submodule add` has to write it
constexpr std::string_view kMakeOutside =
    "making it outside the sandbox; once it is there an entry that names the path with access write lifts this";
constexpr std::string_view kWorkTrees[] = {".git", ".hg", ".sl", ".jj"};  // what marks one, of git and of others
constexpr std::string_view kStays = "leaving the directory where it is";
constexpr std::string_view kProtectKey = "filesystem.protect";
constexpr std::string_view kEntriesKey = "filesystem.entries";
constexpr std::string_view kRootsKey = "filesystem.writable_roots";
constexpr std::string_view kSecretsKey = "filesystem.secrets";

bool makes_name(Act act) noexcept {
  switch (act) {
    case Act::kWrite:
    case Act::kCreate:
    case Act::kMkdir:
    case Act::kMknod:
    case Act::kSymlink:
    case Act::kHardLink:
    case Act::kRenameTo:
      return true;
    default:
      return false;
  }
}

// What changes which object has a name: of a directory, or of a link that stands for one.
bool moves(Act act) noexcept {
  return act == Act::kRenameFrom || act == Act::kRenameTo || act == Act::kRmdir || act == Act::kUnlink;
}

// More than is_git_directory() of setup.c asks for: a directory with objects and refs is the common directory of any worktree whose
// commondir names it, HEAD or not, and git reads its config then.
template <class Has>
bool makes_git_dir(const Has& has) {
  return (has("objects") && has("refs")) || (has("HEAD") && has("commondir"));
}

bool is_git_dir(const Surroundings& around, int up) {
  return makes_git_dir([&](std::string_view marker) { return around.exists(up, marker); });
}

// The parent is not a git directory yet, but becomes one when `name` is created.
bool completes_git_dir(const Surroundings& around, std::string_view name) {
  const bool will =
      makes_git_dir([&](std::string_view marker) { return folds_to(name, fold_name(marker)) || around.exists(0, marker); });
  return will && !is_git_dir(around, 0);
}

// `**/NAME`: a rename of a directory changes what it covers only if the directory itself is NAME.
bool by_name_alone(std::string_view glob) noexcept {
  return glob.starts_with("**/") && glob.find('/', 3) == std::string_view::npos;
}
std::string_view literal_prefix(std::string_view glob) noexcept {
  const std::size_t wildcard = glob.find_first_of("*?[");
  if (wildcard == std::string_view::npos) return glob;
  const std::string_view plain = glob.substr(0, wildcard);
  return plain.substr(0, plain.rfind('/') == std::string_view::npos ? 0 : plain.rfind('/'));
}

// The longest of `roots` that `path` is or lies below; empty when there is none.
std::string_view longest_of(const std::vector<std::string>& roots, std::string_view path) noexcept {
  std::string_view best;
  for (const std::string& root : roots) {
    if (root.size() > best.size() && is_within(path, root)) best = root;
  }
  return best;
}

// Processes' own files are written to (oom_score_adj, comm, mem); whose they are is the caller of the rules to find out. The rest
// of /proc is the machine's.
Ruling on_proc_ruling(Act act, std::string_view path) noexcept {
  constexpr std::string_view kProc = "/proc/";
  const bool of_a_process = path.size() > kProc.size() && path[kProc.size()] >= '0' && path[kProc.size()] <= '9';
  if (act == Act::kRead || of_a_process) return {};
  return {.answer = Answer::kRefuse,
          .errnum = EROFS,
          .git = GitName::kNone,
          .rule = kRootsKey,
          .origin = nullptr,
          .allowed = "reading; files of the command's own processes"};
}

bool is_unprotected_parent(std::string_view part) {
  const auto names = policy::unprotected_parents();
  return std::find(names.begin(), names.end(), part) != names.end();
}

template <class Is>
bool leads_through(std::string_view path, const Is& is) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (is(part)) return true;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return false;
}
bool leads_through_git(std::string_view path) { return leads_through(path, is_dot_git); }
bool leads_through_commit(std::string_view path) {
  const auto is_stage = [](std::string_view part) {  // folded as git's names are: a file system may take them for one
    if (part.size() <= policy::kCommitStage.size() || (part[0] != '.' && static_cast<unsigned char>(part[0]) < 0x80)) return false;
    return policy::fold_name(part).starts_with(policy::kCommitStage);
  };
  return leads_through(path, is_stage);
}
bool leads_through_unprotected(std::string_view path) { return leads_through(path, is_unprotected_parent); }

}  // namespace

namespace {

std::int64_t to_nanoseconds(const timespec& time) { return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec; }

// A link of that name would stand for a directory of a pattern (`projects/*` of `projects/*/memory`): what lies below it would have
// a path that the pattern does not name. A pattern that begins with `**` names it everywhere, and one with `**` further on is not
// held against links.
bool is_led_around(std::string_view glob, std::string_view path) {
  std::size_t end = 0;
  for (std::size_t at = 0; at != std::string_view::npos; at = path.find('/', at + 1)) {
    end = glob.find('/', end + 1);
    if (end == std::string_view::npos) return false;
  }
  const std::string_view above = glob.substr(0, end);
  return above.find("**") == std::string_view::npos && policy::glob_match(above, path);
}

}  // namespace

struct FileRules::State {
  FileRulesOptions options;
  std::vector<const FsEntry*> globs;
  bool hidden_globs = false;
  bool protects = false;
  std::vector<std::string> git_roots;   // roots and kept directories
  std::vector<std::string> host_roots;  // the same as the host names them
  enum class GitPresence : std::uint8_t { kNothing, kDotGit, kItself };
  std::vector<std::atomic<GitPresence>> kept_git;  // of options.keep_git each: what was there of git when a command last began
  std::atomic<std::int64_t> began = 0;             // of the run, in nanoseconds
  std::vector<std::string> write_grants;  // entries that ask for writing: they lift the protection of the names they spell out

  explicit State(FileRulesOptions given)
      : options(std::move(given)), protects(options.filesystem.protect != Protect::kNone), kept_git(options.keep_git.size()) {
    for (const FsEntry& entry : options.filesystem.entries) {
      if (entry.glob) globs.push_back(&entry);
      else if (entry.access == Access::kWrite) write_grants.push_back(entry.path);
      if (entry.glob && entry.access == Access::kNone) hidden_globs = true;
    }
    if (options.roots.empty()) protects = false;
    git_roots = options.roots;
    host_roots = options.host_roots.empty() ? options.roots : options.host_roots;
    for (std::vector<std::string>* all : {&git_roots, &host_roots})
      all->insert(all->end(), options.kept.begin(), options.kept.end());
    began = to_nanoseconds(options.began);
    note_repositories();
  }

  bool stood_before(const Surroundings& around, int up, std::string_view name) const {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t when = began;
    return around.stood_before(up, name, {.tv_sec = when / kSecond, .tv_nsec = when % kSecond});
  }

  // In the `.git` of another root it would take that one's files out of its hold.
  bool is_in_git_of_another(const std::string& root) const {
    return std::any_of(options.roots.begin(), options.roots.end(), [&](const std::string& other) {
      return other.size() < root.size() && is_within(root, other) && leads_through_git(std::string_view(root).substr(other.size()));
    });
  }

  void note_repositories() {
    for (std::size_t i = 0; i < kept_git.size(); ++i) {
      const std::string& root = options.keep_git[i];
      if (is_in_git_of_another(root)) kept_git[i] = GitPresence::kNothing;
      else if (options.is_git && options.is_git(root)) kept_git[i] = GitPresence::kItself;
      else kept_git[i] = options.has_git && options.has_git(root) ? GitPresence::kDotGit : GitPresence::kNothing;
    }
  }

  struct GuardedRoot {
    std::string_view root;  // empty: none
    GitPresence kept = GitPresence::kNothing;
  };
  // The longest root that keeps something of git and holds `path`.
  GuardedRoot root_with_repository(std::string_view path) const noexcept {
    GuardedRoot best;
    for (std::size_t i = 0; i < kept_git.size(); ++i) {
      const std::string& root = options.keep_git[i];
      const GitPresence kept = kept_git[i];
      if (kept != GitPresence::kNothing && root.size() > best.root.size() && is_within(path, root)) best = {root, kept};
    }
    return best;
  }

  // The root whose names are judged; empty when the host never sees the path or nobody can write there.
  std::string_view root_of(std::string_view path) const noexcept {
    const std::string_view root = longest_of(git_roots, path);
    return root.empty() || longest_of(options.exempt, path).size() > root.size() ? std::string_view() : root;
  }

  Ruling refuse_protected(GitName git, std::string_view allowed) const {
    return {.answer = Answer::kRefuse, .errnum = EACCES, .git = git, .rule = kProtectKey, .origin = nullptr, .allowed = allowed};
  }
  Ruling judge(GitName git) const {
    return {.answer = Answer::kJudge,
            .errnum = EACCES,
            .git = git,
            .rule = kProtectKey,
            .origin = nullptr,
            .allowed = "settings that run nothing and point nowhere else; filesystem.protect = \"none\" lifts this (danger)"};
  }

  Ruling entry_ruling(Act act, std::string_view path) const;
  Ruling held_ruling(Act act, std::string_view path) const;
  Ruling in_place_ruling(Act act, std::string_view path) const;
  Ruling refuse_held(std::string_view path, int errnum, std::string_view allowed) const;
  bool hides_below_writable() const;
  Ruling refuse_entry(const FsEntry& entry) const;
  Ruling git_ruling(Act act, std::string_view path, bool is_dir, const Surroundings& around) const;
  Ruling on_git_name(Act act, GitName name, bool is_dir) const;
  bool is_git_s(std::string_view path, std::string_view root, const Surroundings& around) const;
  Ruling agent_ruling(Act act, std::string_view path, std::string_view root, const Surroundings& around) const;
  bool granted(std::string_view path, std::string_view name_path) const;
  bool globs_move(std::string_view old_path, std::string_view new_path) const;
};

Ruling FileRules::State::refuse_entry(const FsEntry& entry) const {
  const bool hidden = entry.access == Access::kNone;
  return {.answer = Answer::kRefuse,
          .errnum = hidden ? EACCES : EROFS,
          .git = GitName::kNone,
          .rule = policy::entry_key(entry),
          .origin = &entry.origin,
          .allowed = hidden ? policy::kHiddenByRule : policy::kKeptByRule};
}

Ruling FileRules::State::entry_ruling(Act act, std::string_view path) const {
  if (globs.empty() && !options.hold_paths) return {};
  const bool covered = options.hold_paths || std::any_of(globs.begin(), globs.end(), [&](const FsEntry* entry) {
                         return policy::glob_covers(entry->path, path).has_value();
                       });
  if (act == Act::kSymlink) {
    const auto led = std::find_if(globs.begin(), globs.end(), [&](const FsEntry* one) {
      return one->access != Access::kWrite && is_led_around(one->path, path);
    });
    if (led != globs.end()) return refuse_entry(**led);
  }
  if (!covered) return {};
  const FsEntry* entry = find_rule(options.filesystem, path);
  if (entry == nullptr || entry->access == Access::kWrite) return {};
  if (!entry->glob && (!options.hold_paths || entry->path == "/")) return {};
  if (act == Act::kRead && entry->access != Access::kNone) return {};
  return refuse_entry(*entry);
}

// By which entry of the policy a held path is refused; a control name that stands there already is read-only by `protect`.
Ruling FileRules::State::refuse_held(std::string_view path, int errnum, std::string_view allowed) const {
  Ruling ruling{.answer = Answer::kRefuse,
                .errnum = errnum,
                .git = GitName::kNone,
                .rule = kEntriesKey,
                .origin = &options.built_in,
                .allowed = allowed};
  const FsEntry* entry = find_rule(options.filesystem, path);
  if (errnum == EROFS && entry != nullptr && entry->access == Access::kWrite) {
    ruling.rule = kProtectKey;
    ruling.origin = nullptr;
  } else if (entry != nullptr && entry->origin.layer != "built-in") {
    ruling.rule = entry->kind == RuleKind::kDefaultSecret ? kSecretsKey : kEntriesKey;
    ruling.origin = &entry->origin;
  } else if (errnum == EROFS) {
    ruling.rule = kRootsKey;
  }
  return ruling;
}

Ruling FileRules::State::in_place_ruling(Act act, std::string_view path) const {
  if (!moves(act)) return {};
  const auto is_below = [&](const std::string& one) { return one.size() > path.size() && is_within(one, path); };
  const auto below = std::find_if(options.in_place.begin(), options.in_place.end(), is_below);
  if (below != options.in_place.end()) return refuse_held(*below, EBUSY, kStays);
  for (std::size_t i = 0; i < kept_git.size(); ++i) {
    if (kept_git[i] == GitPresence::kNothing || !is_below(options.keep_git[i])) continue;
    Ruling ruling = refuse_protected(GitName::kDotGit, "moving what is in it: a writable directory with a repository lies there");
    ruling.errnum = EBUSY;
    return ruling;
  }
  return {};
}

// The allow list, where no mount stands behind it. A directory on the way to what is hidden or read-only keeps its name, and so
// does what is writable within something that is not: as mount points would.
Ruling FileRules::State::held_ruling(Act act, std::string_view path) const {
  if (!options.held) return {};
  const EnforcedPaths& held = *options.held;
  const auto above_one = [&](const std::vector<std::string>& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const std::string& one) { return one.size() > path.size() && is_within(one, path); });
  };
  const auto is_writable = [&](std::string_view one) {
    const std::size_t length = longest_of(held.writable, one).size();
    return length > std::max(longest_of(held.hidden, one).size(), longest_of(held.readonly, one).size());
  };
  const std::size_t hidden = longest_of(held.hidden, path).size();
  if (hidden > 0 && hidden >= std::max(longest_of(held.writable, path).size(), longest_of(held.readable, path).size()))
    return refuse_held(path, EACCES, policy::kHiddenByRule);
  const bool opens = act == Act::kRead || act == Act::kWrite || act == Act::kTruncate;
  if (opens && is_within(path, "/proc")) return on_proc_ruling(act, path);
  if (opens && longest_of(held.nodes, path) == path) return {};
  const std::string_view writable = longest_of(held.writable, path);
  if (act == Act::kRead) {
    if (!writable.empty() || !longest_of(held.readable, path).empty()) return {};
    return refuse_held(path, EACCES, "what the policy lets it read");
  }
  if (writable.empty() || longest_of(held.readonly, path).size() >= writable.size())
    return refuse_held(path, EROFS, "reading; writes only below the writable directories");
  if (moves(act) && writable == path && !is_writable(path.substr(0, path.rfind('/')))) return refuse_held(path, EBUSY, kStays);
  if (moves(act) && (above_one(held.hidden) || above_one(held.readonly))) return refuse_held(path, EBUSY, kStays);
  return {};
}

// A hidden path that Landlock would have to carve out of something writable.
bool FileRules::State::hides_below_writable() const {
  if (!options.held) return false;
  return std::any_of(options.held->hidden.begin(), options.held->hidden.end(),
                     [&](const std::string& path) { return !longest_of(options.held->writable, path).empty(); });
}

Ruling FileRules::State::on_git_name(Act act, GitName name, bool is_dir) const {
  switch (act) {
    case Act::kRead:
    case Act::kUnlink:
    case Act::kRmdir:
    case Act::kRenameFrom:
    case Act::kAttributes:
    case Act::kMkdir:
      return {};
    case Act::kChmod:
      if (name == GitName::kHook) break;
      return {};
    case Act::kSymlink:
      return refuse_protected(name, "a file or a directory of that name; git would follow a link to content that nobody judged");
    case Act::kMknod:
    case Act::kHardLink:
      if (name == GitName::kControlDir) return {};
      return refuse_protected(name, "a plain file of that name, written or renamed into place");
    case Act::kWrite:
    case Act::kCreate:
    case Act::kTruncate:
    case Act::kRenameTo:
      if (is_dir || name == GitName::kDotGit || name == GitName::kControlDir || name == GitName::kSampleHook) return {};
      if (name != GitName::kHook) return judge(name);
      break;
  }
  return refuse_protected(name, "hooks that end in .sample; git on the host would run this one");
}

// A name that git takes for its own: below a `.git`, or in the layout of a directory that is a git directory by what stands in it.
bool FileRules::State::is_git_s(std::string_view path, std::string_view root, const Surroundings& around) const {
  const std::string_view above = path.substr(0, path.rfind('/'));
  if (leads_through_git(above)) return true;
  std::size_t at = path.size();
  for (int up = 1; at > root.size() + 1; ++up) {
    at = path.rfind('/', at - 1);
    if (at == std::string_view::npos || at < root.size()) break;
    if (is_git_layout(path.substr(at + 1)) && is_git_dir(around, up - 1)) return true;
  }
  return false;
}

Ruling FileRules::State::git_ruling(Act act, std::string_view path, bool is_dir, const Surroundings& around) const {
  if (options.filesystem.protect == Protect::kAll && leads_through_git(path))
    return refuse_protected(GitName::kDotGit, policy::kGitByDefault);
  // Whatever git writes at that name, it would write where the link leads: its logs, messages, index and refs are others' text.
  if (act == Act::kSymlink && is_git_s(path, root_of(path), around))
    return refuse_protected(GitName::kControlDir, "files and directories there; git on the host would write where a link leads");
  const GitRoles roles = git_roles(path, is_dir);
  // A repository that is moved aside and back would have the names beside it written in between.
  if (act == Act::kRenameFrom && is_dot_git(file_name(path)) && stood_before(around, 0, file_name(path)))
    return refuse_protected(GitName::kDotGit, "removing it, or moving the directory that holds it");
  // Where a `.gitmodules` lies in a git directory, that directory's meaning of the name is the stricter one, and comes first.
  const bool is_module_list = roles.certain.name == GitName::kModulesFile;
  const auto certain = [&] {
    return roles.certain.name == GitName::kNone ? Ruling() : on_git_name(act, roles.certain.name, is_dir);
  };
  if (const Ruling ruling = is_module_list ? Ruling() : certain(); ruling.answer != Answer::kAllow) return ruling;
  for (int i = 0; i < roles.count; ++i) {
    const GitRole& role = roles.if_git_dir[static_cast<std::size_t>(i)];
    const Ruling ruling = on_git_name(act, role.name, is_dir);
    if (ruling.answer != Answer::kAllow && is_git_dir(around, role.up - 1)) return ruling;
  }
  if (const Ruling ruling = is_module_list ? certain() : Ruling(); ruling.answer != Answer::kAllow) return ruling;
  const std::string_view name = file_name(path);
  if (makes_name(act) && is_git_marker(name) && completes_git_dir(around, name)) {
    // The one marker with content that counts: it would be written when everything else had been judged.
    if (!is_dir && folds_to(name, "commondir"))
      return refuse_protected(GitName::kPointer, "making it before HEAD, in a directory that is no git directory yet");
    Ruling ruling = judge(GitName::kNone);
    ruling.answer = Answer::kMakesGitDir;
    ruling.allowed = "a git directory without hooks and with settings that run nothing";
    return ruling;
  }
  return {};
}

bool FileRules::State::granted(std::string_view path, std::string_view name_path) const {
  return std::any_of(write_grants.begin(), write_grants.end(),
                     [&](const std::string& grant) { return is_within(grant, name_path) && is_within(path, grant); });
}

// Agent and editor names in the root, and in every directory below it that was a work tree before the run. A repository that was
// cloned inside brings its own, and nobody has worked in it yet.
Ruling FileRules::State::agent_ruling(Act act, std::string_view path, std::string_view root, const Surroundings& around) const {
  const std::size_t start = root == "/" ? 1 : root.size() + 1;
  if (path.size() <= start || root == longest_of(options.kept, path)) return {};
  const auto depth = static_cast<int>(std::count(path.begin() + static_cast<std::ptrdiff_t>(start), path.end(), '/'));
  int index = 0;
  for (std::size_t at = start; at < path.size(); ++index) {
    const std::string_view rest = path.substr(at);
    const std::string_view part = rest.substr(0, rest.find('/'));
    // What a link of that name leads to would be written under another path.
    const bool leads = act == Act::kSymlink && at + part.size() == path.size() && policy::is_protected_parent(part);
    const std::size_t length = leads ? part.size() : folds_to(part, kJudgedName) ? 0 : policy::protected_length(rest);
    if (length > 0) {
      const std::string_view whole = path.substr(0, at + length);
      const bool held = index == 0 || std::any_of(std::begin(kWorkTrees), std::end(kWorkTrees),
                                                  [&](std::string_view mark) { return stood_before(around, depth - index, mark); });
      if (held && !granted(path, whole)) {
        const bool made = act != Act::kWrite && makes_name(act) && path == whole;
        return refuse_protected(GitName::kNone, leads  ? "a directory of that name"
                                                : made ? kMakeOutside
                                                       : "reading; an entry that names the path with access write lifts this");
      }
    }
    if (is_unprotected_parent(part)) return {};
    at += part.size() + 1;
  }
  return {};
}

bool FileRules::State::globs_move(std::string_view old_path, std::string_view new_path) const {
  const auto near = [](std::string_view path, std::string_view prefix) {
    return is_within(path, prefix) || is_within(prefix, path);
  };
  return std::any_of(globs.begin(), globs.end(), [&](const FsEntry* entry) {
    if (by_name_alone(entry->path)) return false;
    const std::string_view prefix = literal_prefix(entry->path);
    return prefix.empty() || near(old_path, prefix) || near(new_path, prefix);
  });
}

// Names in a git directory that come and go with what git is doing.
bool is_passing_git_name(std::string_view relative) {
  constexpr std::string_view kBegins[] = {"MERGE_",     "BISECT_",        "AUTO_MERGE",  "CHERRY_PICK_HEAD", "REVERT_HEAD",
                                          "SQUASH_MSG", "FETCH_HEAD",     "gc.",         "rebase-merge",     "rebase-apply",
                                          "sequencer",  "COMMIT_EDITMSG", "TAG_EDITMSG", "NOTES_EDITMSG",    "EDIT_DESCRIPTION"};
  const std::string_view name = file_name(relative);
  if (relative.starts_with("refs/")) return name.ends_with(".lock");  // a branch may be called tmp_x
  return name.ends_with(".lock") || name.starts_with("tmp_") || name.starts_with(".tmp-") ||
         std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view one) { return relative.starts_with(one); });
}

// What a program made in the run goes by it again (an editor's backups and swap files), unless git wrote it: its own files are new
// ones after each change.
bool is_git_s_own(std::string_view relative) {
  constexpr std::string_view kDirectories[] = {"objects", "refs", "logs", "modules", "worktrees", "info", "reftable"};
  constexpr std::string_view kFiles[] = {"HEAD",        "ORIG_HEAD", "config",    "config.worktree", "index",
                                         "packed-refs", "shallow",   "commondir", "gitdir"};
  const std::string_view first = relative.substr(0, relative.find('/'));
  const auto is_first = [&](std::string_view name) { return folds_to(first, fold_name(name)); };
  return std::any_of(std::begin(kDirectories), std::end(kDirectories), is_first) ||
         (first == relative && std::any_of(std::begin(kFiles), std::end(kFiles), is_first));
}

Ruling FileRules::removal_rule(std::string_view path, const Surroundings& around) const {
  const State& state = *state_;
  if (!state.protects) return {};
  const auto [root, kept] = state.root_with_repository(path);
  if (root.empty() || path.size() <= root.size() + 1) return {};
  std::string_view below = path.substr(root == "/" ? 1 : root.size() + 1);  // of the git directory; empty: it is the directory
  if (kept == State::GitPresence::kDotGit) {
    const std::string_view first = below.substr(0, below.find('/'));
    if (!is_dot_git(first)) return {};
    below.remove_prefix(std::min(below.size(), first.size() + 1));
  }
  if (!below.empty() && is_passing_git_name(below)) return {};
  if (!below.empty() && !is_git_s_own(below) && !state.stood_before(around, 0, file_name(path))) return {};
  return state.refuse_protected(GitName::kDotGit, policy::kGitRemoval);
}

void FileRules::begin_run(const timespec& began) const {
  state_->began = to_nanoseconds(began);
  state_->note_repositories();
}

bool FileRules::keeps_git(std::string_view path) const noexcept {
  const auto [root, kept] = state_->root_with_repository(path);
  return state_->protects && kept == State::GitPresence::kDotGit && is_dot_git(file_name(path)) &&
         path.substr(0, path.rfind('/')) == (root == "/" ? "" : root);
}

FileRules::FileRules(FileRulesOptions options) : state_(std::make_unique<State>(std::move(options))) {}
FileRules::FileRules(FileRules&&) noexcept = default;
FileRules& FileRules::operator=(FileRules&&) noexcept = default;
FileRules::~FileRules() = default;

Ruling FileRules::rule_for(Act act, std::string_view path, bool is_dir, const Surroundings& around) const {
  const State& state = *state_;
  if (Ruling ruling = state.held_ruling(act, path); ruling.answer != Answer::kAllow) return ruling;
  if (Ruling ruling = state.in_place_ruling(act, path); ruling.answer != Answer::kAllow) return ruling;
  if (Ruling ruling = state.entry_ruling(act, path); ruling.answer != Answer::kAllow) return ruling;
  if (!state.protects || act == Act::kRead) return {};
  const std::string_view root = state.root_of(path);
  if (root.empty()) return {};
  if (leads_through_commit(path.substr(root.size())))
    return state.refuse_protected(GitName::kNone, "waiting until `belljar commit` has put it in place");
  if (Ruling ruling = state.agent_ruling(act, path, root, around); ruling.answer != Answer::kAllow) return ruling;
  return state.git_ruling(act, path, is_dir, around);
}

WalkScope FileRules::must_walk(std::string_view old_path, std::string_view new_path, const Surroundings& around) const {
  const State& state = *state_;
  if (state.globs_move(old_path, new_path)) return WalkScope::kAll;
  if (!state.protects || state.root_of(new_path).empty()) return WalkScope::kNone;
  if (state.root_of(old_path).empty()) return WalkScope::kAll;
  const GitRoles roles = git_roles(new_path, true);
  if (roles.certain.name != GitName::kNone || state.is_git_s(new_path, state.root_of(new_path), around)) return WalkScope::kAll;
  for (int i = 0; i < roles.count; ++i) {
    if (is_git_dir(around, roles.if_git_dir[static_cast<std::size_t>(i)].up - 1)) return WalkScope::kAll;
  }
  // A work tree that is moved to where its names are free, and back.
  const bool freed = leads_through_unprotected(old_path) && !leads_through_unprotected(new_path);
  return freed || policy::is_protected_parent(file_name(new_path)) ? WalkScope::kAgentNames : WalkScope::kNone;
}

Ruling FileRules::agent_rule(Act act, std::string_view path, const Surroundings& around) const {
  const std::string_view root = state_->protects ? state_->root_of(path) : std::string_view();
  return root.empty() ? Ruling{} : state_->agent_ruling(act, path, root, around);
}

bool FileRules::reaches(std::string_view url) const { return state_->options.reaches && state_->options.reaches(url); }
bool FileRules::covers(std::string_view path) const noexcept { return !state_->root_of(path).empty(); }
bool FileRules::reads_matter() const noexcept { return state_->hidden_globs || holds_paths(); }
bool FileRules::every_read_matters() const noexcept { return state_->hidden_globs || state_->hides_below_writable(); }
bool FileRules::holds_paths() const noexcept { return state_->options.held.has_value(); }
bool FileRules::only_protects() const noexcept {
  const bool patterns = std::ranges::any_of(state_->globs, [](const FsEntry* entry) { return entry->access != Access::kWrite; });
  return !patterns && state_->options.in_place.empty() && !state_->options.hold_paths && !holds_paths();
}
bool FileRules::any() const noexcept {
  return state_->protects || !state_->globs.empty() || !state_->options.in_place.empty() || state_->options.hold_paths ||
         holds_paths();
}
Ruling FileRules::link_rule(std::string_view path, std::string_view text, const Surroundings& around) const {
  const Ruling ruling = rule_for(Act::kSymlink, path, false, around);
  // `git init` tries whether links can be made: `tXXXXXX`, a name that means nothing, and this text, which leads nowhere else
  // (setup.c).
  const bool is_probe = text == "testing" && file_name(path).size() == 7 && file_name(path).starts_with('t');
  return is_probe && ruling.git == GitName::kControlDir ? Ruling{} : ruling;
}
const std::vector<std::string>& FileRules::roots() const noexcept { return state_->git_roots; }
const std::vector<std::string>& FileRules::host_roots() const noexcept { return state_->host_roots; }

}  // namespace belljar::broker
