// What goes wrong around the proxy: servers and clients that reset, stall or trickle, name servers that are silent, no descriptor
// left, very many connections. Each time the others go on, and nothing is kept.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/format.h"
#include "egress/support_proxy.h"
#include "support/eventually.h"
#include "support/time_enough.h"

namespace belljar::egress {
namespace {

using namespace std::string_literals;
using test::eventually;
using test::with_time_enough;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.path().empty() ? 0 : 1;
  return count;
}

void send_as_far_as_it_goes(int fd, const std::string& bytes) {
  std::size_t sent = 0;
  for (ssize_t part = 0; part >= 0 && sent < bytes.size(); sent += static_cast<std::size_t>(std::max<ssize_t>(part, 0)))
    part = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
}

class Faults : public ProxyTest {
 protected:
  UniqueFd tunnel(const std::string& where) const {
    UniqueFd fd = connect_loopback(port_);
    send_all(fd.get(), format("CONNECT {} HTTP/1.1\r\n\r\n", where));
    return read_until(fd.get(), "\r\n\r\n").substr(9, 3) == "200" ? std::move(fd) : UniqueFd();
  }
};

TEST_F(Faults, AServersResetReachesTheClientAsOne) {
  const Server server([](int fd) {
    read_until(fd, "x");
    const linger none{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  });
  start({"127.0.0.1"});
  const UniqueFd fd = tunnel(address(server));
  ASSERT_TRUE(fd.valid());
  send_all(fd.get(), "x");
  EXPECT_EQ(read_all(fd.get()), "<reset>");
}

// Says no to a body it has not read, and is gone: what still comes is answered with a reset, which the refusal is before.
void refuse_early(int fd) {
  char byte = 0;
  for (std::string head; !head.ends_with("\r\n\r\n") && ::recv(fd, &byte, 1, 0) == 1;) head += byte;
  send_all(fd, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno\n");
}

TEST_F(Faults, AnAnswerBeforeTheBodyIsDeliveredThoughTheServerIsGone) {
  const Server server(refuse_early);
  start({"127.0.0.1"});
  const std::string place = address(server);
  const std::string head = format("POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 9000000\r\n\r\n", place);
  const std::string body(3'000'000, 'x');
  const auto answer_to = [&](const UniqueFd& fd, const std::string& first) {
    send_all(fd.get(), first);
    std::thread sender([&] { send_as_far_as_it_goes(fd.get(), body); });
    std::string answer = read_until(fd.get(), "no\n");
    ::shutdown(fd.get(), SHUT_RDWR);
    sender.join();
    return answer.substr(0, answer.find('\n') + 1);
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(answer_to(tunnel(place), head), "HTTP/1.1 413 Too Large\r\n") << "in a tunnel";
    EXPECT_EQ(answer_to(connect_loopback(port_), format("POST http://{}/{}", place, head.substr(6))), "HTTP/1.1 413 Too Large\r\n");
  }
}

TEST_F(Faults, AnAnswerWithoutALengthThatIsResetIsNotWhole) {
  std::atomic<bool> resets{true};
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, "HTTP/1.1 200 OK\r\n\r\nhalf");
    read_until(fd, "nothing more");
    const linger none{1, 0};
    if (resets) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  });
  start({"127.0.0.1"});
  const auto ask = [&] {
    const UniqueFd fd = connect_loopback(port_);
    send_all(fd.get(),
             format("POST http://{}/ HTTP/1.1\r\nHost: {}\r\nContent-Length: 12\r\n\r\n", address(server), address(server)));
    std::string answer = read_until(fd.get(), "half");
    send_all(fd.get(), "nothing more");
    return answer + read_all(fd.get());
  };
  EXPECT_TRUE(ask().ends_with("half<reset>"));
  resets = false;
  EXPECT_TRUE(ask().ends_with("half"));
}

// Until its peer's kernel has all of it: a reset drops the rest.
void send_whole(int fd, const std::string& bytes) {
  send_all(fd, bytes);
  int queued = 0;
  EXPECT_TRUE(eventually([&] { return ::ioctl(fd, SIOCOUTQ, &queued) != 0 || queued == 0; }));
}

TEST_F(Faults, WhatAServerSaidBeforeItsResetReachesAClientThatIsSlowToRead) {
  std::atomic<bool> resets{true};
  const std::string head = "HTTP/1.1 200 OK\r\n\r\n", body(1 << 20, 'b');
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_whole(fd, head + body);
    const linger none{1, 0};
    if (resets) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  });
  start({"127.0.0.1"});
  const std::string place = address(server);
  const auto answer_to = [](const UniqueFd& fd, const std::string& request) {
    send_all(fd.get(), request);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // slowly: no machine is too slow for that
    const std::string answer = read_all(fd.get());
    const std::size_t said = answer.find("b");
    const std::size_t end = std::min(answer.find_last_of('b'), answer.size() - 1) + 1;
    return format("{}{}", end - std::min(said, end), answer.substr(end));
  };
  const auto in_tunnel = [&] { return answer_to(tunnel(place), "GET / HTTP/1.1\r\n\r\n"); };
  const auto forwarded = [&] {
    return answer_to(connect_loopback(port_), format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", place));
  };
  EXPECT_EQ(in_tunnel(), "1048576<reset>");
  EXPECT_EQ(forwarded(), "1048576<reset>");
  resets = false;
  EXPECT_EQ(in_tunnel(), "1048576");
  EXPECT_EQ(forwarded(), "1048576");
}

