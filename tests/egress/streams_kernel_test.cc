// Streams of HTTP/2 through the proxy, on real sockets; TLS alone is left out. Each is judged, recorded, limited and cut by itself.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "egress/proxy.h"
#include "egress/support_h2.h"
#include "egress/support_proxy.h"
#include "egress/support_streams.h"
#include "support/eventually.h"
#include "support/time_enough.h"

namespace belljar::egress {
namespace {

using namespace belljar::test;
using namespace std::chrono_literals;

TEST_F(StreamsTest, EachIsJudgedAndRecordedByItself) {
  const ManyServer server(answer_target);
  look(server.get());
  Client client(port_, server.get().port());
  client.ask(1, "/a/x");
  client.ask(3, "/b");
  client.ask(5, "/a/y");
  client.ask(7, "/a/../b");
  client.ask(9, "/a", kEndStream | kEndHeaders, {{"host", "other.test"}});
  EXPECT_EQ(client.body(1) + client.body(5), "GET /a/xGET /a/y");
  EXPECT_EQ(client.status(3) + client.status(7) + client.status(9), "403403400");
  EXPECT_NE(client.body(3).find("not among the requests that may go to web.test"), std::string::npos) << client.body(3);
  EXPECT_EQ(server.get().accepted(), 2) << "what was dialled for the tunnel serves one of them";
  auto found = reasons();
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"allowed", "allowed", "malformed", "request", "request"}));
}

TEST_F(StreamsTest, AnotherAuthorityIsRefused) {
  const ManyServer server(answer_target);
  look(server.get());
  Client client(port_, server.get().port());
  h2::Fields fields = get_fields("/a");
  client.say(client.talker().headers(1, fields));
  EXPECT_EQ(client.status(1), "200") << "a port that is left out is the one that was asked for";
  fields[2].value = "other.test";
  client.say(client.talker().headers(3, fields));
  EXPECT_EQ(client.status(3), "421");
  client.say(client.talker().headers(5, get_fields("/a", {{"upgrade", "websocket"}})));
  EXPECT_EQ(client.reset(5), 1) << "PROTOCOL_ERROR";
  client.ask(7, "/a/z");
  EXPECT_EQ(client.body(7), "GET /a/z") << "the connection lives on";
  auto found = reasons();  // in the order of their ends, which the heads of their answers do not tell
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"allowed", "allowed", "malformed", "malformed"}));
}

TEST_F(StreamsTest, LimitedPassesNoBody) {
  const ManyServer server(answer_target);
  look(server.get(), {.methods = Methods::kLimited});
  Client client(port_, server.get().port());
  client.ask(1, "/a", kEndHeaders, {{"content-length", "3"}});
  client.ask(3, "/a", kEndHeaders);
  client.ask(5, "/a");
  EXPECT_EQ(client.status(1) + client.status(3), "413413");
  EXPECT_EQ(client.body(5), "GET /a") << "the twin";
  EXPECT_EQ(proxy_->stop().violations[0].rule, "network.methods");
}

TEST_F(StreamsTest, RulesThatChangeCutThoseTheyNoLongerAllow) {
  const ManyServer server(answer_target);
  look(server.get(), {}, {"GET web.test/a", "GET web.test/c"});
  Client client(port_, server.get().port());
  client.ask(1, "/a/slow");
  client.ask(3, "/c/slow");
  EXPECT_EQ(client.status(1) + client.status(3), "200200");
  Network network;
  network.allowed_domains = {address(server.get())};
  network.allowed_requests = {"GET web.test/a"};
  proxy_->set_rules(policy::make_host_rules(network).value());
  EXPECT_EQ(client.reset(3), 2) << "INTERNAL_ERROR: its answer is not whole";
  client.ask(5, "/c");
  EXPECT_EQ(client.status(5), "403");
  client.ask(7, "/a");
  EXPECT_EQ(client.status(7), "200");
  client.say(frame(kReset, 0, 1, number(8)));
  const auto found = reasons();
  ASSERT_GE(found.size(), 3U);
  EXPECT_EQ(found[0], "rules");
}

TEST_F(StreamsTest, AClientThatCancelsEndsItsServersConnection) {
  std::atomic<bool> left{false};
  const ManyServer server([&left](int fd) {
    answer_target(fd);
    left = true;
  });
  look(server.get());
  Client client(port_, server.get().port());
  client.ask(1, "/a/slow");
  EXPECT_EQ(client.status(1), "200");
  EXPECT_FALSE(left);
  client.say(frame(kReset, 0, 1, number(8)));
  client.until([&left] { return left.load(); });
  EXPECT_TRUE(left);
  client.ask(3, "/a");
  EXPECT_EQ(client.body(3), "GET /a");
}

