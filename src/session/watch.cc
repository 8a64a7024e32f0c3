// A recursive watch on top of inotify(7), which knows single directories only.
//
// Every directory gets its own watch, and a new one must be added when it appears. What is created in it before
// the watch exists causes no event. So the watch is added first and the directory is listed afterwards; the
// entries found count as created. What is in the list and in an event is told once per answer (Batch).
//
// The watch is added by /proc/self/fd/N of a descriptor that was opened without following links and then
// judged. By its name, another directory could be added than the one that was judged.
//
// A directory that is moved keeps its watch and reports under its old name. Its watches are removed at
// IN_MOVED_FROM; where it comes back as IN_MOVED_TO, it is added like a new one. When the queue overflowed
// (IN_Q_OVERFLOW), events of new directories may be lost, so the whole tree is added again. To add a directory
// twice is harmless: the kernel gives the same number for the same inode.
//
// The end of the top directory is seen by its link count, through a descriptor that is kept open. The kernel
// tells of a removed directory only when nobody holds it open, and the broker may.
#include "session/watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/owner.h"
#include "base/patience.h"
#include "policy/paths.h"
#include "session/act_as.h"
#include "session/files.h"

namespace belljar::session {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kEvents =
    IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;
// Nothing of the kernel's says that the sandbox was stopped, so that is asked once in so long.
constexpr auto kLook = std::chrono::milliseconds(100);

std::string join(const std::string& below, std::string_view name) {
  return below == "." ? std::string(name) : format("{}/{}", below, name);
}

// What was gathered for one answer: of each path only what differs from what was said of it last.
class Batch {
 public:
  Batch(const std::string& pattern, std::size_t most) : pattern_(pattern), most_(most) {}

  void add(ChangeKind kind, std::string path, bool is_dir) {
    if (kind != ChangeKind::kLost && !policy::glob_match(pattern_, path)) return;
    const auto [last, is_new] = last_.try_emplace(path, kind);
    if (!is_new && std::exchange(last->second, kind) == kind) return;
    changes_.push_back({kind, std::move(path), is_dir ? FileType::kDirectory : FileType::kFile});
  }
  bool full() const noexcept { return changes_.size() >= most_; }
  bool empty() const noexcept { return changes_.empty(); }
  std::vector<FileChange> take() { return std::move(changes_); }

 private:
  const std::string& pattern_;
  std::size_t most_;
  std::vector<FileChange> changes_;
  std::map<std::string, ChangeKind> last_;
};

class LiveWatch final : public FileWatch {
 public:
  LiveWatch(std::weak_ptr<LiveInstance> instance, UniqueFd inotify, std::string top, WatchOptions options)
      : instance_(std::move(instance)), inotify_(std::move(inotify)), top_(std::move(top)), options_(std::move(options)) {}

  Result<void> begin(const Files& files) {
    held_ = BELLJAR_TRY(files.open_dir(top_));
    return add_tree(files, top_, nullptr);
  }
  Result<std::vector<FileChange>> next(std::chrono::milliseconds patience) override {
    BELLJAR_CHECK(owner_.check());  // a child has the same inotify instance: what it reads, the parent misses
    const auto end = Clock::now() + bounded(patience);
    Batch batch(options_.files, options_.max_changes);
    for (;;) {
      const std::shared_ptr<LiveInstance> instance = instance_.lock();
      if (instance == nullptr || !instance->running())
        return Error(Code::kFailedPrecondition, "cannot watch files").reason("the sandbox does not run");
      if (options_.cancel.cancelled()) return Error(Code::kCanceled, "cannot watch files").reason("it was cancelled");
      BELLJAR_CHECK(take_events(instance->files(), batch));
      if (!batch.empty()) return batch.take();
      if (is_gone()) return Error(Code::kNotFound, "cannot watch files").reason("the directory is gone");
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) return std::vector<FileChange>();
      std::array<pollfd, 2> ends{pollfd{inotify_.get(), POLLIN, 0}, pollfd{options_.cancel.fd(), POLLIN, 0}};
      ::poll(ends.data(), ends.size(), static_cast<int>(std::min(left, kLook).count()));
    }
  }

 private:
  // The directory `top` and all below; `told` of what lies in it, where that is news. A directory that goes meanwhile is no error.
  Result<void> add_tree(const Files& files, const std::string& top, Batch* told) {
    std::vector<std::string> left{top};
    while (!left.empty()) {
      const std::string below = std::move(left.back());
      left.pop_back();
      auto added = files.watch_dir(inotify_.get(), below);
      if (!added && (told == nullptr ? below == top : added.error().code() == Code::kResourceExhausted)) return added.error();
      if (!added) continue;
      dirs_.insert_or_assign(added->watch, below);
      for (const FileInfo& entry : added->entries) {
        const bool is_dir = entry.type == FileType::kDirectory;
        if (is_dir) left.push_back(join(below, entry.path));
        if (told != nullptr) told->add(ChangeKind::kCreated, join(below, entry.path), is_dir);
      }
    }
    return {};
  }

  // The kernel tells of a removed directory once nobody holds it open, and the broker may.
  bool is_gone() const noexcept {
    struct stat now{};
    return moved_ || dirs_.empty() || (::fstat(held_.get(), &now) == 0 && now.st_nlink == 0);
  }

