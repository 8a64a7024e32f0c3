// Streams of HTTP/2 whose client or server means ill: what they hold, what stays in the record, and rules that change meanwhile.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "egress/intercept.h"
#include "egress/proxy.h"
#include "egress/relay.h"
#include "egress/support_h2.h"
#include "egress/support_proxy.h"
#include "egress/support_streams.h"
#include "support/eventually.h"
#include "support/time_enough.h"

namespace belljar::egress {
namespace {

using namespace belljar::test;
using namespace std::chrono_literals;

void answer_much(int fd) {
  const bool little = read_until(fd, "\r\n\r\n").find("/a/little") != std::string::npos;
  const std::string body(little ? 2 : 100'000, 'x');
  send_all(fd, format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.size()) + body);
}

TEST_F(StreamsTest, AnAnswerThatNobodyTakesGoesOnToCount) {
  const ManyServer server(answer_much);
  look(server.get(), {.max_connections = 3});
  Client client(port_, server.get().port());
  for (std::uint32_t stream : {1U, 3U}) {
    client.ask(stream, "/a");
    EXPECT_TRUE(client.until([&] { return client.size(1) + client.size(3) >= std::min(stream, 2U) * 65'535 / 2; }));
  }
  client.say(frame(kWindow, 0, 0, number(1 << 20)));  // of the connection; not of its streams
  EXPECT_TRUE(client.until([&] { return client.size(1) == 65'535 && client.size(3) == 65'535; }));
  std::this_thread::sleep_for(200ms);  // so that the servers are done; if they are not, they are connections all the same
  client.ask(5, "/a/little");
  EXPECT_EQ(client.reset(5), 7) << "REFUSED_STREAM: what is held for the two others is held by connections";
  client.say(frame(kWindow, 0, 1, number(1 << 20)) + frame(kWindow, 0, 3, number(1 << 20)));
  EXPECT_EQ(client.body(1).size() + client.body(3).size(), 200'000U);
  std::string answered;
  std::uint32_t stream = 7;
  EXPECT_TRUE(eventually([&] {
    client.ask(stream, "/a/little");
    answered = client.body(stream);
    stream += 2;
    return !answered.empty();
  }));
  EXPECT_EQ(answered, "xx");
}

TEST_F(StreamsTest, AnAnswerThatNobodyTakesIsCutInTheEnd) {
  const ManyServer server(answer_much);
  const std::string answers = with_time_enough(
      [&](std::chrono::milliseconds time) {
        ProxyOptions options;
        options.timeouts.answer = time;  // also of what is taken
        look(server.get(), std::move(options));
        Client client(port_, server.get().port());
        client.ask(1, "/a");
        std::string heard;
        if (client.until([&] { return client.size(1) == 65'535 || client.was_reset(1); }) && !client.was_reset(1))
          heard = "window ";
        client.say(frame(kWindow, 0, 0, number(1 << 20)));  // of the connection; not of its stream
        std::uint32_t stream = 3;
        for (int i = 0; i < 12; ++i) {  // what else it does changes nothing
          client.ask(stream, "/a/little");
          heard += client.body(stream);
          stream += 2;
          client.hear(time / 8);
        }
        EXPECT_EQ(client.reset(1), 2) << "INTERNAL_ERROR: its answer is not whole";
        client.ask(stream, "/a/little");
        return heard + client.body(stream);
      },
      [](const std::string& heard) { return heard == "window xxxxxxxxxxxxxxxxxxxxxxxxxx"; }, 3s);
  EXPECT_EQ(answers, "window xxxxxxxxxxxxxxxxxxxxxxxxxx");
}

// What was dialled for the tunnel is in the record, whatever becomes of the requests in it.
TEST_F(StreamsTest, ARequestThatIsResetAtOnceIsRecorded) {
  const ManyServer server(answer_target);
  look(server.get());
  {
    Client client(port_, server.get().port());
    h2::Fields fields = get_fields("/a");
    client.say(client.talker().headers(1, fields) + frame(kReset, 0, 1, number(8)));
    client.ask(3, "/b");
    EXPECT_EQ(client.status(3), "403");
  }
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].host + " " + records[0].protocol, "web.test https");
  EXPECT_EQ(records[0].address, "127.0.0.1");
  EXPECT_FALSE(records[0].allowed);
  EXPECT_EQ(records[1].reason, "request") << "the twin, which was judged";
}

// The connection that was dialled for the tunnel is to an address that the rules no longer open.
TEST_F(StreamsTest, AnAddressThatWasWithdrawnIsNotUsedThoughItWasDialled) {
  const ManyServer server(answer_target);
  for (const bool withdrawn : {true, false}) {
    look(server.get());
    Client client(port_, server.get().port());
    client.say(client.talker().headers(1, get_fields("/a", {{"X-Key", "upper case"}})));
    EXPECT_EQ(client.reset(1), 1);
    Network network;
    if (!withdrawn) network.allowed_domains = {address(server.get())};
    network.allowed_requests = {"GET web.test/a"};
    proxy_->set_rules(policy::make_host_rules(network).value());
    client.ask(3, "/a");
    EXPECT_EQ(client.status(3), withdrawn ? "403" : "200");
    proxy_.reset();
  }
}

TEST_F(StreamsTest, ATransferCodingThatHttp2DoesNotKnowIsRefused) {
  const ManyServer server([](int fd) {
    const std::string asked = read_until(fd, "\r\n\r\n");
    const bool coded = asked.find("/a/coded") != std::string::npos;
    if (asked.find("/unchanged") != std::string::npos)
      return send_all(fd, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
    send_all(fd, format("HTTP/1.1 200 OK\r\nTransfer-Encoding: {}chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", coded ? "gzip, " : ""));
  });
  look(server.get());
  Client client(port_, server.get().port());
  client.ask(1, "/a/coded");
  EXPECT_EQ(client.status(1), "502") << "nobody would undo it";
  client.ask(3, "/a");
  EXPECT_EQ(client.body(3), "ok");
  client.ask(5, "/a/coded/unchanged");
  EXPECT_EQ(client.status(5), "304") << "nothing in it to undo";
}

// --- one end

// Answers each byte with one, as PING and TLS's KeyUpdate are.
class Parrot final : public SecureStream {
 public:
  void put(std::string_view wire) override { owed_ += wire.size(); }
  std::string take() override { return std::string(std::exchange(owed_, 0), 'x'); }
  State handshake() override { return State::kReady; }
  bool open(std::string&, std::size_t) override { return false; }
  void seal(std::string_view) override {}
  bool reads_ahead() const override { return true; }
  bool ended() const override { return false; }
  bool broken() const override { return false; }
  void end() override {}
  const TlsFault& fault() const override { return fault_; }

 private:
  std::size_t owed_ = 0;
  TlsFault fault_;
};

TEST(End, APeerThatReadsNothingIsReadNoFurtherThanItIsAnswered) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd peer(ends[0]);
  Endpoint end;
  end.fd = UniqueFd(ends[1]);
  end.begin_secure(std::make_unique<Parrot>());
  const std::string piece(10'000, 'p');
  std::size_t said = 0;
  const auto say_all = [&] {
    for (int quiet = 0; quiet < 3 && said < 30'000'000; ++quiet) {
      for (ssize_t size = 0; (size = ::send(peer.get(), piece.data(), piece.size(), MSG_NOSIGNAL)) > 0; quiet = 0)
        said += static_cast<std::size_t>(size);
      end.readable = end.writable = true;
      end.read(1000);
    }
  };
  say_all();
  EXPECT_LT(said, 5'000'000U) << "two sockets and what we hold";
  const std::size_t before = said;
  char buffer[65536];
  std::size_t heard = 0;
  for (ssize_t size = 0; (size = ::recv(peer.get(), buffer, sizeof buffer, 0)) > 0;) heard += static_cast<std::size_t>(size);
  EXPECT_GT(heard, 0U);
  say_all();
  EXPECT_GT(said, before) << "who reads is read";
}

}  // namespace
}  // namespace belljar::egress
