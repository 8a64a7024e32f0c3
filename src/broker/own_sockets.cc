#include "broker/own_sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "broker/unix_connect.h"

namespace belljar::broker {

int peek(int file) noexcept {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.valid() ? connect_to_file(probe.get(), file) : -errno;
}

bool is_alive(int peeked) noexcept { return peeked == 0 || peeked == -EPROTOTYPE || peeked == -EPERM; }

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

OwnSockets::Held OwnSockets::find(int file) const noexcept {
  struct stat status{};
  if (::fstat(file, &status) != 0) return nullptr;
  const std::scoped_lock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.device == status.st_dev && entry.inode == status.st_ino) return entry.file;
  }
  return nullptr;
}

// A dead entry answers ECONNREFUSED whether we hold it or not, so dropping one changes no answer.
void OwnSockets::drop_dead() {
  std::erase_if(entries_, [](const Entry& entry) { return peek(entry.file->get()) == -ECONNREFUSED; });
  next_sweep_ = entries_.size() * 2 + 16;
}

}  // namespace belljar::broker
