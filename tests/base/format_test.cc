// What a sandbox, a file or a user wrote must not steer the terminal of the person who reads about it.
#include "base/format.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

TEST(Escaped, LeavesPlainTextAlone) {
  EXPECT_EQ(escaped("src/main.cc"), "src/main.cc");
  EXPECT_EQ(escaped("Zürich 東京 🫙"), "Zürich 東京 🫙");
}

TEST(Escaped, ShowsControlCharacters) {
  EXPECT_EQ(escaped("a\nb\tc\rd"), "a\\x0ab\\x09c\\x0dd");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(escaped("\x7f"), "\\x7f");
  EXPECT_EQ(escaped("\x1b]52;c;aGk=\x07"), "\\x1b]52;c;aGk=\\x07");
}

TEST(Escaped, ShowsC1ControlsAlthoughTheyAreValidUtf8) {
  EXPECT_EQ(escaped("\xc2\x9b"
                    "31m"),
            "\\u{009b}31m");
}

TEST(Escaped, ShowsWhatChangesTheOrderOrHides) {
  EXPECT_EQ(escaped("a\u202Eb"), "a\\u{202e}b");  // right-to-left override
  EXPECT_EQ(escaped("a\u2066b"), "a\\u{2066}b");  // isolate
  EXPECT_EQ(escaped("a\u200Bb"), "a\\u{200b}b");  // zero width space
  EXPECT_EQ(escaped("a\u2028b"), "a\\u{2028}b");  // line separator
  EXPECT_EQ(escaped("\uFEFFb"), "\\u{feff}b");
  EXPECT_EQ(escaped("\U000E0041"), "\\u{e0041}");  // tag letter
}

TEST(Escaped, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(escaped("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf");                    // overlong slash
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(escaped("\xe6\x9d"), "\\xe6\\x9d");                    // cut short
}

TEST(Quoted, PutsBackQuotesAround) { EXPECT_EQ(quoted("a b"), "`a b`"); }

}  // namespace
}  // namespace belljar
