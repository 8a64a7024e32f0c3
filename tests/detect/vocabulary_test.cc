#include "detect/vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "detect/signs.h"

namespace belljar::detect {
namespace {

void expect_same(const KnownWord& left, const KnownWord& right, std::string_view word) {
  EXPECT_EQ(left.meaning.roles, right.meaning.roles) << word;
  EXPECT_EQ(left.meaning.weighed, right.meaning.weighed) << word;
  EXPECT_EQ(left.hash, right.hash) << word;
  EXPECT_EQ(left.weight, right.weight) << word;
}

// Long enough for a cache; far more words than it has places, of 2 to 20 bytes, each twice.
TEST(WordCache, SaysOfEachWordWhatIsSaidWithoutIt) {
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    const std::string number = std::to_string(i % 3000);
    for (const char* word : {"ignore", "w", "previous", "l'injection", "игнорируй", "instructionsandmore"})
      text += word + number + " ";
    text += "ignore previous instructions l'injection и ";
  }
  WordCache cache(text);
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find(' ', begin);
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    expect_same(cache.of(begin, end), know_word(word), word);
    if (HasFailure()) return;
  }
}

TEST(WordCache, KeepsTheLastWordOfATextInBounds) {
  const std::string text = std::string(5000, ' ') + "ignore";
  WordCache cache(text);
  expect_same(cache.of(5000, 5006), know_word("ignore"), "ignore");
}

TEST(Vocabulary, WordsBeforeAnApostropheAndArabicPrefixesAreTakenOff) {
  EXPECT_NE(know_word("l'injection").meaning.roles & kTalk, 0U);
  EXPECT_EQ(know_word("0").hash, know_word("17").hash);
  EXPECT_NE(know_word("التعليمات").meaning.roles & kOrders, 0U);
}

// A role that is spelled wrong would be none, and its words would mean nothing.
TEST(Vocabulary, EachRowOfTheListsNamesRolesAndHasWords) {
  EXPECT_GE(word_lists().size(), 15U);
  for (std::string_view list : word_lists()) {
    int rows = 0;
    while (!list.empty()) {
      std::string_view row = cut(list, '\n');
      if (row.starts_with('#') || row.starts_with(' ') || row == "weighed") continue;
      std::string_view names = cut(row, ':');
      EXPECT_GT(row.size(), 2U) << names;
      while (!names.empty()) {
        const std::string_view name = cut(names, ' ');
        EXPECT_LT(role_named(name), 64U) << name;
      }
      ++rows;
    }
    EXPECT_GT(rows, 20);
  }
}

}  // namespace
}  // namespace belljar::detect
