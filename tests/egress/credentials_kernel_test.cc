// What a host says that knows a credential's value, on its way through the proxy: it may stand in any part of an answer, and be
// asked for in the clear.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "egress/credentials.h"
#include "egress/proxy.h"
#include "egress/support_proxy.h"
#include "policy/tls_interception.h"
#include "support/has.h"

namespace belljar::egress {
namespace {

using test::has;

constexpr char kValue[] = "ghp_0realSecretValue0123456789abcdef";

class Answers : public ProxyTest {
 protected:
  // A proxy that knows a credential for web.example, which `server` is.
  void know(const Server& server, const std::string& host = "web.example") {
    names_.answers["web.example"] = names_.answers["other.example"] = {"127.0.0.1"};
    ProxyOptions options;
    options.credentials = Credentials(
        {key_ = {policy::parse_credential("KEY for " + host).value(), make_placeholder(kValue, "0123456789abcdefghij"), kValue}});
    start({"web.example", "other.example", address(server)}, {}, std::move(options));
  }
  std::string ask(const Server& server, const std::string& host = "web.example", const std::string& method = "GET") const {
    return talk(format("{0} http://{1}:{2}/ HTTP/1.1\r\nHost: {1}:{2}\r\nConnection: close\r\n\r\n", method, host, server.port()));
  }

  Credential key_;
};

// A server that answers everything with `text`.
std::function<void(int)> saying(std::string text) {
  return [text = std::move(text)](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, text);
    ::shutdown(fd, SHUT_WR);
  };
}

const std::string kOk = "HTTP/1.1 200 OK\r\n";

TEST_F(Answers, NoPartOfOneBringsAValueBack) {
  const std::string value = kValue, length = "Content-Length: 2\r\n";
  for (const std::string& text : {
           "HTTP/1.1 200 " + value + "\r\n" + length + "\r\nok",
           kOk + value + ": x\r\n" + length + "\r\nok",
           kOk + "X: " + value + "\r\n" + length + "\r\nok",
           "HTTP/1.1 103 Early\r\n" + value + ": " + value + "\r\n\r\n" + kOk + length + "\r\nok",
           kOk + "Content-Length: " + std::to_string(value.size()) + "\r\n\r\n" + value,
           kOk + "Transfer-Encoding: chunked\r\n\r\n2;x=" + value + "\r\nok\r\n0\r\nX-Trailer: " + value + "\r\n\r\n",
       }) {
    const Server server(saying(text));
    know(server);
    const std::string answer = ask(server);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 ")) << answer;
    EXPECT_FALSE(has(answer, value)) << answer;
    EXPECT_FALSE(has(answer, " 502 ")) << answer;
    // The twin: who has no value may say what it likes.
    EXPECT_TRUE(has(ask(server, "other.example"), value)) << text;
  }
}

TEST_F(Answers, OurOwnRefusalsQuoteNothingOfTheServers) {
  const std::string value = kValue, length = "Content-Length: 2\r\n";
  for (const std::string& text : {
           kOk + "Content-Encoding: " + value + "\r\n" + length + "\r\nok",
           kOk + "Transfer-Encoding: " + value + "\r\n\r\n2\r\nok\r\n0\r\n\r\n",
           kOk + "Content-Encoding: gzip, " + value + "\r\n" + length + "\r\nok",
       }) {
    const Server server(saying(text));
    know(server);
    const std::string answer = ask(server);
    EXPECT_TRUE(has(answer, " 502 the answer of web.example")) << answer;
    EXPECT_TRUE(has(answer, "is encoded although that was not asked for")) << answer;
    EXPECT_FALSE(has(answer, value)) << answer;
  }
}

TEST_F(Answers, APartOfAnAnswerIsRefused) {
  const std::string part = "Content-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nok";
  for (const std::string& text : {"HTTP/1.1 206 Partial Content\r\n" + part, kOk + part,
                                  std::string("HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nok")}) {
    const Server server(saying(text));
    know(server);
    EXPECT_TRUE(has(ask(server), "is a part although that was not asked for")) << text;
    EXPECT_TRUE(ask(server, "other.example").ends_with("ok")) << text;
  }
}

TEST_F(Answers, ATunnelInTheClearBringsNoValueBack) {
  const Server server([](int fd) {
    read_until(fd, "\n");
    send_all(fd, std::string("kept: ") + kValue + "\n");
    ::shutdown(fd, SHUT_WR);
  });
  know(server, "web.example:443");  // so that nothing looks into other ports
  const auto tunnel = [&](const std::string& host) {
    return talk(format("CONNECT {}:{} HTTP/1.1\r\n\r\nget\n", host, server.port()));
  };
  EXPECT_TRUE(tunnel("web.example").ends_with("kept: " + key_.placeholder + "\n"));
  EXPECT_TRUE(tunnel("other.example").ends_with(std::string("kept: ") + kValue + "\n"));
}

// A value in two fragments with a ping between them; then a frame that could hide one.
TEST_F(Answers, FragmentsOfAWebsocketBringNoValueBack) {
  const std::string value = kValue, half = value.substr(0, 11), rest = value.substr(11);
  const auto frame = [](char first, const std::string& payload) {
    return std::string{first, static_cast<char>(payload.size())} + payload;
  };
  const auto stream = [&](const std::string& one, const std::string& two) {
    return frame('\x01', "got " + one) + frame('\x89', "ping") + frame('\x80', two + "!");
  };
  const std::string head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
  std::string more;
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, head);
    read_until(fd, "on");
    send_all(fd, stream(half, rest).substr(0, 9));
    read_until(fd, "go");
    send_all(fd, stream(half, rest).substr(9) + more);
    (void)read_all(fd);
  });
  know(server);
  const auto talk_on = [&] {
    const UniqueFd fd = connect_loopback(port_);
    send_all(fd.get(), format("GET http://web.example:{0}/ HTTP/1.1\r\nHost: web.example:{0}\r\nConnection: Upgrade\r\n"
                              "Upgrade: websocket\r\n\r\n",
                              server.port()));
    EXPECT_TRUE(has(read_until(fd.get(), "\r\n\r\n"), " 101 "));
    send_all(fd.get(), "on");
    std::string heard = read_until(fd.get(), "got ");
    send_all(fd.get(), "go");
    heard += read_until(fd.get(), "!");
    if (more.empty()) ::shutdown(fd.get(), SHUT_WR);
    return heard + read_all(fd.get());
  };
  EXPECT_EQ(talk_on(), stream(key_.placeholder.substr(0, 11), key_.placeholder.substr(11)));
  more = frame('\xC1', "packed");
  EXPECT_EQ(talk_on(), stream(key_.placeholder.substr(0, 11), key_.placeholder.substr(11)) + "<reset>");
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].reason, "allowed");
}

