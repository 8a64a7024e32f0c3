// The proxy on real sockets, with a resolver of the test's own.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "egress/proxy.h"
#include "egress/support_proxy.h"
#include "egress/upstream.h"
#include "policy/tls_interception.h"
#include "support/eventually.h"
#include "support/loopback.h"
#include "support/time_enough.h"

namespace belljar::egress {
namespace {

using namespace std::string_literals;

TEST_F(ProxyTest, AListedHostIsReachedAndAnotherIsNot) {
  const Server server(answer_hello);
  names_.answers["web.example"] = {"127.0.0.1"};
  start({"web.example", address(server)});
  EXPECT_TRUE(get(format("web.example:{}", server.port())).ends_with("hello"));
  const std::string refused = get(format("other.example:{}", server.port()));
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 403 ")) << refused;
  EXPECT_EQ(names_.asked, std::vector<std::string>{"web.example"}) << "a refused name is never looked up";
  const EgressLog log = proxy_->stop();
  ASSERT_EQ(log.records.size(), 2U);
  EXPECT_TRUE(log.records[0].allowed);
  EXPECT_EQ(log.records[0].address, "127.0.0.1");
  EXPECT_EQ(log.records[0].rule, "web.example");
  EXPECT_EQ(log.records[1].reason, "not-listed");
  ASSERT_EQ(log.violations.size(), 1U);
  EXPECT_EQ(log.violations[0].operation, "egress");
  EXPECT_EQ(log.violations[0].target, format("other.example:{}", server.port()));
  EXPECT_EQ(log.violations[0].rule, "network.allowed_domains");
}

TEST_F(ProxyTest, ANameThatLeadsInsideIsRefusedAndNothingIsDialled) {
  const Server server(answer_hello);
  names_.answers["web.example"] = {"127.0.0.1"};
  start({"web.example"});
  const std::string refused = get(format("web.example:{}", server.port()));
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 403 web.example")) << refused;
  EXPECT_NE(refused.find("not public (loopback)"), std::string::npos);
  EXPECT_NE(refused.find("destination_ip_prohibited"), std::string::npos);
  EXPECT_EQ(server.accepted(), 0);
}

// NW-05: the name is public when it is checked and private when it is used. It is looked up once for each connection, and what was
// checked is dialled.
TEST_F(ProxyTest, RebindingGainsNothing) {
  const Server server(answer_hello);
  names_.answers["web.example"] = {"127.0.0.1", "169.254.169.254", "10.0.0.1"};
  start({"web.example", address(server)});
  const std::string host = format("web.example:{}", server.port());
  EXPECT_TRUE(get(host).ends_with("hello"));
  EXPECT_TRUE(get(host).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(get(host).starts_with("HTTP/1.1 403 "));
  EXPECT_EQ(names_.asked.size(), 3U);
}

TEST_F(ProxyTest, DenyWins) {
  const Server server(answer_hello);
  names_.answers["web.example"] = {"127.0.0.1"};
  start({"*", address(server)}, {"web.example"});
  EXPECT_TRUE(get(format("web.example:{}", server.port())).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(get(address(server)).ends_with("hello"));
  EXPECT_EQ(proxy_->stop().violations[0].rule, "network.denied_domains");
}

TEST_F(ProxyTest, EverySpellingOfAnAddressIsTheAddress) {
  const Server server(answer_hello);
  start({"*"});
  for (const char* host : {"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::ffff:127.0.0.1]", "[::1]",
                           "[::ffff:7f00:1]", "0", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "127.0.0.1."})
    EXPECT_TRUE(get(format("{}:{}", host, server.port())).starts_with("HTTP/1.1 403 ")) << host;
  EXPECT_EQ(server.accepted(), 0);
}

TEST_F(ProxyTest, TheSpellingsReachAListedAddress) {
  const Server server(answer_hello);
  start({address(server)});
  for (const char* host : {"127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]"})
    EXPECT_TRUE(get(format("{}:{}", host, server.port())).ends_with("hello")) << host;
}

TEST_F(ProxyTest, ConnectDialsBeforeItSaysYes) {
  const Server server(echo);
  std::uint16_t closed = 0;
  {
    const UniqueFd gone = test::listen_loopback(closed);
  }
  start({"127.0.0.1"});
  EXPECT_EQ(talk(format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n\r\nping", address(server), address(server))),
            "HTTP/1.1 200 Connection established\r\n\r\nping");
  const std::string refused = talk(format("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", closed));
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 502 cannot connect to 127.0.0.1:")) << refused;
  EXPECT_NE(refused.find("Connection refused"), std::string::npos);
  EXPECT_TRUE(talk("CONNECT nowhere.example:443 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403 "));
}

TEST_F(ProxyTest, ANameThatDoesNotResolveIsToldApart) {
  start({"nowhere.example"});
  const std::string answer = talk("CONNECT nowhere.example:443 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 nowhere.example does not resolve: the name does not exist\r\n")) << answer;
  const EgressLog log = proxy_->stop();
  EXPECT_EQ(log.records[0].reason, "dns");
  EXPECT_TRUE(log.violations.empty()) << "a failure is no refusal";
}

TEST_F(ProxyTest, SocksByNameAndByAddress) {
  const Server server(echo);
  names_.answers["web.example"] = {"127.0.0.1"};
  start({"web.example", address(server)});
  const std::string port{static_cast<char>(server.port() >> 8), static_cast<char>(server.port())};
  const std::string yes = "\x05\0\0\x01\0\0\0\0\0\0"s;
  EXPECT_EQ(talk("\x05\x01\0"s + "\x05\x01\0\x03\x0Bweb.example"s + port + "ping"), "\x05\0"s + yes + "ping");
  EXPECT_EQ(talk("\x05\x02\0\x02"s + "\x05\x01\0\x01\x7f\0\0\x01"s + port + "ping"), "\x05\0"s + yes + "ping");
  EXPECT_EQ(talk("\x05\x01\x02"s + "\x01\x01u\x01p"s + "\x05\x01\0\x01\x7f\0\0\x01"s + port + "x"), "\x05\x02\x01\0"s + yes + "x");
  EXPECT_EQ(talk("\x05\x01\0"s + "\x05\x01\0\x03\x0Dother.example"s + port)[3], 2) << "not allowed";
  EXPECT_EQ(talk("\x05\x01\0"s + "\x05\x03\0\x03\x0Bweb.example"s + port)[3], 7) << "UDP";
  EXPECT_EQ(talk("\x05\x01\0"s + "\x05\x01\0\x03\x11web.example\0x.com"s + port)[3], 2) << "NUL";
  EXPECT_EQ(talk("\x04\x01\0\x50\x7f\0\0\x01\0"s)[1], 0x5B) << "SOCKS4";
}

TEST_F(ProxyTest, ANameThatNoHostHasIsShownAsItCame) {
  start({"web.example"});
  for (const std::string& name : {"web.example\0x.com"s, "a\r\nb.com"s, "web%00.com"s, "web .com"s})
    EXPECT_EQ(talk("\x05\x01\0"s + "\x05\x01\0\x03"s + static_cast<char>(name.size()) + name + "\x01\xBB")[3], 2);
  EXPECT_EQ(talk("\x05\x01\0"s + "\x05\x03\0\x03\x0Bweb.example\x01\xBB"s)[3], 7) << "UDP";
  const EgressLog log = proxy_->stop();
  ASSERT_EQ(log.records.size(), 5U);
  ASSERT_EQ(log.violations.size(), 4U) << "what is not served is no violation";
  EXPECT_EQ(log.records[0].host, R"(web.example\x00x.com)");
  EXPECT_EQ(log.records[0].port, 443);
  EXPECT_EQ(log.records[0].reason, "malformed");
  EXPECT_EQ(log.violations[0].target, R"(web.example\x00x.com:443)");
  EXPECT_EQ(log.violations[0].rule, "network.allowed_domains");
  EXPECT_EQ(log.violations[1].target, R"(a\x0d\x0ab.com:443)");
  EXPECT_EQ(log.violations[2].target, "web%00.com:443");
  EXPECT_EQ(log.violations[3].target, "web .com:443");
}

TEST_F(ProxyTest, ACredentialIsAskedFor) {
  const Server server(answer_hello);
  start({"127.0.0.1"}, {}, {.credential = "belljar:secret"});
  const std::string request = format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n", address(server));
  const std::string without = talk(request + "\r\n");
  EXPECT_TRUE(without.starts_with("HTTP/1.1 407 ")) << without;
  EXPECT_NE(without.find("Proxy-Authenticate: Basic"), std::string::npos);
  EXPECT_TRUE(talk(request + "Proxy-Authorization: Basic YmVsbGphcjp3cm9uZyE=\r\n\r\n").starts_with("HTTP/1.1 407 "));
  EXPECT_TRUE(talk(request + "Proxy-Authorization: Basic YmVsbGphcjpzZWNyZXQ=\r\n\r\n").ends_with("hello"));
  EXPECT_EQ(talk("\x05\x01\0"s), "\x05\xFF"s);
  EXPECT_EQ(talk("\x05\x01\x02\x01\x07"s + "belljar\x05wrong"s), "\x05\x02\x01\x01"s);
  EXPECT_EQ(talk("\x05\x01\x02\x01\x07"s + "belljar\x06secret"s), "\x05\x02\x01\0"s);
}

TEST_F(ProxyTest, LimitedPassesReadingOnly) {
  const Server server(answer_hello);
  start({"127.0.0.1"}, {}, {.methods = Methods::kLimited});
  const auto status = [&](const std::string& method, const std::string& more = "") {
    return talk(format("{0} http://{1}/ HTTP/1.1\r\nHost: {1}\r\nConnection: close\r\n{2}\r\n", method, address(server), more))
        .substr(9, 3);
  };
  EXPECT_EQ(status("GET"), "200");
  EXPECT_EQ(status("HEAD"), "200");
  EXPECT_EQ(status("OPTIONS"), "200");
  EXPECT_EQ(status("POST", "Content-Length: 0\r\n"), "405");
  EXPECT_EQ(status("DELETE"), "405");
  EXPECT_EQ(status("get"), "405") << "methods are case-sensitive";
  EXPECT_EQ(talk(format("CONNECT {} HTTP/1.1\r\n\r\n", address(server))).substr(9, 3), "403");
  EXPECT_EQ(talk("\x05\x01\0"s + "\x05\x01\0\x01\x7f\0\0\x01\0\x50"s)[3], 2);
  EXPECT_EQ(server.accepted(), 3);
  EXPECT_EQ(proxy_->stop().violations[0].rule, "network.methods");
}

TEST_F(ProxyTest, LimitedPassesNoBody) {
  const Server server(answer_hello);
  start({"127.0.0.1"}, {}, {.methods = Methods::kLimited});
  const auto ask = [&](const std::string& method, const std::string& more) {
    return talk(format("{0} http://{1}/ HTTP/1.1\r\nHost: {1}\r\nConnection: close\r\n{2}", method, address(server), more));
  };
  for (const char* const method : {"GET", "HEAD", "OPTIONS"}) {
    EXPECT_EQ(ask(method, "Content-Length: 3\r\n\r\nabc").substr(9, 3), "413") << method;
    EXPECT_EQ(ask(method, "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").substr(9, 3), "413") << method;
    EXPECT_EQ(ask(method, "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n").substr(9, 3), "413") << method;
    EXPECT_EQ(ask(method, "Content-Length: 0\r\n\r\n").substr(9, 3), "200") << method << ": the twin";
  }
  EXPECT_EQ(server.accepted(), 3);
  const EgressLog log = proxy_->stop();
  ASSERT_FALSE(log.violations.empty());
  EXPECT_EQ(log.violations[0].rule, "network.methods");
  EXPECT_EQ(log.records[0].reason, "body");
  EXPECT_EQ(log.records[0].bytes_sent, 0U);
}

TEST_F(ProxyTest, LimitedCountsWhatHeadsSay) {
  std::string heard;
  const Server server([&](int fd) {
    heard = read_until(fd, "\r\n\r\n");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  });
  start({"127.0.0.1"}, {}, {.methods = Methods::kLimited, .max_heads = 6000});
  const auto ask = [&](const std::string& path, const std::string& more = "") {
    return talk(format("GET http://{0}/{1} HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n{2}\r\n", address(server), path, more));
  };
  EXPECT_TRUE(ask(std::string(5900, 'a')).ends_with("hello"));
  for (int i = 0; i < 30; ++i)
    EXPECT_TRUE(ask(std::string(5900, 'a')).ends_with("hello")) << "it was said before, and waits a little";
  const std::string refused = ask(std::string(4000, 'b'));
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 ")) << refused;
  EXPECT_NE(refused.find("Retry-After: "), std::string::npos) << refused;
  EXPECT_TRUE(ask("", "pacote-integrity: sha512-" + std::string(4000, 'c') + "\r\n").ends_with("hello"));
  EXPECT_EQ(heard.find("pacote"), std::string::npos) << heard;
  const EgressLog log = proxy_->stop();
  ASSERT_EQ(log.violations.size(), 1U);
  EXPECT_EQ(log.violations[0].rule, "limits.egress_heads");
}

// A server sees each of its ports tried: which one is two bytes.
TEST_F(ProxyTest, LimitedCountsThePortsThatAreAskedFor) {
  const Server server(answer_hello), other(answer_hello);
  const auto ask = [&](const Server& from) {
    return talk(format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n", address(from))).substr(9, 3);
  };
  start({"127.0.0.1"}, {}, {.methods = Methods::kLimited, .max_heads = 80});
  EXPECT_EQ(ask(server), "200");
  EXPECT_EQ(ask(other), "429");
  const EgressLog log = proxy_->stop();
  ASSERT_EQ(log.violations.size(), 1U);
  EXPECT_EQ(log.violations[0].rule, "limits.egress_heads");
  start({"127.0.0.1"}, {}, {.max_heads = 80});
  EXPECT_EQ(ask(server) + ask(other), "200200") << "the twin";
}

// Frameworks obey these fields instead of the first line (CVE-2018-14773 and its kind).
TEST_F(ProxyTest, FieldsThatAskForAnotherMethodOrPathAreJudgedToo) {
  const Server server(answer_hello);
  const auto ask = [&](const std::string& field, const std::string& path = "/docs/a") {
    return talk(format("GET http://{0}{1} HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n{2}\r\n", address(server), path,
                       field.empty() ? "" : field + "\r\n"))
        .substr(9, 3);
  };
  start({}, {}, {.methods = Methods::kLimited});
  Network network;
  network.allowed_domains = {"127.0.0.1"};
  proxy_->set_rules(policy::make_host_rules(network).value());
  const std::vector<std::string> methods = {"X-HTTP-Method-Override: DELETE", "x-http-method: delete",
                                            "X_HTTP_Method_Override: PUT", "X-Method-Override: POST"};
  for (const std::string& field : methods) EXPECT_EQ(ask(field), "405") << field;
  EXPECT_EQ(ask("X-HTTP-Method-Override: get"), "200") << "the twin";
  EXPECT_EQ(ask("X-Original-URL: /admin"), "200") << "limited judges no path";
  proxy_.reset();
  start({});
  network.allowed_domains = {};
  network.allowed_requests = {"GET,HEAD 127.0.0.1/docs"};
  proxy_->set_rules(policy::make_host_rules(network).value());
  for (const std::string& field : methods) EXPECT_EQ(ask(field), "403") << field;
  for (const char* const field :
       {"X-Original-URL: /admin", "X-Forwarded-URI: /admin", "x-envoy-original-path: /admin", "X-Rewrite-URL: /admin",
        "x_rewrite_url: /docs/../admin", "X-Original-URL: http://127.0.0.1/docs", "X-Original-URL: admin"})
    EXPECT_EQ(ask(field), "403") << field;
  EXPECT_EQ(ask("X-Original-URL: /docs/b"), "200") << "the twin";
  EXPECT_EQ(ask("X-HTTP-Method-Override: HEAD"), "200");
  EXPECT_EQ(ask("", "/docs/..%20/admin"), "403");
  network.allowed_requests = {"* 127.0.0.1"};
  proxy_->set_rules(policy::make_host_rules(network).value());
  EXPECT_EQ(ask("X-HTTP-Method-Override: DELETE") + ask("X-Original-URL: /admin"), "200200") << "every request may go there";
  network = {};
  network.allowed_domains = {"127.0.0.1"};
  proxy_->set_rules(policy::make_host_rules(network).value());
  EXPECT_EQ(ask("X-HTTP-Method-Override: DELETE"), "200") << "nothing of this host is judged";
}

// A name that is looked up is read by whoever owns its zone.
TEST_F(ProxyTest, NamesThatAreLookedUpCountAsBytes) {
  start({"*.evil.example"}, {}, {.max_bytes = 1000});
  std::string reason;
  int asked = 0;
  for (; asked < 100 && reason.find("used up") == std::string::npos; ++asked)
    reason = talk(format("CONNECT {}{}.evil.example:443 HTTP/1.1\r\n\r\n", std::string(50, 'x'), asked));
  EXPECT_NE(reason.find("the sandbox has used up its bytes of egress"), std::string::npos) << reason;
  EXPECT_LE(names_.asked.size(), 17U);
  EXPECT_GE(names_.asked.size(), 14U) << "until then they are looked up";
}

TEST_F(ProxyTest, FullCountsNoHeads) {
  const Server server([](int fd) {
    read_until(fd, "abc");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  });
  start({"127.0.0.1"}, {}, {.max_heads = 1});
  const std::string fields = format("Host: {}\r\nConnection: close\r\nContent-Length: 3\r\n\r\n", address(server));
  EXPECT_TRUE(talk(format("GET http://{}/ HTTP/1.1\r\n{}abc", address(server), fields)).ends_with("hello"));
}

TEST_F(ProxyTest, ARefusedUpgradeIsNotSentToWhatItIsAlready) {
  start({"127.0.0.1"}, {}, {.methods = Methods::kLimited});
  const std::string request =
      "GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: 127.0.0.1:9\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  std::string answer = talk(request);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 an upgrade is refused")) << answer;
  EXPECT_NE(answer.find("next: network.methods = \"full\""), std::string::npos) << answer;
  proxy_.reset();
  start({});
  Network network;
  network.allowed_requests = {"GET 127.0.0.1"};
  proxy_->set_rules(policy::make_host_rules(network).value());
  answer = talk(request);
  EXPECT_NE(answer.find("next: --allow-domain opens the host wholly"), std::string::npos) << answer;
  // The twin: what can help.
  answer = talk("CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n");
  EXPECT_NE(answer.find("next: use http://, or --allow-domain"), std::string::npos) << answer;
}

TEST_F(ProxyTest, TheHeadsOfAWebsocketCount) {
  const std::string head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, head + "first");
    send_all(fd, read_until(fd, "more"));
  });
  start({"127.0.0.1"});
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(),
           format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", address(server)));
  const std::string answer = read_until(fd.get(), "first");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
  send_all(fd.get(), "more");
  EXPECT_EQ(read_all(fd.get()), "more");
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].bytes_received, answer.size() + 4);
  EXPECT_EQ(records[0].bytes_sent,
            4 + format("GET / HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", address(server)).size());
}