TEST_F(Faults, AClientThatTakesNothingOfABrokenAnswerIsResetInTheEnd) {
  const std::string body(1 << 20, 'b');
  const Server server([&](int fd) {
    read_until(fd, "x");
    send_whole(fd, body);
    const linger none{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  });
  ProxyOptions options;
  options.timeouts.answer = std::chrono::milliseconds(200);
  start({"127.0.0.1"}, {}, std::move(options));
  const UniqueFd fd = tunnel(address(server));
  send_all(fd.get(), "x");
  std::size_t ended = 0;
  (void)eventually([&] {
    ended = proxy_->take_log().records.size();
    return ended != 0;
  });
  EXPECT_EQ(ended, 1U) << "though the client has read nothing";
  EXPECT_TRUE(read_all(fd.get()).ends_with("<reset>"));
}

TEST_F(Faults, AClientThatResetsFreesTheServer) {
  std::string rest = "nothing";
  {
    const Server server([&](int fd) { rest = read_all(fd); });
    start({"127.0.0.1"});
    UniqueFd fd = tunnel(address(server));
    const linger none{1, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    fd.reset();
    while (server.accepted() == 0) std::this_thread::yield();
  }
  EXPECT_TRUE(rest == "<reset>" || rest.empty()) << rest;
}

TEST_F(Faults, AnIdleTunnelTakesNoProcessorTime) {
  const Server server([](int fd) { read_until(fd, "x"), send_all(fd, "y"), test::hold(fd); });
  start({"127.0.0.1"});
  const UniqueFd fd = tunnel(address(server));
  ASSERT_TRUE(fd.valid());
  send_all(fd.get(), "x");
  EXPECT_EQ(read_until(fd.get(), "y"), "y");
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // what is compared is not this time, but what is used of it
  EXPECT_LT(used() - before, std::chrono::milliseconds(100));
}

TEST_F(Faults, AStalledServerEndsInTimeAndOthersAreServedMeanwhile) {
  const Server stalled(test::hold);
  const Server lively(answer_hello);
  const std::string answer = with_time_enough(
      [&](std::chrono::milliseconds time) {
        ProxyOptions options;
        options.timeouts.answer = time;  // of the lively one, too
        start({"127.0.0.1"}, {}, std::move(options));
        const UniqueFd waits = connect_loopback(port_);
        send_all(waits.get(), format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", address(stalled)));
        std::string meanwhile = get(address(lively));
        EXPECT_TRUE(read_all(waits.get()).starts_with("HTTP/1.1 504 "));
        return meanwhile;
      },
      [](const std::string& meanwhile) { return meanwhile.ends_with("hello"); });
  EXPECT_TRUE(answer.ends_with("hello")) << answer;
}

TEST_F(Faults, AClientThatDoesNotReadHoldsBackTheServerAndFillsNoMemory) {
  std::atomic<std::size_t> sent{0};
  std::atomic<bool> held_back{false};
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string block(1 << 16, 'x');
    const timeval patience{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    for (ssize_t n = 0; (n = ::send(fd, block.data(), block.size(), MSG_NOSIGNAL)) > 0;) sent += static_cast<std::size_t>(n);
    held_back = true;
  });
  start({"127.0.0.1"});
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(), format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", address(server)));
  EXPECT_TRUE(eventually([&] { return held_back.load(); }));
  EXPECT_LT(sent, 32U << 20) << "what socket buffers hold, and one window";
  EXPECT_GT(sent, 0U);
}

TEST_F(Faults, SilentNameServersKeepNobodyElseWaiting) {
  const Server server(answer_hello);
  std::mutex mutex;
  std::condition_variable condition;
  bool answered = false;
  Network network;
  network.allowed_domains = {"slow.example", "127.0.0.1"};
  ProxyOptions options;
  options.rules = policy::make_host_rules(network).value();
  options.own_addresses = [] { return std::vector<policy::Ip>{}; };
  options.resolve = [&](const std::string&) {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return answered; });
    return Resolved{.addresses = {}, .error = "the name servers do not answer", .ttl = {}};
  };
  proxy_ = Proxy::start(test::listen_loopback(port_), std::move(options)).value();
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 50; ++i) {
    waiting.push_back(connect_loopback(port_));
    send_all(waiting.back().get(), "CONNECT slow.example:443 HTTP/1.1\r\n\r\n");
  }
  EXPECT_TRUE(get(address(server)).ends_with("hello"));
  {
    const std::scoped_lock lock(mutex);
    answered = true;
  }
  condition.notify_all();
  for (const UniqueFd& fd : waiting) EXPECT_TRUE(read_all(fd.get()).starts_with("HTTP/1.1 502 slow.example does not resolve"));
}

