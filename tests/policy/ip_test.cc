#include "policy/ip.h"

#include <gtest/gtest.h>

namespace belljar::policy {
namespace {

Ip ip(const char* text) { return parse_ip(text).value(); }

TEST(Ip, TextComesBackCanonical) {
  constexpr std::pair<const char*, const char*> kPairs[] = {
      {"192.0.2.1", "192.0.2.1"},
      {"0.0.0.0", "0.0.0.0"},
      {"::", "::"},
      {"::1", "::1"},
      {"2001:DB8:0:0:1::1", "2001:db8::1:0:0:1"},
      {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
      {"1::", "1::"},
      {"::ffff:10.0.0.1", "10.0.0.1"},
      {"::ffff:a00:1", "10.0.0.1"},
      {"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
      {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
      {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
  };
  for (const auto& [text, canonical] : kPairs) {
    const auto parsed = parse_ip(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_string(*parsed), canonical);
    EXPECT_EQ(parse_ip(canonical), parsed) << text;
  }
}

TEST(Ip, WhatIsNoAddressIsRefused) {
  for (const char* text :
       {"", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", "1.2.3.4 ", "::1%eth0", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
        "::1::", "12345::", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "1::2:3:4:5:6:7:8", ":1", "1:", "1.2.3.4::", "g::"})
    EXPECT_FALSE(parse_ip(text)) << text;
}

TEST(Ip, RangesCompareTheirBits) {
  const IpRange ten{ip("10.0.0.0"), 8}, odd{ip("192.0.2.64"), 26}, all{ip("::"), 0};
  EXPECT_TRUE(contains(ten, ip("10.255.1.2")));
  EXPECT_FALSE(contains(ten, ip("11.0.0.0")));
  EXPECT_TRUE(contains(odd, ip("192.0.2.127")));
  EXPECT_FALSE(contains(odd, ip("192.0.2.128")));
  EXPECT_TRUE(contains(all, ip("2001:db8::1")));
  EXPECT_FALSE(contains(all, ip("1.2.3.4")));
}

TEST(Ip, NoSpecialAddressIsPublic) {
  constexpr std::pair<const char*, const char*> kSpecial[] = {
      {"0.0.0.0", "unspecified"},
      {"0.1.2.3", "unspecified"},
      {"10.1.2.3", "private"},
      {"100.64.0.1", "carrier-grade NAT"},
      {"100.100.100.200", "carrier-grade NAT"},
      {"127.0.0.1", "loopback"},
      {"127.255.255.254", "loopback"},
      {"169.254.169.254", "link-local"},
      {"172.16.0.1", "private"},
      {"172.31.255.255", "private"},
      {"192.0.0.1", "reserved"},
      {"192.0.2.1", "documentation"},
      {"192.88.99.1", "6to4 relay"},
      {"192.168.1.1", "private"},
      {"198.18.0.1", "benchmarking"},
      {"198.19.255.255", "benchmarking"},
      {"198.51.100.1", "documentation"},
      {"203.0.113.1", "documentation"},
      {"224.0.0.1", "multicast"},
      {"240.0.0.1", "reserved"},
      {"255.255.255.255", "reserved"},
      {"168.63.129.16", "cloud metadata"},
      {"::", "unspecified"},
      {"::1", "loopback"},
      {"::ffff:127.0.0.1", "loopback"},
      {"::ffff:169.254.169.254", "link-local"},
      {"::127.0.0.1", "reserved"},
      {"fe80::1", "link-local"},
      {"fec0::1", "site-local"},
      {"fc00::1", "private"},
      {"fd00:ec2::254", "private"},
      {"ff02::1", "multicast"},
      {"64:ff9b::10.0.0.1", "private"},
      {"64:ff9b::a9fe:a9fe", "link-local"},
      {"64:ff9b:1::1", "local NAT64"},
      {"100::1", "discard"},
      {"2001::1", "Teredo"},
      {"2001:0:53aa:64c::1", "Teredo"},
      {"2001:2::1", "reserved"},
      {"2001:10::1", "reserved"},
      {"2001:db8::1", "documentation"},
      {"2002:7f00:1::", "6to4"},
      {"2002:808:808::", "6to4"},
      {"3fff::1", "documentation"},
      {"5f00::1", "reserved"},
      {"4000::1", "reserved"},
      {"3ffe::1", "reserved"},
  };
  for (const auto& [text, why] : kSpecial) EXPECT_EQ(why_not_public(ip(text)), why) << text;
}

TEST(Ip, OrdinaryAddressesArePublic) {
  for (const char* text : {"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1",
                           "198.17.0.1", "198.20.0.1", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450::1",
                           "64:ff9b::8.8.8.8", "2001:200::1", "2001:4860::8888"})
    EXPECT_EQ(why_not_public(ip(text)), "") << text;
}

TEST(Ip, TunnelsShowWhatTheyCarry) {
  EXPECT_EQ(embedded_ipv4(ip("64:ff9b::10.0.0.1")), ip("10.0.0.1"));
  EXPECT_EQ(embedded_ipv4(ip("2002:7f00:1::5")), ip("127.0.0.1"));
  EXPECT_EQ(embedded_ipv4(ip("2001:0:1:2:3:4:80ff:fffe")), ip("127.0.0.1"));
  EXPECT_EQ(embedded_ipv4(ip("::10.0.0.1")), ip("10.0.0.1"));
  EXPECT_EQ(embedded_ipv4(ip("2606:4700::1")), std::nullopt);
  EXPECT_EQ(embedded_ipv4(ip("::1")), std::nullopt);
}

}  // namespace
}  // namespace belljar::policy
