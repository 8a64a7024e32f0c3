// The life of a staged file: open, closed by its writer, published or refused.
//
// open(): the old content is copied into a private file that loses its name at once, and the caller gets a
// descriptor of that. Where the name did not exist, an empty file is put there if that is inert, for the
// caller expects the name to exist after open(2). The inotify watch is added last, and the broker's own
// writing descriptor is closed before that, so that the first IN_CLOSE_WRITE is the caller's.
//
// publish(): content is read once, from a descriptor that only reads, and only this copy is judged and
// installed; what the writer does meanwhile changes neither. The order is: (1) leave when the content was
// judged last time, since one file is published by its notified close and again by inotify; (2) ask the rules
// anew under the path that the directory has *now*, for it may have moved; (3) judge against what stands at
// the name now; (4) install_fresh(); (5) only where that was refused and the file stands where it was opened,
// put back what an earlier, empty publication had replaced.
//
// Races. `publishing_` makes a second call wait until what the first one drained is visible: drain_closed()
// takes a file off the list before it is published, and without the mutex a caller that comes second would
// find an empty list and read the old content. `mutex_` guards the list alone and is never held while content
// is judged. Each file's own mutex keeps a close that is notified and an inotify event of the same file
// apart.
//
// A close by exit, dup2(2) or close_range(2) is not notified: notifying them would send a signal into calls
// that every program makes. inotify tells of those, after the descriptor and all mappings are gone.
#include "broker/staged_files.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/write_all.h"
#include "broker/control_files.h"
#include "broker/file_call.h"
#include "broker/git_judge.h"

namespace belljar::broker {

struct StagedFiles::StagedFile {
  std::mutex mutex;  // guards what follows: one publication at a time
  UniqueFd file;     // for reading
  DirEntry entry;
  int watch = -1;
  dev_t device = 0;
  ino_t inode = 0;
  Ruling opened;  // what was said at the open, of this path
  std::string opened_path;
  int pid = 0;
  std::string program;
  std::optional<std::string> judged;   // last, taken or refused: no content is judged twice in a row
  std::string shown;                   // what the name shows by us: taken last, or what stood there at the open
  std::optional<std::string> emptied;  // what the name showed until it was emptied for the content that is to come
  bool made = false;                   // there was no such name: an empty file was put there for that content
};

namespace {

OrErrno<std::string> content_of(int fd, GitName kind) {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return errno_is(errno);
  const std::size_t most = max_control_file(kind);
  if (static_cast<std::uint64_t>(now.st_size) > most) return errno_is(EFBIG);
  std::string content(std::min(most, static_cast<std::size_t>(now.st_size) + kMaxControlFile) + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = ::pread(fd, content.data() + size, content.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno != EINTR) return errno_is(errno);
    if (got == 0) break;
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  if (size > most || size == content.size()) return errno_is(EFBIG);
  content.resize(size);
  return content;
}

}  // namespace

OrErrno<int> StagedFiles::inotify() {
  const std::scoped_lock lock(mutex_);
  if (inotify_.valid()) return inotify_.get();
  UniqueFd made(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!made.valid()) return errno_is(EMFILE);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // the watch leaves notes of its own behind that nobody reads until the next file is staged
  event.data.fd = made.get();
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, made.get(), &event) != 0) return errno_is(EMFILE);
  inotify_ = std::move(made);
  return inotify_.get();
}