// What a tunnel brings is counted once.
TEST_F(ProxyTest, OurOwnWordsDoNotCount) {
  const Server server(echo);
  start({"127.0.0.1"});
  (void)talk(format("CONNECT {} HTTP/1.1\r\n\r\nping", address(server)));
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].bytes_sent, 4U);
  EXPECT_EQ(records[0].bytes_received, 4U);
}

TEST_F(ProxyTest, WhatAServerSaidInsteadOfHttpIsToldApart) {
  std::string words;
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, words);
  });
  start({"127.0.0.1"});
  const auto said = [&](const std::string& text) { return words = text, get(address(server)); };
  const std::string no = format("HTTP/1.1 502 {} gave no HTTP answer: ", address(server));
  std::string answer = said("SSH-2.0-foo\r\n");
  EXPECT_TRUE(answer.starts_with(no + "what it sent is something else\r\n")) << answer;
  answer = said("HTTP/1.1 200 OK\r\nContent-");
  EXPECT_TRUE(answer.starts_with(no + "it closed the connection before the end of the head\r\n")) << answer;
  answer = said("");
  EXPECT_TRUE(answer.starts_with(no + "it closed the connection without an answer\r\n")) << answer;
  EXPECT_TRUE(said("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").ends_with("hello")) << "the twin";
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].reason, "server");
  EXPECT_EQ(records[0].bytes_received, 13U);
  EXPECT_EQ(records[2].bytes_received, 0U);
}

