// A readers-writer lock over shared memory and byte-range locks: see tree_lock.h for what it promises.
//
// Each TreeFile is a page that all members map, and a few bytes that are locked with fcntl(2). The fast path
// of a reader touches only the page: count yourself, then look whether a writer is present. A writer does the
// opposite: announce itself, then look at the counters. Whichever comes second sees the other; both are
// sequentially consistent, which is what makes the pair safe (Dekker's scheme). A reader that finds a writer
// takes its count back and waits on the writer's byte.
//
// The bytes answer the one question that memory cannot: is that member alive? A counter that is not zero
// counts only while its member's byte is locked, and the writer's flag only while byte 0 is. The kernel drops
// open file description locks (F_OFD_SETLK) with the last descriptor, however the process ended. So a killed
// reader holds nobody up, and the next reader that gets byte 0 clears a flag that a killed writer left.
// Ordinary POSIX locks would not do: they belong to the process and vanish when any of its descriptors of the
// file is closed (fcntl(2)).
//
// A writer polls the counters (50 us) instead of sleeping on them, so that a reader's leave stays one atomic
// subtraction.
//
// Files are locked in the order of their names by everybody, so two writers cannot wait for each other.
// Opening, and closing that removes, serialise on flock(2) of the folder: only there do files come and go, and a
// member byte is chosen and a stale file removed without anybody joining it in between.
//
// In a state directory that is not temporary (made_directories.h) the folder and its files stay: to make one, give it
// its blocks and free them again with every short run was most of what the lock costs (with the mount option discard
// the device is waited for). Who opens uses them again, and removes those that nobody holds once there are more than
// kKept. Whether it stays is a bit of the folder's mode (kStays), so that all members agree.
#include "kernel/tree_lock.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/made_directories.h"
#include "base/owner.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::kernel {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMaxMembers = kPage / sizeof(std::uint32_t) - 1;
// A file holds the shared page, then the directory's path. Bytes that are locked: 0 by the writer, 1 + N by member N as long as it
// lives.
constexpr off_t kWriterByte = 0;
constexpr off_t kPathAt = kPage;
constexpr off_t kFileSize = kPathAt + PATH_MAX;
constexpr std::size_t kKept = 16;   // files in the folder before those of nobody are removed
constexpr mode_t kStays = S_ISVTX;  // in the folder's mode

struct SharedPage {
  std::uint32_t writer_present;
  std::array<std::uint32_t, kMaxMembers> readers;  // readers of each party
};
static_assert(sizeof(SharedPage) == kPage && std::is_trivial_v<SharedPage>);

using Shared = std::atomic_ref<std::uint32_t>;
static_assert(Shared::is_always_lock_free);

struct flock range(short type, off_t from, off_t length) {
  struct flock wanted{};
  wanted.l_type = type;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = from;
  wanted.l_len = length;
  return wanted;
}

void pause_shortly() {
  constexpr timespec kMoment{0, 50'000};
  ::nanosleep(&kMoment, nullptr);
}

bool try_range(int fd, short type, off_t at) {
  struct flock wanted = range(type, at, 1);
  return ::fcntl(fd, F_OFD_SETLK, &wanted) == 0;
}

bool gives_up(const TreeLock::Stop& stop) { return stop && stop(); }

// Waits. Nobody may go on without it: where the kernel has no memory for a lock it is tried again.
bool await_range(int fd, short type, off_t at, const TreeLock::Stop& stop) {
  if (try_range(fd, type, at)) return true;
  if (gives_up(stop)) return false;
  struct flock wanted = range(type, at, 1);
  while (::fcntl(fd, F_OFD_SETLKW, &wanted) != 0) {
    const int error = errno;
    if (gives_up(stop)) return false;
    if (error != EINTR) pause_shortly();
  }
  return true;
}

void release_range(int fd, off_t at) {
  struct flock wanted = range(F_UNLCK, at, 1);
  ::fcntl(fd, F_OFD_SETLK, &wanted);
}

// By another open file description.
bool is_held(int fd, off_t from, off_t length) {
  struct flock wanted = range(F_WRLCK, from, length);
  return ::fcntl(fd, F_OFD_GETLK, &wanted) != 0 || wanted.l_type != F_UNLCK;
}

Error failed(int errnum, const char* call, const std::string& path) {
  return Error(errnum == EMFILE || errnum == ENFILE || errnum == ENOSPC ? Code::kResourceExhausted : Code::kUnavailable,
               format("cannot lock {}", quoted(path)))
      .sys(errnum, call);
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || folder == "/" || path[folder.size()] == '/');
}

bool overlap(std::string_view one, std::string_view other) { return is_below(one, other) || is_below(other, one); }