// A few letters that a value may begin with wait for more of it, but not for ever.
TEST_F(Answers, SilenceBringsTheLastLetters) {
  const Server server([](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, kOk + "Transfer-Encoding: chunked\r\n\r\n4\r\nping\r\n");
    test::hold(fd);  // says no more
  });
  know(server);
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(), format("GET http://web.example:{0}/ HTTP/1.1\r\nHost: web.example:{0}\r\n\r\n", server.port()));
  EXPECT_TRUE(read_until(fd.get(), "1\r\ng\r\n").ends_with("3\r\npin\r\n1\r\ng\r\n"));
}

TEST_F(Answers, SilenceBringsTheLastLettersOfATunnelToo) {
  const Server server([](int fd) {
    send_all(fd, "ping");
    if (read_until(fd, "more\n") == "more\n") send_all(fd, std::string(kValue).substr(1) + " ping");
    test::hold(fd);
  });
  know(server);
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(), format("CONNECT web.example:{} HTTP/1.1\r\n\r\n", server.port()));
  EXPECT_TRUE(read_until(fd.get(), "ping").ends_with("ping"));
  send_all(fd.get(), "more\n");  // the rest of the value after the letter that is out
  EXPECT_EQ(read_until(fd.get(), "ping"), key_.placeholder.substr(1) + " ping");
}