// SSH waits for an answer to its first line, as the proxy did for the end of a head.
TEST_F(ProxyTest, WhatIsNoHttpWhereOnlyRequestsMayGoIsResetAtOnce) {
  Network network;
  network.allowed_requests = {"GET 127.0.0.1"};
  ProxySockets doors;
  doors.listeners.push_back({ClientKind::kProxy, test::listen_loopback(port_)});
  std::uint16_t direct = 0;
  doors.listeners.push_back({ClientKind::kDirect, test::listen_loopback(direct)});
  proxy_ = Proxy::start(std::move(doors), {.rules = policy::make_host_rules(network).value()}).value();
  const UniqueFd fd = connect_loopback(direct);
  send_all(fd.get(), "SSH-2.0-client\r\n");
  EXPECT_EQ(read_all(fd.get()), "<reset>");
  const UniqueFd request = connect_loopback(direct);
  send_all(request.get(), "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_NE(read_all(request.get()), "") << "the twin: a request is judged as one";
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].reason, "method");
  EXPECT_EQ(records[1].reason, "request");
}

TEST_F(ProxyTest, AJoinedPortIsRecordedWithItsRule) {
  const Server server(echo);
  ProxySockets doors;
  doors.listeners.push_back({ClientKind::kHostPort, test::listen_loopback(port_), server.port()});
  proxy_ = Proxy::start(std::move(doors), {}).value();
  EXPECT_EQ(talk("ping"), "ping");
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].protocol, "host-port");
  EXPECT_EQ(records[0].rule, "network.host_ports");
}