OrErrno<UniqueFd> StagedFiles::open(FileCall& file, DirEntry& entry, const Ruling& ruling, std::uint64_t flags, mode_t mode,
                                    bool exists) {
  if (count_ >= kMost) return errno_is(EMFILE);
  const auto inotify = this->inotify();
  if (!inotify) return errno_is(inotify.error());
  const std::string name(entry.bare());
  auto staged = std::make_shared<StagedFile>();
  std::string content;
  UniqueFd like;
  if (exists) {
    if (::faccessat(entry.dir, name.c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0) return errno_is(errno);
    like = UniqueFd(::openat(entry.dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat now{};
    if (!like.valid() || ::fstat(like.get(), &now) != 0) return errno_is(errno);
    if (!S_ISREG(now.st_mode)) return errno_is(EACCES);
    mode = now.st_mode & 0777;
    auto old = content_of(like.get(), ruling.git);
    if (!old) return errno_is(old.error());
    staged->shown = *old;
    staged->judged = *old;
    if ((flags & O_TRUNC) == 0) content = *std::move(old);
  }
  file.adopt_umask();
  std::string temporary;
  auto made = make_private(entry.dir, mode, temporary);
  if (!made) return errno_is(made.error());
  ::unlinkat(entry.dir, temporary.c_str(), 0);
  if (exists) (void)::fchmod(made->get(), mode);
  if (!write_all(made->get(), content)) return errno_is(errno);
  staged->file = UniqueFd(::open(own_link(made->get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!staged->file.valid()) return errno_is(errno);
  const int asked = static_cast<int>(flags) & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW);
  UniqueFd given(::open(own_link(made->get()).c_str(), asked | O_CLOEXEC));
  if (!given.valid()) return errno_is(errno);
  struct stat now{};
  if (::fstat(made->get(), &now) != 0) return errno_is(errno);
  made->reset();
  staged->device = now.st_dev;
  staged->inode = now.st_ino;
  // The name stands from now on, as after any open that creates, where an empty file is inert there.
  if (!exists && !objection_to(*file.context.options.rules, entry.path(), ruling.git, "", {})) {
    const FreshFile empty{.content = "", .like = staged->file.get(), .mode = mode, .rename_flags = 1 /* RENAME_NOREPLACE */};
    if (const int status = install_fresh(entry, empty); status != 0) return errno_is(-status);
    staged->judged = "";
    if (auto former = file.context.former.of(entry.path()); !former.empty()) staged->emptied = std::move(former.back());
    else staged->made = true;
  }
  staged->entry.held = UniqueFd(::fcntl(entry.dir, F_DUPFD_CLOEXEC, 0));
  staged->entry.dir = staged->entry.held.get();
  staged->entry.name = name;
  staged->opened = ruling;
  staged->opened_path = entry.path();
  staged->pid = file.caller.pid_inside();
  staged->program = file.caller.program();
  if (staged->entry.dir < 0) return errno_is(errno);
  staged->watch = ::inotify_add_watch(*inotify, own_link(staged->file.get()).c_str(), IN_CLOSE_WRITE);
  if (staged->watch < 0) return errno_is(errno == ENOSPC ? EMFILE : errno);
  const std::scoped_lock lock(mutex_);
  files_.push_back(std::move(staged));
  ++count_;
  return given;
}

// One close of several shows that a file was emptied (`exec 12>FILE`, a child that inherits it) before what is written there is
// known. When that is refused, the emptying is, too, unless somebody has written there since. So is what stood there before the
// command took it away, and an empty file that was put where there was none.
void StagedFiles::put_back(StagedFile& staged, GitName kind) {
  if (!staged.emptied && !staged.made) return;
  const auto now = read_control_file(staged.entry.dir, staged.entry.name, kind);
  if (now && now->empty()) {
    if (staged.emptied && install_fresh(staged.entry, {.content = *staged.emptied, .like = staged.file.get()}) == 0)
      staged.shown = *staged.emptied;
    else if (!staged.emptied) ::unlinkat(staged.entry.dir, staged.entry.name.c_str(), 0);
  }
  staged.emptied.reset();
  staged.made = false;
}

void StagedFiles::publish(Context& context, StagedFile& staged) {
  const std::scoped_lock lock(staged.mutex);
  const FileRules& rules = *context.options.rules;
  const auto content = content_of(staged.file.get(), staged.opened.git);
  if (content && staged.judged == *content) return;
  // Its directory may have moved: what counts is where the content is to be seen now.
  staged.entry.dir_path.clear();
  std::string path = staged.entry.path();
  Ruling ruling = rules.rule_for(Act::kWrite, path, false, DirSurroundings(staged.entry.dir));
  // Once the last process is gone its mounts are taken apart, and the kernel names the directory from the top of a mount that
  // nobody sees any more. What was a control file at its open is judged as one, wherever it seems to be.
  if (ruling.answer == Answer::kAllow) {
    ruling = staged.opened;
    path = staged.opened_path;
  }
  std::optional<std::string> why;
  if (!content) why = "git's control files are read up to a size";
  else if (ruling.answer != Answer::kJudge) why = "its directory moved to where this name is protected";
  else {
    std::optional<std::string> old;
    if (auto now = read_control_file(staged.entry.dir, staged.entry.name, ruling.git)) old = *std::move(now);
    why = objection_in(context, path, ruling.git, *content, old);
  }
  if (!why) {
    const int status = install_fresh(staged.entry, {.content = *content, .like = staged.file.get()});
    if (status != 0) why = "the file could not be put in place";
  }
  // Only where it stood: elsewhere what was there may be hostile.
  if (why && ruling.answer == Answer::kJudge && path == staged.opened_path) put_back(staged, ruling.git);
  else if (why || !content->empty()) staged.emptied.reset(), staged.made = false;
  else if (!staged.shown.empty()) staged.emptied = staged.shown;  // never what was refused: put_back() judges nothing
  if (content) staged.judged = *content;
  if (!why) staged.shown = *content;
  if (why) refuse(context, staged, std::move(path), ruling, *why);
}

void StagedFiles::refuse(Context& context, const StagedFile& staged, std::string path, const Ruling& ruling, std::string_view why) {
  Violation violation;
  violation.pid = staged.pid;
  violation.program = staged.program;
  violation.operation = "write";
  violation.target = std::move(path);
  violation.rule = ruling.rule;
  violation.origin = ruling.origin != nullptr ? *ruling.origin : context.origin_of(violation.rule);
  violation.errnum = 0;  // the writer is gone, or close(2) told it nothing
  violation.allowed = format("{}: {}", why, ruling.allowed);
  context.violations.add(std::move(violation));
}

void StagedFiles::publish_of(Context& context, int fd) {
  struct stat now{};
  if (!any() || ::fstat(fd, &now) != 0) return;
  std::shared_ptr<StagedFile> found;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& staged : files_) {
      if (staged->inode == now.st_ino && staged->device == now.st_dev) found = staged;
    }
  }
  if (found != nullptr) publish(context, *found);
}

std::vector<std::shared_ptr<StagedFiles::StagedFile>> StagedFiles::drain_closed() {
  std::vector<std::shared_ptr<StagedFile>> closed;
  const std::scoped_lock lock(mutex_);
  alignas(inotify_event) char buffer[16 * (sizeof(inotify_event) + NAME_MAX + 1)];
  for (ssize_t size = 0; (size = ::read(inotify_.get(), buffer, sizeof buffer)) > 0;) {
    for (ssize_t at = 0; at < size;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      for (auto staged = files_.begin(); staged != files_.end(); ++staged) {
        if ((*staged)->watch != event->wd || (event->mask & IN_CLOSE_WRITE) == 0) continue;
        closed.push_back(*staged);
        ::inotify_rm_watch(inotify_.get(), event->wd);
        files_.erase(staged);
        break;
      }
    }
  }
  return closed;
}

void StagedFiles::publish_closed(Context& context) {
  if (!any()) return;
  // Who comes second waits until what the first one found is shown.
  const std::scoped_lock one_at_a_time(publishing_);
  const auto closed = drain_closed();
  for (const auto& staged : closed) publish(context, *staged);
  count_ -= closed.size();
}

void StagedFiles::drop_closed(Context& context, std::string_view why) {
  if (!any()) return;
  const std::scoped_lock one_at_a_time(publishing_);
  const auto closed = drain_closed();
  for (const auto& staged : closed) {
    const std::scoped_lock lock(staged->mutex);
    refuse(context, *staged, staged->opened_path, staged->opened, why);
  }
  count_ -= closed.size();
}

bool StagedFiles::is_staged(int fd) const {
  struct stat now{};
  if (!any() || ::fstat(fd, &now) != 0) return false;
  const std::scoped_lock lock(mutex_);
  for (const auto& staged : files_) {
    if (staged->inode == now.st_ino && staged->device == now.st_dev) return true;
  }
  return false;
}

}  // namespace belljar::broker