// What comes from `before` on until nothing more does.
std::string heard_from(int fd, const std::string& before) {
  std::string heard = read_until(fd, before);
  timeval patience{.tv_sec = 0, .tv_usec = 200'000};  // four times the silence that brings a beginning
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char byte = 0;
  while (::recv(fd, &byte, 1, 0) > 0) heard += byte;
  patience = {.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return heard.substr(heard.find(before));
}

// A server that says what it was told is an oracle where right letters wait and wrong ones do not.
TEST_F(Answers, WhatWaitsDoesNotTellWhichLettersAreRight) {
  const std::string head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
  const auto ask_for = [](const std::string& method, const std::string& more) {
    return method + " http://web.example:{0}/ HTTP/1.1\r\nHost: web.example:{0}\r\n" + more + "\r\n";
  };
  struct Way {
    std::string request, before, after;  // what the server says before the guess, and behind it once it goes on
    std::string seen = "ng ";
  };
  const Way ways[] = {
      {ask_for("POST", "Content-Length: 2\r\n"), kOk + "Transfer-Encoding: chunked\r\n\r\na\r\npong ", "\r\n3\r\n no\r\n0\r\n\r\n",
       "ng \r\n"},
      {ask_for("POST", "Content-Length: 2\r\n"), kOk + "Content-Length: 13\r\n\r\nping ", " no"},
      {ask_for("GET", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), head + "\x81\x0Aping ", "\x81\x03 no"},
      {"CONNECT web.example:{0} HTTP/1.1\r\n\r\n\r\n\r\n", "ping ", " no"},
  };
  for (const Way& way : ways) {
    std::string guess, wanted;
    const Server server([&](int fd) {
      read_until(fd, "\r\n\r\n");
      send_all(fd, way.before + guess);
      read_until(fd, "go");
      send_all(fd, way.after);
      ::shutdown(fd, SHUT_WR);
    });
    know(server);
    for (const std::string said : {"ghp_0", "ghp_1", "ghp_.", "ghp_%"}) {
      guess = said;
      const UniqueFd fd = connect_loopback(port_);
      std::string request = way.request;
      for (std::size_t at = request.find("{0}"); at != std::string::npos; at = request.find("{0}"))
        request.replace(at, 3, std::to_string(server.port()));
      send_all(fd.get(), request);
      std::string heard = heard_from(fd.get(), way.seen);
      EXPECT_FALSE(has(heard, "gh")) << heard;
      send_all(fd.get(), "go");
      heard += read_until(fd.get(), way.seen == "ng " ? " no" : "0\r\n\r\n");
      const std::size_t at = heard.find(said);
      ASSERT_NE(at, std::string::npos) << way.before << heard;
      heard.replace(at, said.size(), "guess");
      if (wanted.empty()) wanted = heard;
      EXPECT_EQ(heard, wanted) << way.before << said;
    }
  }
}

// The twin: a stream of events with letters of a value in them waits for nothing.
TEST_F(Answers, EventsAreNotHeldUp) {
  const std::string events[] = {"data: ghp_0realSecret\n\n", "{\"token\":\"ghp_0realSecret\"}", "two words"};
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, kOk + "Transfer-Encoding: chunked\r\n\r\n");
    for (const std::string& event : events) {
      send_all(fd, format("{:x}\r\n{}\r\n", event.size(), event));
      if (!read_until(fd, "next").ends_with("next")) return;  // only once this one is there
    }
  });
  know(server);
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(),
           format("POST http://web.example:{0}/ HTTP/1.1\r\nHost: web.example:{0}\r\nContent-Length: 12\r\n\r\n", server.port()));
  for (const std::string& event : events) {
    EXPECT_TRUE(has(read_until(fd.get(), event + "\r\n"), format("{:x}\r\n{}\r\n", event.size(), event)));
    send_all(fd.get(), "next");
  }
}

// Half of a value is no answer: what a server has said that breaks off is given out up to there.
TEST_F(Answers, ACutBringsNoHalfOfAValue) {
  const Server server([](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, kOk + "Content-Length: 99\r\n\r\nping " + std::string(kValue).substr(0, 20));
    ::shutdown(fd, SHUT_WR);
  });
  know(server);
  const std::string answer = ask(server);
  EXPECT_TRUE(has(answer, "ping <reset>")) << answer;
  EXPECT_TRUE(has(ask(server, "other.example"), "ping ghp_0realSecret")) << "the twin";
}

}  // namespace
}  // namespace belljar::egress
