// Streams of HTTP/2 through the proxy, on real sockets; TLS alone is left out. Each is judged, recorded, limited and cut by itself.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "egress/h2/client_side.h"
#include "egress/h2/server_side.h"
#include "egress/proxy.h"
#include "egress/support_h2.h"
#include "egress/support_proxy.h"
#include "policy/look.h"

namespace belljar::egress {
namespace {

using namespace belljar::test;
using namespace std::chrono_literals;

constexpr char kHello = 22;  // what a client says first where it begins TLS

// The client's byte that looks like TLS, and then its HTTP/2 in the clear; HTTP/1.1 to the server.
class ClientTls final : public SecureStream {
 public:
  void put(std::string_view wire) override {
    if (!wire.empty() && std::exchange(first_, false)) wire.remove_prefix(1);
    plain_.put(wire);
  }
  std::string take() override { return plain_.take(); }
  State handshake() override { return State::kReady; }
  bool open(std::string& plain, std::size_t most) override { return plain_.open(plain, most); }
  void seal(std::string_view plain) override { plain_.seal(plain); }
  std::string protocol() const override { return "h2"; }
  bool ended() const override { return false; }
  bool broken() const override { return false; }
  void end() override {}
  const TlsFault& fault() const override { return plain_.fault(); }

 private:
  Plain plain_{"h2"};
  bool first_ = true;
};

class NoTls final : public Interceptor {
 public:
  std::unique_ptr<SecureStream> accept(const policy::Host&) override { return std::make_unique<ClientTls>(); }
  std::unique_ptr<SecureStream> connect(const policy::Host&, Offer) override { return std::make_unique<Plain>(""); }
  std::unique_ptr<Streams> begin_streams() override { return h2::make_streams(); }
  std::string bundle() const override { return {}; }
  std::string java_store() const override { return {}; }
};

// A client in a tunnel to web.test.
class Client {
 public:
  Client(std::uint16_t proxy, std::uint16_t server) : fd_(connect_loopback(proxy)), place_(format("web.test:{}", server)) {
    send_all(fd_.get(), format("CONNECT {} HTTP/1.1\r\n\r\n", place_));
    EXPECT_TRUE(read_until(fd_.get(), "\r\n\r\n").starts_with("HTTP/1.1 200"));
    send_all(fd_.get(), kHello + Talker::preface());
  }
  void say(const std::string& bytes) const { send_all(fd_.get(), bytes); }
  void ask(std::uint32_t stream, const std::string& path, std::uint8_t flags = kEndStream | kEndHeaders, h2::Fields more = {}) {
    h2::Fields fields = get_fields(path, std::move(more));
    fields[2].value = place_;
    say(talker_.headers(stream, fields, flags));
  }
  // Hears until `enough`; false when that does not come in ten seconds, or the connection ends before.
  bool until(const std::function<bool()>& enough) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!enough()) {
      pollfd readable{fd_.get(), POLLIN, 0};
      char buffer[65536];
      if (std::chrono::steady_clock::now() >= end) return false;
      if (::poll(&readable, 1, 100) != 1) continue;
      const ssize_t size = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (size <= 0) return over_ = true, enough();
      for (const Frame& one : talker_.hear({buffer, static_cast<std::size_t>(size)})) take(one);
    }
    return true;
  }
  // How much may have been sent on a stream until now.
  std::size_t window(std::uint32_t stream) { return 65'535 + heard_[stream].opened; }
  // What comes within `patience`.
  void hear(std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    const std::size_t before = frames_;
    do {
      pollfd readable{fd_.get(), POLLIN, 0};
      if (::poll(&readable, 1, 10) == 1) until([&] { return frames_ != before; });
    } while (frames_ == before && std::chrono::steady_clock::now() < end);
  }
  std::string status(std::uint32_t stream) {
    until([&] { return !heard_[stream].status.empty() || heard_[stream].reset >= 0; });
    return heard_[stream].status;
  }
  std::string body(std::uint32_t stream) {
    until([&] { return heard_[stream].ended || heard_[stream].reset >= 0; });
    return heard_[stream].body;
  }
  // The code of the reset; -1: none came.
  long reset(std::uint32_t stream) {
    until([&] { return heard_[stream].ended || heard_[stream].reset >= 0; });
    return heard_[stream].reset;
  }
  std::size_t size(std::uint32_t stream) { return heard_[stream].body.size(); }
  long goaway() const { return goaway_; }
  bool ends() {
    return until([this] { return over_; });
  }
  Talker& talker() { return talker_; }

 private:
  struct Heard {
    std::string status, body;
    long reset = -1;
    bool ended = false;
    std::size_t opened = 0;
  };
  void take(const Frame& one) {
    Heard& heard = heard_[one.stream];
    if (one.type == kHeaders && !one.find(":status").empty()) heard.status = one.find(":status");
    if (one.type == kData) heard.body += one.payload;
    if (one.type == kReset) heard.reset = one.code();
    if (one.type == kWindow) heard.opened += Frame{kReset, 0, 0, one.payload, {}}.code();
    ++frames_;
    if (one.type == kGoaway) goaway_ = one.code();
    heard.ended = heard.ended || ((one.type == kData || one.type == kHeaders) && (one.flags & kEndStream) != 0);
  }
  UniqueFd fd_;
  std::string place_;
  Talker talker_;
  std::map<std::uint32_t, Heard> heard_;
  std::size_t frames_ = 0;
  long goaway_ = -1;
  bool over_ = false;
};

class StreamsTest : public ProxyTest {
 protected:
  void look(const Server& server, ProxyOptions options = {}, std::vector<std::string> requests = {"GET web.test/a"}) {
    names_.answers["web.test"] = {"127.0.0.1"};
    options.interceptor = std::make_shared<NoTls>();
    Network network;
    network.allowed_domains = {address(server)};
    network.allowed_requests = std::move(requests);
    rules_ = policy::make_host_rules(network).value();
    options.rules = rules_;
    options.resolve = [this](const std::string& name) { return names_.resolve(name); };
    options.own_addresses = [] { return std::vector<policy::Ip>{}; };
    proxy_ = Proxy::start(listen_loopback(port_), std::move(options)).value();
  }
  // The reasons in the record, in order.
  std::vector<std::string> reasons() const {
    std::vector<std::string> found;
    for (const EgressRecord& record : proxy_->stop().records) found.push_back(record.reason);
    return found;
  }

