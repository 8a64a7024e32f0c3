#include "keeper/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace belljar::keeper {
namespace {

using namespace std::chrono_literals;

struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near = std::make_unique<Channel>(UniqueFd(ends[0]));
    far = std::make_unique<Channel>(UniqueFd(ends[1]));
  }
  std::unique_ptr<Channel> near, far;
};

TEST(Channel, WordsNeedNotBeText) {
  Pair pair;
  const std::string bytes("\xff\x00\xfe", 3);
  ASSERT_TRUE(pair.near->send({{"argv", {bytes, ""}}}));
  const auto got = pair.far->receive(60s);
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->message.at("argv").at(0).get<std::string>(), bytes);
}

TEST(Channel, DescriptorsArriveWithTheirMessage) {
  Pair pair;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read(ends[0]), write(ends[1]);
  ASSERT_TRUE(pair.near->send({{"n", 1}}, {write.get()}));
  ASSERT_TRUE(pair.near->send({{"n", 2}}));
  const auto first = pair.far->receive(60s);
  ASSERT_TRUE(first && *first);
  ASSERT_EQ((*first)->fds.size(), 1U);
  ASSERT_EQ(::write((*first)->fds[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(read.get(), &byte, 1), 1);
  const auto second = pair.far->receive(0ms);
  ASSERT_TRUE(second && *second);
  EXPECT_TRUE((*second)->fds.empty());
}

TEST(Channel, WhatIsNotWholeYetIsKept) {
  Pair pair;
  EXPECT_FALSE(*pair.far->receive(1ms));
  const std::string frame("\x04\x00\x00\x00\xa1\x61\x61\x07", 8);  // {"a": 7}
  for (const char& byte : frame) {
    EXPECT_FALSE(*pair.far->receive(0ms));
    ASSERT_EQ(::send(pair.near->fd(), &byte, 1, 0), 1);
  }
  const auto whole = pair.far->receive(60s);
  ASSERT_TRUE(whole && *whole);
  EXPECT_EQ((*whole)->message.at("a"), 7);
}

TEST(Channel, NonsenseEndsTheConnection) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff", 4), std::string("\x01\x00\x00\x00\xff", 5), std::string("\x01\x00\x00\x00\x01", 5)}) {
    Pair pair;
    ASSERT_EQ(::send(pair.near->fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    EXPECT_FALSE(pair.far->receive(60s).has_value());
  }
}

TEST(Channel, LargeMessagesArriveAndTooLargeOnesAreRefused) {
  Pair pair;
  const std::string large(5'000'000, 'x');
  std::thread sender([&] { EXPECT_TRUE(pair.near->send({{"text", large}})); });
  const auto got = pair.far->receive(60s);
  sender.join();
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->message.at("text").get<std::string>(), large);
  EXPECT_FALSE(pair.near->send({{"text", std::string(17'000'000, 'x')}}));
}

TEST(Channel, AnEndIsAnErrorAndSilenceIsNone) {
  Pair pair;
  const auto silent = pair.far->receive(1ms);
  ASSERT_TRUE(silent);
  EXPECT_FALSE(*silent);
  pair.near.reset();
  EXPECT_FALSE(pair.far->receive(60s).has_value());
  EXPECT_FALSE(pair.far->send({{"a", 1}}));
}

TEST(Channel, AReaderThatSleepsIsNotWaitedForForEver) {
  Pair pair;
  const auto sent = pair.near->send({{"text", std::string(10'000'000, 'x')}}, {}, 20ms);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Code::kDeadlineExceeded);
}

TEST(ErrorMessage, ComesBackAsItWas) {
  const Error error = Error(Code::kNotFound, "what").reason("why").next("then").excerpt("line").sys(2, "open").exit_code(127);
  const Error back = error_from(to_message(error));
  EXPECT_EQ(back.line(), error.line());
  EXPECT_EQ(back.code(), Code::kNotFound);
  EXPECT_EQ(back.exit_code(), 127);
  EXPECT_EQ(back.excerpt(), "line");
}

}  // namespace
}  // namespace belljar::keeper
