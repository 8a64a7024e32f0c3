// open, openat, openat2, creat: a descriptor is opened here and given to the caller.
//
// Why here: openat2's flags and every path lie behind pointers that no filter sees, and a call that is checked and then continued
// can be changed by a second thread before the kernel reads it again.
// Three ways, from cheap to thorough:
//   1. open_plainly: the text of the path says all there is, and no rule minds that text. One openat2(2) from the caller's root
//      with RESOLVE_NO_SYMLINKS: when it succeeds, what was judged is what was opened. What it stumbles on takes the second way.
//   2. The loop of perform_open: resolve to a DirEntry, judge the name, open that name under that directory without following a
//      link; a last link that is to be followed leads to the next DirEntry, judged as well. perform_scoped: within a scope.
//   3. open_ruled: a rule has a say. The name is looked at first; a control file of git becomes a staged file.
// Nothing may wait while the directories are locked, so every open but one that must make its file is tried with O_NONBLOCK first.
// ENXIO of a FIFO or EAGAIN of a lease says that it would have waited: then the lock is released and the open repeated as the
// caller asked (open_waiting, await_writer), within the bound of Receivers::Wait and ended by the caller's signals.
//
// What an open by somebody else changes, and what is done about it: the controlling terminal (O_NOCTTY, and /dev/tty is opened as
// the caller's own device), files of /proc that ask for ptrace access (open_process_file), a tun device, which belongs to its
// opener's network namespace (refused), the umask and the permissions (the caller's, taken over).
//
// give(): the broker's own copy of the descriptor is closed before the caller goes on, which may close its own and expect to have
// been the last (ETXTBSY, flock(2), the end of a pipe). Hence ADDFD and the answer are two calls.
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "broker/as_caller.h"
#include "broker/control_files.h"
#include "broker/file_call.h"
#include "broker/file_calls.h"
#include "broker/file_rules.h"
#include "broker/notification.h"
#include "broker/one_processor.h"
#include "broker/path_resolver.h"
#include "broker/receivers.h"
#include "kernel/seccomp.h"
#include "policy/refusal.h"

namespace belljar::broker {
namespace {

constexpr int kTooManyWait = -ENOMEM;  // what open(2) says of a FIFO when its owner has too many
constexpr std::uint64_t kTmpfile = O_TMPFILE & ~O_DIRECTORY;
constexpr std::uint64_t kLargeFile = 0100000;
constexpr std::uint64_t kValid = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC |
                                 O_ASYNC | O_DIRECT | kLargeFile | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH |
                                 kTmpfile;
constexpr std::uint64_t kWithPath = O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC;

struct Opening {
  FileCall& file;
  std::string path;
  StartDir start;
  std::uint64_t flags = 0;
  mode_t mode = 0;
  std::uint64_t resolve = 0;
  UniqueFd opened;
  bool staged = false;      // the number is to be one whose close is noticed
  bool any_moment = false;  // nothing tells when a descriptor of ours closes: it may outlive the answer