TEST_F(ProxyTest, OneConnectionServesManyRequests) {
  const Server server(answer_hello);
  start({"127.0.0.1"});
  const UniqueFd fd = connect_loopback(port_);
  const std::string request = format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", address(server));
  send_all(fd.get(), request + request);  // pipelined
  std::string both = read_until(fd.get(), "hello");
  if (both.find("hello") == both.rfind("hello")) both += read_until(fd.get(), "hello");  // one read may have brought both
  EXPECT_NE(both.find("Connection: keep-alive"), std::string::npos) << both;
  send_all(fd.get(), request);
  EXPECT_TRUE(read_until(fd.get(), "hello").ends_with("hello"));
  // Each request is judged for itself.
  send_all(fd.get(), "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n");
  EXPECT_TRUE(read_until(fd.get(), "opens it\n").starts_with("HTTP/1.1 403 "));
  EXPECT_EQ(server.accepted(), 3);
}

TEST_F(ProxyTest, ASmuggledRequestReachesNobody) {
  std::string seen;
  const Server server([&](int fd) {
    seen += read_until(fd, "\r\n\r\n");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  start({"127.0.0.1"});
  const std::string hidden = "GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n";
  const std::string head = format("POST http://{0}/ HTTP/1.1\r\nHost: {0}\r\n", address(server));
  for (const std::string& fields :
       {"Content-Length: 0\r\nContent-Length: 70\r\n\r\n"s, "Content-Length: 70\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
        "Transfer-Encoding: xchunked\r\n\r\n"s, "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n"s})
    EXPECT_NE(talk(head + fields + hidden).substr(0, 12), "HTTP/1.1 200") << fields;
  // The twin: well formed, and the second request is one of its own.
  EXPECT_TRUE(talk(head + "Content-Length: 0\r\n\r\n" + hidden).starts_with("HTTP/1.1 200 OK"));
  EXPECT_EQ(seen.find("169.254.169.254"), std::string::npos) << seen;
}

TEST_F(ProxyTest, ARequestThatCannotBeReadIsNotRecordedAsTheOneBefore) {
  const Server server(answer_hello);
  start({"127.0.0.1"});
  for (const std::string bad :
       {"GET / HTTP/1.1\r\n\r\n", "POST http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "\x16\x03\x01"}) {
    const UniqueFd fd = connect_loopback(port_);
    send_all(fd.get(), format("HEAD http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", address(server)));
    EXPECT_TRUE(read_until(fd.get(), "\r\n\r\n").starts_with("HTTP/1.1 200 "));
    send_all(fd.get(), bad);
    EXPECT_TRUE(read_all(fd.get()).ends_with("\n")) << "the reason as a body: it was no HEAD";
  }
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 6U);
  for (std::size_t i = 0; i < records.size(); i += 2) {
    EXPECT_EQ(records[i].reason, "allowed");
    EXPECT_EQ(records[i].port, server.port());
    EXPECT_EQ(records[i + 1].reason, "malformed");
    EXPECT_EQ(records[i + 1].host, "");
    EXPECT_EQ(records[i + 1].port, 0);
  }
  EXPECT_EQ(records[1].method, "GET");
  EXPECT_EQ(records[3].method, "POST");
  EXPECT_EQ(records[5].method, "");
}

// A body that turns out malformed was sent as far as it went: it counts, and stays in the one record.
TEST_F(ProxyTest, ABodyThatBreaksOffIsRecordedWithWhatWasSent) {
  std::atomic<bool> arrived = false;
  const Server server([&](int fd) {
    arrived = !read_until(fd, std::string(1000, 'x')).empty();
    (void)read_all(fd);
  });
  start({"127.0.0.1"});
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(), format("POST http://{0}/ HTTP/1.1\r\nHost: {0}\r\nTransfer-Encoding: chunked\r\n\r\n3E8\r\n{1}\r\n",
                            address(server), std::string(1000, 'x')));
  while (!arrived) std::this_thread::yield();
  send_all(fd.get(), "-1\r\n");
  EXPECT_TRUE(read_all(fd.get()).starts_with("HTTP/1.1 400 "));
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].reason, "malformed");
  EXPECT_EQ(records[0].address, "127.0.0.1");
  EXPECT_GE(records[0].bytes_sent, 1000U);
}

