// Rules of a user's, from their text.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "guard/rules.h"

namespace belljar::guard {

inline RuleSet rules(std::string_view text) {
  auto set = parse_rules(text, "r.toml", Trust::kUser);
  EXPECT_TRUE(set) << set.error().line();
  return set ? *set : RuleSet{};
}

}  // namespace belljar::guard
