// What programs said when they bound sockets that we bound for them (bind_call.cc): the kernel knows those by the last component of
// the path alone, and getsockname(2) is to give back what was said (getsockname_call.cc). Nothing is decided by it. Safe from any
// thread.
#pragma once

#include <sys/types.h>

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace belljar::broker {

class BoundNames {
 public:
  // `socket`: its inode on sockfs.
  void note(ino_t socket, std::string path);
  // Where the kernel's name for the socket is `name`: numbers of sockets are used again.
  std::optional<std::string> find(ino_t socket, std::string_view name) const;
  bool empty() const;

 private:
  static constexpr std::size_t kMost = 4096;  // then the oldest is forgotten: its socket shows the last component

  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<ino_t, std::string> paths_;
  std::deque<ino_t> order_;
};

}  // namespace belljar::broker