  policy::HostRules rules_;
};

// Answers with the request's target; of /a/slow the head alone, and then nothing until the client leaves.
void answer_target(int fd) {
  const std::string head = read_until(fd, "\r\n\r\n");
  const std::string target = head.substr(0, head.find(" HTTP"));
  const bool slow = target.find("slow") != std::string::npos;
  send_all(fd, format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", target.size()));
  if (slow) (void)read_all(fd);
  else send_all(fd, target);
}

// Each connection has a thread of its own.
class ManyServer {
 public:
  explicit ManyServer(std::function<void(int)> serve)
      : server_(std::make_unique<Server>([this, serve = std::move(serve)](int fd) {
          threads_.emplace_back([serve, own = std::make_shared<UniqueFd>(::dup(fd))] {
            serve(own->get());
            own->reset();
          });
        })) {}
  ~ManyServer() {
    server_.reset();
    for (std::thread& thread : threads_) thread.join();
  }
  const Server& get() const { return *server_; }

 private:
  std::vector<std::thread> threads_;
  std::unique_ptr<Server> server_;
};

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
  EXPECT_EQ(reasons(), (std::vector<std::string>{"allowed", "malformed", "malformed", "allowed"}));
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
  for (std::uint32_t stream = 7; stream < 100 && answered.empty(); stream += 2) {
    client.ask(stream, "/a");
    answered = client.body(stream);
  }
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
  ProxyOptions options;
  options.timeouts.idle_client = options.timeouts.head = 300ms;
  look(server.get(), std::move(options));
  Client idle(port_, server.get().port()), slow(port_, server.get().port());
  idle.ask(1, "/a");
  EXPECT_EQ(idle.body(1), "GET /a");
  slow.say(frame(kHeaders, kEndStream, 1, slow.talker().block(get_fields("/a"))));  // and no END_HEADERS
  EXPECT_TRUE(idle.ends());
  EXPECT_EQ(idle.goaway(), 0);
  EXPECT_TRUE(slow.ends());
  EXPECT_EQ(slow.goaway(), 0);
}

TEST_F(StreamsTest, AServerThatTakesNothingHoldsLittleAndNobodyUp) {
  std::atomic<bool> enough{false};
  const ManyServer server([&enough](int fd) {
    if (read_until(fd, "\r\n\r\n").find("POST") == std::string::npos)
      return send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    while (!enough) std::this_thread::sleep_for(5ms);
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
    client.hear(given + piece.size() > client.window(1) ? 500ms : 0ms);
  }
  EXPECT_GT(given, 2U * 65'535) << "its window was opened again";
  EXPECT_LT(given, 50'000'000U) << "sockets hold some, we at most half a megabyte";
  client.ask(3, "/a");
  EXPECT_EQ(client.body(3), "ok");
  enough = true;
}

TEST_F(StreamsTest, AClientThatTakesNothingHoldsLittleAndNobodyUp) {
  std::atomic<std::size_t> given{0};
  const ManyServer server([&given](int fd) {
    const bool big = read_until(fd, "\r\n\r\n").find("/a/big") != std::string::npos;
    if (!big) return send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n");
    const std::string piece(60'000, 'x');
    for (int i = 0; i < 1000; ++i) {
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
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(client.size(1), 65'535U);
  EXPECT_LT(given, 20'000'000U) << "the rest waits in the server: sockets hold some, we at most half a megabyte";
  client.say(frame(kWindow, 0, 0, number(70'000'000)) + frame(kWindow, 0, 1, number(70'000'000)));
  EXPECT_EQ(client.body(1).size(), 60'000'000U);
}

}  // namespace
}  // namespace belljar::egress
