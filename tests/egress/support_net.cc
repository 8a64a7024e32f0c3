#include "egress/support_net.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace belljar::test {

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
    if (::poll(&wait, 1, 60'000) <= 0) return text + "<timeout>";
    char buffer[65536];
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got == 0) return text;
    if (got < 0 && errno == EAGAIN) continue;
    if (got < 0) return text + "<reset>";
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

namespace {
thread_local const std::atomic<bool>* serving_stops = nullptr;  // of the Server whose thread this is
}

void hold(int fd) {
  char buffer[65536];
  for (ssize_t got = 1; got != 0 && !(serving_stops != nullptr && *serving_stops);) {
    pollfd wait{fd, POLLIN, 0};
    if (::poll(&wait, 1, 20) <= 0) continue;
    got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN) return;
  }
}

std::string read_all(int fd) { return read_until(fd, ""); }

Server::Server(std::function<void(int)> serve) : listener_(listen_loopback(port_)), serve_(std::move(serve)) {
  thread_ = std::thread([this] {
    serving_stops = &stop_;
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
