#include "tools/spool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "base/encoding.h"
#include "tools/text.h"

namespace belljar::tools {
namespace {

TEST(Spool, ReadsBackWhatWasWrittenByOffset) {
  Spool spool;
  std::string all;
  for (int i = 0; i < 30'000; ++i) {
    const std::string piece = std::to_string(i) + "\n";
    spool.append(piece);
    all += piece;
  }
  ASSERT_GT(all.size(), Spool::kHead) << "reaches into the second part";
  EXPECT_EQ(spool.total(), all.size());
  EXPECT_EQ(spool.lines(), 30'000U);
  for (const std::size_t from :
       {std::size_t{0}, std::size_t{5}, Spool::kHead - 3, Spool::kHead, Spool::kHead + 7, all.size(), all.size() + 9}) {
    const Page page = spool.read(from, 1000);
    EXPECT_EQ(page.bytes, from < all.size() ? all.substr(from, 1000) : "") << from;
    EXPECT_EQ(page.next, page.offset + page.bytes.size());
  }
}

TEST(Spool, DropsTheMiddleAndSaysWhere) {
  Spool spool;
  const std::string piece(1000, 'x');
  const std::size_t pieces = 5000;
  spool.append("first\n");
  for (std::size_t i = 0; i < pieces; ++i) spool.append(piece);
  spool.append("last\n");
  EXPECT_TRUE(spool.read(0, 10).bytes.starts_with("first\n"));
  const Page after = spool.read(Spool::kHead, 10);
  EXPECT_GT(after.offset, Spool::kHead) << "the page begins behind what was dropped";
  EXPECT_EQ(after.total, pieces * 1000 + 11);
  EXPECT_TRUE(spool.read(after.total - 5, 10).bytes == "last\n");
  EXPECT_GE(after.total - after.offset, Spool::kTail);
}

TEST(Spool, NoPageBeginsOrEndsInsideOfACharacter) {
  Spool spool;
  std::string all;
  while (all.size() < Spool::kHead + 9000) all += "\xC3\xA4\xF0\x9F\x98\x80z";
  spool.append(all);
  for (const std::size_t limit :
       {std::size_t{100}, std::size_t{9999}, Spool::kHead - 1, Spool::kHead, Spool::kHead + 1, all.size()}) {
    std::string back;
    while (back.size() < all.size()) {
      const Page page = spool.read(back.size(), limit);
      ASSERT_FALSE(page.bytes.empty());
      ASSERT_TRUE(is_utf8(page.bytes)) << limit << " at " << page.offset;
      back += page.bytes;
    }
    EXPECT_EQ(back, all) << limit;
  }
  for (int i = 0; i < 40; ++i) spool.append(all);
  const Page behind = spool.read(Spool::kHead, 1000);
  EXPECT_GT(behind.offset, Spool::kHead);
  EXPECT_TRUE(is_utf8(behind.bytes));
}

TEST(Text, CutsAtCharacters) {
  EXPECT_EQ(whole_characters("a\xC3\xA4z", 2), 1U);
  EXPECT_EQ(whole_characters("a\xC3\xA4z", 3), 3U);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98\x80", 3), 3U) << "something must come out";
  EXPECT_EQ(whole_characters("x\xF0\x9F\x98\x80", 4), 1U);
  EXPECT_EQ(whole_characters("\xFF\xFF\xFF", 2), 2U) << "no UTF-8 at all";
  EXPECT_EQ(from_whole_character("\xA4z"), "z");
  EXPECT_EQ(characters("a\xC3\xA4\xFFz"), 4U);
  EXPECT_EQ(first_characters("a\xC3\xA4z", 2), "a\xC3\xA4");
  EXPECT_EQ(utf16_length("a\xC3\xA4\xF0\x9F\x98\x80"), 4U);
  EXPECT_TRUE(is_utf8("a\xC3\xA4\xF0\x9F\x98\x80"));
  for (const char* bad : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "\xE0\x80\x80"}) EXPECT_FALSE(is_utf8(bad));
  EXPECT_EQ(shorten("aaaa\nbbbb\ncccc\n", 10, "ask"), "aaaa\n\n[... 5 bytes, 1 lines left out; ask ...]\ncccc\n");
  EXPECT_EQ(shorten("aaaa", 10, "ask"), "aaaa");
}

}  // namespace
}  // namespace belljar::tools