  // What is there now, without waiting.
  Result<void> take_events(const Files& files, Batch& batch) {
    alignas(inotify_event) std::array<char, 16384> buffer;
    while (!batch.full()) {
      const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof event);
        const char* const name = buffer.data() + at + sizeof event;
        BELLJAR_CHECK(take_event(files, event, std::string(name, ::strnlen(name, event.len)), batch));
        at += sizeof event + event.len;
      }
    }
    return {};
  }

  Result<void> take_event(const Files& files, const inotify_event& event, const std::string& name, Batch& batch) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      batch.add(ChangeKind::kLost, "", false);
      return add_tree(files, top_, nullptr);  // directories that nobody told us of
    }
    const auto found = dirs_.find(event.wd);
    if (found == dirs_.end()) return {};  // let go of meanwhile
    const std::string path = join(found->second, name);
    if ((event.mask & IN_MOVE_SELF) != 0 && found->second == top_) moved_ = true;
    if ((event.mask & IN_IGNORED) != 0) dirs_.erase(found);
    if (name.empty()) return {};  // of the directory itself: its parent tells
    const bool is_dir = (event.mask & IN_ISDIR) != 0;
    if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
      batch.add(ChangeKind::kCreated, path, is_dir);
      return is_dir ? add_tree(files, path, &batch) : Result<void>();
    }
    const bool gone = (event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
    if (is_dir && (event.mask & IN_MOVED_FROM) != 0) let_go(path);
    batch.add(gone ? ChangeKind::kRemoved : ChangeKind::kChanged, path, is_dir);
    return {};
  }

  // A directory that was moved keeps its watches, under names that are wrong now or none of ours.
  void let_go(const std::string& top) {
    std::erase_if(dirs_, [&](const auto& entry) {
      const bool within = policy::is_within(entry.second, top);
      if (within) ::inotify_rm_watch(inotify_.get(), entry.first);
      return within;
    });
  }

  OwningProcess owner_;
  std::weak_ptr<LiveInstance> instance_;
  UniqueFd inotify_;
  std::string top_;
  UniqueFd held_;  // the directory `top_`
  bool moved_ = false;
  WatchOptions options_;
  std::map<int, std::string> dirs_;  // by watch; relative to the workspace, "." for itself
};

}  // namespace

Result<UniqueFd> Files::open_dir(const std::string& path) const {
  const ActAs identity(options_.uid, options_.gid);
  const std::string asked = BELLJAR_TRY(relative(path));
  return open_beneath(path, asked, O_PATH | O_DIRECTORY);
}

Result<std::string> Files::below(const std::string& path) const {
  const UniqueFd fd = BELLJAR_TRY(open_dir(path));
  const std::string canonical = canonical_of(fd.get());
  // Changes are told by paths relative to the workspace. Else it was moved away.
  if (!policy::is_within(canonical, options_.workspace))
    return file_error(is_inside(canonical) ? EXDEV : ENOENT, "watch", path, "readlink");
  std::string rest = canonical.substr(options_.workspace == "/" ? 0 : options_.workspace.size());
  rest.erase(0, rest.find_first_not_of('/'));
  return rest.empty() ? "." : rest;
}

Result<Files::WatchedDir> Files::watch_dir(int inotify, const std::string& path) const {
  const ActAs identity(options_.uid, options_.gid);
  const std::string below = BELLJAR_TRY(relative(path));
  const Judge::Shared held = judge_.share();
  UniqueFd fd(open_at(workspace_.get(), below, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0,
                      RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS));
  if (!fd.valid()) return file_error(errno, "watch", path, "openat2");
  BELLJAR_CHECK(judge_.may_read(path, canonical_of(fd.get()), true));
  // By the descriptor: what the name leads to by now may be another directory.
  WatchedDir result{.watch = ::inotify_add_watch(inotify, format("/proc/self/fd/{}", fd.get()).c_str(), kEvents), .entries = {}};
  if (result.watch < 0 && errno == ENOSPC)
    return file_error(ENOSPC, "watch", path, "inotify_add_watch").next("raise fs.inotify.max_user_watches, or watch less");
  if (result.watch < 0) return file_error(errno, "watch", path, "inotify_add_watch");
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (stream == nullptr) return file_error(errno, "watch", path, "fdopendir");
  const int directory = fd.release();
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (auto info = describe(directory, name)) result.entries.push_back(*std::move(info));
  }
  return result;
}

Result<std::unique_ptr<FileWatch>> open_watch(const std::shared_ptr<LiveInstance>& instance, const std::string& path,
                                              const WatchOptions& options) {
  WatchOptions wanted = options;
  wanted.files = BELLJAR_TRY(instance->files().glob_below(options.files));
  if (options.max_changes == 0)
    return Error(Code::kInvalidArgument, "cannot watch files").reason("a batch of no changes would never end");
  UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify.valid())
    return Error(Code::kResourceExhausted, "cannot watch files")
        .sys(errno, "inotify_init1")
        .next("end another watch, or raise fs.inotify.max_user_instances");
  auto watch = std::make_unique<LiveWatch>(instance, std::move(inotify), BELLJAR_TRY(instance->files().below(path)), wanted);
  BELLJAR_CHECK(watch->begin(instance->files()));
  return std::unique_ptr<FileWatch>(std::move(watch));
}

}  // namespace belljar::session
