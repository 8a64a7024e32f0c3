// A proxy whose TLS is left out, clients that speak HTTP/2 to it by hand, and servers of HTTP/1.1.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "egress/h2/client_side.h"
#include "egress/intercept.h"
#include "egress/proxy.h"
#include "egress/support_h2.h"
#include "egress/support_proxy.h"
#include "policy/tls_interception.h"

namespace belljar::egress {

using namespace belljar::test;

inline constexpr char kHello = 22;  // what a client says first where it begins TLS

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
  // Hears until `enough`; false when the connection ends before, or when for a minute nothing comes.
  bool until(const std::function<bool()>& enough) {
    auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!enough()) {
      pollfd readable{fd_.get(), POLLIN, 0};
      char buffer[65536];
      if (std::chrono::steady_clock::now() >= end) return false;
      if (::poll(&readable, 1, 100) != 1) continue;
      const ssize_t size = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (size <= 0) return over_ = true, enough();
      end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
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
  bool was_reset(std::uint32_t stream) { return heard_[stream].reset >= 0; }
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
inline void answer_target(int fd) {
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

}  // namespace belljar::egress
