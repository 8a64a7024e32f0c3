// network.allow_local_binding = false: nobody listens on TCP, with bind or without, and what has no port goes on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "base/format.h"
#include "broker/support_fixture.h"

namespace belljar::test {
namespace {

class Ports : public Inside {
 protected:
  Setting refused(kernel::FileCalls files = kernel::FileCalls::kDirect) const {
    Setting with = setting();
    with.files = files;
    with.options.ports_refused = true;
    return with;
  }
  Setting allowed() const {
    Setting with = setting();
    with.files = kernel::FileCalls::kDirect;
    return with;
  }
};
INSTANTIATE_TEST_SUITE_P(As, Ports, testing::Values(Front::kRoot, Front::kUser, Front::kRootPlain, Front::kUserPlain), front_name);

std::string listening(int family, int type = SOCK_STREAM) {
  const UniqueFd socket(::socket(family, type | SOCK_CLOEXEC, 0));
  return named(socket.valid() ? listen(socket.get(), 1) : -1);
}

int bind_any(int socket, int family) {
  sockaddr_in6 six{.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
  sockaddr_in four{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  return family == AF_INET ? bind(socket, reinterpret_cast<const sockaddr*>(&four), sizeof four)
                           : bind(socket, reinterpret_cast<const sockaddr*>(&six), sizeof six);
}

std::string bound(int family, int type) {
  const UniqueFd socket(::socket(family, type | SOCK_CLOEXEC, 0));
  return named(socket.valid() ? bind_any(socket.get(), family) : -1);
}

bool listens(int socket) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value == 1;
}

TEST_P(Ports, NobodyListensOnTcpWithBindOrWithout) {
  const auto body = [] {
    std::string text = listening(AF_INET) + " ";
    text += listening(AF_INET6) + " ";
    text += bound(AF_INET, SOCK_STREAM) + " ";
    return text + bound(AF_INET6, SOCK_STREAM) + "\n";
  };
  const std::string told =
      "EACCES EACCES EACCES EACCES\nviolation listen 0.0.0.0:0 EACCES\nviolation listen [::]:0 EACCES\n"
      "violation bind 127.0.0.1:0 EACCES\nviolation bind [::1]:0 EACCES\n";
  EXPECT_EQ(run_inside(refused(), body), told);
  EXPECT_EQ(run_inside(refused(kernel::FileCalls::kWrites), body), told);
  EXPECT_EQ(run_inside(allowed(), body), "ok ok ok ok\n");
}

TEST_P(Ports, WhatHasNoPortGoesOn) {
  const auto body = [&] {
    for (const char* name : {"own", "packets"}) unlink((dir / name).c_str());  // of the run before
    std::string text = bound(AF_INET, SOCK_DGRAM) + " " + bound(AF_INET6, SOCK_DGRAM) + " " + listening(AF_INET, SOCK_DGRAM) + " ";
    const UniqueFd server = listen_at(dir / "own");
    text += connect_outcome(SOCK_STREAM, dir / "own") + " ";
    const UniqueFd packets = listen_at(dir / "packets", SOCK_SEQPACKET);
    text += named(packets.valid() ? 0 : -1) + " " + listening(AF_UNIX) + " " + named(listen(-1, 1)) + " " +
            named(listen(STDIN_FILENO, 1)) + " ";
    const UniqueFd client = connected(dir / "own");
    ucred peer{};
    socklen_t size = sizeof peer;
    getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return text + format("{} {}\n", peer.uid == getuid(), peer.gid == getgid());
  };
  const std::string same = "ok ok EOPNOTSUPP ok ok EINVAL EBADF ENOTSOCK true true\n";
  EXPECT_EQ(run_inside(refused(), body), same);
  EXPECT_EQ(run_inside(refused(kernel::FileCalls::kWrites), body), same);
  EXPECT_EQ(run_inside(allowed(), body), same);
}

// Servers listen once more on what they were given listening (sd_listen_fds(3)).
TEST_P(Ports, AListenerThatWasHandedInServes) {
  const UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), unready(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind_any(server.get(), AF_INET), 0);
  ASSERT_EQ(bind_any(unready.get(), AF_INET), 0);
  ASSERT_EQ(listen(server.get(), 4), 0);
  const auto body = [&] {
    const std::string first = named(listen(server.get(), 5));
    return first + " " + named(listen(unready.get(), 5)) + "\n";
  };
  const std::string text = run_inside(refused(), body);
  EXPECT_TRUE(text.starts_with("ok EACCES\nviolation listen 127.0.0.1:")) << text;
  EXPECT_FALSE(listens(unready.get()));
  EXPECT_EQ(run_inside(allowed(), body), "ok ok\n");
}

// A second thread exchanges the socket at full speed: what was looked at is what listens.
TEST_P(Ports, ASwappedDescriptorNeverListens) {
  enum class Until { kBothSeen, kTaken };
  const auto body = [&](bool swap, Until until = Until::kBothSeen) {
    unlink((dir / "own").c_str());  // of the run before
    const UniqueFd own = bind_at(dir / "own");
    const UniqueFd port(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int number = fcntl(own.get(), F_DUPFD_CLOEXEC, 3);
    std::atomic<bool> stop = false;
    std::thread other([&] {
      while (swap && !stop) dup2(port.get(), number), dup2(own.get(), number);
    });
    int fine = 0, no = 0;
    bool taken = false;
    // For a second, and where a busy machine needs longer for it, until all that is expected was seen.
    const auto enough = [&] { return until == Until::kTaken ? taken : fine > 0 && (!swap || no > 0); };
    const auto begun = std::chrono::steady_clock::now();
    const auto goes_on = [&](int seconds) { return std::chrono::steady_clock::now() - begun < std::chrono::seconds(seconds); };
    while (!taken && (goes_on(1) || (!enough() && goes_on(60)))) {
      ++(listen(number, 1) == 0 ? fine : no);
      taken = listens(port.get());
    }
    stop = true;
    other.join();
    return format("{} {} {}\n", fine > 0, swap ? no > 0 : no == 0, taken);
  };
  Setting quiet = refused();
  quiet.options.ignored = [](const Violation&) { return true; };
  EXPECT_EQ(run_inside(quiet, [&] { return body(true); }), "true true false\n");
  EXPECT_EQ(run_inside(quiet, [&] { return body(false); }), "true true false\n");
  EXPECT_TRUE(run_inside(allowed(), [&] { return body(true, Until::kTaken); }).ends_with(" true\n")) << "the twin";
}

}  // namespace
}  // namespace belljar::test
