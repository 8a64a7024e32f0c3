#include "runtime/living.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::runtime {
namespace {

using Paths = std::vector<std::string>;

class LivingRecords : public testing::Test {
 protected:
  std::string state() const { return base_ / "state/belljar"; }
  Living enter(const Paths& directories, Others others = Others::kAsked) const {
    return enter_living(state(), directories, others);
  }
  Paths others() const {
    Paths others = enter({"/asks"}).others;
    std::ranges::sort(others);
    return others;
  }
  std::size_t files() const {
    std::error_code none;
    const std::filesystem::directory_iterator all(state() + "/living", none);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  test::TempDir base_;
};

TEST_F(LivingRecords, EachSeesTheOthersAndNotItself) {
  Living first = enter({"/a"});
  EXPECT_EQ(first.why_not, "");
  EXPECT_EQ(first.others, Paths{});
  const Living second = enter({"/b", "/with \n newline"});
  EXPECT_EQ(second.others, Paths{"/a"});
  EXPECT_EQ(others(), (Paths{"/a", "/b", "/with \n newline"}));
  first.record.reset();
  EXPECT_EQ(others(), (Paths{"/b", "/with \n newline"})) << "one that has ended is none";
  EXPECT_EQ(files(), 1U);
}

TEST_F(LivingRecords, ThatOfAProcessThatWasKilledIsRemoved) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Living living = enter({"/killed"});
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(others(), Paths{"/killed"});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(others(), Paths{});
  EXPECT_EQ(files(), 0U);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(LivingRecords, WhatWasNeverLockedIsRemovedAndNotRead) {
  const Living living = enter({"/a"});
  base_.write("state/belljar/living/left", "/left");
  base_.write("state/belljar/living/.left", "/left");
  EXPECT_EQ(others(), Paths{"/a"});
  EXPECT_EQ(files(), 1U);
}

// Of sandboxes that hide nothing a thousand may start one after the other.
TEST_F(LivingRecords, WhoDoesNotAskTidiesUpNowAndThen) {
  base_.write("state/belljar/living/left", "/left");
  const Living held = enter({"/a"}, Others::kNotAsked);
  std::size_t starts = 0;
  while (test::exists(base_ / "state/belljar/living/left") && starts < 20'000) {
    (void)enter({"/b"}, Others::kNotAsked);
    ++starts;
  }
  EXPECT_LT(starts, 20'000U) << "one in 256 does";
  EXPECT_EQ(others(), Paths{"/a"});
}

TEST_F(LivingRecords, WhereNoneCanBeMadeItSaysWhy) {
  EXPECT_NE(enter_living("", {"/a"}, Others::kAsked).why_not.find("XDG_STATE_HOME"), std::string::npos);
  base_.write("file", "");
  const Living living = enter_living(base_ / "file/belljar", {"/a"}, Others::kAsked);
  EXPECT_EQ(living.record, nullptr);
  EXPECT_NE(living.why_not, "");
}

TEST_F(LivingRecords, WhereNothingWasKeptNothingIsLeft) {
  Living first = enter({"/a"}, Others::kNotAsked);
  EXPECT_EQ(files(), 1U);
  first.record.reset();
  EXPECT_FALSE(test::exists(base_ / "state"));
  base_.make_dir("state/belljar");
  enter({"/a"}, Others::kNotAsked).record.reset();
  EXPECT_TRUE(test::exists(state() + "/living")) << "the twin";
  EXPECT_EQ(files(), 0U);
}

TEST_F(LivingRecords, NoStateDirectoryIsMadeInAWorkspace) {
  const Living within = enter({base_.path()});
  EXPECT_NE(within.why_not.find("lies in the workspace"), std::string::npos) << within.why_not;
  EXPECT_FALSE(test::exists(base_ / "state"));
  base_.make_dir("state/belljar");
  EXPECT_EQ(enter({base_.path()}).why_not, "") << "the twin: one is there";
}

class HideSiblings : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "home"}) base_.make_dir(name);
    place_.workspace = base_ / "a";
    place_.home = base_ / "home";
    living_.others = {base_ / "b"};
  }
  std::optional<backend::SiblingWorkspaces> places(Siblings unset = Siblings::kHidden) const {
    auto places = hide_siblings(policy_, unset, place_, living_);
    EXPECT_TRUE(places) << places.error().line();
    return *std::move(places);
  }
  test::TempDir base_;
  Policy policy_;
  backend::Workplace place_;
  Living living_;
};

TEST_F(HideSiblings, ThePolicyDecidesAndElseWhoStartsIt) {
  EXPECT_EQ(places(Siblings::kShown), std::nullopt);
  ASSERT_TRUE(places(Siblings::kHidden));
  EXPECT_EQ(places()->hidden, Paths{base_ / "b"});
  EXPECT_FALSE(places()->asked);
  policy_.filesystem.siblings = Siblings::kShown;
  EXPECT_EQ(places(Siblings::kHidden), std::nullopt);
  policy_.filesystem.siblings = Siblings::kHidden;
  ASSERT_TRUE(places(Siblings::kShown));
  EXPECT_TRUE(places()->asked);
}

TEST_F(HideSiblings, WhoCannotKnowThemSaysSo) {
  living_ = {.record = nullptr, .others = {}, .why_not = "no room"};
  EXPECT_EQ(places()->unknown, "no room");
}

TEST_F(HideSiblings, AModeWithoutFileRulesHidesNone) {
  policy_.mode = Mode::kExternalSandbox;
  EXPECT_EQ(places(Siblings::kHidden), std::nullopt) << "a default";
  policy_.filesystem.siblings = Siblings::kHidden;
  const auto asked = hide_siblings(policy_, Siblings::kShown, place_, living_);
  ASSERT_FALSE(asked);
  EXPECT_NE(asked.error().line().find("external-sandbox"), std::string::npos);
}

TEST_F(HideSiblings, OfAFileOfTheWorkspaceNoRuleOpensOne) {
  policy_.filesystem.entries = {{.path = base_ / "b", .access = Access::kRead, .origin = {}, .kind = RuleKind::kNarrowing}};
  EXPECT_EQ(places()->hidden, Paths{base_ / "b"});
  policy_.filesystem.entries[0].kind = RuleKind::kGiven;
  EXPECT_EQ(places()->hidden, Paths{}) << "the twin";
}

TEST_F(HideSiblings, ARuleNamesItByAnyName) {
  std::filesystem::create_directory_symlink(base_ / "b", base_ / "link");
  policy_.filesystem.entries = {{.path = base_ / "link", .access = Access::kWrite}};
  EXPECT_EQ(places()->hidden, Paths{});
  policy_.filesystem.entries[0].access = Access::kNone;
  EXPECT_EQ(places()->hidden, Paths{base_ / "b"});
}

// Who can put a link there would choose what others do not see.
TEST_F(HideSiblings, WhatALinkInItsPlaceLeadsToIsNotHidden) {
  living_.others = {base_ / "gone", base_ / "moved"};
  std::filesystem::create_directory_symlink(base_ / "home", base_ / "moved");
  EXPECT_EQ(places()->hidden, Paths{});
  EXPECT_EQ(places()->visible, Paths{"`" + (base_ / "moved") + "` (it was moved)"});
}

}  // namespace
}  // namespace belljar::runtime