TEST_F(ProxyTest, WhatIsNeitherHttpNorSocksIsToldAtOnce) {
  start({"127.0.0.1"});
  for (const std::string& first : {"\x16\x03\x01\x02"s, "\0"s, "\n"s, "\r\n\x80"s, "\x80"s}) {
    const UniqueFd fd = connect_loopback(port_);
    send_all(fd.get(), first);  // and says no more
    const std::string answer = read_until(fd.get(), "\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 what is said is neither HTTP nor SOCKS5")) << answer;
  }
  EXPECT_EQ(talk("x-own http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n").substr(0, 13), "HTTP/1.1 403 ")
      << "any token is a method";
}

// As old clients end a body, RFC 9112 section 2.2.
TEST_F(ProxyTest, AnEmptyLineBeforeARequestIsSkipped) {
  const Server server(answer_hello);
  start({"127.0.0.1"});
  const std::string request = format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", address(server));
  EXPECT_TRUE(talk("\r\n" + request).ends_with("hello"));
  const std::string both = talk(request + "\r\n" + request);
  EXPECT_NE(both.find("hello"), both.rfind("hello")) << both;
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(), "\r");
  send_all(fd.get(), "\n" + request);
  EXPECT_TRUE(read_until(fd.get(), "hello").ends_with("hello"));
}