  bool has(std::uint64_t bits) const { return (flags & bits) != 0; }
  bool creates() const { return has(O_CREAT); }
  bool exclusive() const { return creates() && has(O_EXCL); }
  // What it opens is a plain file that nobody knew before: there is nothing to wait for and nothing to look at.
  bool makes_file() const { return exclusive() && !has(kTmpfile | O_DIRECTORY | O_PATH); }
  std::uint64_t without_waiting() const { return makes_file() ? flags : flags | O_NONBLOCK; }
  bool follows() const { return !has(O_NOFOLLOW) && !exclusive() && (resolve & RESOLVE_NO_SYMLINKS) == 0; }
  bool scoped() const { return (resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0; }
  bool writes() const { return (flags & O_ACCMODE) != O_RDONLY || has(O_TRUNC); }
};

int open_at(int dir, const char* name, std::uint64_t flags, mode_t mode, std::uint64_t resolve) {
  open_how how{};
  // A terminal that we open must not become ours.
  how.flags = flags | O_CLOEXEC | (((flags & O_PATH) != 0) ? 0U : std::uint64_t{O_NOCTTY});
  how.mode = (flags & (O_CREAT | kTmpfile)) != 0 ? mode : 0;
  how.resolve = resolve;
  const long fd = ::syscall(SYS_openat2, dir, name, &how, sizeof how);
  return fd >= 0 ? static_cast<int>(fd) : -errno;
}

// Takes what open_at() returned.
int keep(Opening& opening, int fd) {
  if (fd < 0) return fd;
  opening.opened = UniqueFd(fd);
  return 0;
}

// The caller's own terminal: /dev/tty would open ours.
int open_terminal(Opening& opening) {
  dev_t device = 0;
  {
    const AsCaller::Suspended ours(opening.file.permissions());
    device = opening.file.caller.terminal();
  }
  if (device == 0) return -ENXIO;
  opening.file.resolver().restrict_to(0);  // what was asked for led to the device
  auto entry = opening.file.resolver().object(-1, format("/dev/pts/{}", minor(device)), PathResolver::Last::kFollow);
  struct stat now{};
  if (!entry || ::fstat(entry->get(), &now) != 0 || !S_ISCHR(now.st_mode) || now.st_rdev != device) return -ENXIO;
  return keep(opening, open_at(AT_FDCWD, own_link(entry->get()).c_str(),
                               opening.flags & ~std::uint64_t{O_CREAT | O_EXCL | O_NOFOLLOW}, 0, 0));
}

// One try of an open that may wait. -EINTR: for nothing but a tick, the caller's signals have another answer.
int try_waiting(Opening& opening, int object, Receivers::Until until) {
  int fd = -1;
  {
    const Receivers::Blocking blocking(opening.file.slot, until);
    fd = open_at(AT_FDCWD, own_link(object).c_str(), opening.flags & ~std::uint64_t{O_CREAT | O_EXCL | O_NOFOLLOW}, 0, 0);
  }
  if (fd != -EINTR) return keep(opening, fd);
  return opening.file.slot.interrupted() ? -kRestart : -EINTR;
}

// May wait: for the other end of a FIFO, for a lease to be given back. Nobody else waits with it, and the caller's signals end it.
int open_waiting(Opening& opening, int object) {
  opening.file.release_directories();
  const Receivers::Wait wait(opening.file.slot);
  if (!wait.granted()) return kTooManyWait;
  for (;;) {
    if (const int status = try_waiting(opening, object, Receivers::Until::kInterrupted); status != -EINTR) return status;
  }
}

bool is_terminal_device(const struct stat& now) { return S_ISCHR(now.st_mode) && now.st_rdev == makedev(5, 0); }
// Its opener's network namespace is what a tun device belongs to, and that is ours.
bool is_bound_to_opener(const struct stat& now) { return S_ISCHR(now.st_mode) && now.st_rdev == makedev(10, 200); }

bool on_read_only_mount(int file) {
  struct statvfs facts{};
  return ::fstatvfs(file, &facts) != 0 || (facts.f_flag & ST_RDONLY) != 0;
}

// A read-only mount stops no write to a FIFO (mount(2) is about the file system), whose reader may be outside. For the command's
// own calls Landlock does; it does not hold for us.
bool is_sealed_fifo(const Opening& opening, int object, const struct stat& now) {
  return opening.writes() && S_ISFIFO(now.st_mode) && on_read_only_mount(object);
}
bool is_sealed_fifo(const Opening& opening, int object) {
  struct stat now{};
  return opening.writes() && ::fstat(object, &now) == 0 && is_sealed_fifo(opening, object, now);
}

// The same before the name is opened: even an open that is closed at once is seen by a FIFO's reader.
bool names_sealed_fifo(const Opening& opening, const DirEntry& entry) {
  if (!opening.writes() || !on_read_only_mount(entry.dir)) return false;
  const UniqueFd object(open_at(entry.dir, entry.name.c_str(), O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS));
  return object.valid() && is_sealed_fifo(opening, object.get());
}

// Of a FIFO's end that was opened to read without waiting: a writer was there since, or then, and has gone (fs/pipe.c counts them).
bool had_writer(int reader) {
  pollfd now{.fd = reader, .events = 0, .revents = 0};
  return ::poll(&now, 1, 0) > 0 && (now.revents & POLLHUP) != 0;
}

void make_wait(int file) {
  int off = 0;
  (void)::ioctl(file, FIONBIO, &off);
}

int adopt_reader(Opening& opening, UniqueFd reader) {
  make_wait(reader.get());
  opening.opened = std::move(reader);
  return 0;
}

// open(2) of a FIFO to read returns when a writer has come. `reader`, opened without waiting, lets those in that wait for one: they
// may have written and gone before a second open begins, which would then wait for others. So `reader` is looked at between times.
int await_writer(Opening& opening, UniqueFd reader) {
  opening.file.release_directories();
  if (had_writer(reader.get())) return adopt_reader(opening, std::move(reader));
  const Receivers::Wait wait(opening.file.slot);
  if (!wait.granted()) return kTooManyWait;
  while (!had_writer(reader.get())) {
    if (const int status = try_waiting(opening, reader.get(), Receivers::Until::kEveryTick); status != -EINTR) return status;
  }
  return adopt_reader(opening, std::move(reader));
}

// What an open without waiting said: some files take it for an answer of its own.
int look_at_opened(Opening& opening, bool asked_to_wait) {
  struct stat now{};
  if (::fstat(opening.opened.get(), &now) != 0) return -errno;
  if (is_terminal_device(now)) {
    opening.opened.reset();
    return open_terminal(opening);
  }
  if (is_bound_to_opener(now) || is_sealed_fifo(opening, opening.opened.get(), now)) {
    opening.opened.reset();
    return -EACCES;
  }
  opening.any_moment = S_ISCHR(now.st_mode) && major(now.st_rdev) == 1;
  if (!asked_to_wait) return 0;
  if (S_ISFIFO(now.st_mode) && (opening.flags & O_ACCMODE) == O_RDONLY) return await_writer(opening, std::move(opening.opened));
  make_wait(opening.opened.get());
  return 0;
}

int open_object(Opening& opening, int object) {
  if (is_sealed_fifo(opening, object)) return -EACCES;
  const std::uint64_t flags = opening.flags & ~std::uint64_t{O_CREAT | O_EXCL | O_NOFOLLOW};
  const bool waits = !opening.has(O_NONBLOCK);
  const int fd = open_at(AT_FDCWD, own_link(object).c_str(), flags | O_NONBLOCK, 0, 0);
  if (fd >= 0) {
    opening.opened = UniqueFd(fd);
    return look_at_opened(opening, waits);
  }
  struct stat now{};
  if (::fstat(object, &now) != 0) return fd;
  if (is_terminal_device(now)) return open_terminal(opening);
  const bool would_wait = (fd == -ENXIO && S_ISFIFO(now.st_mode)) || fd == -EAGAIN;
  return waits && would_wait ? open_waiting(opening, object) : fd;
}

// Whoever opens mem, maps and their like in its own /proc/self is asked for no ptrace access (fs/proc, ptrace_may_access of one's
// own thread group); we are. So CAP_SYS_PTRACE comes back for that open alone, where the directory is the caller's own process.
// The file's owner and mode hold as before: what is not dumpable stays shut.
//
// The same for a process that the calling thread traces, as a debugger writes its breakpoints: to let it attach the kernel asked
// for the same access, and that memory is open to it by ptrace(2) anyway. The directory is held, so it is that process or none.
int open_process_file(Opening& opening, const DirEntry& entry) {
  PathResolver& resolver = opening.file.resolver();
  if (!resolver.is_own_process(entry.dir) && !resolver.is_traced_process(entry.dir)) return -EACCES;
  const AsCaller reader(opening.file.context.options.uid, Identity::kReader);
  if (!reader.ok()) return -EACCES;
  return open_at(entry.dir, entry.name.c_str(), opening.flags | O_NONBLOCK, opening.mode,
                 opening.resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

// The name, no link followed. Without waiting first, since the directories are held.
int open_name(Opening& opening, const DirEntry& entry) {
  if (names_sealed_fifo(opening, entry)) return -EACCES;
  const bool waits = !opening.has(O_NONBLOCK);
  opening.file.adopt_umask();
  int fd = open_at(entry.dir, entry.name.c_str(), opening.without_waiting(), opening.mode, opening.resolve | RESOLVE_NO_SYMLINKS);
  if (fd == -EACCES || fd == -EPERM) {
    if (const int own = open_process_file(opening, entry); own >= 0) fd = own;
  }
  if (fd >= 0) {
    opening.opened = UniqueFd(fd);
    return opening.makes_file() ? 0 : look_at_opened(opening, waits);
  }
  if (fd != -ENXIO && fd != -EAGAIN) return fd;
  const int object = open_at(entry.dir, entry.name.c_str(), O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS);
  if (object < 0) return fd;
  const UniqueFd owned(object);
  struct stat now{};
  if (::fstat(object, &now) != 0 || S_ISLNK(now.st_mode)) return fd;
  return open_object(opening, object);
}

Ruling rule_on(const Opening& opening, DirEntry& entry, bool exists) {
  Ruling ruling;
  if (opening.creates() && !exists) ruling = opening.file.rule(Act::kCreate, entry, false);
  if (ruling.answer == Answer::kAllow && opening.writes()) ruling = opening.file.rule(Act::kWrite, entry, false);
  if (ruling.answer == Answer::kAllow && opening.file.judged() && opening.file.context.options.rules->reads_matter()) {
    ruling = opening.file.rule(Act::kRead, entry, false);
  }
  return ruling;
}

constexpr int kFollow = 1;  // of the functions below: the name is a link, and the call follows it

Act act_of(const Opening& opening, bool exists) {
  if (opening.creates() && !exists) return Act::kCreate;
  return opening.writes() ? Act::kWrite : Act::kRead;
}

// Nothing is known of what stands there.
Act act_unseen(const Opening& opening) { return opening.writes() ? Act::kWrite : opening.creates() ? Act::kCreate : Act::kRead; }

int open_staged(Opening& opening, DirEntry& entry, const Ruling& ruling, bool exists) {
  auto fd = opening.file.context.staged.open(opening.file, entry, ruling, opening.flags, opening.mode, exists);
  if (!fd) return -fd.error();
  opening.opened = *std::move(fd);
  opening.staged = true;
  return 0;
}

// A name that some rule has something to say about.
int open_ruled(Opening& opening, DirEntry& entry) {
  FileCall& file = opening.file;
  struct stat now{};
  const bool exists = ::fstatat(entry.dir, std::string(entry.bare()).c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && S_ISLNK(now.st_mode) && opening.follows()) return kFollow;
  if (!exists && !opening.creates()) return -ENOENT;
  if (exists && opening.exclusive()) return -EEXIST;
  if (exists && S_ISLNK(now.st_mode)) return -ELOOP;
  Ruling ruling = rule_on(opening, entry, exists);
  const bool hides = ruling.answer == Answer::kRefuse && ruling.allowed == policy::kHiddenByRule;
  if (exists && S_ISDIR(now.st_mode) && opening.writes() && !hides) return -EISDIR;
  if (ruling.answer == Answer::kMakesGitDir) {
    if (const int status = file.own_directories(); status != 0) return status;
    entry.dir_path.clear();  // it may have moved while nobody held it
    ruling = rule_on(opening, entry, exists);
    if (const int status = admit_git_dir(file, Act::kCreate, entry, ruling); status != 0) return status;
    ruling.answer = Answer::kAllow;
  }
  if (ruling.answer == Answer::kRefuse) return file.refuse(act_of(opening, exists), entry.path(), ruling);
  if (ruling.answer == Answer::kJudge) return open_staged(opening, entry, ruling, exists);
  // Free while it exists. Were it gone by now, it would have to be judged as new.
  if (!exists) return open_name(opening, entry);
  const std::uint64_t asked = opening.flags;
  opening.flags &= ~std::uint64_t{O_CREAT};
  const int status = open_name(opening, entry);
  opening.flags = asked;
  return status;
}

int open_place(Opening& opening, DirEntry& entry) {
  FileCall& file = opening.file;
  if (opening.creates()) {
    if (const int status = file.own_for_marker(entry); status != 0) return status;
  }
  const bool free = rule_on(opening, entry, false).answer == Answer::kAllow;
  const int status = free ? open_name(opening, entry) : open_ruled(opening, entry);
  if (status != -ELOOP || !opening.follows()) {
    if (status >= 0 || status == -kRestart) return status;
    return file.explain(act_of(opening, exists_at(entry.dir, std::string(entry.bare()))), entry, status);
  }
  return kFollow;
}

// A file that a link of /proc leads to is judged by the name it was opened by.
int open_linked_file(Opening& opening, const UniqueFd& object) {
  FileCall& file = opening.file;
  const std::string path = path_of(object.get());
  struct stat now{};
  if (file.context.staged.is_staged(object.get())) return -EACCES;
  if (file.judged() && path.empty()) return file.refuse(act_of(opening, true), opening.path, FileCall::unnamed());
  if (file.judged() && path.starts_with('/') && ::fstat(object.get(), &now) == 0 && now.st_nlink > 0) {
    auto entry = file.resolver().parent(-1, path);
    if (!entry) return -EACCES;
    Ruling ruling = rule_on(opening, *entry, true);
    if (ruling.answer == Answer::kMakesGitDir) ruling.answer = Answer::kAllow;  // nothing is made
    if (ruling.answer != Answer::kAllow) return file.refuse(act_of(opening, true), path, ruling);
  }
  return open_object(opening, object.get());
}

int open_unnamed(Opening& opening) {
  const auto last = opening.has(O_NOFOLLOW) ? PathResolver::Last::kStay : PathResolver::Last::kFollow;
  auto dir = opening.file.resolver().object(opening.start.fd.get(), opening.path, last);
  FileCall& file = opening.file;
  if (!dir) return file.explain_way(Act::kCreate, opening.start.fd.get(), opening.path, last, -dir.error());
  file.resolver().restrict_to(0);
  if (const int status = file.judge_object(Act::kCreate, dir->get(), "/unnamed"); status != 0) return status;
  file.adopt_umask();
  const int fd = open_at(dir->get(), ".", opening.flags & ~std::uint64_t{O_NOFOLLOW}, opening.mode, 0);
  // /proc has none, and says so to those who may enter /proc/PID/fd: its owner, not us.
  if (fd == -EACCES && on_proc(dir->get())) return -EOPNOTSUPP;
  return fd >= 0 ? keep(opening, fd) : file.explain_object(Act::kCreate, dir->get(), fd);
}

// For rules that ask what stands beside a name: they did.
class QueryRecorder final : public Surroundings {
 public:
  bool exists(int, std::string_view) const override { return asked_ = true; }
  bool any() const { return asked_; }

 private:
  mutable bool asked_ = false;
};

// The path alone says that no rule has anything to say to any open of that name, there or not.
bool is_free(const Opening& opening, const std::string& dir_path, std::string_view name) {
  const FileCall& file = opening.file;
  if (!file.judged()) return true;
  if (is_reserved(name)) return false;
  const FileRules& rules = *file.context.options.rules;
  std::string path = dir_path;
  if (path != "/") path += '/';
  path += name;
  const QueryRecorder around;
  const auto allows = [&](Act act) { return rules.rule_for(act, path, false, around).answer == Answer::kAllow && !around.any(); };
  return (!opening.creates() || allows(Act::kCreate)) && (!opening.writes() || allows(Act::kWrite)) &&
         (!rules.reads_matter() || allows(Act::kRead));
}

// On a mount where nothing can be written a FIFO would have to be told apart; there /dev/null is none.
bool may_write(const PathResolver::LiteralPath& literal_path) {
  return literal_path.writable || (literal_path.dir_path == "/dev" && literal_path.name == "null");
}

constexpr int kLongWay = 1;

// One openat2(2) from the caller's root or directory, which follows no link: then the text of the path is what is opened, and the
// text was judged. Whatever it stumbles on goes the long way, where it is judged anew.
int open_plainly(Opening& opening) {
  FileCall& file = opening.file;
  if (opening.path.ends_with('/') || opening.has(kTmpfile | O_DIRECTORY)) return kLongWay;
  const auto literal_path = file.resolver().literal_path(opening.start.fd.get(), opening.path);
  if (!literal_path || (opening.writes() && !may_write(*literal_path)) ||
      !is_free(opening, literal_path->dir_path, literal_path->name))
    return kLongWay;
  if (opening.creates()) file.adopt_umask();
  const int fd = open_at(literal_path->base, opening.path.c_str(), opening.without_waiting(), opening.mode,
                         opening.resolve | literal_path->scope | RESOLVE_NO_SYMLINKS);
  if (fd >= 0) {
    opening.opened = UniqueFd(fd);
    return opening.makes_file() ? 0 : look_at_opened(opening, !opening.has(O_NONBLOCK));
  }
  return fd == -ENOENT || fd == -EEXIST || fd == -ENOTDIR ? fd : kLongWay;
}

// What a path leads to that has no name to be judged by: a directory, or nothing.
int open_directory(Opening& opening, UniqueFd object) {
  FileCall& file = opening.file;
  struct stat now{};
  if (::fstat(object.get(), &now) != 0 || !S_ISDIR(now.st_mode)) return -ENOTDIR;
  file.resolver().restrict_to(0);  // what was asked for has led here; who judges looks where it must
  if (const int status = file.judge_object(Act::kRead, object.get()); status != 0) return status;
  const int status = open_object(opening, object.get());
  return status == -kRestart ? status : file.explain_object(act_of(opening, true), object.get(), status);
}

constexpr std::uint64_t kScopes = RESOLVE_BENEATH | RESOLVE_IN_ROOT;

// openat2(2) with a scope. Each step is resolved by the kernel within it; what is judged and opened is as always the name under the
// directory that was found.
int perform_scoped(Opening& opening) {
  PathResolver& resolver = opening.file.resolver();
  const int start = opening.start.fd.get();
  const std::uint64_t asked = opening.resolve;
  opening.resolve &= ~kScopes;  // of the way to a directory; a name in that is below it
  std::string path = opening.path;
  for (;;) {
    resolver.restrict_to(asked);
    auto entry = resolver.parent(start, path);
    if (!entry) return -entry.error();
    if (!entry->is_name() && opening.creates()) return -EISDIR;
    if (!entry->is_name() || (entry->has_slash() && !opening.creates())) {
      auto object = resolver.object(start, path, PathResolver::Last::kFollow);
      return object ? open_directory(opening, *std::move(object)) : -object.error();
    }
    resolver.restrict_to(0);  // who judges the name looks where it must
    if (const int status = open_place(opening, *entry); status != kFollow) return status;
    auto target = resolver.scoped_target(*entry, path);
    if (!target) return -target.error();
    path = *std::move(target);
  }
}

int perform_open(Opening& opening) {
  FileCall& file = opening.file;
  if (opening.path.empty()) return -ENOENT;
  if (const int status = file.share_directories(); status != 0) return status;
  if (opening.scoped()) {
    file.resolver().restrict_to(opening.resolve);
    return opening.has(kTmpfile) ? open_unnamed(opening) : perform_scoped(opening);
  }
  if (const int status = open_plainly(opening); status != kLongWay) return status;
  PathResolver& resolver = file.resolver();
  resolver.restrict_to(opening.resolve);
  if (opening.has(kTmpfile)) return open_unnamed(opening);
  const int start = opening.start.fd.get();
  if (opening.path.ends_with('/') && !opening.creates()) {
    auto object = resolver.object(start, opening.path, PathResolver::Last::kFollow);
    if (!object) return file.explain_way(act_unseen(opening), start, opening.path, PathResolver::Last::kFollow, -object.error());
    return open_directory(opening, *std::move(object));
  }
  auto found = resolver.parent(start, opening.path);
  if (!found) return file.explain_way(act_unseen(opening), start, opening.path, PathResolver::Last::kStay, -found.error());
  DirEntry entry = *std::move(found);
  for (;;) {
    const int status = open_place(opening, entry);
    if (status == 0 && !entry.is_name()) return file.judge_object(Act::kRead, opening.opened.get());
    if (status != kFollow) return status;
    auto target = resolver.through_link(entry);
    if (!target)
      return file.explain_way(act_unseen(opening), entry.dir, entry.bare(), PathResolver::Last::kFollow, -target.error());
    if (target->file.valid()) return open_linked_file(opening, target->file);
    entry = std::move(target->entry);
  }
}

// A number of the caller's in the range whose close is noticed; -1 when none is free there.
int staged_number(const Opening& opening) {
  const AsCaller ours(opening.file.context.options.uid, Identity::kOwn);
  Caller caller(opening.file.call.tid);
  const std::uint64_t limit = caller.open_files_limit();
  for (std::uint32_t i = 0; i < kernel::kStagedFdCount; ++i) {
    const std::uint32_t number = kernel::kStagedFdFirst + i;
    if (number >= limit) break;
    const auto taken = caller.duplicate(static_cast<int>(number));
    if (!taken) return taken.error() == EBADF ? static_cast<int>(number) : -1;
  }
  return -1;
}

void give(Opening& opening) {
  const int listener = opening.file.context.listener.get();
  const std::uint64_t id = opening.file.call.id;
  const bool close_on_exec = opening.has(O_CLOEXEC);
  const int fixed = opening.staged ? staged_number(opening) : -1;
  int number = -1;
  {
    const OneProcessor here(listener, opening.file.call);
    if (opening.any_moment && !here.held()) {
      number = add_fd_and_answer(listener, id, opening.opened.get(), close_on_exec);
      if (number < 0) answer(listener, id, number);
      return;
    }
    // Ours is closed before the caller goes on: it may close its own and expect to have been the last (ETXTBSY, flock, a FIFO's
    // end).
    number = fixed >= 0 ? add_fd_at(listener, id, opening.opened.get(), close_on_exec, fixed)
                        : add_fd(listener, id, opening.opened.get(), close_on_exec);
    opening.opened.reset();
  }
  if (number < 0) answer(listener, id, number);
  else answer_value(listener, id, number);
}

// As build_open_how() of fs/open.c does for the calls before openat2.
void set_flags(Opening& opening, std::uint64_t flags, std::uint64_t mode) {
  opening.flags = flags & kValid;
  opening.mode = static_cast<mode_t>(mode & 07777U);
}

int read_open_how(Opening& opening, std::uint64_t address, std::uint64_t size) {
  open_how how{};
  if (size < sizeof how) return -EINVAL;
  if (size > 4096) return -E2BIG;
  std::byte bytes[4096] = {};
  const auto read = opening.file.caller.read(address, std::span(bytes).first(size));
  if (!read) return -read.error();
  if (std::any_of(bytes + sizeof how, bytes + size, [](std::byte b) { return b != std::byte{0}; })) return -E2BIG;
  std::memcpy(&how, bytes, sizeof how);
  constexpr std::uint64_t kResolves = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
  constexpr std::uint64_t kCached = 0x20;
  if ((how.flags & ~kValid) != 0 || (how.mode & ~std::uint64_t{07777}) != 0) return -EINVAL;
  if ((how.resolve & ~(kResolves | kScopes | kCached)) != 0) return -EINVAL;
  if ((how.flags & (O_CREAT | kTmpfile)) == 0 && how.mode != 0) return -EINVAL;
  if ((how.flags & O_PATH) != 0 && (how.flags & ~kWithPath) != 0) return -EINVAL;
  if ((how.resolve & kScopes) == kScopes) return -EINVAL;
  // As a kernel before 5.6, callers have another way: a descriptor with O_PATH cannot be given (SECCOMP_IOCTL_NOTIF_ADDFD takes
  // none).
  if ((how.flags & O_PATH) != 0) return -ENOSYS;
  if ((how.resolve & kCached) != 0) return -EAGAIN;  // what it says when something would have to be looked up
  if ((how.mode & (S_ISUID | S_ISGID)) != 0) return -EPERM;
  set_flags(opening, how.flags, how.mode);
  opening.resolve = how.resolve;
  return 0;
}

int read_arguments(Opening& opening) {
  FileCall& file = opening.file;
  const auto& args = file.call.args;
  std::uint64_t dirfd = kFromCwd, address = args[0];
  if (file.call.number == SYS_open) {
    set_flags(opening, static_cast<std::uint32_t>(args[1]), args[2]);
  } else if (file.call.number == SYS_creat) {
    set_flags(opening, O_CREAT | O_WRONLY | O_TRUNC, args[1]);
  } else {
    dirfd = args[0];
    address = args[1];
    if (file.call.number == SYS_openat) set_flags(opening, static_cast<std::uint32_t>(args[2]), args[3]);
    else if (const int status = read_open_how(opening, args[2], args[3]); status != 0) return status;
  }
  // Which combinations of these are invalid has changed between kernels; it is said before the path is looked at.
  if (opening.has(O_DIRECTORY | kTmpfile) && open_at(AT_FDCWD, "", opening.flags, opening.mode, 0) == -EINVAL) return -EINVAL;
  if (const int status = file.read_path(address, opening.path); status != 0) return status;
  if (opening.path.empty()) return -ENOENT;
  return file.open_start(dirfd, opening.scoped() ? "." : opening.path, opening.start);  // a scope begins there whatever the path
}

}  // namespace

void handle_open(Context& context, const Call& call, Receivers::Slot& slot) {
  FileCall file(context, call, slot);
  Opening opening{.file = file, .path = {}, .start = {}, .flags = 0, .mode = 0, .resolve = 0, .opened = {}};
  int status = read_arguments(opening);
  if (status == 0) status = file.begin();
  if (status == 0) status = perform_open(opening);
  file.release_directories();
  file.end();
  opening.start.fd.reset();
  if (status != 0) opening.opened.reset();
  if (status == 0) give(opening);
  else answer(context.listener.get(), call.id, status);
}

}  // namespace belljar::broker
