#include "base/encoding.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace belljar {
namespace {

using namespace std::string_literals;

TEST(Base64, GoesBothWays) {
  for (const std::string& bytes : {""s, "a"s, "ab"s, "abc"s, "\0\xff\0"s, std::string(100'000, '\x80')})
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  for (const char* text : {"a", "ab=c", "====", "a b=", "YQ==YQ=="}) EXPECT_FALSE(from_base64(text)) << text;
}

TEST(Base64, IsThatOfTheRfc) {  // RFC 4648, section 10
  constexpr std::string_view kWords[][2] = {{"", ""},
                                            {"f", "Zg=="},
                                            {"fo", "Zm8="},
                                            {"foo", "Zm9v"},
                                            {"foob", "Zm9vYg=="},
                                            {"fooba", "Zm9vYmE="},
                                            {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kWords) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(to_base64url(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  EXPECT_EQ(to_base64("\xff\xff\xfe"), "///+");
  EXPECT_EQ(to_base64url("\xff\xff\xfe"), "___-");
}

TEST(Base64, WhiteSpaceAndTheOtherAlphabetAreNone) {
  for (const char* text : {" YQ==", "YQ==\n\n\n\n", "YQ\n=", "   ", "___-", "YQ=", "=QQQ", "Y==="})
    EXPECT_FALSE(from_base64(text)) << text;
}

TEST(Base64, DigitsCountTheAlphabet) {
  for (int i = 0; i < 64; ++i) EXPECT_EQ(base64_digit("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[i]), i);
  for (const char c : "=-_ \n\x80"s) EXPECT_EQ(base64_digit(c), -1);
}

TEST(Hex, GoesBothWays) {
  const std::string bytes = "\0\x0f\xa5\xff"s;
  EXPECT_EQ(to_hex(bytes), "000fa5ff");
  EXPECT_EQ(to_hex(bytes, Digits::kCapital), "000FA5FF");
  EXPECT_EQ(from_hex("000fA5Ff"), bytes);
  EXPECT_EQ(to_hex(""), "");
  EXPECT_EQ(from_hex(""), "");
}

TEST(Hex, HalfAByteAndOtherLettersAreNone) {
  for (const char* text : {"0", "000", "0g", "g0", " 0", "-1", "0x"}) EXPECT_FALSE(from_hex(text)) << text;
  EXPECT_EQ(hex_byte("fFf"), 0xFF);
  EXPECT_EQ(hex_byte("f"), -1);
  EXPECT_EQ(hex_digit('@'), -1);
  EXPECT_EQ(hex_digit('G'), -1);
  EXPECT_TRUE(is_small_hex("09af"));
  EXPECT_FALSE(is_small_hex("09aF"));
}

TEST(Percent, AllButTheUnreservedIsEscaped) {
  EXPECT_EQ(percent_encoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encoded("a/b ?\xc3\xa4"), "a%2Fb%20%3F%C3%A4");
  EXPECT_EQ(percent_encoded("a/b ?", "/"), "a/b%20%3F");
  EXPECT_EQ(percent_encoded("/\xff", {}, Digits::kSmall), "%2f%ff");
}

TEST(Percent, DecodingTakesWholeEscapesOnly) {
  EXPECT_EQ(percent_decoded("a%2Fb+%c3%A4%00"), "a/b+\xc3\xa4\0"s);
  EXPECT_EQ(percent_decoded(""), "");
  for (const char* text : {"%", "%2", "a%", "%2x", "%x2", "%%20", "%-1"}) EXPECT_FALSE(percent_decoded(text)) << text;
}

TEST(Utf8, IsThatOfTheRfc) {  // RFC 3629, sections 3 and 4
  for (const std::string& text : {""s, "a\0b"s, "\x7f"s, "\xc2\x80"s, "\xdf\xbf"s, "\xe0\xa0\x80"s, "\xed\x9f\xbf"s,
                                  "\xee\x80\x80"s, "\xef\xbf\xbf"s, "\xf0\x90\x80\x80"s, "\xf4\x8f\xbf\xbf"s})
    EXPECT_TRUE(is_utf8(text)) << to_hex(text);
  for (const std::string& text :
       {"\x80"s, "\xbf"s, "\xc0\xaf"s, "\xc1\xbf"s, "\xe0\x80\xaf"s, "\xe0\x9f\xbf"s, "\xed\xa0\x80"s, "\xf0\x80\x80\xaf"s,
        "\xf0\x8f\xbf\xbf"s, "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s, "\xfe"s, "\xff"s, "\xc2"s, "\xe2\x82"s, "\xf0\x9f\x98"s,
        "\xc2"
        "a"s,
        "a\xe2\x28\xa1"s, "\xf0\x9f\x28\x80"s})
    EXPECT_FALSE(is_utf8(text)) << to_hex(text);
}

TEST(Utf8, ASequenceIsMeasuredAtTheFront) {
  EXPECT_EQ(utf8_size("a\xff"), 1U);
  EXPECT_EQ(utf8_size("\xc3\xa4z"), 2U);
  EXPECT_EQ(utf8_size("\xe2\x82\xacz"), 3U);
  EXPECT_EQ(utf8_size("\xf0\x9f\x98\x80z"), 4U);
  EXPECT_EQ(utf8_size("\0"s), 1U);
  EXPECT_EQ(utf8_size(""), 0U);
  EXPECT_EQ(utf8_size("\xff"
                      "a"),
            0U);
}

}  // namespace
}  // namespace belljar