bool lock_folder(int dir) {
  while (::flock(dir, LOCK_EX) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::string path_in(int fd) {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::pread(fd, path.data(), path.size(), kPathAt);
  path.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  path.resize(std::min(path.size(), path.find('\0')));
  return path;
}

struct Tree {
  std::string path;
  std::string name;  // of its file
};

// Those that are there, without what lies below another.
std::vector<Tree> outermost(const std::vector<std::string>& paths) {
  std::vector<std::string> sorted = paths;
  std::ranges::sort(sorted);
  std::vector<Tree> trees;
  for (const std::string& path : sorted) {
    struct stat status{};
    const bool inner = std::ranges::any_of(trees, [&](const Tree& tree) { return is_below(path, tree.path); });
    if (inner || path.size() >= PATH_MAX || ::stat(path.c_str(), &status) != 0) continue;
    trees.push_back({path, format("{:x}-{}", status.st_dev, status.st_ino)});
  }
  return trees;
}

struct Closer {
  void operator()(DIR* list) const noexcept { ::closedir(list); }
};

}  // namespace

struct TreeLock::TreeFile {
  std::string name;
  UniqueFd file;
  SharedPage* page = nullptr;
  std::size_t member = 0;
  std::mutex queue;  // of readers that wait for a writer: they share one descriptor

  TreeFile() = default;
  TreeFile(const TreeFile&) = delete;
  TreeFile& operator=(const TreeFile&) = delete;
  ~TreeFile() {
    if (page != nullptr) ::munmap(page, kPage);
  }

  Shared writer_present() const { return Shared(page->writer_present); }
  Shared readers(std::size_t which) const { return Shared(page->readers[which]); }

  // With the folder locked. `file` is open.
  Result<void> join(const std::string& path) {
    // All of it has its place on the disk: a page without one could not be written to later.
    struct stat status{};
    const bool whole = ::fstat(file.get(), &status) == 0 && status.st_size >= kFileSize && status.st_blocks * 512 >= kFileSize;
    const int error = whole ? 0 : ::posix_fallocate(file.get(), 0, kFileSize);
    if (error != 0) return failed(error, "posix_fallocate", path);
    void* const mapped = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (mapped == MAP_FAILED) return failed(errno, "mmap", path);
    page = static_cast<SharedPage*>(mapped);
    ::madvise(mapped, kPage, MADV_DONTFORK);
    for (member = 0; member < kMaxMembers; ++member) {
      if (!try_range(file.get(), F_WRLCK, static_cast<off_t>(1 + member))) {
        if (errno != EAGAIN && errno != EACCES) return failed(errno, "fcntl", path);
        continue;
      }
      readers(member).store(0);  // somebody's who was killed
      return {};
    }
    return failed(EMFILE, "fcntl", path);
  }

  bool lock_shared(const Stop& stop) {
    readers(member).fetch_add(1);
    if (writer_present().load() == 0) return true;
    readers(member).fetch_sub(1);
    std::unique_lock turn(queue, std::try_to_lock);
    if (!turn) {
      if (gives_up(stop)) return false;  // another reader of ours waits already
      turn.lock();
    }
    if (!await_range(file.get(), F_RDLCK, kWriterByte, stop)) return false;
    writer_present().store(0);  // if it was, its closer is gone
    readers(member).fetch_add(1);
    release_range(file.get(), kWriterByte);
    return true;
  }
  void unlock_shared() { readers(member).fetch_sub(1); }

  bool lock_exclusive(const Stop& stop) {
    if (!await_range(file.get(), F_WRLCK, kWriterByte, stop)) return false;
    writer_present().store(1);
    for (std::size_t other = 0; other < kMaxMembers; ++other) {
      while (readers(other).load() != 0 && is_held(file.get(), static_cast<off_t>(1 + other), 1)) {
        if (gives_up(stop)) return unlock_exclusive(), false;
        pause_shortly();
      }
    }
    return true;
  }
  void unlock_exclusive() {
    writer_present().store(0);
    release_range(file.get(), kWriterByte);
  }
};

struct TreeLock::LockFolder {
  std::string path;
  bool stays = false;     // with its files: kStays
  MadeDirectories above;  // what was missing of the way to it
  OwningProcess owner;    // a forked child's copy removes nothing
};

namespace {

// The folder, made where it is missing, and locked. Whoever holds the lock of an empty one may remove it, and its maker what is
// above it: then it is made again.
Result<UniqueFd> enter_folder(const std::string& folder, MadeDirectories& above, bool& stays) {
  constexpr int kTries = 1000;
  const std::string parent = folder.substr(0, folder.rfind('/'));
  Error last(Code::kUnavailable, format("cannot lock {}", quoted(folder)));
  for (int tries = 0; tries < kTries; ++tries) {
    UniqueFd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir.valid()) {
      last = failed(errno, "open", folder);
      if (errno != ENOENT) return last;
      if (tries > 1) pause_shortly();
      if (const auto failure = above.make(parent); failure.errnum != 0) {
        last = failed(failure.errnum, "mkdir", failure.path);
        if (failure.errnum != ENOENT) return last;
        continue;
      }
      struct stat state{};
      const bool temporary = ::stat(parent.c_str(), &state) != 0 || (state.st_mode & kTemporary) != 0;
      if (::mkdir(folder.c_str(), temporary ? 0700 : 0700 | kStays) != 0 && errno != EEXIST) {
        last = failed(errno, "mkdir", folder);
        if (errno != ENOENT) return last;
      }
      continue;
    }
    if (!lock_folder(dir.get())) return failed(errno, "flock", folder);
    struct stat now{};
    stays = ::fstat(dir.get(), &now) == 0 && (now.st_mode & kStays) != 0;
    if (now.st_nlink > 0) return dir;
  }
  return last;
}

}  // namespace

