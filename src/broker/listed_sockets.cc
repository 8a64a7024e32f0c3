#include "broker/listed_sockets.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "broker/own_sockets.h"
#include "policy/paths.h"

namespace belljar::broker {
namespace {

OrErrno<UniqueFd> open_socket(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_NO_SYMLINKS;
  UniqueFd file(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!file.valid()) return errno_is(errno);
  struct stat now{};
  if (::fstat(file.get(), &now) != 0 || !S_ISSOCK(now.st_mode)) return errno_is(ECONNREFUSED);  // as connect(2) says of a file
  return file;
}

}  // namespace

ListedSockets::ListedSockets(const std::vector<ListedSocket>& sockets) {
  for (const ListedSocket& socket : sockets) {
    Entry entry{socket, {}};
    if (socket.pinned) {
      if (auto file = open_socket(socket.real)) entry.pinned = *std::move(file);
    }
    entries_.push_back(std::move(entry));
  }
}

const ListedSocket* ListedSockets::find_name(std::string_view path) const {
  if (!path.starts_with('/')) return nullptr;
  const std::string normal = policy::normal(path);
  for (const Entry& entry : entries_) {
    if (entry.socket.path == normal || entry.socket.real == normal) return &entry.socket;
  }
  return nullptr;
}

const ListedSocket* ListedSockets::find_file(int file) const {
  struct stat wanted{}, now{};
  if (::fstat(file, &wanted) != 0) return nullptr;
  for (const Entry& entry : entries_) {
    const auto own = open(entry.socket);
    if (own && ::fstat(own->get(), &now) == 0 && now.st_ino == wanted.st_ino && now.st_dev == wanted.st_dev) return &entry.socket;
  }
  return nullptr;
}

OrErrno<UniqueFd> ListedSockets::open(const ListedSocket& listed) const {
  if (!listed.pinned) return open_socket(listed.real);
  for (const Entry& entry : entries_) {
    if (&entry.socket != &listed) continue;
    if (!entry.pinned.valid()) return errno_is(ENOENT);
    UniqueFd copy(::fcntl(entry.pinned.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return errno_is(errno);
    return copy;
  }
  return errno_is(ENOENT);
}

bool is_datagram_socket(const char* path) noexcept {
  const UniqueFd file(::open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW));
  return file.valid() && peek(file.get()) == 0;
}

}  // namespace belljar::broker
