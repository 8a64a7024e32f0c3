// Loopback servers and clients of a few lines, for tests of the proxy. Every wait has a deadline and fails the test, not the
// machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "support/loopback.h"

namespace belljar::test {

void send_all(int fd, std::string_view bytes);
// Until `ends_with` is seen, or the end of the connection, or a minute. "<reset>" is appended when the peer reset.
std::string read_until(int fd, std::string_view ends_with);
std::string read_all(int fd);
// In a Server: until the end of the connection, or of the Server, whose test is over then.
void hold(int fd);

// Serves each connection with `serve` on a thread of its own, one after the other.
class Server {
 public:
  explicit Server(std::function<void(int)> serve);
  ~Server();
  std::uint16_t port() const noexcept { return port_; }
  int accepted() const noexcept { return accepted_; }

 private:
  std::uint16_t port_ = 0;
  UniqueFd listener_;
  std::function<void(int)> serve_;
  std::atomic<int> accepted_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace belljar::test
