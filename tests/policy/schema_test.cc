#include "policy/schema.h"

#include <gtest/gtest.h>

#include "belljar/policy.h"

namespace belljar::policy {
namespace {

// The table of keys prints defaults that policy.h sets. Lists and words in brackets are no values.
TEST(Schema, TheDefaultThatAKeyTellsIsTheOneThatHolds) {
  int compared = 0;
  for (const Key& key : keys()) {
    if (key.fallback.empty() || key.fallback.starts_with('[') || key.fallback.starts_with('(') || key.fallback.starts_with('{'))
      continue;
    const auto told = value_from_text(key, key.fallback);
    ASSERT_TRUE(told) << key.name << ": " << told.error().line();
    const auto holds = load(key, Policy{});
    if (!holds || key.name == "profile") continue;  // set when it is asked for
    EXPECT_EQ(to_toml(*told), to_toml(*holds)) << key.name;
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace belljar::policy
