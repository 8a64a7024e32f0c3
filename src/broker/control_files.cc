// How content gets to a control name of git, and how a whole directory is judged before it becomes one of
// git's.
//
// One file (judge_and_install): read what stands there, judge the new content against it, write it to a
// private file beside the name, which no call of the sandbox may touch (is_reserved), give that the mode,
// group, times and extended attributes of the file it replaces, and rename it over the name. The rename is
// what makes it safe: nobody has a descriptor, a mapping or a hard link of the new inode. Writing in place,
// or renaming the caller's own file, would leave it one.
//
// A directory becomes a git directory with its last marker (HEAD, objects, refs, commondir: git_names.h).
// Until then its `config` or `hooks/x` is nobody's and was written unjudged. So admit_git_dir() walks all of
// it first: a hook refuses the act, everything else that git reads is judged and replaced by a fresh file.
// The lock on the directories is owned meanwhile, so that nothing is added behind the walk.
//
// A directory that gets a new path (admit_tree) is the same question for names that existed under another
// path: each is put to the rules as leaving the old path and as arriving at the new one. AfterMove answers
// what stands beside a name as it will be after the rename: near things move along, things above are those of
// the new parent.
//
// Walks are bounded (kMostEntries, kDeepest) and descend by descriptor without following links.
#include "broker/control_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/read_file.h"
#include "base/write_all.h"
#include "broker/file_rules.h"
#include "broker/git_judge.h"

namespace belljar::broker {
namespace {

constexpr std::string_view kReserved = ".belljar-new-";
constexpr std::size_t kMostEntries = 200'000;  // of a directory that is looked through
constexpr int kDeepest = 128;

std::string reserved_name() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<std::uint64_t>(::clock());  // O_EXCL decides
  return format("{}{:016x}", kReserved, number);
}

void copy_attributes(int from, int to) {
  char names[4096];
  const ssize_t size = ::flistxattr(from, names, sizeof names);
  for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(std::string_view(names + at).size()) + 1) {
    char value[4096];
    const ssize_t length = ::fgetxattr(from, names + at, value, sizeof value);
    if (length >= 0) (void)::fsetxattr(to, names + at, value, static_cast<std::size_t>(length), 0);
  }
}

// What cannot be kept (another group) is not worth a refusal.
void look_like(int file, int like) {
  struct stat was{};
  if (like < 0 || ::fstat(like, &was) != 0) return;
  copy_attributes(like, file);
  [[maybe_unused]] const int group = ::fchown(file, static_cast<uid_t>(-1), was.st_gid);
  (void)::fchmod(file, was.st_mode & 0777);
  const timespec times[2] = {was.st_atim, was.st_mtim};
  (void)::futimens(file, times);
}

// Below a directory that moves, seen as it will stand: near things move along, far things are at the new place.
class AfterMove final : public Surroundings {
 public:
  AfterMove(int dir, int depth, int new_parent, std::string_view new_name) noexcept
      : dir_(dir), depth_(depth), new_parent_(new_parent), new_name_(new_name) {}
  bool exists(int up, std::string_view name) const override {
    if (up == depth_ + 1 && folds_to(new_name_, fold_name(name))) return true;
    return up <= depth_ ? DirSurroundings(dir_).exists(up, name) : DirSurroundings(new_parent_).exists(up - depth_ - 1, name);
  }
  bool stood_before(int up, std::string_view name, const timespec& when) const override {
    return up <= depth_ ? DirSurroundings(dir_).stood_before(up, name, when)
                        : DirSurroundings(new_parent_).stood_before(up - depth_ - 1, name, when);
  }

 private:
  int dir_, depth_, new_parent_;
  std::string_view new_name_;
};

// One entry below a directory; `dir` holds it. Below the top, depth 0.
struct Entry {
  int dir;
  int depth;
  std::string name;
  std::string relative;
  bool is_dir;
  bool is_file;
};
enum class Next { kDescend, kSkip };
using Visit = std::function<OrErrno<Next>(const Entry&)>;

struct Walk {
  const Visit& visit;
  std::size_t entries = 0;
};

