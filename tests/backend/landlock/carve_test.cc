#include "backend/landlock/carve.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace belljar::backend {
namespace {

using Tree = std::map<std::string, std::vector<std::string>>;

Lister lister(const Tree& tree) {
  return [&tree](const std::string& folder) -> std::optional<std::vector<std::string>> {
    const auto found = tree.find(folder);
    return found == tree.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Carve, WithoutHiddenPathsTheRootIsOneRule) { EXPECT_EQ(*carve("/", {}, lister({}), 10), std::vector<std::string>{"/"}); }

TEST(Carve, SiblingsOfAHiddenPathAreAllowedOneByOne) {
  const Tree tree{{"/", {"etc", "home"}}, {"/home", {"u"}}, {"/home/u", {".ssh", "src"}}};
  EXPECT_EQ(*carve("/", {"/home/u/.ssh"}, lister(tree), 10), (std::vector<std::string>{"/etc", "/home/u/src"}));
}

TEST(Carve, AnAbsentHiddenPathClosesItsFolderToLaterNames) {
  const Tree tree{{"/home/u", {"src"}}};
  EXPECT_EQ(*carve("/home/u", {"/home/u/.aws"}, lister(tree), 10), std::vector<std::string>{"/home/u/src"});
}

TEST(Carve, AFolderThatCannotBeListedIsLeftOutWhole) { EXPECT_TRUE(carve("/root", {"/root/.ssh"}, lister({}), 10)->empty()); }

TEST(Carve, TooManyRulesAreRefused) {
  Tree tree;
  for (int i = 0; i < 20; ++i) tree["/"].push_back("d" + std::to_string(i));
  EXPECT_FALSE(carve("/", {"/secret"}, lister(tree), 10));
}

}  // namespace
}  // namespace belljar::backend
