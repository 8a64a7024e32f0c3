// The keeper process: makes stubs for the child, and removes them after the sandbox.
//
// Making one (hold): open or create the name with the mark as its mode, take a shared flock(2), then look
// whether the name still leads to the inode that is locked. Whoever removes a stub holds the lock for itself
// while it does, so a lock that was got and a name that still matches mean that nobody will.
//
// Removing one (remove_stub): the exclusive lock says that no other sandbox mounts on it. A file is renamed
// aside first, so that what the user puts at the name in this moment is not removed in its place; then nobody
// can open it by the name any more, and a lease (fcntl(2), F_SETLEASE) is refused while somebody has it open
// for writing. A directory is removed by rmdir, which cannot take content along; one whose attributes were
// changed meanwhile, told by inotify, is left. What is not removed only loses the mark.
//
// The end of a sandbox with a pid namespace is the end of its pid 1 (a pidfd). Without one it is the end of
// its mounts: the base's file system is deleted with the last of them, and IN_DELETE_SELF tells.
//
// It runs in the child's user namespace, whose rights and ids the stubs are to have, and is not dumpable, so
// that nothing inside reaches the host through it by ptrace(2).
#include "launch/recipe_stubs.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/unique_fd.h"
#include "kernel/pass_fds.h"
#include "launch/recipe_child.h"

