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

}  // namespace
}  // namespace belljar
