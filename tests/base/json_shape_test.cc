#include "base/json_shape.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar {
namespace {

TEST(JsonShape, CountsWhatIsOutsideOfStrings) {
  EXPECT_EQ(json_shape("").deepest, 0u);
  EXPECT_EQ(json_shape("{}").deepest, 1u);
  const JsonShape shape = json_shape(R"({"a,[":[1,2,[3]],"b\"[[":"}]],"})");
  EXPECT_EQ(shape.deepest, 3u);
  EXPECT_EQ(shape.commas, 3u);
}

TEST(JsonShape, TextThatIsNoJsonIsNoTrouble) {
  EXPECT_EQ(json_shape("]]]}[[").deepest, 2u);
  EXPECT_EQ(json_shape("\"\\").deepest, 0u);
  EXPECT_EQ(json_shape(std::string(1000, '[')).deepest, 1000u);
}

TEST(LoneSurrogates, BecomeTheReplacementCharacterAndNothingElseChanges) {
  for (const char* same : {"", "{}", R"("a\nb\u00e4\ud83d\ude00\\ud800")", R"("\)", R"(\u)", R"("\ud83d\uDE00")", R"("\ud8")"})
    EXPECT_EQ(without_lone_surrogates(same), same);
  EXPECT_EQ(without_lone_surrogates(R"("\ud800")"), R"("\ufffd")");
  EXPECT_EQ(without_lone_surrogates(R"("\udE00x\uD83D")"), R"("\ufffdx\ufffd")");
  EXPECT_EQ(without_lone_surrogates(R"("\ud83d\ud83d\ude00")"), R"("\ufffd\ud83d\ude00")");
  EXPECT_EQ(without_lone_surrogates(R"("\\\ud800\n")"), R"("\\\ufffd\n")");
  EXPECT_EQ(without_lone_surrogates(R"("\ud83d\n\ude00")"), R"("\ufffd\n\ufffd")");
}

}  // namespace
}  // namespace belljar
