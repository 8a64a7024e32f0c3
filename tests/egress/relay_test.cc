#include "egress/relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <string>

namespace belljar::egress {
namespace {

// An end of ours, and who is behind it.
struct Peer {
  Peer() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    end.fd = UniqueFd(ends[0]);
    end.readable = end.writable = true;
    other = UniqueFd(ends[1]);
  }
  void say(const std::string& text) const {
    EXPECT_EQ(::send(other.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  std::string hear() const {
    char buffer[100];
    const ssize_t got = ::recv(other.get(), buffer, sizeof buffer, 0);
    return {buffer, got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  Endpoint end;
  UniqueFd other;
};

TEST(Direction, ThereIsNoMoreToDoWhereNothingCanBeRead) {
  Peer from, to;
  PipePool pool;
  Direction direction(from.end, to.end);
  EXPECT_FALSE(direction.pump(pool, 16));
  EXPECT_FALSE(from.end.readable) << "it was seen that nothing is there";
  EXPECT_FALSE(direction.pump(pool, 0)) << "or the loop would ask again at once, for as long as the tunnel is idle";
  from.say("abc");
  from.end.readable = true;  // as epoll says
  EXPECT_TRUE(direction.pump(pool, 0));
  EXPECT_FALSE(direction.pump(pool, 16));
  EXPECT_EQ(to.hear(), "abc");
}

TEST(Direction, TheRestOfABrokenEndGoesOnPieceByPiece) {
  Peer from, to;
  Direction direction(from.end, to.end);
  from.end.in = "abcdef";
  from.end.broken = true;
  to.end.writable = false;
  EXPECT_FALSE(direction.deliver_rest(4));
  EXPECT_EQ(direction.bytes(), 4U) << "what is counted is no more than was asked for";
  EXPECT_FALSE(direction.deliver_rest(4)) << "the first is not gone";
  EXPECT_EQ(to.hear(), "");
  to.end.writable = true;
  EXPECT_TRUE(direction.deliver_rest(4));
  EXPECT_EQ(to.hear(), "abcdef");
  EXPECT_EQ(direction.bytes(), 6U);
}

}  // namespace
}  // namespace belljar::egress
