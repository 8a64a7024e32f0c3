#include "bench/loopback.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::bench {
namespace {

constexpr std::size_t kBlock = 1U << 20;

void serve(int fd) {
  static const std::string block(kBlock, 'x');
  char asked = 0;
  while (::recv(fd, &asked, 1, 0) == 1) {
    if (asked == 'P' && ::send(fd, &asked, 1, MSG_NOSIGNAL) != 1) return;
    for (std::size_t sent = 0; asked == 'B' && sent < kBulk;) {
      const ssize_t n = ::send(fd, block.data(), block.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<std::size_t>(n);
    }
  }
}

}  // namespace

UniqueFd listen_here(std::uint16_t& port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd.get(), 128) != 0) return {};
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

UniqueFd dial(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

bool read_bulk(int fd) {
  static std::string buffer(kBlock, '\0');
  std::size_t got = 0;
  if (::send(fd, "B", 1, MSG_NOSIGNAL) != 1) return false;
  while (got < kBulk) {
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

bool ping(int fd) {
  char byte = 'P';
  return ::send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(fd, &byte, 1, 0) == 1;
}

UniqueFd tunnel(std::uint16_t proxy, std::uint16_t server, const std::string& authorization) {
  if (proxy == 0) return dial(server);
  UniqueFd fd = dial(proxy);
  const std::string place = "127.0.0.1:" + std::to_string(server);
  std::string request = "CONNECT " + place + " HTTP/1.1\r\nHost: " + place + "\r\n";
  if (!authorization.empty()) request += "Proxy-Authorization: " + authorization + "\r\n";
  request += "\r\n";
  if (!fd.valid() || ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  // The server says nothing before it is asked, so nothing is read that is not the proxy's.
  std::string answer;
  char buffer[1024];
  while (!answer.ends_with("\r\n\r\n")) {
    const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return {};
    answer.append(buffer, static_cast<std::size_t>(n));
  }
  return answer.starts_with("HTTP/1.1 200") ? std::move(fd) : UniqueFd();
}

Echo::Echo() : listener_(listen_here(port)), thread_([this] { accept_all(); }) {}

Echo::~Echo() {
  stop_ = true;
  (void)dial(port);
  thread_.join();
}

void Echo::accept_all() {
  std::vector<std::thread> threads;
  while (!stop_) {
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int on = 1;
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    threads.emplace_back([fd = std::move(client)] { serve(fd.get()); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace belljar::bench
