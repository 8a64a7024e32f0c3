#include "kernel/pass_fds.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::kernel {
namespace {

class PassFds : public ::testing::Test {
 protected:
  PassFds() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    to = UniqueFd(ends[0]), from = UniqueFd(ends[1]);
  }
  template <std::size_t kMost>
  std::vector<UniqueFd> owned(const ReceivedFds<kMost>& received) {
    std::vector<UniqueFd> fds;
    for (std::size_t i = 0; i < received.count; ++i) fds.emplace_back(received.fds[i]);
    return fds;
  }
  UniqueFd to, from;
};

TEST_F(PassFds, GoBesideTheBytes) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read(ends[0]), write(ends[1]);
  ASSERT_EQ(send_fds<2>(to.get(), "word", 4, ends, 2), 4);
  read.reset(), write.reset();

  char bytes[8] = {};
  const auto received = receive_fds<2>(from.get(), bytes, sizeof bytes);
  const auto fds = owned(received);
  EXPECT_EQ(received.size, 4);
  EXPECT_EQ(std::string(bytes), "word");
  EXPECT_FALSE(received.cut);
  ASSERT_EQ(fds.size(), 2U);
  for (const UniqueFd& fd : fds) EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::write(fds[1].get(), "x", 1), 1);
  char passed = 0;
  EXPECT_EQ(::read(fds[0].get(), &passed, 1), 1);
  EXPECT_EQ(passed, 'x');
}

TEST_F(PassFds, BytesGoWithoutThem) {
  ASSERT_EQ(send_fds<2>(to.get(), "x", 1, nullptr, 0), 1);
  char byte = 0;
  const auto received = receive_fds<2>(from.get(), &byte, 1);
  EXPECT_EQ(received.size, 1);
  EXPECT_EQ(received.count, 0U);
  EXPECT_FALSE(received.cut);
}

// CMSG_SPACE(3 * sizeof(int)) has room for a fourth, which would lie behind the array.
TEST_F(PassFds, MoreThanThereIsRoomForAreCut) {
  const int four[] = {0, 0, 0, 0};
  ASSERT_EQ(send_fds<4>(to.get(), "x", 1, four, 4), 1);
  char byte = 0;
  const auto received = receive_fds<3>(from.get(), &byte, 1);
  const auto fds = owned(received);
  EXPECT_EQ(received.count, 3U);
  EXPECT_TRUE(received.cut);
}

TEST_F(PassFds, BytesThatAreLostAreToldOf) {
  ASSERT_EQ(send_fds<1>(to.get(), "long", 4, nullptr, 0), 4);
  char byte = 0;
  const auto received = receive_fds<1>(from.get(), &byte, 1);
  EXPECT_EQ(received.size, 1);
  EXPECT_TRUE(received.cut);
}

TEST_F(PassFds, TheEndAndErrorsAreThoseOfTheCalls) {
  char byte = 0;
  EXPECT_EQ(receive_fds<1>(from.get(), &byte, 1, MSG_DONTWAIT).size, -1);
  EXPECT_EQ(errno, EAGAIN);
  to.reset();
  EXPECT_EQ(receive_fds<1>(from.get(), &byte, 1).size, 0);
  EXPECT_EQ(send_fds<1>(from.get(), "x", 1, nullptr, 0), -1);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace belljar::kernel
