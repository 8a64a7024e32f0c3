#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

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

// What a shell reads is what it runs.
TEST(CommandJudge, StandardInputOfAShellIsJudged) {
  const CommandJudge judge = command_judge({.deny = {"touch"}}).value();
  const Command sh{.argv = {"sh"}}, cat{.argv = {"cat"}};
  EXPECT_FALSE(judge(sh, {.bytes = "touch bypass\n"}).allowed);
  EXPECT_FALSE(judge({.argv = {"bash", "-s"}}, {.bytes = "cd x && touch bypass"}).allowed);
  EXPECT_FALSE(judge({.argv = {"xargs", "touch"}}, {.bytes = "bypass"}).allowed);
  EXPECT_TRUE(judge(sh, {.bytes = "echo fine\n"}).allowed);
  EXPECT_TRUE(judge(cat, {.bytes = "touch bypass\n"}).allowed) << "cat runs none of it";
  // What comes later is nobody's to judge.
  EXPECT_FALSE(judge(sh, {.open = true}).allowed);
  EXPECT_TRUE(judge(cat, {.open = true}).allowed);
  EXPECT_TRUE(judge(shell("make"), {.open = true}).allowed);
  EXPECT_TRUE(judge({.argv = {"sh", "build.sh"}}, {.open = true}).allowed);
  std::string why;
  const CommandJudge asking = command_judge({}, [&](const Command&, std::string_view text) { return why = text, true; }).value();
  EXPECT_TRUE(asking(sh, {.open = true}).allowed);
  EXPECT_NE(why.find("nobody has seen"), std::string::npos) << why;
}

TEST(CommandJudge, DenyLooksPastOptionsOfTheProgram) {
  const CommandJudge judge =
      command_judge({.deny = {"git push", "docker compose up", "npm publish", "cargo publish", "foo drop"}}).value();
  for (const char* text : {"git -C /x push", "git -c a.b=c --git-dir=/y push origin", "git --git-dir /y --no-pager push",
                           "docker --context prod compose -f a.yml up -d", "npm --prefix x publish", "cargo +nightly -q publish",
                           "foo --fast drop", "foo --level 3 drop"})
    EXPECT_FALSE(allowed(judge, shell(text))) << text;
  for (const char* text : {"git -C push status", "git log --author push", "git commit -m push", "docker --context up compose ps",
                           "npm --prefix publish test", "cargo build -p publish", "foo list drop", "git push-notes"})
    EXPECT_TRUE(allowed(judge, shell(text))) << text;
}

// Document 003's own list, and programs that start others by rules that no table has.
TEST(CommandJudge, ProgramsThatStartOthersCanBeDenied) {
  const std::vector<std::string> words = {"rm", "dd", "mkfs", "sudo", "su", "script", "unshare", "nsenter", "parallel"};
  const auto judged = command_judge({.deny = words});
  ASSERT_TRUE(judged) << judged.error().line();
  for (const std::string& word : words) {
    EXPECT_FALSE(allowed(*judged, {.argv = {word, "x"}})) << word;
    EXPECT_FALSE(allowed(*judged, shell("cd x && " + word + " x"))) << word;
    EXPECT_FALSE(allowed(command_judge({.deny = {word + " -x"}}).value(), shell(word + " -x"))) << word;
  }
  EXPECT_TRUE(allowed(*judged, shell("ls; make")));
  // Nobody is asked about what is denied.
  const auto yes = command_judge({.deny = {"unshare"}}, [](const Command&, std::string_view) { return true; });
  EXPECT_FALSE(allowed(*yes, shell("unshare ls")));
  EXPECT_TRUE(allowed(*yes, shell("nsenter ls"))) << "the twin: asked about";
}

TEST(CommandJudge, WhatNothingCanAllowIsNoEntryOfAllow) {
  for (const char* word : {"su", "script", "unshare", "nsenter", "parallel"}) {
    const auto judged = command_judge({.allow = {"ls", word}});
    ASSERT_FALSE(judged) << word;
    EXPECT_NE(judged.error().what().find(std::string(word) + "` is not a command prefix that can be allowed"), std::string::npos)
        << judged.error().line();
    EXPECT_NE(judged.error().reason().find("what it starts cannot be judged"), std::string::npos) << judged.error().line();
  }
  EXPECT_TRUE(command_judge({.allow = {"ls", "env", "make -j 4"}}));
  for (const char* text : {"", "a; b", "a | b", "a > b", "A=1 b", "$a", "a $b", "if", "a &", "a # b", "(a)", "'a"})
    EXPECT_FALSE(command_judge({.deny = {text}})) << text;
}

TEST(CommandJudge, AllowForbidsTheRest) {
  const CommandJudge judge = command_judge({.allow = {"ls", "git status"}}).value();
  EXPECT_TRUE(allowed(judge, shell("ls -l; git status")));
  EXPECT_FALSE(allowed(judge, shell("ls; make")));
  EXPECT_FALSE(allowed(judge, shell("git log")));
}

TEST(CommandJudge, WhatMustBeAskedIsRefusedUnlessSomebodySaysYes) {
  const Command risky = shell("rm -r .git");
  const CommandJudge alone = command_judge({}).value();
  EXPECT_TRUE(allowed(alone, shell("make"))) << "the twin";
  EXPECT_FALSE(allowed(alone, risky));
  EXPECT_EQ(alone(risky).next, "it needs somebody's word, and nobody is there to be asked");
  bool answer = true;
  std::string asked;
  const auto ask = [&](const Command&, std::string_view why) { return asked = why, answer; };
  const CommandJudge somebody = command_judge({}, ask).value();
  EXPECT_TRUE(allowed(somebody, risky));
  EXPECT_NE(asked.find(".git"), std::string::npos) << asked;
  answer = false;
  EXPECT_FALSE(allowed(somebody, risky));
  answer = true;
  asked.clear();
  EXPECT_FALSE(allowed(somebody, shell("rm -rf ~")));
  EXPECT_FALSE(allowed(somebody, shell("sudo make install")));
  EXPECT_EQ(asked, "") << "nobody is asked about what is forbidden";
  EXPECT_TRUE(allowed(somebody, shell("make")));
  EXPECT_EQ(asked, "") << "nor about what nothing speaks of";
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
