// What may be sent to the handover socket, by peers of the test's own.
#include "backend/container/socket_handover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/container/inside.h"
#include "backend/container/records.h"
#include "egress/inner_sockets.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::backend::container {
namespace {

namespace fs = std::filesystem;
using launch::InnerSocket;
using Kind = InnerSocket::Kind;
using Purpose = InnerSocket::Purpose;

const std::vector<InnerSocket> kAsked = {{.purpose = Purpose::kProxy, .port = 3128},
                                         {.purpose = Purpose::kDiag, .kind = Kind::kDiag},
                                         {.purpose = Purpose::kDns, .kind = Kind::kDatagram, .address = 0, .port = 53}};

UniqueFd listener() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  return fd;
}
UniqueFd datagram() { return UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }
UniqueFd diag() { return UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 4)); }

std::string numbers(const std::vector<std::uint32_t>& values) {
  std::string bytes;
  for (const std::uint32_t value : values) bytes += make_record('x', 0, value).substr(9);
  return bytes;
}

class ContainerSocketHandover : public testing::Test {
 protected:
  ContainerSocketHandover() : handover_(SocketHandover::open(state_.path())) { EXPECT_TRUE(handover_) << handover_.error().line(); }
  ~ContainerSocketHandover() override { EXPECT_TRUE(fs::is_empty(state_.path())) << "a door leaves nothing"; }

  // As pid 1: connects, sends and goes.
  void send(const std::string& bytes, const std::vector<UniqueFd>& fds) const {
    const UniqueFd peer(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const UniqueFd at(::open(handover_->directory().c_str(), O_PATH | O_CLOEXEC));
    const std::string path = "/proc/self/fd/" + std::to_string(at.get()) + "/socket";
    std::memcpy(name.sun_path, path.c_str(), path.size());
    ASSERT_EQ(::connect(peer.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 200)]{};
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      for (std::size_t i = 0; i < fds.size(); ++i) {
        const int fd = fds[i].get();
        std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
      }
    }
    ASSERT_GE(::sendmsg(peer.get(), &message, MSG_NOSIGNAL), 0);
  }
  std::vector<UniqueFd> three() const {
    std::vector<UniqueFd> fds;
    fds.push_back(listener());
    fds.push_back(diag());
    fds.push_back(datagram());
    return fds;
  }
  Result<HandedSockets> receive(bool ours = true) {
    return (*std::move(handover_)).receive(kAsked, [ours](int pid) { return ours && pid == ::getpid(); });
  }
  std::string refusal() {
    const auto taken = receive();
    return taken ? "taken" : std::string(to_string(taken.error().code())) + ": " + taken.error().reason();
  }

  const belljar::test::TempDir state_;
  Result<SocketHandover> handover_;
};