namespace belljar::launch {
namespace {

// Each may be opened for reading by all, to be locked, and written by its owner, who may want the name on the host meanwhile.
constexpr mode_t kFileMark = 01644, kDirectoryMark = 01745;
constexpr mode_t kPlainFile = 0644, kPlainDirectory = 0755;

struct Request {
  bool directory = false;
  char name[NAME_MAX + 1];
};

struct Reply {
  std::int32_t status = 0;
  std::uint64_t device = 0, inode = 0;
};

constexpr int kMostFds = 2;  // the directory, and with the first request the watch

// False: nothing more comes.
bool receive_request(int socket, Request& request, int (&fds)[kMostFds]) noexcept {
  kernel::ReceivedFds<kMostFds> got;
  do got = kernel::receive_fds<kMostFds>(socket, &request, sizeof request);
  while (got.size < 0 && errno == EINTR);
  for (int i = 0; i < kMostFds; ++i) fds[i] = static_cast<std::size_t>(i) < got.count ? got.fds[i] : -1;
  return got.size == sizeof request && got.count > 0;
}

// --- the keeper

struct Stub {
  int parent, fd;
  bool directory;
  int changes;  // a directory's number in `changes`
  timespec changed;
  dev_t device;
  ino_t inode;
  char name[NAME_MAX + 1];
};

constexpr std::size_t kMostStubs = 4096;
std::array<Stub, kMostStubs> stubs;  // all zero at first: pages that nobody touches cost nothing
std::size_t stub_count = 0;
int changes = -1;  // inotify(7): of what happens to the directories' attributes

constexpr int kPauseMs = 2;
constexpr int kMostPauses = 1000;  // a lock that is held longer than two seconds is not a keeper's that is at its end

bool same(const struct stat& facts, const Stub& stub) noexcept { return facts.st_dev == stub.device && facts.st_ino == stub.inode; }

// The same directory as the last one's needs no descriptor of its own.
int own_parent(int parent) noexcept {
  struct stat wanted{}, last{};
  if (stub_count == 0 || ::fstat(parent, &wanted) < 0 || ::fstat(stubs[stub_count - 1].parent, &last) < 0) return parent;
  if (wanted.st_dev != last.st_dev || wanted.st_ino != last.st_ino) return parent;
  ::close(parent);
  return stubs[stub_count - 1].parent;
}

// A descriptor of it, made or found; -errno.
int open_or_make(int parent, const char* name, bool directory) noexcept {
  constexpr int kOpen = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  constexpr int kTries = 16;
  for (int i = 0; i < kTries; ++i) {
    int fd = ::openat(parent, name, kOpen);
    if (fd >= 0) return fd;
    if (errno != ENOENT) return -errno;
    if (directory) {
      if (::mkdirat(parent, name, kDirectoryMark) < 0 && errno != EEXIST) return -errno;
    } else {
      fd = ::openat(parent, name, kOpen | O_CREAT | O_EXCL, kFileMark);
      if (fd >= 0) return fd;
      if (errno != EEXIST) return -errno;
    }
  }
  return -EBUSY;
}

int hold(Stub& stub) noexcept {
  int pauses = 0;
  for (;;) {
    const int fd = open_or_make(stub.parent, stub.name, stub.directory);
    if (fd < 0) return fd;
    struct stat facts{}, named{};
    if (::fstat(fd, &facts) < 0 || !is_stub(facts)) {
      ::close(fd);
      return kNotHeld;
    }
    if (::flock(fd, LOCK_SH | LOCK_NB) < 0) {
      const bool busy = errno == EWOULDBLOCK;
      ::close(fd);
      if (!busy) return kNotHeld;
      if (++pauses > kMostPauses) return -EBUSY;
      ::poll(nullptr, 0, kPauseMs);
      continue;
    }
    stub.device = facts.st_dev;
    stub.inode = facts.st_ino;
    stub.changed = facts.st_mtim;
    stub.fd = fd;
    // Whoever removed it had it for itself until now.
    if (::fstatat(stub.parent, stub.name, &named, AT_SYMLINK_NOFOLLOW) == 0 && same(named, stub)) return 0;
    ::close(fd);
  }
}

// A directory above a mount point can be reached by the command, which could take the mark off, wait until another sandbox has a
// mount on what is then no stub, and put it on again. So one whose attributes were changed, however it looks at the end, is left
// alone.
void watch_changes(Stub& stub) noexcept {
  if (!stub.directory) return;
  if (changes < 0) changes = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  stub.changes = ::inotify_add_watch(changes, DescriptorPath(stub.fd).c_str(), IN_ATTRIB);
}

void read_changes() noexcept {
  alignas(inotify_event) char buffer[4096];
  ssize_t got = 0;
  while (changes >= 0 && (got = ::read(changes, buffer, sizeof buffer)) > 0) {
    for (ssize_t at = 0; at < got;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      for (std::size_t i = 0; i < stub_count; ++i) {
        if ((event.mask & IN_Q_OVERFLOW) != 0 || stubs[i].changes == event.wd) stubs[i].changes = -1;
      }
    }
  }
}

const Stub* find_held(int parent, const char* name) noexcept {
  struct stat facts{};
  if (::fstatat(parent, name, &facts, AT_SYMLINK_NOFOLLOW) < 0) return nullptr;
  for (std::size_t i = 0; i < stub_count; ++i) {
    if (same(facts, stubs[i])) return &stubs[i];
  }
  return nullptr;
}

Reply answer(const Request& request, int parent) noexcept {
  if (const Stub* const held = find_held(parent, request.name); held != nullptr) {
    ::close(parent);
    return {0, held->device, held->inode};
  }
  if (stub_count == kMostStubs) {
    ::close(parent);
    return {.status = -ENOSPC};
  }
  Stub& stub = stubs[stub_count];
  stub.parent = own_parent(parent);
  stub.directory = request.directory;
  std::memcpy(stub.name, request.name, sizeof stub.name);
  const int status = hold(stub);
  if (status == 0) {
    watch_changes(stub);
    ++stub_count;
    return {0, stub.device, stub.inode};
  }
  if (stub.parent == parent) ::close(parent);
  return {.status = status};
}

bool untouched(const Stub& stub) noexcept {
  struct stat facts{};
  return ::fstat(stub.fd, &facts) == 0 && is_stub(facts) && facts.st_mtim.tv_sec == stub.changed.tv_sec &&
         facts.st_mtim.tv_nsec == stub.changed.tv_nsec;
}

// Under a name of its own first: a file that the user puts in its place in this moment stays, and nobody can open it any more, so a
// writer is seen by the lease that we do not get, fcntl(2).
bool remove_file(const Stub& stub, std::size_t number) noexcept {
  if (!untouched(stub)) return false;
  char aside[64];
  ::snprintf(aside, sizeof aside, ".belljar-stub-%d-%zu", ::getpid(), number);
  if (::renameat2(stub.parent, stub.name, stub.parent, aside, RENAME_NOREPLACE) < 0) return false;
  struct stat facts{};
  const bool ours = ::fstatat(stub.parent, aside, &facts, AT_SYMLINK_NOFOLLOW) == 0 && same(facts, stub);
  const bool unused = ours && (::fcntl(stub.fd, F_SETLEASE, F_RDLCK) == 0 || errno != EAGAIN) && untouched(stub);
  if (unused) return ::unlinkat(stub.parent, aside, 0) == 0;
  (void)::renameat2(stub.parent, aside, stub.parent, stub.name, RENAME_NOREPLACE);
  return false;
}

void remove_stub(const Stub& stub, std::size_t number) noexcept {
  if (::flock(stub.fd, LOCK_EX | LOCK_NB) < 0) return;  // another sandbox has a mount on it, and its keeper comes after us
  struct stat facts{};
  if (::fstatat(stub.parent, stub.name, &facts, AT_SYMLINK_NOFOLLOW) < 0 || !same(facts, stub)) return;
  const bool removed = stub.directory ? stub.changes >= 0 && is_stub(facts) && ::unlinkat(stub.parent, stub.name, AT_REMOVEDIR) == 0
                                      : remove_file(stub, number);
  if (!removed) (void)::fchmod(stub.fd, stub.directory ? kPlainDirectory : kPlainFile);
}

// In the caller's user namespace we would have other rights than the child, and the files another owner, user_namespaces(7).
bool enter_users(const StubSandbox& sandbox) noexcept {
  if (sandbox.users >= 0 && ::setns(sandbox.users, CLONE_NEWUSER) < 0) return false;
  if (sandbox.switch_ids &&
      (::setresgid(sandbox.gid, sandbox.gid, sandbox.gid) < 0 || ::setresuid(sandbox.uid, sandbox.uid, sandbox.uid) < 0))
    return false;
  // Nothing inside shall reach the host through us: that would need power over the namespace we were started in, ptrace(2).
  return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

[[noreturn]] void keep(int requests, int word, const StubSandbox& sandbox) noexcept {
  constexpr int kSocket = 0, kWord = 1, kEnd = 2;
  ::setsid();
  ::prctl(PR_SET_NAME, "belljar-stubs", 0, 0, 0);
  ::umask(0);
  if (::chdir("/") < 0 || !enter_users(sandbox)) ::_exit(1);
  // Each may be one of the low numbers itself.
  const bool has_pid_1 = sandbox.pid_1 >= 0;
  const int socket = ::fcntl(requests, F_DUPFD_CLOEXEC, 3), own_word = ::fcntl(word, F_DUPFD_CLOEXEC, 3);
  const int pid_1 = has_pid_1 ? ::fcntl(sandbox.pid_1, F_DUPFD_CLOEXEC, 3) : -1;
  if (::dup2(socket, kSocket) < 0 || ::dup2(own_word, kWord) < 0 || (has_pid_1 && ::dup2(pid_1, kEnd) < 0)) ::_exit(1);
  ::syscall(SYS_close_range, has_pid_1 ? 3U : 2U, ~0U, 0U);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  pollfd awaited[] = {{kSocket, POLLIN, 0}, {has_pid_1 ? kEnd : -1, POLLIN, 0}, {kWord, POLLIN, 0}};
  bool told = false;
  while (awaited[0].fd >= 0 || (awaited[1].revents == 0 && !told)) {
    if (::poll(awaited, 3, -1) < 0) continue;
    if (awaited[2].revents != 0) {
      char byte = 0;
      told = ::read(kWord, &byte, 1) == 1;  // its end is only the front's: what it started may live on
      awaited[2].fd = -1;
    }
    if (awaited[0].fd < 0 || awaited[0].revents == 0) continue;
    Request request;
    int fds[kMostFds];
    if (!receive_request(kSocket, request, fds)) {
      awaited[0].fd = -1;
      // Nothing to wait for: the child went before it could tell us of what it mounts on.
      if (awaited[1].fd < 0) break;
      continue;
    }
    if (fds[1] >= 0) awaited[1].fd = fds[1];
    const Reply reply = answer(request, fds[0]);
    (void)::send(kSocket, &reply, sizeof reply, MSG_NOSIGNAL);
  }
  // From the last: what is in a directory goes before it. The removal of one is no change of the next.
  read_changes();
  for (std::size_t i = stub_count; i-- > 0;) remove_stub(stubs[i], i);
  ::close(kWord);
  ::_exit(0);
}

// --- the child

// Of the sandbox's mounts: the base's file system ends when the last of them has gone, wherever that is.
int watch_base(const RecipeContext& context) noexcept {
  const int watch = ::inotify_init1(IN_CLOEXEC);
  if (watch < 0) return -errno;
  if (::inotify_add_watch(watch, DescriptorPath(context.base).c_str(), IN_DELETE_SELF) >= 0) return watch;
  const int error = errno;
  ::close(watch);
  return -error;
}

}  // namespace

bool is_stub(const struct stat& facts) noexcept {
  // A directory takes the set-group-id bit from the one it is made in.
  if (S_ISDIR(facts.st_mode)) return (facts.st_mode & 05777) == kDirectoryMark;
  return S_ISREG(facts.st_mode) && (facts.st_mode & 07777) == kFileMark && facts.st_size == 0 && facts.st_nlink == 1;
}

bool holds_stub(const RecipeContext& context, const struct stat& facts) noexcept {
  return facts.st_dev == context.held_device && facts.st_ino == context.held_inode;
}

int hold_stub(RecipeContext& context, int parent, const char* name, bool directory) noexcept {
  if (context.stubs < 0) return kNotHeld;
  Request request;
  request.directory = directory;
  const std::size_t size = std::strlen(name);
  if (size >= sizeof request.name) return kNotHeld;
  std::memcpy(request.name, name, size + 1);
  int watch = -1;
  if (context.ends_with_mounts && !context.stubs_watched) {
    watch = watch_base(context);
    if (watch < 0) return watch;
    context.stubs_watched = true;
  }
  const int fds[kMostFds] = {parent, watch};
  Reply reply;
  ssize_t got = kernel::send_fds<kMostFds>(context.stubs, &request, sizeof request, fds, watch >= 0 ? 2 : 1);
  if (got >= 0) {
    do got = ::recv(context.stubs, &reply, sizeof reply, 0);
    while (got < 0 && errno == EINTR);
  }
  if (watch >= 0) ::close(watch);
  if (got != sizeof reply) return -EPIPE;
  context.held_device = reply.device;
  context.held_inode = reply.inode;
  return reply.status;
}

StubKeeper start_stub_keeper(int requests, const StubSandbox& sandbox) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return {};
  const UniqueFd theirs(ends[1]);
  StubKeeper keeper{.process = {}, .word = UniqueFd(ends[0])};
  clone_args args{};
  int pidfd = -1;
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = 0;  // whoever reaps our children in our place did not ask for this one
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &old);
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) keep(requests, theirs.get(), sandbox);
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  if (pid > 0) keeper.process = UniqueFd(pidfd);
  return keeper;
}

}  // namespace belljar::launch
