// A proxy on loopback with a resolver of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/format.h"
#include "egress/proxy.h"
#include "egress/support_net.h"

namespace belljar::egress {

using test::connect_loopback;
using test::read_all;
using test::read_until;
using test::send_all;
using test::Server;

// What names lead to, answer by answer; the last one stays.
struct Names {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> answers;
  std::map<std::string, std::vector<std::string>> both;  // all at once
  std::vector<std::string> asked;

  Resolved resolve(const std::string& name) {
    const std::scoped_lock lock(mutex);
    asked.push_back(name);
    if (const auto all = both.find(name); all != both.end()) {
      Resolved resolved{.addresses = {}, .error = {}, .ttl = std::chrono::seconds(0)};
      for (const std::string& address : all->second) resolved.addresses.push_back(policy::parse_ip(address).value());
      return resolved;
    }
    const auto found = answers.find(name);
    if (found == answers.end()) return {.addresses = {}, .error = "the name does not exist", .ttl = {}};
    const std::string address = found->second.front();
    if (found->second.size() > 1) found->second.erase(found->second.begin());
    return {.addresses = {policy::parse_ip(address).value()}, .error = {}, .ttl = std::chrono::seconds(0)};
  }
};

class ProxyTest : public testing::Test {
 protected:
  void start(std::vector<std::string> allowed, std::vector<std::string> denied = {}, ProxyOptions options = {}) {
    Network network;
    network.allowed_domains = std::move(allowed);
    network.denied_domains = std::move(denied);
    options.rules = policy::make_host_rules(network).value();
    options.resolve = [this](const std::string& name) { return names_.resolve(name); };
    options.own_addresses = [] { return std::vector<policy::Ip>{}; };
    UniqueFd listener = test::listen_loopback(port_);
    proxy_ = Proxy::start(std::move(listener), std::move(options)).value();
  }
  // Sends `text`, closes our side, returns everything that comes back.
  std::string talk(const std::string& text) const {
    const UniqueFd fd = connect_loopback(port_);
    send_all(fd.get(), text);
    ::shutdown(fd.get(), SHUT_WR);
    return read_all(fd.get());
  }
  std::string get(const std::string& authority) const {
    return talk(format("GET http://{}/ HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", authority, authority));
  }
  std::string address(const Server& server) const { return format("127.0.0.1:{}", server.port()); }

  Names names_;  // outlives the proxy, whose threads ask it
  std::uint16_t port_ = 0;
  std::unique_ptr<Proxy> proxy_;
};

inline void answer_hello(int fd) {
  read_until(fd, "\r\n\r\n");
  send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

inline void echo(int fd) {
  send_all(fd, read_all(fd));
  ::shutdown(fd, SHUT_WR);
}

}  // namespace belljar::egress