TEST_F(ProxyTest, WhatTheUpstreamProxyRefusesIsNoAnswerOfTheServer) {
  int status = 407;
  const Server upstream([&](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, format("HTTP/1.1 {} Who are you\r\nContent-Length: 2\r\n\r\nno", status));
  });
  names_.answers["web.example"] = {"93.184.0.80"};
  start({"web.example"}, {}, {.upstream = parse_upstream(format("http://me:secret@{}", address(upstream)), {}).value()});
  const std::string refused = get("web.example");
  EXPECT_TRUE(refused.starts_with(format("HTTP/1.1 502 the upstream proxy {} refuses: 407\r\n", address(upstream)))) << refused;
  EXPECT_EQ(refused.find("secret"), std::string::npos);
  status = 403;  // whose that is nobody can tell
  EXPECT_TRUE(get("web.example").starts_with("HTTP/1.1 403 Who are you\r\n"));
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].reason, "upstream");
  EXPECT_FALSE(records[0].allowed);
  EXPECT_TRUE(records[1].allowed);
}

TEST_F(ProxyTest, AnUpstreamProxyThatIsGoneIsNamed) {
  std::uint16_t closed = 0;
  {
    const UniqueFd gone = test::listen_loopback(closed);
  }
  names_.answers["web.example"] = {"93.184.0.80"};
  start({"web.example", "127.0.0.1"}, {},
        {.upstream = parse_upstream(format("http://me:secret@127.0.0.1:{}", closed), {"127.0.0.1"}).value()});
  const std::string reason =
      format("HTTP/1.1 502 cannot connect to the upstream proxy 127.0.0.1:{}: Connection refused\r\n", closed);
  EXPECT_TRUE(get("web.example").starts_with(reason));
  EXPECT_TRUE(talk("CONNECT web.example:443 HTTP/1.1\r\n\r\n").starts_with(reason));
  EXPECT_TRUE(get(format("127.0.0.1:{}", closed)).starts_with(format("HTTP/1.1 502 cannot connect to 127.0.0.1:{}:", closed)))
      << "without it";
  const auto records = proxy_->stop().records;
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].reason, "upstream");
  EXPECT_EQ(records[1].reason, "upstream");
  EXPECT_EQ(records[2].reason, "dial");
}

