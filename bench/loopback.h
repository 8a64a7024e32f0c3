// A server on loopback that echoes and pours, and the clients that talk to it, directly or through a proxy's tunnel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace belljar::bench {

inline constexpr std::size_t kBulk = 64U << 20;  // bytes that read_bulk() takes

// All invalid descriptors, or false, when it failed.
UniqueFd listen_here(std::uint16_t& port);
UniqueFd dial(std::uint16_t port);
// By CONNECT; dials where there is no proxy (0). `authorization` is what Proxy-Authorization says, if anything.
UniqueFd tunnel(std::uint16_t proxy, std::uint16_t server, const std::string& authorization = {});
bool read_bulk(int fd);
bool ping(int fd);

// One byte in: 'B' asks for kBulk bytes, 'P' for itself. A thread a connection.
class Echo {
 public:
  Echo();
  ~Echo();
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  std::uint16_t port = 0;

 private:
  void accept_all();
  std::atomic<bool> stop_{false};
  UniqueFd listener_;
  std::thread thread_;
};

}  // namespace belljar::bench
