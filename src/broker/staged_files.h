// Files that a command writes at a control name of git: what it writes is judged before the name shows it.
//
// Git writes some control files where they stand (a worktree's `.git`, gitdir, commondir). The caller of such an open gets a
// descriptor of a private file without a name, holding the old content. When it is closed, its content is judged and a fresh copy
// is renamed into place, or dropped with a violation. The host never sees content that was not judged.
//
// Closing is noticed in two ways. The descriptor gets a number in the range whose close(2) the filter notifies, so that a program
// that closes and reads finds what it wrote. And an inotify watch tells when the last descriptor and mapping is gone, however that
// came about (exit, dup2, close_range): looked at before every later call of the sandbox and whenever the event loop is told. Safe
// from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "broker/file_rules.h"
#include "broker/or_errno.h"

namespace belljar::broker {

struct Context;
class FileCall;
struct DirEntry;

class StagedFiles {
 public:
  static constexpr std::size_t kMost = 64;

  // Sets the epoll that reports (edge-triggered) when a staged file was closed. Once, before the first open.
  void set_epoll(int epoll) noexcept { epoll_ = epoll; }

  // Stages the file at `entry` for a caller that opens it with `flags` (openat(2)): a descriptor for it. -errno else.
  OrErrno<UniqueFd> open(FileCall& file, DirEntry& entry, const Ruling& ruling, std::uint64_t flags, mode_t mode, bool exists);
  // The caller is about to close `fd`, a duplicate of one of its descriptors: judges and publishes its present content.
  void publish_of(Context& context, int fd);
  // Publishes all files that were closed for good since the last time. Cheap when there are none. Both with the permissions of the
  // sandbox's user and the directories shared.
  void publish_closed(Context& context);
  // Refuses all files that were closed, with a violation each; what stood at their names stays. Needs neither.
  void drop_closed(Context& context, std::string_view why);
  bool any() const noexcept { return count_ > 0; }
  // The inode of a staged file may not be opened anew: that description's close would go unnoticed.
  bool is_staged(int fd) const;

 private:
  struct StagedFile;
  static void publish(Context& context, StagedFile& staged);
  static void put_back(StagedFile& staged, GitName kind);
  static void refuse(Context& context, const StagedFile& staged, std::string path, const Ruling& ruling, std::string_view why);
  std::vector<std::shared_ptr<StagedFile>> drain_closed();
  // Made for the first file: a user has 128 of them on most machines, and most sandboxes stage nothing. -errno.
  OrErrno<int> inotify();

  int epoll_ = -1;
  UniqueFd inotify_;  // guarded by mutex_ until it is valid
  std::atomic<std::size_t> count_ = 0;
  std::mutex publishing_;     // before mutex_
  mutable std::mutex mutex_;  // guards what follows
  std::list<std::shared_ptr<StagedFile>> files_;
};

}  // namespace belljar::broker
