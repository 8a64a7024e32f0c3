// Code planted for a later step that runs outside: git's control files and the settings of editors and agents.
#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Protected : Attack {};

TEST_F(Protected, GitDirectoryIsReadOnly) {
  plant(workspace(".git/HEAD"), "ref: refs/heads/main\n");
  plant(workspace(".git/config"), "");
  plant_dir(workspace(".git/hooks"));
  const std::string plant_hook = "echo evil > .git/hooks/pre-commit";
  for (const std::string& act :
       {plant_hook, std::string("echo evil >> .git/config"), std::string("echo x > .git/commondir"), std::string("mv .git old"),
        std::string("rm -rf .git/hooks"), std::string("ln -s /tmp .git/info")}) {
    EXPECT_NE(shell(act).exit_code, 0) << act;
  }
  EXPECT_FALSE(exists(workspace(".git/hooks/pre-commit")));
  EXPECT_FALSE(exists(workspace("old")));
  EXPECT_EQ(shell("cat .git/HEAD").exit_code, 0);
  EXPECT_EQ(shell(plant_hook, {"--policy", "danger-full-access"}).exit_code, 0);
}

// PP-04: a worktree's `.git` is a file, and what it points at lies elsewhere.
TEST_F(Protected, GitFileAndWhereItPointsAreReadOnly) {
  plant(workspace("main/.git/config"), "");
  plant(workspace("main/.git/worktrees/wt/commondir"), "../..\n");
  plant(workspace("wt/.git"), "gitdir: " + workspace("main/.git/worktrees/wt") + "\n");
  const std::vector<std::string> there = {"--workspace", workspace("wt"), "--write", workspace("main")};
  for (const std::string& act :
       {"echo evil >> " + workspace("main/.git/config"), "echo evil > " + workspace("main/.git/worktrees/wt/config.worktree"),
        "mv " + workspace("main/.git") + " " + workspace("main/old"), "echo 'gitdir: /tmp' > " + workspace("wt/.git")}) {
    EXPECT_NE(shell(act, there).exit_code, 0) << act;
  }
  std::vector<std::string> free = there;
  free.insert(free.end(), {"--policy", "danger-full-access"});
  EXPECT_EQ(shell("echo evil >> " + workspace("main/.git/config"), free).exit_code, 0);
  EXPECT_EQ(shell("echo fine > " + workspace("main/source"), there).exit_code, 0);
}

TEST_F(Protected, SettingsOfEditorsAndAgentsAreReadOnly) {
  for (const char* name : {".vscode", ".idea", ".claude", ".codex", ".agents", ".belljar", ".husky"}) {
    plant(workspace(std::string(name) + "/settings"), "");
    const std::string act = std::string("echo evil > ") + name + "/settings";
    const std::string create = std::string("echo evil > ") + name + "/new";
    EXPECT_NE(shell(act).exit_code, 0) << name;
    EXPECT_NE(shell(create).exit_code, 0) << name;
    EXPECT_NE(shell(std::string("mv ") + name + " gone").exit_code, 0) << name;
    EXPECT_EQ(outside({"create", workspace(std::string(name) + "/new")}), "ok") << name;
  }
}

// PP-05: the parent is moved away and another put in its place.
TEST_F(Protected, AncestorsOfWhatIsProtectedCannotBeMoved) {
  plant(workspace("a/b/c/file"));
  const std::vector<std::string> rule = {"--read", workspace("a/b/c")};
  EXPECT_NE(shell("mv a moved", rule).exit_code, 0);
  EXPECT_NE(shell("mv a/b moved", rule).exit_code, 0);
  EXPECT_NE(shell("echo x > a/b/c/file", rule).exit_code, 0);
  EXPECT_EQ(shell("echo x > a/b/beside", rule).exit_code, 0);
  EXPECT_EQ(shell("mv a moved").exit_code, 0);
}

// A policy that asks for what only the broker will hold does not start.
TEST_F(Protected, WhatIsNotHeldYetIsSaid) {
  const Outcome outcome = run_in({"--require", "protect.absent", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
}

TEST_F(Protected, NothingIsPlantedByUs) {
  const auto before = describe_tree(workspace());
  EXPECT_EQ(shell("true").exit_code, 0);
  EXPECT_EQ(describe_tree(workspace()), before);
}

}  // namespace
}  // namespace belljar::test
