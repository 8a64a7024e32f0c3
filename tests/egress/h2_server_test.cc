// HTTP/2 with a server, over memory: what it may say, what it comes to, and who waits for whom.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "egress/h2/client_side.h"
#include "egress/h2/server_side.h"
#include "egress/streams.h"
#include "egress/support_h2.h"

namespace belljar::egress {
namespace {

using namespace belljar::test;

// Both of our sides against each other.
class WithServer : public testing::Test {
 protected:
  void SetUp() override { EXPECT_EQ(ours_->handshake(), SecureStream::State::kReady); }
  void pass() {
    for (int i = 0; i < 20; ++i) {
      server_->put(ours_->take());
      for (auto& stream : server_->take_opened()) stream_ = std::move(stream), end_ = std::make_unique<StreamEnd>(stream_);
      ours_->put(server_->take(1 << 20));
      (void)ours_->open(got_, got_.size() + most_);
    }
  }
  std::string request() {
    std::string text;
    if (end_) (void)end_->open(text, 1 << 20);
    return text;
  }

  std::unique_ptr<SecureStream> ours_ = h2::speak_to_server(std::make_unique<Plain>("h2"));
  std::unique_ptr<Streams> server_ = h2::make_streams();
  std::shared_ptr<Stream> stream_;
  std::unique_ptr<StreamEnd> end_;
  std::string got_;
  std::size_t most_ = 1 << 20;
};

TEST_F(WithServer, TextGoesInAndComesOut) {
  ours_->seal(
      "POST /a HTTP/1.1\r\nHost: web.test\r\nX-Key: v\r\nTE: trailers\r\nConnection: close, TE\r\n"
      "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
  pass();
  EXPECT_EQ(request(),
            "POST /a HTTP/1.1\r\nHost: web.test\r\nx-key: v\r\nConnection: TE\r\nte: trailers\r\n"
            "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n");
  ours_->seal("2\r\ncd\r\n0\r\nX-Said: last\r\n\r\n");
  pass();
  EXPECT_EQ(request(), "2\r\ncd\r\n0\r\nx-said: last\r\n\r\n");
  end_->seal("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
  pass();
  EXPECT_EQ(got_, "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n");
  EXPECT_FALSE(ours_->ended());
  end_->seal("0\r\nGrpc-Status: 0\r\nContent-Type: no\r\n\r\n");
  pass();
  EXPECT_TRUE(got_.ends_with("0\r\ngrpc-status: 0\r\n\r\n")) << got_;
  EXPECT_TRUE(ours_->ended());
  EXPECT_FALSE(ours_->broken());
}

TEST_F(WithServer, AStreamThatIsCutIsNoEnd) {
  ours_->seal("GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
  pass();
  EXPECT_EQ(request(), "GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
  end_->seal("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
  end_->abort();
  pass();
  EXPECT_TRUE(ours_->broken());
  EXPECT_FALSE(ours_->ended());
  EXPECT_EQ(ours_->fault().text, "HTTP/2: the stream was closed (INTERNAL_ERROR)");
  EXPECT_FALSE(got_.ends_with("0\r\n\r\n")) << got_;
}

TEST_F(WithServer, WhatNobodyTakesIsBoundedBothWays) {
  ours_->seal("POST / HTTP/1.1\r\nHost: web.test\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::size_t given = 0;
  for (; ours_->room() > 5000 && given < 10'000'000; given += 4096) {
    ours_->seal("1000\r\n" + std::string(4096, 'x') + "\r\n");
    pass();
  }
  EXPECT_LT(given, 300'000U) << "the server takes none";
  EXPECT_GT(request().size(), 65'535U);
  pass();
  EXPECT_GT(ours_->room(), 60'000U) << "it has taken some";
  most_ = 0;
  end_->seal("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (given = 0; end_->room() > 5000 && given < 10'000'000; given += 4096) {
    end_->seal("1000\r\n" + std::string(4096, 'x') + "\r\n");
    pass();
  }
  EXPECT_LT(given, 1'000'000U) << "we take none";
  most_ = 1 << 20;
  pass();
  pass();
  EXPECT_GT(got_.size(), 512U << 10);
  EXPECT_GT(end_->room(), 60'000U);
}

TEST_F(WithServer, AFloodOfItEndsTheConnection) {
  const auto flood = [](const std::string& one, int count) {
    const auto side = h2::speak_to_server(std::make_unique<Plain>("h2"));
    EXPECT_EQ(side->handshake(), SecureStream::State::kReady);
    side->seal("GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
    side->put(frame(kSettings, 0, 0, ""));
    std::string text;
    for (int i = 0; i < count; ++i) {
      side->put(one);
      (void)side->open(text, 1000);
      (void)side->take();
    }
    return side->fault().text;
  };
  const std::string update = frame(kWindow, 0, 0, number(1)), priority = frame(kPriority, 0, 1, number(0) + "x");
  EXPECT_EQ(flood(priority, 500), "");
  EXPECT_EQ(flood(priority, 20'000), "HTTP/2: the server sends too much that is no answer");
  EXPECT_EQ(flood(update, 20'000), "");
}

// A server that pushes before it has heard that we want none: no byte of that is a part of the answer.
TEST_F(WithServer, APushIsNoPartOfTheAnswer) {
  const auto ask = [](bool push) {
    const auto side = h2::speak_to_server(std::make_unique<Plain>("h2"));
    EXPECT_EQ(side->handshake(), SecureStream::State::kReady);
    side->seal("GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
    (void)side->take();
    Talker server;
    constexpr std::uint8_t kPushPromise = 5;
    side->put(frame(kSettings, 0, 0, "") + server.headers(1, {{":status", "200"}}, kEndHeaders));
    if (push)
      side->put(frame(kPushPromise, kEndHeaders, 1, number(2) + server.block(get_fields("/other"))) +
                server.headers(2, {{":status", "200"}}, kEndHeaders) + frame(kData, kEndStream, 2, "pushed"));
    side->put(frame(kData, kEndStream, 1, "asked"));
    std::string text;
    (void)side->open(text, 1000);
    (void)side->take();
    return text;
  };
  EXPECT_EQ(ask(true).find("pushed"), std::string::npos) << ask(true);
  EXPECT_TRUE(ask(false).ends_with("5\r\nasked\r\n0\r\n\r\n")) << ask(false);
}

TEST_F(WithServer, InterimAnswersHaveAnEnd) {
  const auto answer = [](int count) {
    const auto side = h2::speak_to_server(std::make_unique<Plain>("h2"));
    EXPECT_EQ(side->handshake(), SecureStream::State::kReady);
    side->seal("GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
    (void)side->take();
    Talker server;
    side->put(frame(kSettings, 0, 0, ""));
    for (int i = 0; i < count; ++i) side->put(server.headers(1, {{":status", "103"}}, kEndHeaders));
    side->put(server.headers(1, {{":status", "204"}}));
    std::string text;
    (void)side->open(text, 1 << 20);
    (void)side->take();
    return side->fault().text + (text.find(" 204 ") == std::string::npos ? "" : "whole");
  };
  EXPECT_EQ(answer(10), "whole");
  EXPECT_EQ(answer(1000), "HTTP/2: too many interim answers");
}

TEST_F(WithServer, WhatIsNoHttp2IsSaidSo) {
  ours_->seal("GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
  ours_->put("HTTP/1.1 400 Bad Request\r\n\r\n");
  std::string text;
  (void)ours_->open(text, 1000);
  (void)ours_->take();
  EXPECT_TRUE(ours_->broken());
  EXPECT_TRUE(ours_->fault().text.starts_with("HTTP/2: ")) << ours_->fault().text;
  EXPECT_EQ(text, "");
}

TEST(WithAnHttp1Server, BytesAreLeftAsTheyAre) {
  const auto stream = h2::speak_to_server(std::make_unique<Plain>("http/1.1"));
  EXPECT_EQ(stream->handshake(), SecureStream::State::kReady);
  stream->seal("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(stream->take(), "GET / HTTP/1.1\r\n\r\n");
  stream->put("HTTP/1.1 200 OK\r\n");
  std::string text;
  (void)stream->open(text, 1000);
  EXPECT_EQ(text, "HTTP/1.1 200 OK\r\n");
}

}  // namespace
}  // namespace belljar::egress