TreeLock::TreeLock(std::unique_ptr<LockFolder> folder, std::vector<std::unique_ptr<TreeFile>> files) noexcept
    : folder_(std::move(folder)), files_(std::move(files)) {}
TreeLock::TreeLock(TreeLock&&) noexcept = default;

TreeLock::~TreeLock() {
  if (folder_ == nullptr || files_.empty() || folder_->stays || !folder_->owner.is_this()) return;
  const UniqueFd dir(::open(folder_->path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid() || !lock_folder(dir.get())) return;
  for (const auto& tree_file : files_) {
    release_range(tree_file->file.get(), static_cast<off_t>(1 + tree_file->member));
    if (!is_held(tree_file->file.get(), 0, 0)) ::unlinkat(dir.get(), tree_file->name.c_str(), 0);
  }
  ::rmdir(folder_->path.c_str());  // while it is locked; not when others have files there
}

Result<TreeLock> TreeLock::open(const std::string& folder, const std::vector<std::string>& paths) {
  const std::vector<Tree> trees = outermost(paths);
  std::vector<std::unique_ptr<TreeFile>> files;
  auto home = std::make_unique<LockFolder>();
  home->path = folder;
  if (trees.empty()) return TreeLock(std::move(home), std::move(files));
  const UniqueFd dir = BELLJAR_TRY(enter_folder(folder, home->above, home->stays));
  const auto join = [&](const std::string& name, UniqueFd file, const std::string& path) -> Result<void> {
    auto tree_file = std::make_unique<TreeFile>();
    tree_file->name = name;
    tree_file->file = std::move(file);
    BELLJAR_CHECK(tree_file->join(path));
    files.push_back(std::move(tree_file));
    return {};
  };
  for (const Tree& tree : trees) {
    // Two names of one (a hard link, a bind mount): a second file would wait for our own first one, for ever.
    if (std::ranges::any_of(files, [&](const auto& tree_file) { return tree_file->name == tree.name; })) continue;
    UniqueFd file(::openat(dir.get(), tree.name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return failed(errno, "openat", tree.path);
    // Without one that is alive the name may be a former directory's of the same number.
    const bool lone = !is_held(file.get(), 0, 0);
    const std::size_t size = tree.path.size() + 1;  // and the NUL
    if (lone && ::pwrite(file.get(), tree.path.c_str(), size, kPathAt) != static_cast<ssize_t>(size))
      return failed(errno, "pwrite", tree.path);
    BELLJAR_CHECK(join(tree.name, std::move(file), tree.path));
  }
  const std::unique_ptr<DIR, Closer> list(::fdopendir(::openat(dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (list == nullptr) return failed(errno, "fdopendir", folder);
  std::size_t kept = 0;
  while (const dirent* const entry = ::readdir(list.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with('.') || std::ranges::any_of(files, [&](const auto& tree_file) { return tree_file->name == name; }))
      continue;
    UniqueFd file(::openat(dir.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.valid()) continue;
    if (!is_held(file.get(), 0, 0)) {  // nobody's any more; who would open it waits for us
      if (!home->stays || ++kept > kKept) ::unlinkat(dir.get(), name.c_str(), 0);
      continue;
    }
    const std::string path = path_in(file.get());
    if (std::ranges::any_of(trees, [&](const Tree& tree) { return overlap(tree.path, path); }))
      BELLJAR_CHECK(join(name, std::move(file), path));
  }
  std::ranges::sort(files, {}, [](const auto& tree_file) -> const std::string& { return tree_file->name; });
  return TreeLock(std::move(home), std::move(files));
}

bool TreeLock::lock(const Stop& stop) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i]->lock_exclusive(stop)) continue;
    while (i > 0) files_[--i]->unlock_exclusive();
    return false;
  }
  return true;
}

void TreeLock::unlock() {
  for (const auto& tree_file : files_) tree_file->unlock_exclusive();
}

bool TreeLock::lock_shared(const Stop& stop) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i]->lock_shared(stop)) continue;
    while (i > 0) files_[--i]->unlock_shared();
    return false;
  }
  return true;
}

void TreeLock::unlock_shared() {
  for (const auto& tree_file : files_) tree_file->unlock_shared();
}

}  // namespace belljar::kernel
