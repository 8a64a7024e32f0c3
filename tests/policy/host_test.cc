#include "policy/host.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar::policy {
namespace {

std::string canonical(std::string_view text) {
  const auto host = parse_host(text);
  return host ? to_string(*host) : "refused";
}

TEST(Host, NamesGetOneSpelling) {
  constexpr std::pair<const char*, const char*> kPairs[] = {
      {"example.com", "example.com"},
      {"EXAMPLE.Com", "example.com"},
      {"example.com.", "example.com"},
      {"xn--bcher-kva.example", "xn--bcher-kva.example"},
      {"_dmarc.example.com", "_dmarc.example.com"},
      {"a-b.c", "a-b.c"},
      {"localhost", "localhost"},
      {"1e100.net", "1e100.net"},
      {"0x7f.example", "0x7f.example"},
  };
  for (const auto& [text, name] : kPairs) EXPECT_EQ(canonical(text), name);
}

TEST(Host, OddSpellingsOfAnAddressAreTheAddress) {
  for (const char* text : {"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.1", "017700000001", "0177.0.0.01",
                           "127.0.0.1.", "[::ffff:127.0.0.1]", "::ffff:7f00:1", "0x00000000000000007f.1"})
    EXPECT_EQ(canonical(text), "127.0.0.1") << text;
  EXPECT_EQ(canonical("[2001:DB8::1]"), "2001:db8::1");
  EXPECT_EQ(canonical("0"), "0.0.0.0");
  EXPECT_EQ(canonical("0x"), "0.0.0.0");
}

TEST(Host, EverythingElseIsRefusedBeforeItIsCompared) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv,
                                      "."sv,
                                      "a..b"sv,
                                      ".a"sv,
                                      "a.."sv,
                                      "good.example\0.evil.example"sv,
                                      "a\r\nb"sv,
                                      "a\nb"sv,
                                      "a b"sv,
                                      "a%2eb"sv,
                                      "user@host"sv,
                                      "a/b"sv,
                                      "a?b"sv,
                                      "a#b"sv,
                                      "a\\b"sv,
                                      "b\xC3\xBC"
                                      "cher.example"sv,
                                      "\xEF\xBC\x91.1.1.1"sv,
                                      "256.1.1.1"sv,
                                      "1.2.3.4.5"sv,
                                      "4294967296"sv,
                                      "127.0.0.0x100"sv,
                                      "1.2.3.256"sv,
                                      "08.1.1.1"sv,
                                      "999999999999999999999999"sv,
                                      "a.1"sv,
                                      "[::1"sv,
                                      "::1]"sv,
                                      "[::1%eth0]"sv,
                                      "fe80::1%1"sv,
                                      "[]"sv,
                                      "[1.2.3.4]"sv,
                                      "a:b"sv,
                                      "a*b"sv})
    EXPECT_EQ(canonical(text), "refused") << text;
  EXPECT_EQ(canonical(std::string(64, 'a') + ".com"), "refused");
  EXPECT_NE(canonical(std::string(63, 'a') + ".com"), "refused");
  std::string longest;
  while (longest.size() < 252) longest += "a.";
  EXPECT_NE(canonical(longest + "a"), "refused");
  EXPECT_EQ(canonical(longest + "aa"), "refused");
}

TEST(Host, DestinationsHaveAPort) {
  const auto text = [](std::string_view given, std::uint16_t fallback = 0) {
    const auto destination = parse_destination(given, fallback);
    return destination ? to_string(*destination) : "refused";
  };
  EXPECT_EQ(text("Example.com:443"), "example.com:443");
  EXPECT_EQ(text("example.com", 80), "example.com:80");
  EXPECT_EQ(text("[::1]:80"), "[::1]:80");
  EXPECT_EQ(text("::1", 80), "[::1]:80");
  EXPECT_EQ(text("[::1]", 80), "[::1]:80");
  EXPECT_EQ(text("127.1:080"), "127.0.0.1:80");
  for (const char* bad : {"example.com", "example.com:", "example.com:0", "example.com:65536", "example.com:+80", "example.com: 80",
                          "example.com:8x", "u@example.com:80", "example.com:80:80", "[::1]80", ":80", "[::1]:"})
    EXPECT_EQ(text(bad), "refused") << bad;
}

TEST(Host, AUrlIsAskedForAsAHostWithoutItsPassword) {
  const auto url = parse_destination("https://u:secret@a.org:8443/x", 443);
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().what(), "`https://***@a.org:8443/x` is no host");
  EXPECT_EQ(url.error().next(), "write the host, or HOST:PORT: a.org:8443");
  EXPECT_EQ(parse_destination("u:secret@a.org:1").error().what().find("secret"), std::string::npos);
  EXPECT_EQ(parse_host("u:secret@a.org").error().what().find("secret"), std::string::npos);
  EXPECT_TRUE(parse_destination("a.org:8443", 443));
}

TEST(Host, ErrorsNameTheNextStep) {
  const auto host = parse_host(
      "b\xC3\xBC"
      "cher.example");
  ASSERT_FALSE(host);
  EXPECT_NE(host.error().next().find("xn--"), std::string::npos);
}

}  // namespace
}  // namespace belljar::policy
