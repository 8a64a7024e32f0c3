#include "base/ascii.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace belljar {
namespace {

TEST(Ascii, ClassesKnowNoLetterBeyondAscii) {
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    const bool digit = std::string_view("0123456789").find(c) != std::string_view::npos;
    const bool lower = std::string_view("abcdefghijklmnopqrstuvwxyz").find(c) != std::string_view::npos;
    const bool upper = std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZ").find(c) != std::string_view::npos;
    EXPECT_EQ(is_digit(c), digit) << i;
    EXPECT_EQ(is_lower(c), lower) << i;
    EXPECT_EQ(is_upper(c), upper) << i;
    EXPECT_EQ(is_letter(c), lower || upper) << i;
    EXPECT_EQ(is_alnum(c), lower || upper || digit) << i;
    EXPECT_EQ(to_lower(c) != c, upper) << i;
  }
}

TEST(Ascii, LowerCaseLeavesAllButCapitalsAlone) {
  EXPECT_EQ(lower_case("Ab-Z[@ \xC3\x84"), "ab-z[@ \xC3\x84");
  EXPECT_EQ(lower_case(""), "");
}

TEST(Ascii, ANumberHasADigitAndNothingElse) {
  EXPECT_TRUE(is_number("0123456789"));
  for (const char* const text : {"", "1a", "-1", "1 ", "1.0"}) EXPECT_FALSE(is_number(text)) << text;
}

TEST(Ascii, NamesAreEqualInAnyCase) {
  EXPECT_TRUE(iequals("Content-Length", "content-LENGTH"));
  EXPECT_TRUE(iequals("", ""));
  EXPECT_FALSE(iequals("host", "hosts"));
  EXPECT_FALSE(iequals("hosts", "host"));
  // 32 apart, and no letters
  EXPECT_FALSE(iequals("@", "`"));
  EXPECT_FALSE(iequals("[", "{"));
}

TEST(Ascii, TrimTakesWhiteSpaceOffBothEnds) {
  EXPECT_EQ(trim(" \t\r\n\v\fa b\f\v\n\r\t "), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
  // What counts is said: a field of HTTP keeps the line end that another header would begin after.
  EXPECT_EQ(trim("\t a\r\n ", " \t"), "a\r\n");
}

}  // namespace
}  // namespace belljar
