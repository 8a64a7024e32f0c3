#include "egress/socks.h"

#include <gtest/gtest.h>

namespace belljar::egress {
namespace {

using namespace std::string_literals;

std::string connect_to(const std::string& name, char command = 1) {
  return "\x05"s + command + "\0\x03"s + static_cast<char>(name.size()) + name + "\x01\xBB"s;
}

TEST(Socks, GreetingsWaitForAllMethods) {
  EXPECT_EQ(read_socks_greeting("\x05").parse, Parse::kMore);
  EXPECT_EQ(read_socks_greeting("\x05\x02\x00"s).parse, Parse::kMore);
  const SocksGreeting both = read_socks_greeting("\x05\x02\x00\x02"s);
  EXPECT_EQ(both.parse, Parse::kDone);
  EXPECT_TRUE(both.no_credential && both.password);
  EXPECT_EQ(both.taken, 4U);
  EXPECT_EQ(read_socks_greeting("\x05\x00"s).parse, Parse::kBad);
  EXPECT_EQ(read_socks_greeting("\x04\x01\x00"s).parse, Parse::kBad);
}

TEST(Socks, PasswordsAreRead) {
  EXPECT_EQ(read_socks_password("\x01\x01u\x02pq"s).credential, "u:pq");
  EXPECT_EQ(read_socks_password("\x01\x01u\x02p"s).parse, Parse::kMore);
  EXPECT_EQ(read_socks_password("\x02\x01u\x01p"s).parse, Parse::kBad);
}

TEST(Socks, NamesAndAddressesAreCanonical) {
  EXPECT_EQ(to_string(read_socks_request(connect_to("Example.COM.")).destination), "example.com:443");
  EXPECT_EQ(to_string(read_socks_request(connect_to("0x7f.1")).destination), "127.0.0.1:443");
  EXPECT_EQ(to_string(read_socks_request("\x05\x01\0\x01\x7f\0\0\x01\0\x50"s).destination), "127.0.0.1:80");
  EXPECT_EQ(to_string(read_socks_request("\x05\x01\0\x04"s + std::string(10, '\0') + "\xFF\xFF\x0A\0\0\x01\0\x50"s).destination),
            "10.0.0.1:80");
  EXPECT_EQ(read_socks_request(connect_to("example.com").substr(0, 10)).parse, Parse::kMore);
}

// CVE-less NUL bug of a peer: "good.example\0.evil.example" matched by one reader, dialled by another.
TEST(Socks, OddNamesAreRefusedBeforeTheyAreCompared) {
  for (const std::string& name : {"good.example\0.evil.example"s, "a\r\nb"s, "a b"s, "a%2e"s, "u@b"s, ""s, "256.1.1.1"s})
    EXPECT_EQ(read_socks_request(connect_to(name)).reply, SocksReply::kNotAllowed);
  EXPECT_EQ(to_string(read_socks_request(connect_to("a\r\nb\0c"s)).destination), R"(a\x0d\x0ab\x00c:443)") << "for the record";
}

TEST(Socks, OnlyConnectIsServed) {
  EXPECT_EQ(read_socks_request(connect_to("a.example", 3)).reply, SocksReply::kBadCommand);
  EXPECT_NE(read_socks_request(connect_to("a.example", 3)).reason.find("UDP"), std::string::npos);
  EXPECT_EQ(read_socks_request(connect_to("a.example", 2)).reply, SocksReply::kBadCommand);
  EXPECT_EQ(read_socks_request("\x05\x01\0\x07xxxxxxx"s).reply, SocksReply::kBadAddress);
  EXPECT_EQ(read_socks_request("\x05\x01\0\x01\x7f\0\0\x01\0\0"s).reply, SocksReply::kNotAllowed) << "port 0";
}

}  // namespace
}  // namespace belljar::egress
