// The egress proxy beside a direct connection: bytes, round trips, new connections; and what a run pays for having it. Both ends
// and the proxy are threads of this process, on loopback.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "bench/loopback.h"
#include "bench/rows.h"
#include "egress/proxy.h"

namespace belljar::bench {
namespace {

constexpr char kEgressGroup[] = "egress";

void add_rows(std::vector<Rival> rivals, int rounds, double target, Report& report) {
  std::vector<std::string> failed;
  const std::vector<Samples> samples = compare(rivals, rounds, failed);
  for (const std::string& name : failed) report.left_out.push_back(name + ": failed, so none is shown");
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    if (!samples[i].us.empty()) report.add(kEgressGroup, rivals[i].name, samples[i]);
  }
  report.compare_rows(kEgressGroup, rivals[1].name, rivals[0].name, target);
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

struct Footprint {
  std::size_t kib = 0, descriptors = 0;
};

Footprint footprint() {
  Footprint now;
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  statm >> size >> resident;
  now.kib = resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) now.descriptors += entry.path().empty() ? 0 : 1;
  return now;
}

std::unique_ptr<egress::Proxy> start_proxy(std::uint16_t& port, std::size_t records = 1000) {
  egress::ProxyOptions options;
  options.rules.allowed = {policy::parse_domain_rule("127.0.0.1").value()};
  options.max_records = records;
  auto proxy = egress::Proxy::start(listen_here(port), std::move(options));
  return proxy ? *std::move(proxy) : nullptr;
}

void add_number(Report& report, const std::string& name, const std::string& unit, double value, double target) {
  Row row;
  row.group = kEgressGroup;
  row.name = name;
  row.unit = unit;
  row.p50 = row.p99 = value;
  row.runs = 1;
  row.target = target;
  report.rows.push_back(std::move(row));
}

// One byte back for one byte, one connection after the other, until the listener is shut.
void answer_each(int listener) {
  for (;;) {
    const UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return;
    char byte = 0;
    if (::recv(client.get(), &byte, 1, 0) == 1) ::send(client.get(), &byte, 1, MSG_NOSIGNAL);
  }
}

// Four clients at a time, each connection with one round trip: the time for one, all together. Negative: some failed.
template <class Connect>
double time_connections(Connect connect) {
  constexpr int kClients = 4, kEach = 1500;
  std::atomic<int> failed{0};
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) failed += ping(connect().get()) ? 0 : 1;
    });
  }
  for (std::thread& client : clients) client.join();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return failed > 0 ? -1 : took.count() / (kClients * kEach);
}

void bench_new_connections(Report& report) {
  constexpr double kPromised = 1e6 / 3000;  // us
  std::uint16_t port = 0, server_port = 0;
  const UniqueFd listener = listen_here(server_port);
  std::thread server([&listener] { answer_each(listener.get()); });
  const double direct = time_connections([&] { return dial(server_port); });
  double by_proxy = -1;
  if (const auto proxy = start_proxy(port)) by_proxy = time_connections([&] { return tunnel(port, server_port); });
  ::shutdown(listener.get(), SHUT_RDWR);
  server.join();
  if (direct < 0 || by_proxy < 0) return report.left_out.push_back("new connections: some failed, so none is shown");
  add_number(report, "a new connection direct, 4 clients", "us", direct, 0);
  add_number(report, "a new connection by proxy, 4 clients", "us", by_proxy, kPromised);
}

// The far ends wait in a backlog: nobody else holds memory.
void bench_idle_tunnels(Report& report) {
  constexpr int kTunnels = 1000;
  constexpr double kPromised = 40 * 1024;  // KiB
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::uint16_t port = 0, server_port = 0;
  const UniqueFd server = listen_here(server_port);
  ::listen(server.get(), kTunnels + 24);
  const auto proxy = start_proxy(port);
  const Footprint before = footprint();
  std::vector<UniqueFd> tunnels;
  while (tunnels.size() < kTunnels) {
    tunnels.push_back(tunnel(port, server_port));
    if (!tunnels.back().valid()) return report.left_out.push_back("idle tunnels: one was not made, so none is shown");
  }
  const Footprint after = footprint();
  add_number(report, "1000 idle tunnels, resident", "KiB", static_cast<double>(after.kib - std::min(before.kib, after.kib)),
             kPromised);
}

// One connection a request to the server, a thousand requests a connection of the client.
void soak(int requests, Report& report) {
  std::uint16_t port = 0, server_port = 0;
  UniqueFd listener = listen_here(server_port);
  std::thread server([&listener] {
    constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    char buffer[4096];
    for (;;) {
      const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      if (::recv(client.get(), buffer, sizeof buffer, 0) > 0) ::send(client.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    }
  });
  {
    const auto proxy = start_proxy(port, 100);
    const std::string request = "GET http://127.0.0.1:" + std::to_string(server_port) +
                                "/ HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_port) + "\r\n\r\n";
    Footprint before;
    int done = 0;
    UniqueFd client;
    for (; done < requests; ++done) {
      if (done % 1000 == 0) client = dial(port);
      if (done == std::min(requests / 10, 10'000)) before = footprint();  // warm by then
      std::string answer;
      char buffer[4096];
      ::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL);
      while (!answer.ends_with("hello")) {
        const ssize_t got = ::recv(client.get(), buffer, sizeof buffer, 0);
        if (got <= 0) break;
        answer.append(buffer, static_cast<std::size_t>(got));
      }
      if (!answer.ends_with("hello")) break;
    }
    const Footprint after = footprint();
    if (done < requests) report.left_out.push_back("soak: request " + std::to_string(done) + " failed");
    add_number(report, "soak: resident growth, " + std::to_string(done) + " requests", "KiB",
               static_cast<double>(after.kib) - static_cast<double>(before.kib), 512);
    add_number(report, "soak: descriptors more", "count",
               static_cast<double>(after.descriptors) - static_cast<double>(before.descriptors), 2);
  }
  ::shutdown(listener.get(), SHUT_RDWR);
  server.join();
}

}  // namespace

void bench_egress(const Setting& setting, Report& report) {
  bench_idle_tunnels(report);
  bench_relay(setting.runs, report);
  bench_new_connections(report);
  if (setting.requests > 0) soak(setting.requests, report);
  const auto run = [&](const char* mode) {
    return [&setting, mode] {
      return run_process({setting.belljar, "run", "--workspace", setting.directory, "--net", mode, "--", "/bin/true"}) == 0;
    };
  };
  add_rows({{"run --net none", run("none")}, {"run --net proxy", run("proxy")}}, setting.runs, 1.5, report);
  bench_egress_peers(setting, report);
}

}  // namespace belljar::bench
