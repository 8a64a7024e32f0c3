// Code planted for a later step that runs outside: git's control files and the settings of editors and agents.
#include <string>
#include <utility>
#include <vector>

#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Protected : Attack {};

// protect = "all": nothing in `.git` changes, whatever it says. The default judges contents, git_test.cc.
TEST_F(Protected, GitDirectoryIsReadOnlyWhereThePolicySaysSo) {
  plant(workspace(".git/HEAD"), "ref: refs/heads/main\n");
  plant(workspace(".git/config"), "");
  plant_dir(workspace(".git/hooks"));
  plant(workspace("deep/er/.git/index"), "");
  plant(beside("all.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"all\"\n");
  const std::vector<std::string> all = {"--policy", beside("all.toml")};
  const std::string write = "echo x > .git/index";
  for (const std::string& act :
       {write, std::string("echo x >> .git/HEAD"), std::string("mv .git old"), std::string("rm -rf .git/hooks"),
        std::string("ln -s /tmp .git/info"), std::string("echo x >deep/er/.git/index"), std::string("mkdir deep/.git")}) {
    EXPECT_NE(shell(act, all).exit_code, 0) << act;
  }
  EXPECT_EQ(shell("cat .git/HEAD", all).exit_code, 0);
  EXPECT_EQ(shell(write).exit_code, 0);
  EXPECT_EQ(shell("mkdir deep/.git").exit_code, 0);
}

// PP-04: a worktree's `.git` is a file, and what it points at lies elsewhere.
TEST_F(Protected, GitFileAndWhereItPointsStayInert) {
  plant(workspace("main/.git/config"), "");
  plant(workspace("main/.git/worktrees/wt/commondir"), "../..\n");
  plant(workspace("wt/.git"), "gitdir: " + workspace("main/.git/worktrees/wt") + "\n");
  plant(beside("none.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  const std::vector<std::string> there = {"--workspace", workspace("wt"), "--write", workspace("main")};
  std::vector<std::string> unprotected = there;
  unprotected.insert(unprotected.end(), {"--policy", beside("none.toml")});
  const std::string evil = "[core]\n\tpager = evil\n";
  const std::vector<std::pair<std::string, std::string>> plants = {{workspace("main/.git/config"), evil},
                                                                   {workspace("main/.git/worktrees/wt/config.worktree"), evil},
                                                                   {workspace("wt/.git"), "gitdir: /tmp/x\n"}};
  for (const auto& [file, content] : plants) {
    const std::string act = "printf '" + content + "' > " + file;
    shell(act, there);
    EXPECT_TRUE(!exists(file) || read_file(file) != content) << act;
    shell(act, unprotected);
    EXPECT_EQ(read_file(file), content) << act;
  }
  EXPECT_NE(shell("mv " + workspace("main/.git") + " " + workspace("main/old"), there).exit_code, 0);
  EXPECT_EQ(shell("mv " + workspace("main/.git") + " " + workspace("main/old"), unprotected).exit_code, 0);
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

// A work tree that goes where names are free, and comes back.
TEST_F(Protected, AWorkTreeIsNotMovedToWhereItsNamesAreFreeAndBack) {
  for (const char* tree : {"a", "c"}) plant(workspace(std::string(tree) + "/.git/HEAD"), "ref: refs/heads/main\n");
  const auto by_way_of = [](const std::string& tree, const std::string& away) {
    return "mkdir -p " + away + " && mv " + tree + " " + away + "/x && mkdir " + away + "/x/.vscode && mv " + away + "/x " + tree;
  };
  shell(by_way_of("a", "vendor"));
  EXPECT_FALSE(exists(workspace("a/.vscode")));
  plant(beside("none.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  shell(by_way_of("c", "node_modules"), {"--policy", beside("none.toml")});
  EXPECT_TRUE(exists(workspace("c/.vscode")));
  shell("mkdir -p vendor d && mv a vendor/x && ln -s ../d vendor/x/.hg && mv vendor/x a");
  EXPECT_FALSE(exists(workspace("a/.hg")));
  shell("mkdir -p vendor d && mv c vendor/x && ln -s ../d vendor/x/.hg && mv vendor/x c", {"--policy", beside("none.toml")});
  EXPECT_TRUE(exists(workspace("c/.hg")));
  // What is moved out of there without such names is nobody's business.
  EXPECT_EQ(shell("mkdir -p vendor/d/src && mv vendor/d d").exit_code, 0);
}

// What a link of such a name leads to would be written under a path of its own.
TEST_F(Protected, TheParentOfAProtectedNameIsNoLink) {
  plant(beside("none.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  for (const std::string& act :
       {std::string("mkdir d; echo x >d/hgrc; ln -s d .hg"), std::string("ln -s d .hg; mkdir d; echo x >d/hgrc"),
        std::string("mkdir d; echo x >d/hgrc; ln -s d l; mv -T l .hg"),
        std::string("mkdir d; echo x >d/hgrc; ln -s d l; ln -P l .hg"),
        std::string("mkdir d .hg; echo x >d/hgrc; mv .hg old; ln -s d .hg"),
        std::string("mkdir d .hg; echo x >d/hgrc; ln -s d l; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"l\", "
                    "-100, b\".hg\", 2)'")}) {
    shell(act);
    EXPECT_FALSE(exists(workspace(".hg/hgrc"))) << act;
    shell("rm -rf d l .hg old");
    const Outcome twin = shell(act, {"--policy", beside("none.toml")});
    EXPECT_TRUE(exists(workspace(".hg/hgrc"))) << act << ": " << twin;
    shell("rm -rf d l .hg old", {"--policy", beside("none.toml")});
  }
  for (const char* name : {".github", ".sl", ".config", ".GITHUB"})
    EXPECT_NE(shell(std::string("ln -s d ") + name).exit_code, 0) << name;
  const Outcome allowed =
      shell("mkdir .hg d .github .github/workflows; ln -s ../d .hg/l; ln -s d .hgl; echo x >.github/workflows/x");
  EXPECT_EQ(allowed.exit_code, 0) << allowed;
}

// Where the state directory is on another mount, a commit lays out in the workspace what it has judged. Another run in that
// workspace has the same user, and could exchange it before it is put in place.
TEST_F(Protected, TheStageOfACommitIsOutOfReachOfOtherRuns) {
  plant(workspace(".belljar-commit-0123456789abcdef/n0"), "judged");
  plant(workspace("plain/n0"));
  const auto acts = [](const std::string& dir) {
    return std::vector<std::vector<std::string>>{
        {"write", dir + "/n0"}, {"create", dir + "/n1"}, {"truncate", dir + "/n0"}, {"link", dir + "/n0", dir + "-hard"}};
  };
  for (const auto& act : acts(workspace(".belljar-commit-0123456789abcdef"))) EXPECT_EQ(inside(act), "EACCES") << act[0];
  for (const auto& act : acts(workspace("plain"))) EXPECT_EQ(inside(act), "ok") << act[0];
  EXPECT_EQ(inside({"rename", workspace(".belljar-commit-0123456789abcdef"), workspace("moved")}), "EACCES");
  EXPECT_EQ(read_file(workspace(".belljar-commit-0123456789abcdef/n0")), "judged");
}

// Names that do not exist yet, and those of repositories further down.
TEST_F(Protected, AbsentAndNestedNamesAreHeld) {
  plant_dir(workspace("old/repo/.git"));
  plant(beside("none.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  for (const std::string& act :
       {std::string("mkdir .vscode"), std::string("echo x > .envrc"), std::string("echo x > x && mv x .mcp.json"),
        std::string("ln -s nowhere .claude"), std::string("mkdir old/repo/.idea"), std::string("mkdir x && mv x old/repo/.husky"),
        std::string("mv old/repo/.git y && mkdir old/repo/.vscode")}) {
    EXPECT_NE(shell(act).exit_code, 0) << act;
    shell("rm -rf x");
    const Outcome twin = shell(act, {"--policy", beside("none.toml")});
    EXPECT_EQ(twin.exit_code, 0) << act << ": " << twin;
  }
  EXPECT_EQ(shell("mkdir -p new/.vscode && git init -q new").exit_code, 0);
  EXPECT_EQ(run_in({"--require", "protect.absent", "--require", "protect.nested", "--", "true"}).exit_code, 0);
}

// A command that may rearrange its mounts could show `.git` under another path: then it is read-only as a whole, and id maps can be
// written.
TEST_F(Protected, NestedNamespacesGetMountsInsteadOfTheBroker) {
  plant(workspace(".git/HEAD"), "ref: refs/heads/main\n");
  const std::vector<std::string> nested = {"--allow-nested-userns"};
  EXPECT_NE(shell("echo x >.git/index", nested).exit_code, 0);
  EXPECT_EQ(shell("echo x >.git/index").exit_code, 0);
  EXPECT_EQ(shell("unshare -Ur true", nested).exit_code, 0);
  EXPECT_EQ(run_in({"--allow-nested-userns", "--require", "protect.nested", "--", "true"}).exit_code, 125);
}

// Rules by pattern: a file that appears later, at any depth, and a parent that moves.
TEST_F(Protected, PatternsHoldForWhatAppearsLater) {
  plant(workspace("a/.env"), "secret");
  plant(workspace("keys/x.pem"), "key");
  plant(beside("globs.toml"),
        "mode = \"workspace-write\"\n[filesystem]\n"
        "entries = [{glob = \"**/.env\", access = \"none\"}, {glob = \"**/*.pem\", access = \"read\"}]\n");
  const std::vector<std::string> rules = {"--policy", beside("globs.toml")};
  for (const std::string& act :
       {std::string("cat a/.env"), std::string("mv a b && cat b/.env"), std::string("ln a/.env x"), std::string("cp a/.env x"),
        std::string("echo x > later && mv later .env"), std::string("echo x > keys/x.pem"), std::string("mv keys/x.pem keys/x"),
        std::string("rm keys/x.pem"), std::string("echo x > new.pem"), std::string("truncate -s 0 keys/x.pem"),
        std::string("ln keys/x.pem k && echo x > k")}) {
    EXPECT_NE(shell(act, rules).exit_code, 0) << act;
  }
  EXPECT_EQ(shell("cat keys/x.pem", rules).out, "key");
  EXPECT_EQ(shell("cat */.env").out, "secret");
  EXPECT_EQ(shell("rm keys/x.pem").exit_code, 0);
}

TEST_F(Protected, NothingIsPlantedByUs) {
  const auto before = describe_tree(workspace());
  EXPECT_EQ(shell("true").exit_code, 0);
  EXPECT_EQ(describe_tree(workspace()), before);
}

}  // namespace
}  // namespace belljar::test
