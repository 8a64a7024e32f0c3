// The egress proxy beside a direct connection: bytes, round trips, new connections; and what a run pays for having it. Both ends
// and the proxy are threads of this process, on loopback.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "bench/rows.h"
#include "egress/proxy.h"

namespace belljar::bench {
namespace {

constexpr char kGroup[] = "egress";
constexpr std::size_t kBulk = 64U << 20, kBlock = 1U << 20;

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

// One byte in: 'B' asks for kBulk bytes, 'P' for itself.
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

UniqueFd tunnel(std::uint16_t proxy, std::uint16_t server) {
  UniqueFd fd = dial(proxy);
  const std::string request = "CONNECT 127.0.0.1:" + std::to_string(server) + " HTTP/1.1\r\n\r\n";
  constexpr std::string_view kYes = "HTTP/1.1 200 Connection established\r\n\r\n";
  char answer[kYes.size()];
  if (!fd.valid() || ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
      ::recv(fd.get(), answer, sizeof answer, MSG_WAITALL) != static_cast<ssize_t>(sizeof answer) ||
      std::string_view(answer, sizeof answer) != kYes)
    return {};
  return fd;
}

class Echo {
 public:
  Echo() : listener_(listen_here(port)), thread_([this] { accept_all(); }) {}
  ~Echo() {
    stop_ = true;
    (void)dial(port);
    thread_.join();
  }
  std::uint16_t port = 0;

 private:
  void accept_all() {
    std::vector<std::thread> threads;
    while (!stop_) {
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      threads.emplace_back([fd = std::move(client)] { serve(fd.get()); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::atomic<bool> stop_{false};
  UniqueFd listener_;
  std::thread thread_;
};

void add_rows(std::vector<Rival> rivals, int rounds, double target, Report& report) {
  std::vector<std::string> failed;
  const std::vector<Samples> samples = compare(rivals, rounds, failed);
  for (const std::string& name : failed) report.left_out.push_back(name + ": failed, so none is shown");
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    if (!samples[i].us.empty()) report.add(kGroup, rivals[i].name, samples[i]);
  }
  report.compare_rows(kGroup, rivals[1].name, rivals[0].name, target);
}

void bench_relay(int runs, Report& report) {
  const Echo server;
  std::uint16_t port = 0;
  egress::ProxyOptions options;
  options.rules.allowed = {policy::parse_domain_rule("127.0.0.1").value()};
  auto proxy = egress::Proxy::start(listen_here(port), std::move(options));
  if (!proxy) return report.left_out.push_back("egress: " + proxy.error().line());
  {
    const UniqueFd direct = dial(server.port), through = tunnel(port, server.port);
    add_rows(
        {{"64 MiB direct", [&] { return read_bulk(direct.get()); }}, {"64 MiB by proxy", [&] { return read_bulk(through.get()); }}},
        std::max(5, runs / 10), 1 / 0.45, report);
    add_rows(
        {{"round trip direct", [&] { return ping(direct.get()); }}, {"round trip by proxy", [&] { return ping(through.get()); }}},
        runs * 5, 0, report);
  }
  add_rows({{"connect direct", [&] { return ping(dial(server.port).get()); }},
            {"connect by proxy", [&] { return ping(tunnel(port, server.port).get()); }}},
           runs, 0, report);
  (void)(*proxy)->stop();
}

}  // namespace

void bench_egress(const Setting& setting, Report& report) {
  bench_relay(setting.runs, report);
  const auto run = [&](const char* mode) {
    return [&setting, mode] {
      return run_process({setting.belljar, "run", "--workspace", setting.directory, "--net", mode, "--", "/bin/true"}) == 0;
    };
  };
  add_rows({{"run --net none", run("none")}, {"run --net proxy", run("proxy")}}, setting.runs, 1.5, report);
}

}  // namespace belljar::bench
