#include "base/random.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar {
namespace {

TEST(Random, DigitsAreAsManyAsAskedForAndDiffer) {
  const std::string one = random_hex(12), other = random_hex(12);
  EXPECT_EQ(one.size(), 24u);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, other);
  EXPECT_EQ(random_hex(256).size(), 512u);
}

}  // namespace
}  // namespace belljar
