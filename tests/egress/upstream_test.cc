#include "egress/upstream.h"

#include <gtest/gtest.h>

namespace belljar::egress {
namespace {

using namespace std::string_literals;
using HandshakeState = UpstreamHandshake::State;

policy::Destination place(const std::string& text) { return policy::parse_destination(text).value(); }

TEST(Upstream, AUrlNamesTheProxy) {
  const auto http = parse_upstream("http://me:p%40ss@proxy.test:8080/", {});
  ASSERT_TRUE(http);
  EXPECT_EQ(http->kind, Upstream::Kind::kHttp);
  EXPECT_EQ(to_string(http->place), "proxy.test:8080");
  EXPECT_EQ(http->credential, "me:p@ss");
  EXPECT_EQ(to_string(parse_upstream("http://proxy.test", {})->place), "proxy.test:80");
  EXPECT_EQ(to_string(parse_upstream("socks5://[::1]", {})->place), "[::1]:1080");
  for (const char* bad : {"", "proxy.test:80", "https://proxy.test", "ftp://proxy.test", "http://", "http://a@b", "http://:x@b",
                          "http://a:%zz@b", "http://a:%0d%0a@b", "http://a:%", "http://h:0", "http://h/path"})
    EXPECT_FALSE(parse_upstream(bad, {})) << bad;
}

TEST(Upstream, TheErrorHoldsNoPassword) {
  const auto bad = parse_upstream("https://me:secret@proxy.test", {});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().line().find("secret"), std::string::npos);
}

TEST(Upstream, SomeHostsLeaveWithoutIt) {
  const auto upstream = parse_upstream("http://proxy.test", {"**.inner.test", "10.0.0.0/8"});
  EXPECT_TRUE(leaves_without(*upstream, place("a.inner.test:443")));
  EXPECT_TRUE(leaves_without(*upstream, place("10.1.2.3:80")));
  EXPECT_FALSE(leaves_without(*upstream, place("web.test:443")));
}

TEST(Upstream, ConnectIsAskedForAndBelievedOnlyWhenGranted) {
  Upstream upstream = parse_upstream("http://me:pass@proxy.test", {}).value();
  std::string out;
  UpstreamHandshake handshake(upstream, place("web.test:443"));
  EXPECT_EQ(handshake.begin(),
            "CONNECT web.test:443 HTTP/1.1\r\nHost: web.test:443\r\nProxy-Authorization: Basic bWU6cGFzcw==\r\n\r\n");
  std::string in = "HTTP/1.1 200 ";
  EXPECT_EQ(handshake.feed(in, out), HandshakeState::kMore);
  in += "OK\r\nX: y\r\n\r\nserver speaks first";
  EXPECT_EQ(handshake.feed(in, out), HandshakeState::kDone);
  EXPECT_EQ(in, "server speaks first");
  UpstreamHandshake refused(upstream, place("web.test:443"));
  in = "HTTP/1.1 407 Who\r\n\r\n";
  EXPECT_EQ(refused.feed(in, out), HandshakeState::kFailed);
  EXPECT_EQ(refused.reason(), "it answered 407 Who");
  UpstreamHandshake nonsense(upstream, place("web.test:443"));
  in = "SSH-2.0-x\r\n\r\n";
  EXPECT_EQ(nonsense.feed(in, out), HandshakeState::kFailed);
}

TEST(Upstream, SocksLogsInAndPassesTheName) {
  Upstream upstream = parse_upstream("socks5://me:pass@proxy.test", {}).value();
  UpstreamHandshake handshake(upstream, place("web.test:443"));
  EXPECT_EQ(handshake.begin(), "\x05\x02\0\x02"s);
  std::string in = "\x05\x02"s, out;
  EXPECT_EQ(handshake.feed(in, out), HandshakeState::kMore);
  EXPECT_EQ(out, "\x01\x02me\x04pass"s);
  in = "\x01\0"s, out.clear();
  EXPECT_EQ(handshake.feed(in, out), HandshakeState::kMore);
  EXPECT_EQ(out, "\x05\x01\0\x03\x08web.test\x01\xbb"s);
  in = "\x05\0\0\x01\0\0\0\0\0"s;
  EXPECT_EQ(handshake.feed(in, out), HandshakeState::kMore);
  in += "\0more"s;
  EXPECT_EQ(handshake.feed(in, out), HandshakeState::kDone);
  EXPECT_EQ(in, "more");
  UpstreamHandshake refused(upstream, place("10.0.0.1:1"));
  in = "\x05\xff"s;
  EXPECT_EQ(refused.feed(in, out), HandshakeState::kFailed);
}

TEST(Http, CredentialsAreEncodedWhole) {
  EXPECT_EQ(proxy_authorization(""), "");
  EXPECT_EQ(proxy_authorization("a:b"), "Proxy-Authorization: Basic YTpi\r\n");
  EXPECT_EQ(proxy_authorization("a:bc"), "Proxy-Authorization: Basic YTpiYw==\r\n");
  EXPECT_EQ(proxy_authorization("a:bcd"), "Proxy-Authorization: Basic YTpiY2Q=\r\n");
}

}  // namespace
}  // namespace belljar::egress