// Its body ends with the connection whatever its length says: a client would wait for that end.
TEST_F(ProxyTest, AnAnswerInAnotherTransferCodingEndsTheConnection) {
  std::atomic<bool> chunked{false};
  const Server server([&](int fd) {
    read_until(fd, "\r\n\r\n");
    const std::string rest = chunked ? "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" : "identity\r\nContent-Length: 3\r\n\r\nabc";
    send_all(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + rest);
  });
  start({"127.0.0.1"});
  const auto ask = [&](const std::string& until) {
    const UniqueFd fd = connect_loopback(port_);
    send_all(fd.get(), format("GET http://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", address(server), address(server)));
    return until.empty() ? read_all(fd.get()) : read_until(fd.get(), until);
  };
  EXPECT_TRUE(ask("").ends_with("Connection: close\r\n\r\nabc"));
  chunked = true;
  EXPECT_NE(ask("0\r\n\r\n").find("Connection: keep-alive\r\n"), std::string::npos) << "the twin";
}

TEST_F(ProxyTest, ACutAnswerIsSeenAsCut) {
  const Server server([](int fd) {
    read_until(fd, "\r\n\r\n");
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhalf");
  });
  start({"127.0.0.1"});
  EXPECT_TRUE(get(address(server)).ends_with("<reset>"));
}

TEST_F(ProxyTest, HalfOfATunnelMayEndFirst) {
  // The server answers only after the client's end: the end must arrive, and the way back must stay open.
  const Server server(echo);
  start({"127.0.0.1"});
  std::string large;
  for (int i = 0; i < 400'000; ++i) large += format("{:07}\n", i);
  const std::string answer = "HTTP/1.1 200 Connection established\r\n\r\n";
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(), format("CONNECT {} HTTP/1.1\r\n\r\n", address(server)));
  EXPECT_EQ(read_until(fd.get(), "\r\n\r\n"), answer);
  send_all(fd.get(), large);
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_TRUE(read_all(fd.get()) == large);
  const EgressLog log = proxy_->stop();
  ASSERT_EQ(log.records.size(), 1U);
  EXPECT_EQ(log.records[0].bytes_sent, large.size());
  EXPECT_EQ(log.records[0].bytes_received, large.size());
}

TEST_F(ProxyTest, SlowHeadsEnd) {
  ProxyOptions options;
  options.timeouts.head = std::chrono::milliseconds(50);
  start({"127.0.0.1"}, {}, std::move(options));
  const UniqueFd fd = connect_loopback(port_);
  send_all(fd.get(), "GET http://127.0.0.1/ HTTP/1.1\r\nX: ");
  EXPECT_TRUE(read_all(fd.get()).starts_with("HTTP/1.1 408 "));
}