TEST_F(ContainerSocketHandover, GivesWhatWasAskedForAndIsGone) {
  const std::string directory = handover_->directory();
  send(numbers({0, 0, 0}), three());
  const auto taken = receive();
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(taken->errnos, (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(taken->pid, ::getpid());
  for (const UniqueFd& socket : taken->sockets) EXPECT_TRUE(socket.valid());
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(ContainerSocketHandover, WhatCouldNotBeMadeIsSaid) {
  std::vector<UniqueFd> two = three();
  two.pop_back();
  send(numbers({0, 0, EACCES}), two);
  const auto taken = receive();
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(taken->errnos[2], EACCES);
  EXPECT_TRUE(taken->sockets[1].valid());
  EXPECT_FALSE(taken->sockets[2].valid());
}

TEST_F(ContainerSocketHandover, OnlyWeCanGetToItsSocketOnThisMachine) {
  struct stat outer{}, inner{};
  const fs::path directory = handover_->directory();
  ASSERT_EQ(::stat(directory.parent_path().c_str(), &outer), 0);
  ASSERT_EQ(::stat((directory / "socket").c_str(), &inner), 0);
  EXPECT_EQ(outer.st_mode & 0777, 0700U);
  EXPECT_EQ(inner.st_mode & 0777, 0666U) << "whoever the commands are, pid 1 is";
  (void)receive();
}

TEST_F(ContainerSocketHandover, NobodyComes) {
  EXPECT_EQ(refusal(), "failed_precondition: its pid 1 greeted and passed out no sockets");
}

TEST_F(ContainerSocketHandover, AnotherPeerIsPassedOver) {
  send(numbers({0, 0, 0}), three());
  EXPECT_EQ(receive(false).error().reason(), "who came with sockets is not its pid 1, or /proc does not show that it is");
}

TEST_F(ContainerSocketHandover, AnotherPeerDoesNotKeepPid1FromIt) {
  send("rubbish", {});
  send(numbers({0, 0, 0}), three());
  int asked = 0;
  EXPECT_TRUE((*std::move(handover_)).receive(kAsked, [&asked](int) { return ++asked == 2; }));
}

TEST_F(ContainerSocketHandover, RubbishIsRefused) {
  send("rubbish", {});
  EXPECT_EQ(refusal(), "data_loss: its pid 1 passed out something else than was asked for: 7 bytes");
}

TEST_F(ContainerSocketHandover, NothingAtAllIsRefused) {
  send("", {});
  EXPECT_EQ(refusal(), "data_loss: its pid 1 passed out something else than was asked for: 0 bytes");
}

TEST_F(ContainerSocketHandover, FewerDescriptorsAreRefused) {
  std::vector<UniqueFd> two = three();
  two.pop_back();
  send(numbers({0, 0, 0}), two);
  EXPECT_EQ(refusal(), "data_loss: its pid 1 passed out something else than was asked for: 2 descriptors instead of 3");
}

TEST_F(ContainerSocketHandover, MoreDescriptorsAreRefusedAndClosed) {
  const auto open_files = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); };
  std::vector<UniqueFd> many = three();
  for (int i = 0; i < 150; ++i) many.push_back(datagram());
  send(numbers({0, 0, 0}), many);
  many.clear();
  const auto before = open_files();
  EXPECT_EQ(refusal(), "data_loss: its pid 1 passed out something else than was asked for: 153 descriptors instead of 3");
  EXPECT_LE(open_files(), before);
}

TEST_F(ContainerSocketHandover, DescriptorsOfAnotherKindAreRefused) {
  std::vector<UniqueFd> mixed;
  mixed.push_back(datagram());
  mixed.push_back(diag());
  mixed.push_back(listener());
  send(numbers({0, 0, 0}), mixed);
  EXPECT_EQ(refusal(), "data_loss: its pid 1 passed out something else than was asked for: descriptor 1 is of another kind");
}

// The program itself, in our own network.
TEST_F(ContainerSocketHandover, Pid1SendsWhatItIsAskedForAndKeepsNoCopy) {
  const belljar::test::TempDir programs;
  const auto installed = install_inside(programs.path());
  ASSERT_TRUE(installed) << installed.error().line();
  const auto port_of = [](int fd) {
    sockaddr_in name{};
    socklen_t size = sizeof name;
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
    return ntohs(name.sin_port);
  };
  const auto connects = [](std::uint16_t port) {
    const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(port);
    return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  };
  const UniqueFd occupied = listener();
  const std::vector<InnerSocket> asked = {
      {.port = 0}, {.port = port_of(occupied.get())}, {.kind = Kind::kMaker}, {.kind = Kind::kDiag}, {.kind = Kind::kDatagram}};
  std::vector<std::string> words = handover_arguments(asked);
  words[1] = handover_->directory() + "/socket";
  words.insert(words.begin(), installed->program);
  belljar::test::Running pid1(words);
  ASSERT_TRUE(pid1.wait_for_output("h")) << pid1.err();
  auto taken = (*std::move(handover_)).receive(asked, [&](int pid) { return pid == pid1.pid(); });
  ASSERT_TRUE(taken) << taken.error().line();
  EXPECT_EQ(taken->errnos, (std::vector<int>{0, EADDRINUSE, 0, 0, 0}));

  egress::InnerSockets maker(std::move(taken->sockets[2]));
  ASSERT_TRUE(maker.ask(7, false));
  pollfd wait{maker.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
  const auto made = maker.take();
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->second.valid());

  const std::uint16_t port = port_of(taken->sockets[0].get());
  EXPECT_TRUE(connects(port));
  taken->sockets[0].reset();
  EXPECT_FALSE(connects(port)) << "ours was the only one";
}

TEST(ContainerPid1, ThatFindsNoDoorEndsAndSaysWhy) {
  const belljar::test::TempDir programs;
  const auto installed = install_inside(programs.path());
  ASSERT_TRUE(installed);
  const auto ended = belljar::test::run({installed->program, "--door", "/nonexistent/socket", "--socket", "L2130706433:0"});
  EXPECT_EQ(ended.exit_code, 5);
  EXPECT_EQ(ended.err, "belljar-inside: cannot pass the sockets of the network out: No such file or directory\n");
  EXPECT_EQ(ended.out, "") << "and does not greet";
  EXPECT_EQ(belljar::test::run({installed->program, "--socket", "X1:2"}).exit_code, 2);
}

TEST(ContainerSocketHandoverWords, TellPid1WhatToMake) {
  EXPECT_EQ(handover_arguments(kAsked), (std::vector<std::string>{"--door", "/.belljar/door/socket", "--socket", "L2130706433:3128",
                                                                  "--socket", "N2130706433:0", "--socket", "D0:53"}));
}

// --- the directory

TEST(ShownDirs, GoWithWhoMadeThem) {
  const belljar::test::TempDir state;
  std::string kept;
  {
    const auto one = ShownDir::create(state.path());
    ASSERT_TRUE(one);
    const auto file = one->write("file", "content");
    ASSERT_TRUE(file);
    struct stat facts{};
    ASSERT_EQ(::stat(file->c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0444U);
    const auto two = ShownDir::create(state.path());
    ASSERT_TRUE(two);
    EXPECT_TRUE(fs::exists(one->path())) << "one that is in use stays";
    kept = one->path();
  }
  EXPECT_FALSE(fs::exists(kept));
  EXPECT_TRUE(fs::is_empty(state.path()));
}

TEST(ShownDirs, OfAKilledProcessGoWhenTheNextIsMade) {
  const belljar::test::TempDir state;
  const pid_t front = ::fork();
  if (front == 0) {
    const auto left = ShownDir::create(state.path());
    (void)left->write("file", "content");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(front, nullptr, 0);
  EXPECT_FALSE(fs::is_empty(state.path()));
  {
    const auto next = ShownDir::create(state.path());
    ASSERT_TRUE(next);
    EXPECT_EQ(std::distance(fs::directory_iterator(state.path()), fs::directory_iterator()), 1);
  }
  EXPECT_TRUE(fs::is_empty(state.path()));
}

}  // namespace
}  // namespace belljar::backend::container