int walk(Walk& state, int dir, int depth, const std::string& prefix) {
  if (depth > kDeepest) return -ELOOP;
  const int own = ::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return -errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(own), &::closedir);
  if (list == nullptr) {
    ::close(own);
    return -ENOMEM;
  }
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++state.entries > kMostEntries) return -EMLINK;
    names.emplace_back(name);
  }
  for (const std::string& name : names) {
    struct stat now{};
    if (::fstatat(dir, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool is_dir = S_ISDIR(now.st_mode);
    const auto next = state.visit({dir, depth, name, prefix + name, is_dir, S_ISREG(now.st_mode)});
    if (!next) return -next.error();
    if (!is_dir || *next == Next::kSkip) continue;
    const UniqueFd below(::openat(dir, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!below.valid()) return -errno;
    if (const int status = walk(state, below.get(), depth + 1, prefix + name + "/"); status != 0) return status;
  }
  return 0;
}

// The file of `entry` is judged as if it stood at `path` and replaced by a fresh one where it is.
int renew(FileCall& file, Act act, const Entry& entry, const std::string& path, const Ruling& ruling) {
  if (!entry.is_file) return file.refuse(act, path, ruling, "a control name of git that is no plain file");
  auto content = read_control_file(entry.dir, entry.name, ruling.git);
  if (!content) return file.refuse(act, path, ruling, "git's control files are read up to a size, with your own permissions");
  if (const auto why = objection_in(file.context, path, ruling.git, *content, {})) return file.refuse(act, path, ruling, *why);
  const UniqueFd like(::openat(entry.dir, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  DirEntry dir_entry;
  dir_entry.dir = entry.dir;
  dir_entry.name = entry.name;
  return install_fresh(dir_entry, {.act = act, .content = *content, .like = like.get()});
}

// A directory at the top of git's layout, or below one.
bool leads_further(const std::string& relative) { return is_git_layout(relative + "/x"); }

OrErrno<Next> proceed(int status, Next next) { return status == 0 ? OrErrno<Next>(next) : errno_is(-status); }

}  // namespace

OrErrno<UniqueFd> make_private(int dir, mode_t mode, std::string& name) {
  name = reserved_name();
  UniqueFd made(::openat(dir, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777));
  if (!made.valid()) return errno_is(errno);
  return made;
}

int install_fresh(const DirEntry& dir_entry, const FreshFile& fresh) {
  std::string temporary;
  auto made = make_private(dir_entry.dir, fresh.mode, temporary);
  if (!made) return -made.error();
  int status = write_all(made->get(), fresh.content) ? 0 : -errno;
  if (status == 0) look_like(made->get(), fresh.like);
  made->reset();
  const std::string name(dir_entry.bare());
  if (status == 0 && is_mount_point(dir_entry.dir, name)) status = -EBUSY;
  if (status == 0 &&
      ::syscall(SYS_renameat2, dir_entry.dir, temporary.c_str(), dir_entry.dir, name.c_str(), fresh.rename_flags) != 0) {
    status = -errno;
  }
  if (status != 0) ::unlinkat(dir_entry.dir, temporary.c_str(), 0);
  return status;
}

std::optional<std::string> objection_to(const FileRules& rules, const std::string& path, GitName git, std::string_view content,
                                        const std::optional<std::string>& old) {
  if (content.empty() && old && !old->empty() && rules.keeps_git(path)) return "it would empty the `.git` of the work tree";
  GitContext context;
  if (old) context.old_content = *old;
  context.roots = rules.roots();
  context.reaches = [&rules](std::string_view url) { return rules.reaches(url); };
  context.is_link = [](const std::string& at) {
    struct stat now{};
    return ::lstat(at.c_str(), &now) == 0 && S_ISLNK(now.st_mode);
  };
  return git_objection(git, path, content, context);
}

std::optional<std::string> objection_in(const Context& context, const std::string& path, GitName git, std::string_view content,
                                        const std::optional<std::string>& old) {
  const FileRules& rules = *context.options.rules;
  std::optional<std::string> why = objection_to(rules, path, git, content, old);
  if (!why) return why;
  const std::vector<std::string> former = context.former.of(path);
  const bool stood = std::any_of(former.begin(), former.end(),
                                 [&](const std::string& one) { return !objection_to(rules, path, git, content, one); });
  return stood ? std::nullopt : why;
}

void remember_file(FileCall& file, DirEntry& dir_entry) {
  const Ruling ruling = file.rule(Act::kWrite, dir_entry, false);
  if (ruling.answer != Answer::kJudge || ruling.git == GitName::kIndex) return;
  if (auto now = read_control_file(dir_entry.dir, std::string(dir_entry.bare()), ruling.git))
    file.context.former.remember(dir_entry.path(), *std::move(now));
}

void remember_directory(FileCall& file, DirEntry& dir_entry) {
  // Of a git directory, and of a work tree with one.
  constexpr std::string_view kTops[] = {"", ".git/"};
  constexpr std::string_view kNames[] = {"config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates"};
  const UniqueFd top(::openat(dir_entry.dir, std::string(dir_entry.bare()).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top.valid()) return;
  const auto remember = [&](const std::string& relative) {
    const std::size_t slash = relative.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : relative.substr(0, slash);
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
    const UniqueFd dir(static_cast<int>(::syscall(SYS_openat2, top.get(), parent.c_str(), &how, sizeof how)));
    if (!dir.valid()) return;
    DirEntry below;
    below.dir = dir.get();
    below.dir_path = dir_entry.path() + (parent == "." ? "" : "/" + parent);
    below.name = relative.substr(slash + 1);
    remember_file(file, below);
  };
  for (const std::string_view above : kTops) {
    for (const std::string_view name : kNames) remember(std::string(above) + std::string(name));
  }
  remember(".git");  // a file that points to it
}

bool is_reserved(std::string_view name) { return name.starts_with(kReserved); }

OrErrno<std::string> read_control_file(int dir, const std::string& name, GitName kind) {
  const UniqueFd file(::openat(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat now{};
  if (!file.valid() || ::fstat(file.get(), &now) != 0) return errno_is(errno);
  if (!S_ISREG(now.st_mode)) return errno_is(EACCES);
  const std::size_t most = max_control_file(kind);
  if (static_cast<std::uint64_t>(now.st_size) > most) return errno_is(EACCES);
  // It may grow meanwhile: then it is read as far as it is no longer than allowed.
  const std::size_t limit = std::min(most, static_cast<std::size_t>(now.st_size) + kMaxControlFile);
  auto content = read_at_most(file.get(), limit + 1);
  if (!content) return errno_is(errno);
  if (content->size() > limit) return errno_is(EACCES);
  return *std::move(content);
}

int judge_and_install(FileCall& file, DirEntry& dir_entry, const Ruling& ruling, const FreshFile& fresh) {
  std::optional<std::string> old;
  if (auto now = read_control_file(dir_entry.dir, std::string(dir_entry.bare()), ruling.git)) old = *std::move(now);
  const std::string path = dir_entry.path();
  if (const auto why = objection_in(file.context, path, ruling.git, fresh.content, old))
    return file.refuse(fresh.act, path, ruling, *why);
  return install_fresh(dir_entry, fresh);
}

namespace {

// What an entry of a directory that becomes a git directory is to git.
struct InGitDir {
  enum class What : std::uint8_t { kPassed, kEntered, kRefused, kJudged } what = What::kPassed;
  GitName name = GitName::kNone;
  std::string_view why;  // kRefused
};

InGitDir look_at(const Entry& entry) {
  using What = InGitDir::What;
  const GitName name = name_in_git_dir(entry.relative, entry.is_dir);
  if (entry.is_dir) return {name != GitName::kNone || leads_further(entry.relative) ? What::kEntered : What::kPassed, name, {}};
  if (!entry.is_file && is_git_layout(entry.relative))
    return {What::kRefused, name, "no plain file: git would write where it leads"};
  if (name == GitName::kNone || name == GitName::kSampleHook) return {What::kPassed, name, {}};
  if (name == GitName::kHook) return {What::kRefused, name, "a hook stands there already"};
  return {What::kJudged, name, {}};
}

}  // namespace

int admit_git_dir(FileCall& file, Act act, DirEntry& dir_entry, const Ruling& ruling) {
  if (ruling.answer == Answer::kAllow) return 0;
  if (ruling.answer != Answer::kMakesGitDir) return file.refuse(act, dir_entry.path(), ruling);
  const std::string path_made = dir_entry.path();
  const std::string top = path_made.substr(0, path_made.rfind('/'));
  const Visit visit = [&](const Entry& entry) -> OrErrno<Next> {
    const InGitDir found = look_at(entry);
    if (found.what == InGitDir::What::kEntered) return Next::kDescend;
    if (found.what == InGitDir::What::kPassed) return Next::kSkip;
    Ruling one = ruling;
    one.git = found.name;
    if (one.errnum == 0) one.errnum = EACCES;
    const std::string path = top + "/" + entry.relative;
    const bool refused = found.what == InGitDir::What::kRefused;
    return proceed(refused ? file.refuse(act, path, one, found.why) : renew(file, act, entry, path, one), Next::kSkip);
  };
  Walk state{visit};
  return walk(state, dir_entry.dir, 0, "");
}

std::optional<std::string> git_dir_objection(const FileRules& rules, int dir, const std::string& top,
                                             const std::function<bool(const std::string& relative)>& skip) {
  std::optional<std::string> result;
  const auto refuse = [&](const Entry& entry, std::string_view why) -> OrErrno<Next> {
    result = format("{}: {}", quoted(entry.relative), why);
    return errno_is(EACCES);
  };
  const Visit visit = [&](const Entry& entry) -> OrErrno<Next> {
    const InGitDir found = look_at(entry);
    if (found.what == InGitDir::What::kEntered) return Next::kDescend;
    if (found.what == InGitDir::What::kPassed || skip(entry.relative)) return Next::kSkip;
    if (found.what == InGitDir::What::kRefused) return refuse(entry, found.why);
    const auto content = read_control_file(entry.dir, entry.name, found.name);
    if (!content) return refuse(entry, "git's control files are read up to a size, with your own permissions");
    if (const auto why = objection_to(rules, top + "/" + entry.relative, found.name, *content, {})) return refuse(entry, *why);
    return Next::kSkip;
  };
  Walk state{visit};
  const int status = walk(state, dir, 0, "");
  if (status != 0 && !result) result = "it cannot be looked through";
  return result;
}

int admit_tree(FileCall& file, DirEntry& from, DirEntry& to, const Ruling& arrives) {
  const FileRules& rules = *file.context.options.rules;
  const WalkScope scope =
      arrives.answer == Answer::kMakesGitDir ? WalkScope::kAll : rules.must_walk(from.path(), to.path(), DirSurroundings(to.dir));
  if (scope == WalkScope::kNone) return 0;
  const UniqueFd top(::openat(from.dir, std::string(from.bare()).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top.valid()) return -errno;
  const std::string old_top = from.path();
  const std::string new_top = to.path();
  const Visit visit = [&](const Entry& entry) -> OrErrno<Next> {
    const std::string path = new_top + "/" + entry.relative;
    const AfterMove around(entry.dir, entry.depth, to.dir, to.bare());
    if (scope == WalkScope::kAgentNames) {
      const Act act = entry.is_dir || entry.is_file ? Act::kRenameTo : Act::kSymlink;
      const Ruling ruling = rules.agent_rule(act, path, around);
      return ruling.answer == Answer::kAllow ? OrErrno<Next>(Next::kDescend)
                                             : proceed(file.refuse(Act::kRenameTo, path, ruling), Next::kSkip);
    }
    const Ruling leaves =
        rules.rule_for(Act::kRenameFrom, old_top + "/" + entry.relative, entry.is_dir, DirSurroundings(entry.dir));
    if (leaves.answer != Answer::kAllow) {
      return proceed(file.refuse(Act::kRenameFrom, old_top + "/" + entry.relative, leaves), Next::kSkip);
    }
    Ruling ruling = rules.rule_for(Act::kRenameTo, path, entry.is_dir, around);
    if (ruling.answer == Answer::kAllow && !entry.is_dir && !entry.is_file) {
      ruling = rules.rule_for(Act::kSymlink, path, false, around);
    }
    if (ruling.answer == Answer::kAllow) return Next::kDescend;
    if (ruling.answer == Answer::kMakesGitDir) return Next::kDescend;  // its names are judged by the others' rulings
    if (ruling.answer == Answer::kJudge) return proceed(renew(file, Act::kRenameTo, entry, path, ruling), Next::kSkip);
    return proceed(file.refuse(Act::kRenameTo, path, ruling), Next::kSkip);
  };
  Walk state{visit};
  const int status = walk(state, top.get(), 0, "");
  if (status != -EMLINK && status != -ELOOP) return status;
  const Ruling too_large{.errnum = EACCES, .rule = "filesystem.protect", .allowed = "a directory of up to 200000 entries"};
  return file.refuse(Act::kRenameTo, to.path(), too_large, "too large to look through");
}

}  // namespace belljar::broker
