#include "txn/lines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace belljar::txn {
namespace {

TEST(Lines, HunksSayWhatChangedWithItsSurroundings) {
  EXPECT_EQ(unified_hunks("a\nb\nc\n", "a\nB\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
  EXPECT_EQ(unified_hunks("", "x\ny\n"), "@@ -0,0 +1,2 @@\n+x\n+y\n");
  EXPECT_EQ(unified_hunks("x\n", ""), "@@ -1 +0,0 @@\n-x\n");
  EXPECT_EQ(unified_hunks("a\n", "a"), "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
  EXPECT_EQ(unified_hunks("same\n", "same\n"), "");
  EXPECT_EQ(unified_hunks("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"),
            "@@ -7,3 +7,4 @@\n 7\n 8\n 9\n+ten\n");
}

TEST(Lines, MergeTakesBothSidesAndNeverChooses) {
  const std::string base = "1\n2\n3\n4\n5\n";
  EXPECT_EQ(merge(base, "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"), "one\n2\n3\n4\nfive\n");
  EXPECT_EQ(merge(base, base, "x\n"), "x\n");
  EXPECT_EQ(merge(base, "x\n", base), "x\n");
  EXPECT_EQ(merge(base, "1\nboth\n3\n4\n5\n", "1\nboth\n3\n4\n5\n"), "1\nboth\n3\n4\n5\n");
  EXPECT_EQ(merge(base, "0\n1\n2\n3\n4\n5\n", "1\n2\n3\n5\n"), "0\n1\n2\n3\n5\n");
  EXPECT_EQ(merge(base, "1\nours\n3\n4\n5\n", "1\ntheirs\n3\n4\n5\n"), std::nullopt);
  EXPECT_EQ(merge(base, "1\nours\n3\n4\n5\n", "1\n3\n4\n5\n"), std::nullopt);
  EXPECT_EQ(merge(base, base + "ours\n", base + "theirs\n"), std::nullopt);
  EXPECT_EQ(merge("", "ours\n", ""), "ours\n");
}

std::string random_text(std::mt19937& random, std::size_t lines) {
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) text += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
  return text;
}

// What find_matches() says is put together again: the matched lines and the rest of the right side are the right side.
TEST(Lines, MatchesAreLinesOfBothInOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::string left = random_text(random, random() % 30);
    const std::string right = random_text(random, random() % 30);
    const auto a = split_lines(left);
    const auto b = split_lines(right);
    std::size_t left_end = 0;
    std::size_t right_end = 0;
    for (const Match& match : find_matches(a, b)) {
      ASSERT_GE(match.left, left_end);
      ASSERT_GE(match.right, right_end);
      for (std::size_t i = 0; i < match.count; ++i) ASSERT_EQ(a[match.left + i], b[match.right + i]);
      left_end = match.left + match.count;
      right_end = match.right + match.count;
    }
    ASSERT_EQ(left_end, a.size());
    ASSERT_EQ(right_end, b.size());
  }
}

TEST(Lines, TextsThatShareNothingTakeBoundedTime) {
  std::string left;
  std::string right;
  for (int i = 0; i < 20000; ++i) left += "l" + std::to_string(i) + "\n", right += "r" + std::to_string(i) + "\n";
  const auto matches = find_matches(split_lines(left), split_lines(right));
  EXPECT_EQ(matches.back().left, 20000U);
}

// A merge with one side untouched is the other side, whatever the texts.
TEST(Lines, AMergeWithAnUntouchedSideIsTheOther) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    const std::string base = random_text(random, random() % 20);
    const std::string other = random_text(random, random() % 20);
    ASSERT_EQ(merge(base, other, base), other);
    ASSERT_EQ(merge(base, base, other), other);
    ASSERT_EQ(merge(base, other, other), other);
  }
}

}  // namespace
}  // namespace belljar::txn
