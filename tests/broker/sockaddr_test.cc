#include "broker/sockaddr.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <string>

namespace belljar::broker {
namespace {

using Kind = UnixName::Kind;

Address unix_address(const std::string& name, socklen_t length) {
  Address address;
  sockaddr_storage storage{};
  storage.ss_family = AF_UNIX;
  std::memcpy(reinterpret_cast<char*>(&storage) + 2, name.data(), name.size());
  std::memcpy(address.bytes.data(), &storage, sizeof storage);
  address.length = length;
  return address;
}

Address unix_address(const std::string& name) { return unix_address(name, static_cast<socklen_t>(2 + name.size())); }

TEST(DecodeUnix, PathEndsAtTheFirstNul) {
  const Address address = unix_address(std::string("/tmp/a\0/tmp/b", 13));
  EXPECT_EQ(decode_unix(address).kind, Kind::kPath);
  EXPECT_EQ(decode_unix(address).name, "/tmp/a");
}

TEST(DecodeUnix, PathWithoutNulEndsAtTheAddress) {
  const Address address = unix_address("/tmp/abc", 2 + 6);
  EXPECT_EQ(decode_unix(address).name, "/tmp/a");
  const std::string longest(108, 'x');
  EXPECT_EQ(decode_unix(unix_address(longest)).name, longest);
}

TEST(DecodeUnix, AbstractNameMayHoldNul) {
  const Address address = unix_address(std::string("\0a\0b", 4));
  EXPECT_EQ(decode_unix(address).kind, Kind::kAbstract);
  EXPECT_EQ(decode_unix(address).name, std::string_view("a\0b", 3));
}

TEST(DecodeUnix, WhatTheKernelRefusesHasNoName) {
  EXPECT_EQ(decode_unix(unix_address("/a", 0)).kind, Kind::kNone);
  EXPECT_EQ(decode_unix(unix_address("/a", 1)).kind, Kind::kNone);
  EXPECT_EQ(decode_unix(unix_address("/a", 2)).kind, Kind::kNone);
  EXPECT_EQ(decode_unix(unix_address("/a", 3)).kind, Kind::kPath);
  EXPECT_EQ(decode_unix(unix_address("/a", 110)).kind, Kind::kPath);
  EXPECT_EQ(decode_unix(unix_address("/a", 111)).kind, Kind::kNone);
  Address inet = unix_address("/a");
  inet.bytes[0] = std::byte{AF_INET};
  EXPECT_EQ(decode_unix(inet).kind, Kind::kNone);
}

TEST(NetlinkPeer, OnlyTheKernelIsNoPeer) {
  sockaddr_nl peer{};
  peer.nl_family = AF_NETLINK;
  Address address;
  const auto names = [&] {
    std::memcpy(address.bytes.data(), &peer, sizeof peer);
    return names_netlink_peer(address);
  };
  address.length = sizeof peer;
  EXPECT_FALSE(names());
  peer.nl_pid = 1;
  EXPECT_TRUE(names());
  peer.nl_pid = 0;
  peer.nl_groups = 2;
  EXPECT_TRUE(names());
  address.length = 11;
  EXPECT_FALSE(names());
}

TEST(DecodeSelfPath, TakesDescriptorsApart) {
  const auto kind = [](std::string_view path) { return decode_self_path(path).kind; };
  const SelfPath path = decode_self_path("/proc/self/fd/17/a/b");
  EXPECT_EQ(path.kind, SelfPath::Kind::kFd);
  EXPECT_EQ(path.fd, 17);
  EXPECT_EQ(path.rest, "a/b");
  EXPECT_EQ(decode_self_path("/dev/fd/3").fd, 3);
  EXPECT_EQ(decode_self_path("/dev/fd/3").rest, "");
  EXPECT_EQ(decode_self_path("/proc/thread-self/cwd//x").rest, "x");
  EXPECT_EQ(kind("/proc/self/root/tmp"), SelfPath::Kind::kRoot);
  EXPECT_EQ(kind("/proc/selfish/fd/1"), SelfPath::Kind::kNone);
  EXPECT_EQ(kind("/proc/self/fd/-1"), SelfPath::Kind::kNone);
  EXPECT_EQ(kind("/proc/self/fd/1x"), SelfPath::Kind::kNone);
  EXPECT_EQ(kind("/proc/self/fd/99999999999"), SelfPath::Kind::kNone);
  EXPECT_EQ(kind("/proc/self/fd"), SelfPath::Kind::kNone);
  EXPECT_EQ(kind("/tmp/proc/self/fd/1"), SelfPath::Kind::kNone);
  EXPECT_EQ(kind(""), SelfPath::Kind::kNone);
}

Address internet_address(int family, const char* host, std::uint16_t port) {
  Address address;
  if (family == AF_INET) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    ::inet_pton(AF_INET, host, &name.sin_addr);
    std::memcpy(address.bytes.data(), &name, sizeof name);
    address.length = sizeof name;
    return address;
  }
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_port = htons(port);
  ::inet_pton(AF_INET6, host, &name.sin6_addr);
  std::memcpy(address.bytes.data(), &name, sizeof name);
  address.length = sizeof name;
  return address;
}

TEST(InternetName, IsHostAndPort) {
  EXPECT_EQ(internet_name(internet_address(AF_INET, "192.0.2.1", 443)), "192.0.2.1:443");
  EXPECT_EQ(internet_name(internet_address(AF_INET6, "2001:db8::1", 80)), "[2001:db8::1]:80");
  EXPECT_EQ(internet_name(internet_address(AF_INET6, "::ffff:192.0.2.1", 80)), "192.0.2.1:80");
}

TEST(InternetName, LoopbackPortZeroAndOthersHaveNone) {
  EXPECT_EQ(internet_name(internet_address(AF_INET, "127.3.2.1", 443)), "");
  EXPECT_EQ(internet_name(internet_address(AF_INET6, "::1", 443)), "");
  EXPECT_EQ(internet_name(internet_address(AF_INET6, "::ffff:127.0.0.1", 443)), "");
  EXPECT_EQ(internet_name(internet_address(AF_INET, "192.0.2.1", 0)), "");
  EXPECT_EQ(internet_name(unix_address("/tmp/a")), "");
  Address shorter = internet_address(AF_INET, "192.0.2.1", 443);
  shorter.length = 4;
  EXPECT_EQ(internet_name(shorter), "");
}

TEST(EndpointName, LoopbackAndPortZeroHaveOne) {
  EXPECT_EQ(endpoint_name(internet_address(AF_INET, "127.0.0.1", 0)), "127.0.0.1:0");
  EXPECT_EQ(endpoint_name(internet_address(AF_INET6, "::", 80)), "[::]:80");
  EXPECT_EQ(endpoint_name(unix_address("/tmp/a")), "");
  EXPECT_EQ(endpoint_name(Address{}), "");
}

}  // namespace
}  // namespace belljar::broker
