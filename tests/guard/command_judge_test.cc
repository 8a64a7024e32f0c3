#include <gtest/gtest.h>

#include "belljar/command_rules.h"

namespace belljar {
namespace {

bool allowed(const CommandJudge& judge, const Command& command) { return judge(command).allowed; }
Command shell(const std::string& text) { return {.argv = {"/bin/sh", "-c", text}}; }

TEST(CommandJudge, DenyIsFoundWhereverItStands) {
  const CommandJudge judge = command_judge({.deny = {"git push"}}).value();
  EXPECT_TRUE(allowed(judge, shell("git status && make test > log")));
  EXPECT_TRUE(allowed(judge, {.argv = {"git", "status"}}));
  EXPECT_TRUE(allowed(judge, {.argv = {"echo", "git push"}}));
  EXPECT_FALSE(allowed(judge, {.argv = {"git", "push", "origin"}}));
  EXPECT_FALSE(allowed(judge, shell("make && (cd x; git push)")));
  EXPECT_FALSE(allowed(judge, shell("sh -c 'git push'")));
  EXPECT_NE(judge(shell("git push")).reason.find("git push"), std::string::npos) << judge(shell("git push")).reason;
}

TEST(CommandJudge, AllowForbidsTheRest) {
  const CommandJudge judge = command_judge({.allow = {"ls", "git status"}}).value();
  EXPECT_TRUE(allowed(judge, shell("ls -l; git status")));
  EXPECT_FALSE(allowed(judge, shell("ls; make")));
  EXPECT_FALSE(allowed(judge, shell("git log")));
}

TEST(CommandJudge, WhatMustBeAskedIsRefusedUnlessSomebodySaysYes) {
  const Command risky = shell("sudo make install");
  const CommandJudge alone = command_judge({}).value();
  EXPECT_FALSE(allowed(alone, risky));
  std::string asked;
  const CommandJudge yes = command_judge({}, [&](const Command&, std::string_view why) { return asked = why, true; }).value();
  EXPECT_EQ(allowed(yes, risky), !asked.empty()) << "forbidden without a question, or asked and allowed";
  EXPECT_TRUE(allowed(alone, shell("make")));
  EXPECT_FALSE(allowed(yes, shell("rm -rf ~"))) << "nobody is asked about what is forbidden";
}

TEST(CommandJudge, WhatCannotBeParsedIsNotAllowed) {
  const CommandJudge judge = command_judge({.allow = {"ls"}}).value();
  EXPECT_FALSE(allowed(judge, shell("ls 'unfinished")));
  EXPECT_FALSE(allowed(judge, {.argv = {"ls"}, .env = {{"a b", "c"}}}));
  EXPECT_TRUE(allowed(judge, {.argv = {"ls"}}));
}

TEST(CommandJudge, ReadingCommandsAreKnown) {
  const auto reads = reading_commands();
  EXPECT_TRUE(reads(shell("ls -l | head")));
  EXPECT_TRUE(reads({.argv = {"git", "status"}}));
  EXPECT_FALSE(reads(shell("ls > listing")));
  EXPECT_FALSE(reads({.argv = {"rm", "x"}}));
}

}  // namespace
}  // namespace belljar