TEST_F(ProxyTest, BeyondTheLimitClientsWait) {
  const Server server(answer_hello);
  start({"127.0.0.1"}, {}, {.max_connections = 2});
  UniqueFd idle[2] = {connect_loopback(port_), connect_loopback(port_)};
  const UniqueFd third = connect_loopback(port_);
  send_all(third.get(), format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n", address(server)));
  idle[0].reset();
  EXPECT_TRUE(read_all(third.get()).ends_with("hello"));
}

UniqueFd tunnel(std::uint16_t port, const std::string& to) {
  UniqueFd fd = connect_loopback(port);
  send_all(fd.get(), format("CONNECT {} HTTP/1.1\r\n\r\n", to));
  EXPECT_EQ(read_until(fd.get(), "\r\n\r\n").substr(9, 3), "200");
  return fd;
}

policy::HostRules rules_of(std::vector<std::string> allowed, std::vector<std::string> denied = {}) {
  Network network;
  network.allowed_domains = std::move(allowed);
  network.denied_domains = std::move(denied);
  return policy::make_host_rules(network).value();
}

TEST_F(ProxyTest, RulesChangeWhileItServes) {
  const Server server(answer_hello), talker(echo);
  names_.answers["one.example"] = names_.answers["two.example"] = {"127.0.0.1"};
  start({"one.example", "127.0.0.1"});
  const std::string one = format("one.example:{}", server.port()), two = format("two.example:{}", server.port());
  EXPECT_TRUE(get(one).ends_with("hello"));
  EXPECT_TRUE(get(two).starts_with("HTTP/1.1 403 "));
  const UniqueFd withdrawn = tunnel(port_, format("one.example:{}", talker.port()));
  const UniqueFd kept = tunnel(port_, address(talker));

  proxy_->set_rules(rules_of({"two.example", "127.0.0.1"}));
  EXPECT_TRUE(get(one).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(get(two).ends_with("hello"));
  const std::string rest = read_all(withdrawn.get());
  EXPECT_TRUE(rest.empty() || rest == "<reset>") << rest;
  send_all(kept.get(), "still here");
  ::shutdown(kept.get(), SHUT_WR);
  EXPECT_EQ(read_all(kept.get()), "still here");

  // A name's exception for an address that is not public is looked at as well.
  const UniqueFd inside = tunnel(port_, format("two.example:{}", talker.port()));
  proxy_->set_rules(rules_of({"two.example"}));
  const std::string cut = read_all(inside.get());
  EXPECT_TRUE(cut.empty() || cut == "<reset>") << cut;
  const EgressLog log = proxy_->stop();
  const auto count = [&](std::string_view reason) {
    return std::ranges::count_if(log.records, [&](const EgressRecord& record) { return record.reason == reason; });
  };
  EXPECT_EQ(count("rules"), 2);
  EXPECT_EQ(count("not-listed"), 2);
  EXPECT_EQ(log.violations.size(), 4U);
}

// At 127.0.0.2: a listener whose backlog is full, so that a connect waits.
std::vector<UniqueFd> deaf_listener(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  std::vector<UniqueFd> fds;
  fds.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(fds[0].get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fds[0].get(), 0), 0);
  for (int i = 0; i < 4; ++i) {
    fds.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::connect(fds.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  return fds;
}

// The first address does not answer, the second was an exception that has been withdrawn when its turn comes.
TEST_F(ProxyTest, AnAddressIsJudgedByTheRulesOfItsTurn) {
  const Server server(answer_hello);
  const auto deaf = deaf_listener(server.port());
  names_.both["web.example"] = {"127.0.0.2", "127.0.0.1"};
  const std::string host = format("web.example:{}", server.port());
  int before = 0;
  const std::string answer = test::with_time_enough(
      [&](std::chrono::milliseconds time) {
        ProxyOptions options;
        options.timeouts.dial = time;  // within which the rules change
        proxy_.reset();
        names_.asked.clear();
        start({"web.example", "127.0.0.2", "127.0.0.1"}, {}, std::move(options));
        before = server.accepted();
        const UniqueFd fd = connect_loopback(port_);
        send_all(fd.get(), format("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n", host));
        EXPECT_TRUE(test::eventually([&] {
          const std::scoped_lock lock(names_.mutex);
          return !names_.asked.empty();
        }));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that it is the turn of the first; before that is as good
        proxy_->set_rules(rules_of({"web.example", "127.0.0.2"}));
        return read_all(fd.get());
      },
      [](const std::string& tried) { return !tried.ends_with("hello"); }, std::chrono::milliseconds(700));
  EXPECT_FALSE(answer.ends_with("hello"));
  EXPECT_EQ(server.accepted(), before);
  proxy_->set_rules(rules_of({"web.example", "127.0.0.2", "127.0.0.1"}));
  EXPECT_TRUE(get(host).ends_with("hello"));
}

TEST_F(ProxyTest, TheLogCanBeTakenWhileItServes) {
  const Server server(answer_hello);
  start({"127.0.0.1"});
  EXPECT_TRUE(get(address(server)).ends_with("hello"));
  EXPECT_TRUE(get("other.example:80").starts_with("HTTP/1.1 403 "));
  const EgressLog first = proxy_->take_log();
  ASSERT_EQ(first.records.size(), 2U);
  EXPECT_EQ(first.violations.size(), 1U);
  EXPECT_TRUE(proxy_->take_log().records.empty());
  EXPECT_TRUE(get("other.example:80").starts_with("HTTP/1.1 403 "));
  const EgressLog rest = proxy_->stop();
  EXPECT_EQ(rest.records.size(), 1U);
  ASSERT_EQ(rest.violations.size(), 1U);
  EXPECT_EQ(rest.violations[0].count, 1U);
  EXPECT_TRUE(proxy_->take_log().records.empty());
  proxy_->set_rules({});
}

TEST_F(ProxyTest, AfterTheEndTheDoorIsShut) {
  const Server server(echo);
  start({"127.0.0.1"});
  const UniqueFd open = connect_loopback(port_);
  send_all(open.get(), format("CONNECT {} HTTP/1.1\r\n\r\n", address(server)));
  EXPECT_EQ(read_until(open.get(), "\r\n\r\n").substr(9, 3), "200");
  (void)proxy_->stop();
  const std::string rest = read_all(open.get());
  EXPECT_TRUE(rest.empty() || rest == "<reset>") << rest;
  EXPECT_FALSE(connect_loopback(port_).valid());
}

}  // namespace
}  // namespace belljar::egress
