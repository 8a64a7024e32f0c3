#include "policy/all_errors.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/layer.h"
#include "policy/parse.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

std::vector<std::string> whats(const std::vector<Error>& errors) {
  std::vector<std::string> texts;
  for (const Error& error : errors) texts.push_back(error.what());
  return texts;
}

Layer layer_of(const std::string& text) {
  std::vector<Error> errors;
  Layer layer = parse_all(text, "p.toml", "policy", errors);
  EXPECT_TRUE(errors.empty());
  return layer;
}

const Setting* find(const Layer& layer, const std::string& name) {
  for (const Setting& setting : layer.settings) {
    if (setting.key == find_key(name)) return &setting;
  }
  return nullptr;
}

TEST(ParseAll, EveryErrorIsToldAndTheRestIsRead) {
  std::vector<Error> errors;
  const Layer layer = parse_all(
      "[limits]\nmemmory = \"1GiB\"\npids = 20\nopen_files = \"x\"\n[[filesystem.entries]]\npath = \"/a\"\naccess = \"wirte\"\n"
      "[[filesystem.entries]]\npath = \"/b\"\naccess = \"read\"\n",
      "p.toml", "policy", errors);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].what(), "p.toml:2:1: unknown key `limits.memmory`");
  EXPECT_EQ(errors[2].what(), "p.toml:7:10: `access` is text `wirte`");
  EXPECT_NE(find(layer, "limits.pids"), nullptr);
  ASSERT_NE(find(layer, "filesystem.entries"), nullptr);
  EXPECT_EQ(std::get<std::vector<FsEntry>>(find(layer, "filesystem.entries")->value).size(), 1U);
  std::vector<Error> broken;
  EXPECT_TRUE(parse_all("[limits\n", "p.toml", "policy", broken).settings.empty());
  EXPECT_EQ(broken.size(), 1U);
}

TEST(AllErrors, EachIsFoundAtItsPlaceAndTheOthersBehindIt) {
  const Layer layer = layer_of("[limits]\npids = 7\nopen_files = 8\n[environment]\nexclude = [\"A\", \"B\",\n \"C\",\n \"D\"]\n");
  const auto check = [](const Layer& asked) -> Result<void> {
    const Setting* pids = find(asked, "limits.pids");
    const Setting* files = find(asked, "limits.open_files");
    if (pids != nullptr && files != nullptr) return Error(Code::kInvalidArgument, "pids and open_files contradict each other");
    if (pids != nullptr) return Error(Code::kInvalidArgument, "pids alone is wrong, too");
    const Setting* texts = find(asked, "environment.exclude");
    if (texts == nullptr) return {};
    for (const std::string& text : std::get<std::vector<std::string>>(texts->value)) {
      if (text == "C" || text == "D") return Error(Code::kInvalidArgument, "no letters behind B");
    }
    return {};
  };
  const std::vector<std::string> expected{"policy p.toml:3: pids and open_files contradict each other",
                                          "policy p.toml:2: pids alone is wrong, too", "policy p.toml:7: no letters behind B",
                                          "policy p.toml:6: no letters behind B"};
  EXPECT_EQ(whats(all_errors(layer, check)), expected);
  EXPECT_TRUE(all_errors(layer, [](const Layer&) -> Result<void> { return {}; }).empty()) << "the twin";
}

TEST(AllErrors, WhatRestsOnNoSettingIsToldOnce) {
  const auto errors =
      all_errors(layer_of("[limits]\npids = 7\n"), [](const Layer&) -> Result<void> { return Error(Code::kInternal, "always"); });
  EXPECT_EQ(whats(errors), std::vector<std::string>{"always"});
}

}  // namespace
}  // namespace belljar::policy
