// Services of the host, by address, by abstract name and by path.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>

#include "base/unique_fd.h"
#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Network : Attack {};

// A listener on loopback; `port` is filled in. Invalid when the host lacks the family.
UniqueFd listen_ip(int family, std::string& port) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 six{.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
  sockaddr_in four{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const auto* address = family == AF_INET ? reinterpret_cast<sockaddr*>(&four) : reinterpret_cast<sockaddr*>(&six);
  socklen_t size = family == AF_INET ? sizeof four : sizeof six;
  if (!fd.valid() || ::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), 8) != 0) return {};
  sockaddr_in6 got{};
  size = sizeof got;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&got), &size);
  port = std::to_string(ntohs(got.sin6_port));  // the same place in both
  return fd;
}

// NW-01.
TEST_F(Network, LoopbackOfTheHostIsOutOfReach) {
  std::string port;
  const UniqueFd four = listen_ip(AF_INET, port);
  ASSERT_TRUE(four.valid());
  for (const char* address : {"127.0.0.1", "0.0.0.0", "127.1.2.3"}) EXPECT_NE(inside({"connect4", port, address}), "ok") << address;
  EXPECT_NE(inside({"connect6", port, "::ffff:127.0.0.1"}), "ok");
  EXPECT_EQ(inside({"connect4", port}, {"--net", "host"}), "ok");
  const UniqueFd six = listen_ip(AF_INET6, port);
  if (!six.valid()) GTEST_SKIP() << "needs IPv6";
  EXPECT_NE(inside({"connect6", port}), "ok");
  EXPECT_EQ(inside({"connect6", port}, {"--net", "host"}), "ok");
}

// Landlock holds bind, and listen finds a port without.
TEST_F(Network, NoPortOfTheHostIsTakenUnasked) {
  for (const char* act : {"listen4", "listen6"}) {
    EXPECT_EQ(inside({act}, {"--net", "host"}), "EACCES") << act;
    EXPECT_EQ(inside({act}, {"--net", "host", "--allow-all-unix-sockets"}), "EACCES") << act;
    EXPECT_EQ(inside({act}, {"--allow-local-binding=false"}), "EACCES") << act;
    EXPECT_EQ(inside({act}, {"--net", "host", "--allow-local-binding"}), "ok") << act;
    EXPECT_EQ(inside({act}), "ok") << act << ": on its own loopback";
  }
}

// CVE-2020-15257.
TEST_F(Network, AbstractSocketsOfTheHostAreOutOfReach) {
  const std::string name = "@belljar-test-" + std::to_string(::getpid());
  const UniqueFd listener = listen_unix(name);
  ASSERT_TRUE(listener.valid());
  EXPECT_NE(inside({"connect_unix", name}), "ok");
  EXPECT_EQ(outside({"connect_unix", name}), "ok");
  EXPECT_EQ(inside({"own_unix", "@of-its-own"}), "ok");
}

// NW-04, NW-05: docker.sock and its kind.
TEST_F(Network, SocketsOfTheHostAreOutOfReach) {
  for (const std::string& place : {beside("sock"), workspace("sock")}) {
    const UniqueFd listener = listen_unix(place);
    ASSERT_TRUE(listener.valid());
    hand_over();  // an idmapped workspace does not map root
    EXPECT_NE(inside({"connect_unix", place}), "ok") << place;
    EXPECT_EQ(outside({"connect_unix", place}), "ok");
    EXPECT_EQ(inside({"connect_unix", place}, {"--allow-unix-socket", place}), "ok") << place;
    EXPECT_EQ(inside({"connect_unix", place}, {"--allow-all-unix-sockets"}), "ok") << place;
    // A proxy is a way to hosts that are named, not to what listens beside it.
    const Words proxy{"--net", "proxy", "--allow-domain", "a.test"};
    EXPECT_EQ(inside({"connect_unix", place}, proxy), "EACCES") << place;
    Words opened = proxy;
    opened.insert(opened.end(), {"--allow-unix-socket", place});
    EXPECT_EQ(inside({"connect_unix", place}, opened), "ok") << place;
  }
  const UniqueFd datagrams = listen_unix(beside("dgram"), SOCK_DGRAM);
  ASSERT_TRUE(datagrams.valid());
  // What matters is what arrives: an end of a pair sends to its other end, whatever address is named.
  for (const char* act : {"send_unix", "pair_send_unix"}) {
    char byte = 0;
    const std::string answer = inside({act, beside("dgram")});
    EXPECT_EQ(recv(datagrams.get(), &byte, 1, MSG_DONTWAIT), -1) << act;
    EXPECT_EQ(answer == "ok", std::string(act) == "pair_send_unix") << act << " " << answer;
    EXPECT_EQ(outside({act, beside("dgram")}), "ok") << act;
    EXPECT_EQ(recv(datagrams.get(), &byte, 1, MSG_DONTWAIT), 1) << act;
  }
}

TEST_F(Network, OwnSocketsWork) {
  EXPECT_EQ(inside({"own_unix", "/tmp/own"}), "ok");
  EXPECT_EQ(inside({"own_unix", workspace("own")}), "ok");
}

// bind makes a name: judged as any other in the workspace, and otherwise as ever.
TEST_F(Network, SocketsOfOnesOwnServeWhereTheirNamesAreFree) {
  plant_dir(workspace("sub"));
  plant(beside("none.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  const std::string serve =
      "serve() { perl -MSocket -e '$p = $ARGV[0]; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un($p)) or die $!; "
      "listen(S, 1); socket(C, AF_UNIX, SOCK_STREAM, 0); connect(C, sockaddr_un($p)) or die $!' \"$1\"; }; ";
  for (const char* path : {"own", "./sub/../own2", "$PWD/sub/own", "/tmp/own", "/proc/self/cwd/own3"})
    EXPECT_EQ(shell(serve + "serve " + path + " && ! serve " + path + " 2>/dev/null").exit_code, 0) << path;
  for (const char* path : {".envrc", "sub/.git", "$PWD/.vscode"}) {
    EXPECT_NE(shell(serve + "serve " + path).exit_code, 0) << path;
    EXPECT_EQ(shell(serve + "serve " + path, {"--policy", beside("none.toml")}).exit_code, 0) << path;
  }
  EXPECT_NE(shell(serve + "serve " + beside("own")).exit_code, 0);
  EXPECT_EQ(shell(serve + "serve " + beside("own"), {"--write", beside()}).exit_code, 0);
  EXPECT_EQ(
      shell("perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die; listen(S, 1)'")
          .exit_code,
      0);
}

}  // namespace
}  // namespace belljar::test