TEST_F(Faults, WhatComesByteByByteIsReadAsOne) {
  const Server server(echo);
  start({"127.0.0.1"});
  const auto trickle = [&](const std::string& text) {
    UniqueFd fd = connect_loopback(port_);
    for (const char c : text) send_all(fd.get(), std::string_view(&c, 1));
    ::shutdown(fd.get(), SHUT_WR);
    return read_all(fd.get());
  };
  EXPECT_EQ(trickle(format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\nping", address(server))),
            "HTTP/1.1 200 Connection established\r\n\r\nping");
  EXPECT_TRUE(trickle("CONNECT other.example:443 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403 "));
  const std::string port{static_cast<char>(server.port() >> 8), static_cast<char>(server.port())};
  EXPECT_EQ(trickle("\x05\x01\0\x05\x01\0\x01\x7f\0\0\x01"s + port + "ping"), "\x05\0\x05\0\0\x01\0\0\0\0\0\0ping"s);
  EXPECT_EQ(trickle("\x05\x01\0\x05\x01\0\x03\x0Dother.example\0\x50"s)[3], 2);
}

TEST_F(Faults, WithoutDescriptorsClientsWaitAndAreServedLater) {
  const Server server(answer_hello);
  start({"127.0.0.1"});
  const std::size_t idle = open_descriptors();
  EXPECT_TRUE(get(address(server)).ends_with("hello"));
  ASSERT_TRUE(eventually([&] { return open_descriptors() == idle; }));
  const UniqueFd client = connect_loopback(port_), late = connect_loopback(port_);
  // Both ends of both are there before the descriptors go.
  ASSERT_TRUE(eventually([&] { return open_descriptors() == idle + 4; }));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::vector<UniqueFd> hoard;
  rlimit tight = before;
  tight.rlim_cur = open_descriptors() + 8;
  ::setrlimit(RLIMIT_NOFILE, &tight);
  for (;;) {
    UniqueFd one(::fcntl(client.get(), F_DUPFD_CLOEXEC, 0));
    if (!one.valid()) break;
    hoard.push_back(std::move(one));
  }
  send_all(client.get(), format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", address(server)));
  const std::string answer = read_until(client.get(), "\n\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 cannot connect")) << answer;
  EXPECT_NE(answer.find("Too many open files"), std::string::npos) << answer;
  hoard.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
  send_all(late.get(), format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n", address(server)));
  EXPECT_TRUE(read_all(late.get()).ends_with("hello"));
}

// 10 000 clients that open, ask for what is refused, and go, some politely and some not.
TEST_F(Faults, TenThousandConnectionsLeaveNothingBehind) {
  start({"127.0.0.1"}, {}, {.max_records = 10});
  EXPECT_TRUE(get("other.example").starts_with("HTTP/1.1 403 "));
  const std::size_t before = open_descriptors();
  const linger none{1, 0};
  for (int i = 0; i < 10'000; ++i) {
    const UniqueFd fd = connect_loopback(port_);
    ASSERT_TRUE(fd.valid()) << i;
    if (i % 3 == 0) send_all(fd.get(), "CONNECT other.example:443 HTTP/1.1\r\n\r\n");
    if (i % 3 == 1) send_all(fd.get(), "GET http://other");
    if (i % 2 == 0) ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
  EXPECT_TRUE(get("other.example").starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }));
  const EgressLog log = proxy_->stop();
  EXPECT_EQ(log.records.size(), 10U);
  EXPECT_GT(log.records_dropped, 3000U);
}

TEST_F(Faults, BytesAreCountedOverAllConnections) {
  const Server server(echo);
  start({"127.0.0.1"}, {}, {.max_bytes = 3000});
  const std::string request = format("CONNECT {} HTTP/1.1\r\n\r\n", address(server));
  const std::string yes = "HTTP/1.1 200 Connection established\r\n\r\n";
  EXPECT_EQ(talk(request + std::string(1000, 'a')), yes + std::string(1000, 'a'));
  (void)talk(request + std::string(1000, 'b'));
  const std::string after = talk(request + "c");
  EXPECT_TRUE(after.starts_with("HTTP/1.1 403 the sandbox has used up its bytes of egress")) << after;
  const EgressLog log = proxy_->stop();
  EXPECT_EQ(log.violations.back().rule, "limits.egress_bytes");
}

}  // namespace
}  // namespace belljar::egress
