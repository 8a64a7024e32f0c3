#include "broker/own_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "broker/unix_connect.h"

namespace belljar::broker {

int peek(int file) noexcept {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.valid() ? connect_to_file(probe.get(), file) : -errno;
}

bool is_alive(int peeked) noexcept { return peeked == 0 || peeked == -EPROTOTYPE || peeked == -EPERM; }

namespace {

// A file system that keeps no birth times says nothing.
bool born_since(int file, const timespec& when) noexcept {
  struct statx facts{};
  if (::statx(file, "", AT_EMPTY_PATH, STATX_BTIME, &facts) != 0 || (facts.stx_mask & STATX_BTIME) == 0) return false;
  return facts.stx_btime.tv_sec != when.tv_sec ? facts.stx_btime.tv_sec > when.tv_sec : facts.stx_btime.tv_nsec >= when.tv_nsec;
}

}  // namespace

bool OwnSockets::note(UniqueFd file) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return false;
  const std::scoped_lock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.device == status.st_dev && entry.inode == status.st_ino) return true;
  }
  if (entries_.size() >= std::min(next_sweep_, limit_)) drop_dead();
  if (entries_.size() >= limit_) return false;
  entries_.push_back({status.st_dev, status.st_ino, std::make_shared<const UniqueFd>(std::move(file))});
  return true;
}

int OwnSockets::note(const kernel::UnixSocketId& socket) {
  kernel::UnixBinding file;
  if (const int status = kernel::find_unix_binding(socket, file); status != 0) return status;
  const std::scoped_lock lock(mutex_);
  std::erase_if(bound_, [&](const Bound& known) { return known.socket == socket; });
  if (bound_.size() >= std::min(next_sweep_, limit_)) drop_dead();
  if (bound_.size() >= limit_) return -ENOBUFS;
  bound_.push_back({socket, file});
  return 0;
}

OwnSockets::SocketRef OwnSockets::find_held(dev_t device, ino_t inode) const {
  for (const Entry& entry : entries_) {
    if (entry.device == device && entry.inode == inode) return entry.file;
  }
  return nullptr;
}

// An inode is bound once, and its number is nobody else's while a live socket is bound to it.
bool OwnSockets::is_bound(int file, dev_t device, ino_t inode) const {
  return std::any_of(bound_.begin(), bound_.end(), [&](const Bound& own) {
    if (own.file.inode != static_cast<std::uint32_t>(inode)) return false;
    if (own.file.device != device && own.file.device != kernel::file_system_device(file)) return false;
    kernel::UnixBinding now;
    return kernel::find_unix_binding(own.socket, now) == 0 && now == own.file;
  });
}

OwnSockets::SocketRef OwnSockets::find(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return nullptr;
  const std::scoped_lock lock(mutex_);
  if (SocketRef held = find_held(status.st_dev, status.st_ino)) return held;
  if (!S_ISSOCK(status.st_mode) || status.st_uid != uid_ || !born_since(file, began_) ||
      !is_bound(file, status.st_dev, status.st_ino))
    return nullptr;
  if (entries_.size() >= limit_) drop_dead();
  UniqueFd copy(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid() || entries_.size() >= limit_) return nullptr;
  entries_.push_back({status.st_dev, status.st_ino, std::make_shared<const UniqueFd>(std::move(copy))});
  return entries_.back().file;
}

bool OwnSockets::is_new(int file) const {
  struct stat status{};
  if (!born_since(file, began_) || ::fstat(file, &status) != 0) return false;
  const std::scoped_lock lock(mutex_);
  return std::ranges::find(waited_, Inode{status.st_dev, status.st_ino}) == waited_.end();
}

void OwnSockets::waited_in_vain(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return;
  const std::scoped_lock lock(mutex_);
  if (waited_.size() == kMostWaited) waited_.pop_front();
  waited_.push_back({status.st_dev, status.st_ino});
}

// A dead entry answers ECONNREFUSED whether we hold it or not, so dropping one changes no answer.
void OwnSockets::drop_dead() {
  std::erase_if(entries_, [](const Entry& entry) { return peek(entry.file->get()) == -ECONNREFUSED; });
  std::erase_if(bound_, [](const Bound& own) {
    kernel::UnixBinding now;
    const int status = kernel::find_unix_binding(own.socket, now);
    return status == -ENOENT || status == -ESTALE || status == -ENODATA;  // others: we could not look
  });
  next_sweep_ = std::max(entries_.size(), bound_.size()) * 2 + 16;
}

}  // namespace belljar::broker