TEST_F(StreamsTest, EachCountsAsAConnection) {
  const ManyServer server(answer_target);
  look(server.get(), {.max_connections = 3});
  Client client(port_, server.get().port());
  client.ask(1, "/a/slow");
  client.ask(3, "/a/slow");
  EXPECT_EQ(client.status(1) + client.status(3), "200200");
  client.ask(5, "/a");
  EXPECT_EQ(client.reset(5), 7) << "REFUSED_STREAM: it may be asked again";
  client.say(frame(kReset, 0, 1, number(8)));
  std::string answered;
  std::uint32_t stream = 7;
  EXPECT_TRUE(eventually([&] {
    client.ask(stream, "/a");
    answered = client.body(stream);
    stream += 2;
    return !answered.empty();
  }));
  EXPECT_EQ(answered, "GET /a");
}

TEST_F(StreamsTest, BytesThatAreUsedUpEndThem) {
  const ManyServer server([](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + std::string(3000, 'x'));
  });
  look(server.get(), {.max_bytes = 5000});
  Client client(port_, server.get().port());
  client.ask(1, "/a");
  EXPECT_EQ(client.body(1).size(), 3000U);
  client.ask(3, "/a");
  EXPECT_EQ(client.reset(3), 2);
  client.ask(5, "/a");
  EXPECT_EQ(client.status(5), "403");
  EXPECT_EQ(reasons(), (std::vector<std::string>{"allowed", "egress_bytes", "egress_bytes"}));
}

TEST_F(StreamsTest, AnIdleOrSlowClientIsSentAway) {
  const ManyServer server(answer_target);
  const auto body = with_time_enough(
      [&](std::chrono::milliseconds time) {
        ProxyOptions options;
        options.timeouts.idle_client = options.timeouts.head = time;
        look(server.get(), std::move(options));
        Client idle(port_, server.get().port()), slow(port_, server.get().port());
        idle.ask(1, "/a");
        std::string answer = idle.body(1);
        slow.say(frame(kHeaders, kEndStream, 1, slow.talker().block(get_fields("/a"))));  // and no END_HEADERS
        EXPECT_TRUE(idle.ends());
        EXPECT_EQ(idle.goaway(), 0);
        EXPECT_TRUE(slow.ends());
        EXPECT_EQ(slow.goaway(), 0);
        return answer;
      },
      [](const std::string& answer) { return !answer.empty(); });
  EXPECT_EQ(body, "GET /a");
}

TEST_F(StreamsTest, AServerThatTakesNothingHoldsLittleAndNobodyUp) {
  std::atomic<bool> enough{false};
  const ManyServer server([&enough](int fd) {
    if (read_until(fd, "\r\n\r\n").find("POST") == std::string::npos)
      return send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    enough.wait(false);
  });
  look(server.get(), {}, {"GET web.test/a", "POST web.test/a"});
  Client client(port_, server.get().port());
  h2::Fields fields = get_fields("/a");
  fields[0].value = "POST";
  client.say(client.talker().headers(1, fields, kEndHeaders));
  // As much as it lets us: the window of the stream is opened again until the server's socket is full.
  std::size_t given = 0;
  const std::string piece(16'000, 'x');
  while (given + piece.size() <= client.window(1) && given < 100'000'000) {
    client.say(frame(kData, 0, 1, piece));
    given += piece.size();
    // It is opened twice, however long that takes; that it is not opened any more is seen by waiting, and never too late.
    const auto patience = given <= 2U * 65'535 ? 60s : 1s;
    client.hear(given + piece.size() > client.window(1) ? patience : 0s);
  }
  EXPECT_GT(given, 2U * 65'535) << "its window was opened again";
  EXPECT_LT(given, 50'000'000U) << "sockets hold some, we at most half a megabyte";
  client.ask(3, "/a");
  EXPECT_EQ(client.body(3), "ok");
  enough = true;
  enough.notify_all();
}

TEST_F(StreamsTest, AClientThatTakesNothingHoldsLittleAndNobodyUp) {
  std::atomic<std::size_t> given{0};
  const ManyServer server([&given](int fd) {
    const bool big = read_until(fd, "\r\n\r\n").find("/a/big") != std::string::npos;
    if (!big) return send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n");
    const std::string piece(60'000, 'x');
    for (int i = 0; i < 500; ++i) {
      if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return;
      given += piece.size();
    }
  });
  look(server.get());
  Client client(port_, server.get().port());
  client.ask(1, "/a/big");
  EXPECT_TRUE(client.until([&] { return client.size(1) == 65'535; })) << "the stream's window";
  client.say(frame(kWindow, 0, 0, number(1 << 20)));  // the connection's is open
  client.ask(3, "/a");
  EXPECT_EQ(client.body(3), "ok");
  std::this_thread::sleep_for(300ms);  // for what is not to come: where that takes longer, this only proves less
  EXPECT_EQ(client.size(1), 65'535U);
  EXPECT_LT(given, 20'000'000U) << "the rest waits in the server: sockets hold some, we at most half a megabyte";
  client.say(frame(kWindow, 0, 0, number(70'000'000)) + frame(kWindow, 0, 1, number(70'000'000)));
  EXPECT_EQ(client.body(1).size(), 30'000'000U);
}

}  // namespace
}  // namespace belljar::egress
