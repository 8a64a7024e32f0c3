#include "policy/parse.h"

#include <gtest/gtest.h>

#include "policy/merge.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

// "what | excerpt | reason | next" of the error, or "no error".
std::string refusal(std::string_view text, std::string_view file = "p.toml") {
  const auto layer = parse_policy(text, file, "user");
  if (layer) return "no error";
  const Error& error = layer.error();
  return error.what() + "\n" + error.excerpt() + "\n" + error.reason() + "\n" + error.next();
}

TEST(Parse, UnknownKeyNamesPlaceCaretAndNearestKey) {
  EXPECT_EQ(refusal("mode = \"read-only\"\n[limits]\n  memmory = \"1GiB\"\n"),
            "p.toml:3:3: unknown key `limits.memmory`\n"
            "  3 |   memmory = \"1GiB\"\n"
            "    |   ^\n"
            "every key must be known, so that a mistyped rule is not dropped in silence\n"
            "did you mean `limits.memory`?");
}

TEST(Parse, KnownKeyIsTaken) {
  const auto layer = parse_toml("[limits]\nmemory = \"1GiB\"\n", "p.toml", "user");
  ASSERT_TRUE(layer) << layer.error().line();
  ASSERT_EQ(layer->settings.size(), 1U);
  EXPECT_EQ(layer->settings[0].key->name, "limits.memory");
  EXPECT_EQ(layer->settings[0].value, Value(Bytes{1ULL << 30}));
  EXPECT_EQ(layer->settings[0].origin, (Origin{"user", "p.toml", 2}));
}

}  // namespace
}  // namespace belljar::policy
