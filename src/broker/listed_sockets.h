// The host's sockets that the policy opens by path. Immutable after construction, safe from any thread.
#pragma once

#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "broker/broker.h"
#include "broker/or_errno.h"

namespace belljar::broker {

class ListedSockets {
 public:
  explicit ListedSockets(const std::vector<ListedSocket>& sockets);

  bool any() const noexcept { return !entries_.empty(); }
  // By name: `path`, absolute. By inode: what the caller's own view leads to. nullptr: not listed.
  const ListedSocket* find_name(std::string_view path) const;
  const ListedSocket* find_file(int file) const;
  // An O_PATH descriptor of the socket, on the host: with our own permissions and no link followed.
  OrErrno<UniqueFd> open(const ListedSocket& listed) const;

 private:
  struct Entry {
    ListedSocket socket;
    UniqueFd pinned;
  };
  std::vector<Entry> entries_;
};

// `path` is a datagram socket that is alive. Its owner notices nothing.
bool is_datagram_socket(const char* path) noexcept;

}  // namespace belljar::broker
