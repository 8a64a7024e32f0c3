// AF_UNIX is own sockets only: what connects, what is refused, and that all else is as without a broker.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/format.h"
#include "broker/own_sockets.h"
#include "broker/support_fixture.h"
#include "support/eventually.h"
#include "support/must.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using Connect = Inside;

INSTANTIATE_TEST_SUITE_P(As, Connect, testing::Values(Front::kRoot, Front::kUser), front_name);

TEST_P(Connect, OwnSocketsConnectByEveryName) {
  const std::string text = run_inside(setting(), [&] {
    std::string result;
    const UniqueFd server = listen_at(dir / "own");
    const UniqueFd directory(open(dir.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    must(symlink("own", (dir / "link").c_str()));
    must(symlink((dir / "own").c_str(), (dir / "absolute").c_str()));
    must(link((dir / "own").c_str(), (dir / "hard").c_str()));
    mkdir((dir / "sub").c_str(), 0700);
    must(chdir((dir / "sub").c_str()));
    const UniqueFd file(open((dir / "own").c_str(), O_PATH | O_CLOEXEC));
    for (const std::string& name :
         {dir / "own", dir / "link", dir / "absolute", dir / "hard", std::string("../own"), std::string("../absolute"),
          format("/proc/self/fd/{}/own", directory.get()), format("/proc/self/fd/{}", file.get()),
          std::string("/proc/self/cwd/../own"), "/proc/self/root" + (dir / "own")}) {
      const std::string outcome = connect_outcome(SOCK_STREAM, name);
      if (outcome != "ok") result += name + ": " + outcome + "\n";
    }
    rename((dir / "own").c_str(), (dir / "renamed").c_str());
    result += connect_outcome(SOCK_STREAM, dir / "renamed") + "\n";
    const UniqueFd packets = listen_at(dir / "packets", SOCK_SEQPACKET);
    result += connect_outcome(SOCK_SEQPACKET, dir / "packets") + "\n";
    const UniqueFd abstract = listen_at(std::string("\0belljar-own", 12));
    result += connect_outcome(SOCK_STREAM, std::string("\0belljar-own", 12)) + "\n";
    return result;
  });
  EXPECT_EQ(text, "ok\nok\nok\n");
}

TEST_P(Connect, HostSocketIsRefusedAndNeverTouched) {
  const UniqueFd server = host_service(dir / "host", SOCK_STREAM | SOCK_NONBLOCK);
  const auto body = [&] {
    unlink((dir / "mine").c_str());  // of the run before
    unlink((dir / "link").c_str());
    must(link((dir / "host").c_str(), (dir / "mine").c_str()));
    must(symlink((dir / "host").c_str(), (dir / "link").c_str()));
    must(chdir(dir.path().c_str()));
    const UniqueFd file(open((dir / "host").c_str(), O_PATH | O_CLOEXEC));
    std::string result;
    for (const std::string& name : {dir / "host", std::string("mine"), dir / "link", format("/proc/self/fd/{}", file.get())}) {
      result += connect_outcome(SOCK_STREAM, name) + " ";
    }
    return result + "\n";
  };
  const std::string text = run_inside(setting(), body);
  EXPECT_TRUE(text.starts_with("EACCES EACCES EACCES EACCES \n")) << text;
  EXPECT_NE(text.find("violation unix-connect " + (dir / "host") + " EACCES\n"), std::string::npos) << text;
  EXPECT_NE(text.find("violation unix-connect " + (dir / "mine") + " EACCES\n"), std::string::npos) << text;
  EXPECT_NE(text.find("violation unix-connect " + (dir / "host") + " EACCES\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("/proc/"), std::string::npos) << text;
  EXPECT_FALSE(was_touched(server));
  // The twin: the same acts reach the host without the broker.
  EXPECT_EQ(run_inside(setting(false), body), "ok ok ok ok \n");
  EXPECT_TRUE(was_touched(server));
}

TEST_P(Connect, HostDatagramSocketIsRefused) {
  const UniqueFd server = host_service(dir / "log", SOCK_DGRAM);
  const auto body = [&] { return connect_outcome(SOCK_DGRAM, dir / "log") + "\n"; };
  EXPECT_EQ(run_inside(setting(), body), "EACCES\nviolation unix-connect " + (dir / "log") + " EACCES\n");
  EXPECT_EQ(run_inside(setting(false), body), "ok\n");
}

TEST_P(Connect, AcceptedSocketOfAHostServiceDoesNotMakeItsListenerOwn) {
  const UniqueFd server = host_service(dir / "host");
  const UniqueFd client = connected(dir / "host");
  const UniqueFd accepted(accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted.valid());
  const auto body = [&] {
    listen(accepted.get(), 5);
    return connect_outcome(SOCK_STREAM, dir / "host") + "\n";
  };
  const std::string refused = "EACCES\nviolation unix-connect " + (dir / "host") + " EACCES\n";
  EXPECT_EQ(run_inside(setting(), body), refused);
  Setting host = setting();
  host.own_network = false;
  EXPECT_EQ(run_inside(host, body), refused);
  // A listening socket of the host's network, handed in.
  const auto listener = [&] {
    listen(server.get(), 5);
    return connect_outcome(SOCK_STREAM, dir / "host") + "\n";
  };
  EXPECT_EQ(run_inside(setting(), listener), refused);
}

TEST_P(Connect, AnswersAreThoseOfTheKernel) {
  const std::string native = run_inside(setting(false), [&] { return connect_answers(dir / "native"); });
  const std::string brokered = run_inside(setting(), [&] { return connect_answers(dir / "brokered"); });
  EXPECT_EQ(brokered, native);
  EXPECT_GT(std::count(native.begin(), native.end(), '\n'), 35) << native;
  EXPECT_NE(native.find("missing: ENOENT\n"), std::string::npos) << native;
  EXPECT_NE(native.find("tcp: ok\n"), std::string::npos) << native;
}

TEST_P(Connect, HostNetworkRefusesAbstractNames) {
  const std::string name = format("{}belljar-host-{}", '\0', getpid());
  const UniqueFd server = listen_at(name);
  const auto body = [&] { return connect_outcome(SOCK_STREAM, name) + "\n"; };
  Setting host = setting();
  host.own_network = false;
  EXPECT_EQ(run_inside(host, body), format("EPERM\nviolation unix-connect @{} EPERM\n", name.substr(1)));
  host.brokered = false;
  EXPECT_EQ(run_inside(host, body), "ok\n");
  EXPECT_EQ(run_inside(setting(), body), "ECONNREFUSED\n");  // another namespace: the kernel finds none
}

TEST_P(Connect, HostNetworkNeverReachesHostPaths) {
  const UniqueFd server = host_service(dir / "host");
  Setting host = setting();
  host.own_network = false;
  const std::string text = run_inside(host, [&] { return connect_outcome(SOCK_STREAM, dir / "host") + "\n"; });
  EXPECT_EQ(text, "EACCES\nviolation unix-connect " + (dir / "host") + " EACCES\n");
}

// SIOCUNIXFILE asks for CAP_NET_ADMIN over the host's network, which an ordinary user has not: unix_diag tells then. A socket that
// is gone opens nothing to the next one of its name.
TEST_P(Connect, HostNetworkKnowsOwnSockets) {
  Setting host = setting();
  host.own_network = false;
  const std::string text = run_inside(host, [&] {
    UniqueFd server = listen_at(dir / "own");
    const std::string own = connect_outcome(SOCK_STREAM, dir / "own");
    server.reset();
    const std::string closed = connect_outcome(SOCK_STREAM, dir / "own");
    if (rename((dir / "own").c_str(), (dir / "old").c_str()) != 0) return std::string("rename");
    const UniqueFd again = listen_at(dir / "own");
    return own + " " + closed + " " + connect_outcome(SOCK_STREAM, dir / "own") + " " + connect_outcome(SOCK_STREAM, dir / "old") +
           "\n";
  });
  EXPECT_EQ(text, "ok ECONNREFUSED ok ECONNREFUSED\n");
}

// network.allow_unix_sockets: by its path, by any name that leads there, and no other.
TEST_P(Connect, ListedSocketsOfTheHostAreOpen) {
  const UniqueFd one = host_service(dir / "one", SOCK_STREAM | SOCK_NONBLOCK);
  const UniqueFd other = host_service(dir / "other", SOCK_STREAM | SOCK_NONBLOCK);
  ASSERT_EQ(symlink((dir / "one").c_str(), (dir / "link").c_str()), 0);
  ASSERT_EQ(::listen(one.get(), 16), 0);  // nobody accepts
  Setting listed = setting();
  listed.options.listed = {{.path = dir / "one", .real = dir / "one"}, {.path = dir / "absent", .real = dir / "absent"}};
  const std::string text = run_inside(listed, [&] {
    if (chdir(dir.path().c_str()) != 0) return std::string("chdir");
    std::string answers;
    for (const std::string& name :
         {dir / "one", std::string("one"), dir / "link", dir / "none/../one", dir / "absent", dir / "other"})
      answers += connect_outcome(SOCK_STREAM, name) + " ";
    return answers + "\n";
  });
  EXPECT_EQ(text, "ok ok ok ok ENOENT EACCES \nviolation unix-connect " + (dir / "other") + " EACCES\n");
  EXPECT_TRUE(was_touched(one));
  EXPECT_FALSE(was_touched(other));
}

// What stands at a listed path later is not what was listed, where the command can put it there.
TEST_P(Connect, AListedPathCannotBeGivenToAnotherSocket) {
  const UniqueFd one = host_service(dir / "one", SOCK_STREAM | SOCK_NONBLOCK);
  const UniqueFd other = host_service(dir / "other", SOCK_STREAM | SOCK_NONBLOCK);
  ASSERT_EQ(::listen(one.get(), 16), 0);  // nobody accepts
  Setting listed = setting();
  listed.options.listed = {{.path = dir / "one", .real = dir / "one", .pinned = true}};
  const std::string text = run_inside(listed, [&] {
    std::string answers = connect_outcome(SOCK_STREAM, dir / "one") + " ";
    if (rename((dir / "other").c_str(), (dir / "one").c_str()) != 0) return std::string("rename");
    answers += connect_outcome(SOCK_STREAM, dir / "one") + " ";
    if (unlink((dir / "one").c_str()) != 0 || symlink((dir / "x").c_str(), (dir / "one").c_str()) != 0)
      return std::string("symlink");
    return answers + connect_outcome(SOCK_STREAM, dir / "one") + "\n";
  });
  EXPECT_EQ(text, "ok ok ok\n");
  EXPECT_FALSE(was_touched(other));
}

TEST_P(Connect, PeerCredentialsAreTheCallersIds) {
  const std::string text = run_inside(setting(), [&] {
    const UniqueFd server = listen_at(dir / "own");
    const UniqueFd client = connected(dir / "own");
    const UniqueFd accepted(accept(server.get(), nullptr, nullptr));
    ucred peer{}, listener{};
    socklen_t size = sizeof peer;
    getsockopt(accepted.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size);
    sockaddr_un name{};
    size = sizeof name;
    getpeername(client.get(), reinterpret_cast<sockaddr*>(&name), &size);
    return format("{} {} {} {} {}\n", peer.uid, peer.gid, listener.uid, listener.pid == getpid(), name.sun_path == dir / "own");
  });
  EXPECT_EQ(text, "1234 1234 1234 true true\n");
}

// A server asks who is there: by number, and by a descriptor of the process.
std::string seen_by_server(int accepted, pid_t client) {
  ucred peer{};
  socklen_t size = sizeof peer;
  std::string text = named(getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &size));
  text += format(" {} {} {} {}", size, peer.pid == client, peer.uid, peer.gid);
  int process = -1;
  size = sizeof process;
  if (getsockopt(accepted, SOL_SOCKET, kernel::kPeerPidfd, &process, &size) != 0) return text + " no pidfd";
  const UniqueFd owned(process);
  return text + format(" {} {} {}", size, fcntl(process, F_GETFD), named(syscall(SYS_pidfd_send_signal, process, 0, nullptr, 0)));
}

// By a process of its own, so that it is neither the server's nor ours.
std::string seen_of_child(const std::string& name, int type) {
  const UniqueFd server = listen_at(name, type);
  int hold[2];
  if (pipe2(hold, O_CLOEXEC) != 0) return "pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(hold[1]);
    const UniqueFd client = connected(name, type);
    char byte = 0;
    _exit(client.valid() && read(hold[0], &byte, 1) == 0 ? 0 : 1);
  }
  const UniqueFd accepted(accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  std::string text = seen_by_server(accepted.get(), child);
  close(hold[0]);
  close(hold[1]);
  int status = 0;
  waitpid(child, &status, 0);
  return text + format(" {}", status);
}

TEST_P(Connect, ServersSeeWhichProcessConnected) {
  Setting setting = this->setting();
  const auto body = [&] {
    std::string text = seen_of_child(dir / format("stream{}", setting.brokered), SOCK_STREAM) + "\n";
    text += seen_of_child(dir / format("packets{}", setting.brokered), SOCK_SEQPACKET) + "\n";
    if (setting.own_network && has_namespaces(GetParam()))
      text += seen_of_child(std::string(1, '\0') + format("abstract{}", setting.brokered), SOCK_STREAM) + "\n";
    return text;
  };
  const std::string brokered = run_inside(setting, body);
  setting.brokered = false;
  EXPECT_EQ(brokered, run_inside(setting, body));
  EXPECT_TRUE(brokered.starts_with("ok 12 true 1234 1234 4 1 ok 0\n")) << brokered;
}

// What the kernel says of lengths and addresses holds where the answer is ours.
TEST_P(Connect, PeerCredentialsAreGivenAsTheKernelDoes) {
  Setting setting = this->setting();
  const auto body = [&] {
    const std::string name = dir / format("own{}", setting.brokered);
    const UniqueFd server = listen_at(name), client = connected(name);
    const UniqueFd accepted(accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ucred peer{-1, 7, 7};
    std::string text;
    for (const int room : {-1, 0, 4, 7, 100}) {
      auto size = static_cast<socklen_t>(room);
      text +=
          named(getsockopt(accepted.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size)) + format(" {} {} ", size, peer.pid == getpid());
    }
    socklen_t size = sizeof peer;
    text += named(syscall(SYS_getsockopt, accepted.get(), SOL_SOCKET, SO_PEERCRED, 8, &size)) + " ";
    text += named(syscall(SYS_getsockopt, accepted.get(), SOL_SOCKET, SO_PEERCRED, &peer, 8)) + " ";
    text += named(getsockopt(-1, SOL_SOCKET, SO_PEERCRED, &peer, &size)) + " ";
    text += named(getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &peer, &size)) + " ";
    getsockopt(server.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    text += format("{} ", peer.pid == getpid());
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::string("pair");
    const UniqueFd one(ends[0]), other(ends[1]);
    getsockopt(one.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return text + format("{} {}\n", peer.pid == getpid(), named(connect_to(client.get(), name)));
  };
  const std::string brokered = run_inside(setting, body);
  setting.brokered = false;
  EXPECT_EQ(brokered, run_inside(setting, body));
}

std::string received(int socket) {
  char text[64];
  const ssize_t size = recv(socket, text, sizeof text, MSG_DONTWAIT);
  return size < 0 ? named(size) : std::string(text, static_cast<std::size_t>(size));
}

std::uint64_t network_of(int socket) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size);
  return cookie;
}

// A datagram end may name any path in a sendto: what is given instead cannot, by any call.
TEST_P(Connect, DatagramPairsReachEachOtherAndNobodyElse) {
  const UniqueFd service = host_service(dir / "host", SOCK_DGRAM);
  Setting setting = this->setting();
  setting.files = kernel::FileCalls::kDirect;
  setting.sockets = kernel::UnixSockets::kBrokered;
  const std::string text = run_inside(setting, [&] {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return named(-1);
    const UniqueFd one(ends[0]), other(ends[1]);
    std::string answers = format("{} {}", fcntl(ends[0], F_GETFD), (fcntl(ends[1], F_GETFL) & O_NONBLOCK) != 0);
    const auto add = [&](const std::string& answer) { answers += " " + answer; };
    for (const char* each : {"first", "second"}) send(ends[0], each, strlen(each), 0);
    for (int i = 0; i < 3; ++i) add(received(ends[1]));
    sockaddr_un host{};
    host.sun_family = AF_UNIX;
    std::strcpy(host.sun_path, (dir / "host").c_str());
    const auto* address = reinterpret_cast<const sockaddr*>(&host);
    add(named(sendto(ends[1], "named", 5, 0, address, sizeof host)));
    add(received(ends[0]));
    iovec data{const_cast<char*>("message"), 7};
    msghdr message{};
    message.msg_name = &host;
    message.msg_namelen = sizeof host;
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    add(named(sendmsg(ends[0], &message, 0)));
    add(received(ends[1]));
    add(format("{}", connect(ends[0], address, sizeof host) != 0));
    add(named(listen(ends[0], 1)));
    ucred peer{};
    socklen_t size = sizeof peer;
    getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &peer, &size);
    const UniqueFd own(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    add(format("{} {}", peer.pid == getpid(), network_of(ends[0]) == network_of(own.get())));
    for (const int protocol : {0, AF_UNIX, 6}) {
      add(named(socketpair(AF_UNIX, SOCK_RAW, protocol, ends)));
      if (protocol != 6) close(ends[0]), close(ends[1]);
    }
    add(named(syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, 8)));
    add(named(socket(AF_UNIX, SOCK_DGRAM, 0)));
    return answers + "\n";
  });
  const std::string expected =
      "1 true first second EAGAIN ok named ok message true EINVAL true true ok ok EPROTONOSUPPORT EFAULT EACCES\n";
  EXPECT_TRUE(text.starts_with(expected)) << text;
  EXPECT_EQ(received(service.get()), "EAGAIN");
}

// Clients that start beside their server try again on ECONNREFUSED and ENOENT, and give up on anything else.
TEST_P(Connect, ServerBetweenBindAndListenIsNotRefused) {
  const std::string text = run_inside(setting(), [&] {
    std::string result;
    for (int i = 0; i < 20; ++i) {
      const std::string name = dir / format("s{}", i);
      const UniqueFd server = bind_at(name);
      std::thread later([&] {
        usleep(2000);  // so that clients come before it; one that comes later proves less
        listen(server.get(), 5);
      });
      std::string came = "ECONNREFUSED";
      while (came == "ECONNREFUSED") came = connect_outcome(SOCK_STREAM, name);
      later.join();
      if (came != "ok") result += came + "\n";
    }
    return result;
  });
  EXPECT_EQ(text, "");
}

// A busy machine keeps the server from the processor for longer than a moment. One that keeps it for a second, which is how long
// the broker waits for a listen, makes the test try again.
TEST_P(Connect, ServerThatListensLateIsNotRefused) {
  const std::string text = run_inside(setting(), [&] {
    std::string came;
    bool in_time = false;
    std::atomic<bool> listens = false;
    for (int i = 0; i < 60 && !in_time; ++i) {
      const std::string name = dir / format("late{}", i);
      const UniqueFd server = bind_at(name);
      const auto client = static_cast<pid_t>(syscall(SYS_gettid));
      const auto begun = std::chrono::steady_clock::now();
      listens = false;
      std::thread later([&] {
        eventually([&] { return sleeps_in(client, SYS_connect); });
        usleep(400'000);  // late, in any case
        listens = true;
        listen(server.get(), 5);
        in_time = std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(950);
      });
      // A listen is noted a moment before the kernel does it: in between it is the kernel that refuses, for that moment.
      do came = connect_outcome(SOCK_STREAM, name);
      while (came == "ECONNREFUSED" && listens);
      later.join();
    }
    return came + (in_time ? "\n" : " too late\n");
  });
  EXPECT_EQ(text, "ok\n");
}

// Clients that come at every moment of their server's life, a name that is given to one server after the other, and no processor to
// spare: what is refused is refused by the kernel.
TEST_P(Connect, ServersThatComeAndGoAreNeverTakenForTheHosts) {
  const std::string text = run_inside(setting(), [&] {
    std::atomic<bool> over = false;
    std::atomic<int> refused = 0, connected_to = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      const std::string name = dir / format("s{}", i);
      threads.emplace_back([&, name] {
        while (!over) {
          unlink(name.c_str());
          const UniqueFd server = listen_at(name);
          usleep(200);  // for its clients
        }
      });
      for (int client = 0; client < 3; ++client) {
        threads.emplace_back([&, name] {
          while (!over) {
            const std::string came = connect_outcome(SOCK_STREAM, name);
            if (came == "ok") ++connected_to;
            else if (came != "ECONNREFUSED" && came != "ENOENT" && came != "EAGAIN") ++refused;
          }
        });
      }
    }
    sleep(3);  // of attempts, and more where it takes longer until one comes through
    eventually([&] { return connected_to > 0; });
    over = true;
    for (std::thread& thread : threads) thread.join();
    return format("{} {}\n", refused.load(), connected_to > 0);
  });
  EXPECT_EQ(text, "0 true\n");
}

TEST_P(Connect, AListenThatNobodyCouldLookAtIsRefused) {
  const auto body = [&] {
    rlimit own{};
    getrlimit(RLIMIT_NOFILE, &own);
    own.rlim_cur = own.rlim_max;
    setrlimit(RLIMIT_NOFILE, &own);
    std::vector<UniqueFd> servers;
    for (int i = 0; i < 100; ++i) {
      servers.push_back(bind_at(dir / format("s{}", i)));
      if (listen(servers.back().get(), 5) != 0) return "listen: " + named(-1) + "\n";
    }
    return connect_outcome(SOCK_STREAM, dir / "s99") + "\n";
  };
  EXPECT_EQ(run_inside(setting(), body), "ok\n") << "the twin";
  for (int i = 0; i < 100; ++i) unlink((dir / format("s{}", i)).c_str());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 60;
  setrlimit(RLIMIT_NOFILE, &few);
  const std::string text = run_inside(setting(), body);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(text.starts_with("listen: ENOBUFS\n")) << text;
  EXPECT_NE(text.find("violation unix-listen"), std::string::npos) << text;
}

TEST_P(Connect, ClosedSocketIsClosedAtOnce) {
  const std::string text = run_inside(setting(), [&] {
    const UniqueFd server = listen_at(dir / "own");
    int late = 0;
    for (int i = 0; i < 3000; ++i) {
      connected(dir / "own");  // and closed again
      const UniqueFd accepted(accept4(server.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      char byte = 0;
      if (read(accepted.get(), &byte, 1) != 0) ++late;
    }
    return format("{} late\n", late);
  });
  EXPECT_EQ(text, "0 late\n");
}

// What an agent that keeps keys does (ssh-agent): memory and descriptors are then open to the owner of the user namespace only.
TEST(InsideHelper, DISABLED_NonDumpable) {
  prctl(PR_SET_DUMPABLE, 0);
  const UniqueFd server = listen_at(getenv("BELLJAR_TEST_SOCKET"));
  _exit(connect_outcome(SOCK_STREAM, getenv("BELLJAR_TEST_SOCKET")) == "ok" ? 0 : 1);
}

TEST_P(Connect, NonDumpableProgramConnects) {
  const std::string text = run_inside(setting(), [&] {
    const std::string variable = "BELLJAR_TEST_SOCKET=" + (dir / "own");
    const pid_t child = fork();
    if (child == 0) {
      const char* const argv[] = {"test", "--gtest_also_run_disabled_tests", "--gtest_filter=InsideHelper.DISABLED_NonDumpable",
                                  nullptr};
      const char* const env[] = {variable.c_str(), nullptr};
      close(STDOUT_FILENO);
      execve("/proc/self/exe", const_cast<char**>(argv), const_cast<char**>(env));
      _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return format("{}\n", status);
  });
  EXPECT_EQ(text, "0\n");
}

TEST_P(Connect, ViolationsAreBounded) {
  const UniqueFd server = host_service(dir / "host");
  Setting few = setting();
  few.options.max_violations = 2;
  const std::string text = run_inside(few, [&] {
    for (int i = 0; i < 5; ++i) connect_outcome(SOCK_STREAM, dir / "host");
    return std::string();
  });
  const std::string line = "violation unix-connect " + (dir / "host") + " EACCES\n";
  EXPECT_EQ(text, line + line + "dropped 3\n");
}

TEST_P(Connect, DeadOwnSocketsMakeRoom) {
  Setting few = setting();
  few.options.max_own_sockets = 8;
  const std::string text = run_inside(few, [&] {
    std::string result;
    for (int i = 0; i < 40; ++i) {
      const UniqueFd server = listen_at(dir / format("s{}", i));  // closed, file left behind
      if (connect_outcome(SOCK_STREAM, dir / format("s{}", i)) != "ok") result += "no\n";
    }
    result += connect_outcome(SOCK_STREAM, dir / "s0") + "\n";
    std::vector<UniqueFd> alive;
    for (int i = 0; i < 10; ++i) {
      alive.push_back(bind_at(dir / format("t{}", i)));
      if (listen(alive.back().get(), 1) != 0) result += format("{}: {}\n", i, strerrorname_np(errno));
    }
    return result;
  });
  EXPECT_EQ(text, "ECONNREFUSED\n8: ENOBUFS\n9: ENOBUFS\nviolation unix-listen  ENOBUFS\nviolation unix-listen  ENOBUFS\n");
}

// A client waits a second for the server of a new socket; fifty connects to one of the host's wait once.
TEST(OwnSockets, WhatWasWaitedForInVainIsNoLongerNew) {
  const TempDir place;
  const auto open = [&](const char* name) { return UniqueFd(::open(place.write(name, "").c_str(), O_PATH | O_CLOEXEC)); };
  const UniqueFd one = open("one"), other = open("other");
  broker::OwnSockets own(8, {}, 0);
  if (!own.is_new(one.get())) GTEST_SKIP() << "needs birth times";
  own.waited_in_vain(one.get());
  EXPECT_FALSE(own.is_new(one.get()));
  EXPECT_TRUE(own.is_new(other.get())) << "the twin";
}

}  // namespace
}  // namespace belljar::test
