#include "broker/file_call.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/format.h"
#include "broker/control_files.h"
#include "broker/processes.h"
#include "policy/defaults.h"
#include "policy/paths.h"

namespace belljar::broker {
namespace {

std::string_view operation_of(Act act) {
  switch (act) {
    case Act::kRead:
      return "read";
    case Act::kWrite:
      return "write";
    case Act::kCreate:
      return "create";
    case Act::kMkdir:
      return "mkdir";
    case Act::kMknod:
      return "mknod";
    case Act::kSymlink:
      return "symlink";
    case Act::kHardLink:
      return "link";
    case Act::kRenameFrom:
    case Act::kRenameTo:
      return "rename";
    case Act::kUnlink:
    case Act::kRmdir:
      return "delete";
    case Act::kChmod:
      return "chmod";
    case Act::kTruncate:
      return "truncate";
    case Act::kAttributes:
      return "attributes";
  }
  return "file";
}

bool may_be_policy(int errnum) { return errnum == EROFS || errnum == EACCES || errnum == EPERM || errnum == EBUSY; }
// A mask is a mount point, a directory or of another file system, too.
bool may_be_mask(int errnum) { return may_be_policy(errnum) || errnum == EISDIR || errnum == EXDEV; }

// Nobody reads a mask. What may be read at a hidden path is something else that the policy shows there.
bool is_shut(const DirEntry& entry) {
  const std::string name(entry.bare());
  return ::faccessat(entry.dir, name.c_str(), R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0 || is_mask_at(entry.dir, name);
}

}  // namespace

bool exists_at(int dir, const std::string& name) {
  struct stat now{};
  return ::fstatat(dir, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

bool is_mount_point(int dir, const std::string& name) {
  struct statx facts{};
  if (::statx(dir, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &facts) != 0) return false;
  return (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

bool DirSurroundings::exists(int up, std::string_view name) const {
  std::string path;
  for (int i = 0; i < up; ++i) path += "../";
  return exists_at(dir_, path.append(name));
}

bool DirSurroundings::stood_before(int up, std::string_view name, const timespec& when) const {
  std::string path;
  for (int i = 0; i < up; ++i) path += "../";
  path.append(name);
  struct statx facts{};
  if (::statx(dir_, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BTIME, &facts) != 0)
    return errno != ENOENT && errno != ENOTDIR;
  if ((facts.stx_mask & STATX_BTIME) == 0) return true;
  const auto born = std::pair<std::int64_t, std::int64_t>(facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec);
  return born < std::pair<std::int64_t, std::int64_t>(when.tv_sec, when.tv_nsec);
}

int FileCall::read_path(std::uint64_t address, std::string& path) {
  auto read = caller.read_path(address);
  if (!read) return -read.error();
  path = *std::move(read);
  return 0;
}

int FileCall::read_paths(std::uint64_t first, std::string& path, std::uint64_t second, std::string& second_path,
                         int& second_status) {
  Caller::Paths read = caller.read_paths(first, second);
  second_status = read.second ? 0 : -read.second.error();
  if (read.second) second_path = *std::move(read.second);
  if (!read.first) return -read.first.error();
  path = *std::move(read.first);
  return 0;
}

int FileCall::open_start(std::uint64_t dirfd, std::string_view path, StartDir& start) {
  if (path.starts_with('/')) return 0;
  const int number = static_cast<int>(dirfd);
  auto fd = number == AT_FDCWD ? caller.open_cwd() : caller.duplicate(number);
  if (!fd) return -fd.error();
  start.fd = *std::move(fd);
  return 0;
}

int FileCall::begin() {
  int root = context.root;
  if (!context.options.one_root) {
    auto own = caller.open_root();
    if (!own) return -own.error();
    own_root_ = *std::move(own);
    root = own_root_.get();
  } else if (root < 0) {
    auto first = caller.open_root();
    if (!first) return -first.error();
    if (!still_waiting(context.listener.get(), call.id)) return -ESRCH;
    root = context.keep_root(*std::move(first));
  }
  if (!still_waiting(context.listener.get(), call.id)) return -ESRCH;
  // Where /proc and the mounts are the host's, CAP_SYS_PTRACE would show any process, and mounts come and go.
  const bool on_host = judged() && context.options.rules->holds_paths();
  permissions_.emplace(context.options.uid, on_host ? Identity::kCaller : Identity::kReader);
  if (!permissions_->ok()) return -EACCES;
  std::optional<PathResolver::Shared> shared;
  if (context.options.one_root && !on_host) shared.emplace(context.starts, context.mounts);
  resolver_.emplace(root, caller, *permissions_, shared);
  return 0;
}

std::shared_lock<Directories> share_directories(Context& context, Receivers::Slot& slot) {
  if (!context.directories.try_lock_shared()) {
    const Receivers::Blocking blocking(slot);
    if (!context.directories.lock_shared([&slot] { return slot.interrupted(); })) return {};
  }
  return {context.directories, std::adopt_lock};
}

int FileCall::share_directories() {
  if (!judged() || exclusive_.owns_lock() || shared_.owns_lock()) return 0;
  shared_ = broker::share_directories(context, slot);
  return shared_ ? 0 : -kRestart;
}

int FileCall::own_directories() {
  release_directories();
  if (!judged()) return 0;
  {
    const Receivers::Blocking blocking(slot);
    if (!context.directories.lock([this] { return slot.interrupted(); })) return -kRestart;
  }
  exclusive_ = std::unique_lock(context.directories, std::adopt_lock);
  context.starts.forget_all();
  return 0;
}

int FileCall::own_for_marker(DirEntry& entry, DirEntry* other) {
  if (!judged() || exclusive_.owns_lock() || !entry.is_name() || !is_git_marker(entry.bare())) return 0;
  if (const int status = own_directories(); status != 0) return status;
  entry.dir_path.clear();  // it may have moved while nobody held it
  if (other != nullptr) other->dir_path.clear();
  return 0;
}

void FileCall::release_directories() {
  if (shared_.owns_lock()) shared_.unlock();
  if (exclusive_.owns_lock()) exclusive_.unlock();
}

template <class Ask>
Ruling FileCall::ask(DirEntry& entry, Ask ask) const {
  if (!judged() || !entry.is_name()) return {};
  if (is_reserved(entry.bare())) {
    return {.answer = Answer::kRefuse, .errnum = EACCES, .rule = "filesystem.protect", .allowed = "a name without .belljar-new-"};
  }
  const std::string path = entry.path();
  if (path.empty()) return unnamed();
  const FileRules& rules = *context.options.rules;
  if (rules.holds_paths() && on_proc(entry.dir) && !is_own_on_proc(path, context.options.guard)) {
    return {.answer = Answer::kRefuse, .errnum = EACCES, .rule = "processes", .allowed = "the command's own processes"};
  }
  return ask(rules, path);
}

Ruling FileCall::rule(Act act, DirEntry& entry, bool is_dir) const {
  return ask(entry, [&](const FileRules& rules, const std::string& path) {
    if (act != Act::kRead && policy::is_within(path, policy::kUsedPlace))
      return Ruling{.answer = Answer::kRefuse, .errnum = EACCES, .rule = "filesystem.secrets", .allowed = "reading"};
    return rules.rule_for(act, path, is_dir, DirSurroundings(entry.dir));
  });
}

Ruling FileCall::removal_rule(DirEntry& entry) {
  const Ruling ruling = ask(
      entry, [&](const FileRules& rules, const std::string& path) { return rules.removal_rule(path, DirSurroundings(entry.dir)); });
  if (ruling.answer == Answer::kAllow) return ruling;
  const std::string program = caller.program();
  return program == "git" || program.starts_with("git-") ? Ruling() : ruling;
}

Ruling FileCall::rule_link(DirEntry& entry, std::string_view text) const {
  return ask(entry, [&](const FileRules& rules, const std::string& path) {
    return rules.link_rule(path, text, DirSurroundings(entry.dir));
  });
}

bool FileCall::judges(DirEntry& entry) const {
  const std::string path = entry.path();
  return judged() && (path.empty() || context.options.rules->covers(path));
}

// A tree may be moved to where its names are longer than any path, changed there and moved back: no rule would have seen a name.
Ruling FileCall::unnamed() {
  return {.answer = Answer::kRefuse, .errnum = ENAMETOOLONG, .rule = "filesystem.protect", .allowed = "a path below 4096 bytes"};
}

// What was reached by no name of its own ("." or a directory for a file without a name): judged by where it lies.
int FileCall::judge_object(Act act, int object, std::string_view below) {
  if (!judged() || !context.options.rules->holds_paths()) return 0;
  const std::string path = path_of(object);
  struct stat now{};
  if (path.empty()) return refuse(act, path, unnamed());
  if (!path.starts_with('/')) return 0;  // a pipe or the like
  if (path.ends_with(" (deleted)") && ::fstat(object, &now) == 0 && now.st_nlink == 0) return 0;
  auto entry = resolver().parent(-1, path + std::string(below));
  if (!entry) return -EACCES;
  Ruling ruling;
  if (!entry->is_root) ruling = rule(act, *entry, true);
  else ruling = context.options.rules->rule_for(act, "/", true, DirSurroundings(entry->dir));
  return ruling.answer == Answer::kRefuse ? refuse(act, path, ruling) : 0;
}

int FileCall::refuse(Act act, std::string target, const Ruling& ruling, std::string_view because) {
  Violation violation;
  violation.pid = caller.pid_inside();
  violation.program = caller.program();
  violation.operation = operation_of(act);
  violation.target = target.empty() ? "a path too long to be named" : std::move(target);
  violation.rule = ruling.rule;
  violation.origin = ruling.origin != nullptr ? *ruling.origin : context.origin_of(violation.rule);
  violation.errnum = ruling.errnum != 0 ? ruling.errnum : EACCES;
  violation.allowed = because.empty() ? std::string(ruling.allowed) : format("{}: {}", because, ruling.allowed);
  const int status = -violation.errnum;
  context.violations.add(std::move(violation));
  told_ = true;
  return status;
}

int FileCall::explain(Act act, DirEntry& entry, int status) {
  if (status >= 0 || told_ || !context.options.explain || !may_be_mask(-status)) return status;
  // On a read-only mount the kernel says EROFS before it looks for the name: what is not there was refused to nobody.
  const bool takes_away = act == Act::kUnlink || act == Act::kRmdir;
  if (takes_away && !exists_at(entry.dir, std::string(entry.bare()))) return status;
  if (const int answer = explain_hidden(act, entry, status); told_) return answer;
  if (!may_be_policy(-status)) return status;
  const std::string path = entry.path();
  const int answer = tell(act, path, -status, path, status);
  return told_ ? answer : explain_mode(act, path, status);
}

// An open for writing is asked for the file's mode before the mount's: who root lends is refused by the first what the second
// refuses, and without the sandbox it would have been root that opened.
int FileCall::explain_mode(Act act, const std::string& path, int status) {
  if (status != -EACCES || context.options.uid == static_cast<uid_t>(-1)) return status;
  const auto why = path.empty() ? std::nullopt : context.options.explain(act, path, EROFS);
  if (!why || why->rule == "filesystem.protect") return status;
  return refuse(act, path, Ruling{.errnum = EACCES, .rule = why->rule, .origin = &why->origin, .allowed = why->allowed});
}

int FileCall::explain_object(Act act, int object, int status) {
  if (status >= 0 || told_ || !context.options.explain || !may_be_mask(-status)) return status;
  const std::string path = path_of(object);
  auto entry = resolver().parent(-1, path.empty() ? "/" : path);
  return entry ? explain(act, *entry, status) : status;
}

int FileCall::explain_way(Act act, int start, std::string_view path, PathResolver::Last last, int status) {
  if (status != -EACCES || told_ || !context.options.explain) return status;
  const PathResolver::Barred barred = resolver().barred(start, path, last);
  const bool below = !barred.rest.empty() && !barred.rest.starts_with('/');
  return tell(act, barred.dir, EACCES, barred.dir + (below ? "/" : "") + barred.rest, status);
}

int FileCall::explain_hidden(Act act, DirEntry& entry, int status) {
  if (status >= 0 || told_ || !context.options.explain || !may_be_mask(-status) || !is_shut(entry)) return status;
  const std::string path = entry.path();
  return tell(act, path, EACCES, path, status);
}

int FileCall::tell(Act act, const std::string& path, int asked, std::string target, int status) {
  const auto why = path.empty() ? std::nullopt : context.options.explain(act, path, asked);
  if (!why) return status;
  const Ruling ruling{.errnum = asked, .rule = why->rule, .origin = &why->origin, .allowed = why->allowed};
  return refuse(act, std::move(target), ruling);
}

void FileCall::adopt_umask() {
  thread_local mode_t current = 07777;
  const mode_t wanted = context.umasks.of(caller);
  if (wanted == current) return;
  ::umask(wanted);
  current = wanted;
}

}  // namespace belljar::broker
