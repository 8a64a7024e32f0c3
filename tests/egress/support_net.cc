#include "egress/support_net.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace belljar::test {

UniqueFd listen_loopback(std::uint16_t& port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd.get(), 1024) != 0) return {};
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

UniqueFd connect_loopback(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string read_until(int fd, std::string_view ends_with) {
  std::string text;
  while (ends_with.empty() || !text.ends_with(ends_with)) {
    pollfd wait{fd, POLLIN, 0};
    if (::poll(&wait, 1, 10'000) <= 0) return text + "<timeout>";
    char buffer[65536];
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got == 0) return text;
    if (got < 0 && errno == EAGAIN) continue;
    if (got < 0) return text + "<reset>";
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

std::string read_all(int fd) { return read_until(fd, ""); }

Server::Server(std::function<void(int)> serve) : listener_(listen_loopback(port_)), serve_(std::move(serve)) {
  thread_ = std::thread([this] {
    while (!stop_) {
      pollfd wait{listener_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) continue;
      ++accepted_;
      serve_(client.get());
    }
  });
}

Server::~Server() {
  stop_ = true;
  thread_.join();
}

}  // namespace belljar::test
