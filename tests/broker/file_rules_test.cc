#include "broker/file_rules.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/defaults.h"

namespace belljar::broker {
namespace {

// A small world: the names that exist, as absolute paths, and the path that is asked about.
class World final : public Surroundings {
 public:
  World(std::set<std::string> names, std::string_view path) : names_(std::move(names)), path_(path) {}
  bool exists(int up, std::string_view name) const override {
    ++asked;
    std::string dir = path_.substr(0, path_.rfind('/'));
    for (; up > 0; --up) dir.resize(dir.rfind('/'));
    return names_.contains(dir + "/" + std::string(name));
  }
  mutable int asked = 0;

 private:
  std::set<std::string> names_;
  std::string path_;
};

using Names = std::set<std::string>;

FileRulesOptions options(std::vector<FsEntry> entries = {}) {
  FileRulesOptions result;
  result.filesystem.entries = std::move(entries);
  result.roots = {"/w"};
  result.exempt = {"/w/private"};
  return result;
}

Ruling ask(const FileRules& rules, Act act, std::string_view path, bool is_dir = false, Names names = {}) {
  const World world(std::move(names), path);
  return rules.rule_for(act, path, is_dir, world);
}
Answer answer(Act act, std::string_view path, bool is_dir = false, Names names = {}) {
  return ask(FileRules(options()), act, path, is_dir, std::move(names)).answer;
}

TEST(FileRules, GitNamesByAct) {
  EXPECT_EQ(answer(Act::kMkdir, "/w/.git", true), Answer::kAllow);
  EXPECT_EQ(answer(Act::kSymlink, "/w/.git"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kSymlink, "/w/x"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kCreate, "/w/.git"), Answer::kJudge);
  EXPECT_EQ(answer(Act::kWrite, "/w/a/b/.git/config"), Answer::kJudge);
  EXPECT_EQ(answer(Act::kRenameTo, "/w/.git/config"), Answer::kJudge);
  EXPECT_EQ(answer(Act::kTruncate, "/w/.git/config"), Answer::kJudge);
  EXPECT_EQ(answer(Act::kHardLink, "/w/.git/config"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kMknod, "/w/.git/config"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kUnlink, "/w/.git/config"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kRead, "/w/.git/config"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kRenameTo, "/w/.git/hooks/pre-commit"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kChmod, "/w/.git/hooks/pre-commit"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kRenameTo, "/w/.git/hooks/pre-commit.sample"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kSymlink, "/w/.git/hooks"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kSymlink, "/w/.git/modules/x"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kMkdir, "/w/.git/hooks", true), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/.git/index"), Answer::kJudge);
  EXPECT_EQ(answer(Act::kWrite, "/w/.git/FETCH_HEAD"), Answer::kAllow);
}

// Git would write where they lead.
TEST(FileRules, NoLinksInAGitDirectory) {
  for (const char* name :
       {"FETCH_HEAD", "logs", "logs/HEAD", "logs/refs/heads/a/b/c/d", "refs/heads/x", "objects/ab/cd", "tABCDEF"}) {
    EXPECT_EQ(answer(Act::kSymlink, std::string("/w/.git/") + name), Answer::kRefuse) << name;
    EXPECT_EQ(answer(Act::kCreate, std::string("/w/.git/") + name), Answer::kAllow) << name;
  }
  EXPECT_EQ(answer(Act::kSymlink, "/w/a/FETCH_HEAD"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kSymlink, "/w/git/logs/HEAD"), Answer::kAllow);
}

// What a commit has judged, on its way into the workspace.
TEST(FileRules, TheStageOfACommitIsNobodyElses) {
  for (const Act act :
       {Act::kWrite, Act::kCreate, Act::kRenameFrom, Act::kRenameTo, Act::kUnlink, Act::kTruncate, Act::kHardLink}) {
    EXPECT_EQ(answer(act, "/w/.belljar-commit-0123456789abcdef/n0"), Answer::kRefuse);
    EXPECT_EQ(answer(act, "/w/sub/.belljar-commit-0123456789abcdef"), Answer::kRefuse);
    EXPECT_EQ(answer(act, "/w/.Belljar-COMMIT-0123456789abcdef/n0"), Answer::kRefuse) << "where case is folded it is that one";
    EXPECT_EQ(answer(act, "/w/belljar-commit-0/n0"), Answer::kAllow);
  }
  EXPECT_EQ(answer(Act::kRead, "/w/.belljar-commit-0123456789abcdef/n0"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/other/.belljar-commit-0/n0"), Answer::kAllow);
}

TEST(FileRules, OnlyWhereTheHostSeesIt) {
  EXPECT_EQ(answer(Act::kWrite, "/w/private/x/.git/config"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/privateer/.git/config"), Answer::kJudge);
  EXPECT_EQ(answer(Act::kWrite, "/tmp/x/.git/config"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/wx/.git/config"), Answer::kAllow);
  FileRulesOptions none = options();
  none.filesystem.protect = Protect::kNone;
  const FileRules off(std::move(none));
  EXPECT_EQ(ask(off, Act::kWrite, "/w/.git/config").answer, Answer::kAllow);
  EXPECT_FALSE(off.any());
}

TEST(FileRules, BareRepositories) {
  const Names bare = {"/w/r/HEAD", "/w/r/objects", "/w/r/refs"};
  EXPECT_EQ(answer(Act::kWrite, "/w/r/config", false, bare), Answer::kJudge);
  EXPECT_EQ(answer(Act::kWrite, "/w/r/config"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/r/hooks/update", false, bare), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kWrite, "/w/r/hooks/update"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/r/objects/info/alternates", false, bare), Answer::kJudge);
  EXPECT_EQ(answer(Act::kWrite, "/w/r/worktrees/x/commondir", false, bare), Answer::kJudge);
  // A common directory needs no HEAD, a worktree's directory no objects.
  EXPECT_EQ(answer(Act::kWrite, "/w/r/config", false, {"/w/r/objects", "/w/r/refs"}), Answer::kJudge);
  EXPECT_EQ(answer(Act::kWrite, "/w/r/config", false, {"/w/r/HEAD", "/w/r/commondir"}), Answer::kJudge);
  EXPECT_EQ(answer(Act::kWrite, "/w/r/config", false, {"/w/r/HEAD", "/w/r/refs"}), Answer::kAllow);
}

TEST(FileRules, TheLastMarkerMakesAGitDirectory) {
  EXPECT_EQ(answer(Act::kMkdir, "/w/r/refs", true, {"/w/r/objects"}), Answer::kMakesGitDir);
  EXPECT_EQ(answer(Act::kRenameTo, "/w/r/objects", true, {"/w/r/refs"}), Answer::kMakesGitDir);
  EXPECT_EQ(answer(Act::kSymlink, "/w/r/objects", false, {"/w/r/refs"}), Answer::kMakesGitDir);
  EXPECT_EQ(answer(Act::kMkdir, "/w/r/Refs", true, {"/w/r/objects"}), Answer::kMakesGitDir);
  EXPECT_EQ(answer(Act::kCreate, "/w/r/HEAD", false, {"/w/r/commondir"}), Answer::kMakesGitDir);
  // It would be written when everything else had been judged.
  EXPECT_EQ(answer(Act::kCreate, "/w/r/commondir", false, {"/w/r/HEAD"}), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kRenameTo, "/w/r/commondir", false, {"/w/r/HEAD"}), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kCreate, "/w/r/commondir"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kMkdir, "/w/r/refs", true), Answer::kAllow);
  EXPECT_EQ(answer(Act::kCreate, "/w/r/HEAD", false, {"/w/r/objects"}), Answer::kAllow);
  EXPECT_EQ(answer(Act::kRenameTo, "/w/r/HEAD", false, {"/w/r/HEAD", "/w/r/objects", "/w/r/refs"}), Answer::kAllow);
  EXPECT_EQ(answer(Act::kUnlink, "/w/r/refs", true, {"/w/r/objects"}), Answer::kAllow);
}

TEST(FileRules, AgentNamesAtTheRootAndAtWorkTrees) {
  EXPECT_EQ(answer(Act::kWrite, "/w/.vscode/tasks.json"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kMkdir, "/w/.claude", true), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kWrite, "/w/.MCP.json"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kUnlink, "/w/.envrc"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kRead, "/w/.envrc"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/.github/copilot-instructions.md"), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kWrite, "/w/.github/workflows/x.yml"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/a/.vscode/tasks.json"), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/a/.vscode/tasks.json", false, {"/w/a/.git"}), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kWrite, "/w/a/.vscode/x/.claude/y", false, {"/w/a/.git"}), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kWrite, "/w/a/.vscode/x/.claude/y", false, {"/w/a/.vscode/x/.git"}), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kWrite, "/w/node_modules/a/.vscode/tasks.json", false, {"/w/node_modules/a/.git"}), Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/.vscode-test/x"), Answer::kAllow);
}

// What a link of such a name leads to is written under another path.
TEST(FileRules, TheParentOfAProtectedNameIsNoLink) {
  for (const char* name : {".github", ".hg", ".sl", ".config", ".GitHub", ".h\u200Cg"}) {
    const std::string path = std::string("/w/") + name;
    const Ruling link = ask(FileRules(options()), Act::kSymlink, path);
    EXPECT_EQ(link.answer, Answer::kRefuse) << name;
    EXPECT_EQ(link.rule, "filesystem.protect") << name;
    EXPECT_EQ(link.errnum, EACCES) << name;
    EXPECT_EQ(answer(Act::kMkdir, path, true), Answer::kAllow) << name;
    EXPECT_EQ(answer(Act::kUnlink, path), Answer::kAllow) << name;
    EXPECT_EQ(answer(Act::kSymlink, path + "x"), Answer::kAllow) << name;
    EXPECT_EQ(answer(Act::kSymlink, path + "/x"), Answer::kAllow) << name;
    EXPECT_EQ(answer(Act::kSymlink, "/w/a" + path.substr(2)), Answer::kAllow) << name;
    EXPECT_EQ(answer(Act::kSymlink, "/w/a" + path.substr(2), false, {"/w/a/.git"}), Answer::kRefuse) << name;
  }
  const FileRules granted(options({{.path = "/w", .access = Access::kWrite}, {.path = "/w/.hg", .access = Access::kWrite}}));
  EXPECT_EQ(ask(granted, Act::kSymlink, "/w/.hg").answer, Answer::kAllow);
  // A work tree that comes back from where its names are free.
  const FileRules rules(options());
  EXPECT_EQ(rules.agent_rule(Act::kSymlink, "/w/a/.hg", World({"/w/a/.git"}, "/w/a/.hg")).answer, Answer::kRefuse);
  EXPECT_EQ(rules.agent_rule(Act::kRenameTo, "/w/a/.hg", World({"/w/a/.git"}, "/w/a/.hg")).answer, Answer::kAllow);
}

TEST(FileRules, ARepositoryIsNotMovedAsideAndBack) {
  EXPECT_EQ(answer(Act::kRenameFrom, "/w/a/.git", true, {"/w/a/.git"}), Answer::kRefuse);
  EXPECT_EQ(answer(Act::kRenameFrom, "/w/a", true, {"/w/a/.git"}), Answer::kAllow);
  EXPECT_EQ(answer(Act::kRmdir, "/w/a/.git", true, {"/w/a/.git"}), Answer::kAllow);
}

// What git in a bare repository takes for a remote is judged as one, whatever the name means in a work tree.
TEST(FileRules, ARemoteIsOneByAnyName) {
  const Names bare = {"/w/r/objects", "/w/r/refs", "/w/r/HEAD"};
  EXPECT_EQ(ask(FileRules(options()), Act::kWrite, "/w/r/remotes/.gitmodules", false, bare).git, GitName::kLegacyRemote);
  EXPECT_EQ(ask(FileRules(options()), Act::kWrite, "/w/r/branches/.gitmodules", false, bare).git, GitName::kLegacyRemote);
  EXPECT_EQ(ask(FileRules(options()), Act::kWrite, "/w/r/remotes/.gitmodules").git, GitName::kModulesFile);
  EXPECT_EQ(ask(FileRules(options()), Act::kWrite, "/w/r/.gitmodules", false, bare).git, GitName::kModulesFile);
}

// A layer that the host keeps: nobody works in it, but git there can be led to it.
TEST(FileRules, AKeptDirectoryHoldsGitNamesAlone) {
  FileRulesOptions with = options();
  with.kept = {"/home/u/.cache"};
  const FileRules rules(std::move(with));
  EXPECT_EQ(ask(rules, Act::kCreate, "/home/u/.cache/x/.git/hooks/pre-commit").answer, Answer::kRefuse);
  EXPECT_EQ(ask(rules, Act::kWrite, "/home/u/.cache/x/.git/config").answer, Answer::kJudge);
  EXPECT_EQ(ask(rules, Act::kMkdir, "/home/u/.cache/x/refs", true, {"/home/u/.cache/x/objects"}).answer, Answer::kMakesGitDir);
  EXPECT_EQ(ask(rules, Act::kWrite, "/home/u/.cache/.vscode/x").answer, Answer::kAllow);
  EXPECT_EQ(ask(rules, Act::kWrite, "/home/u/.cache/x/y").answer, Answer::kAllow);
  EXPECT_EQ(ask(FileRules(options()), Act::kCreate, "/home/u/.cache/x/.git/hooks/pre-commit").answer, Answer::kAllow);
}

// Loss, not planting: what stood in a root's own repository before the run.
TEST(FileRules, ARootsOwnRepositoryIsNotRemoved) {
  FileRulesOptions with = options();
  with.keep_git = {"/w"};
  with.has_git = [](const std::string&) { return true; };
  const FileRules rules(std::move(with));
  const auto stands = [&](std::string_view path) { return rules.removal_rule(path, World({std::string(path)}, path)).answer; };
  for (const char* path : {"/w/.git", "/w/.git/HEAD", "/w/.git/objects/ab/cd", "/w/.git/refs/heads/main", "/w/.git/index",
                           "/w/.git/hooks/pre-commit", "/w/.git/modules/x/HEAD", "/w/.GIT/HEAD"})
    EXPECT_EQ(stands(path), Answer::kRefuse) << path;
  for (const char* path : {"/w/vendor/x/.git", "/w/vendor/x/.git/HEAD", "/w/.git/index.lock", "/w/.git/objects/ab/tmp_obj_x",
                           "/w/.git/rebase-merge/done", "/w/.git/MERGE_HEAD", "/w/.github", "/w/x", "/w", "/x/.git"})
    EXPECT_EQ(stands(path), Answer::kAllow) << path;
  EXPECT_EQ(FileRules(options()).removal_rule("/w/.git", World({"/w/.git"}, "/w/.git")).answer, Answer::kAllow)
      << "a transaction, allowed, or made in the run";
  // What a program made in the run; what git wrote anew is none of that.
  EXPECT_EQ(stands("/w/.git/.COMMIT_EDITMSG.swp"), Answer::kRefuse);
  EXPECT_EQ(rules.removal_rule("/w/.git/.COMMIT_EDITMSG.swp", World({}, "/w/.git/.COMMIT_EDITMSG.swp")).answer, Answer::kAllow);
  for (const char* path : {"/w/.git", "/w/.git/config", "/w/.git/refs/heads/main"})
    EXPECT_EQ(rules.removal_rule(path, World({}, path)).answer, Answer::kRefuse) << path;
  EXPECT_TRUE(rules.keeps_git("/w/.git"));
  EXPECT_FALSE(rules.keeps_git("/w/a/.git"));
}

TEST(FileRules, ARepositoryIsKeptFromTheRunThatFindsIt) {
  FileRulesOptions with = options();
  bool there = false;
  with.keep_git = {"/w", "/w/.git/modules"};
  with.has_git = [&](const std::string& root) { return there && root == "/w"; };
  const FileRules rules(std::move(with));
  const auto removed = [&] { return rules.removal_rule("/w/.git", World({"/w/.git"}, "/w/.git")).answer; };
  there = true;
  EXPECT_EQ(removed(), Answer::kAllow) << "made in the run";
  rules.begin_run({.tv_sec = 1, .tv_nsec = 0});
  EXPECT_EQ(removed(), Answer::kRefuse);
  EXPECT_TRUE(rules.keeps_git("/w/.git"));
  EXPECT_EQ(rules.removal_rule("/w/.git/modules/x/HEAD", World({}, "/w/.git/modules/x/HEAD")).answer, Answer::kRefuse)
      << "a root without a repository of its own inside";
  there = false;
  rules.begin_run({.tv_sec = 1, .tv_nsec = 0});
  EXPECT_EQ(removed(), Answer::kAllow);
}

// Of which every name was made at that second.
class MadeAt final : public Surroundings {
 public:
  explicit MadeAt(time_t made) : made_(made) {}
  bool exists(int, std::string_view) const override { return true; }
  bool stood_before(int, std::string_view, const timespec& when) const override { return made_ < when.tv_sec; }

 private:
  time_t made_;
};

// In a sandbox that stays: what was made since it began, by an earlier command or outside, stood before this one.
TEST(FileRules, AgentNamesOfAWorkTreeAreHeldFromTheRunThatFindsIt) {
  FileRulesOptions with = options();
  with.began = {.tv_sec = 10, .tv_nsec = 0};
  const FileRules rules(std::move(with));
  const auto made = [&] { return rules.rule_for(Act::kMkdir, "/w/new/.vscode", true, MadeAt(20)).answer; };
  EXPECT_EQ(made(), Answer::kAllow) << "in the run";
  rules.begin_run({.tv_sec = 15, .tv_nsec = 0});
  EXPECT_EQ(made(), Answer::kAllow) << "while the oldest command began before";
  rules.begin_run({.tv_sec = 30, .tv_nsec = 0});
  EXPECT_EQ(made(), Answer::kRefuse);
}

TEST(FileRules, WhatHoldsARootWithARepositoryKeepsItsName) {
  FileRulesOptions with = options();
  with.roots.push_back("/w/pkg/sub");
  with.keep_git = with.roots;
  std::string has = "/w/pkg/sub";
  with.has_git = [&](const std::string& root) { return root == has; };
  const FileRules rules(std::move(with));
  const Ruling moved = ask(rules, Act::kRenameFrom, "/w/pkg", true);
  EXPECT_EQ(moved.answer, Answer::kRefuse);
  EXPECT_EQ(moved.errnum, EBUSY);
  EXPECT_EQ(ask(rules, Act::kRenameFrom, "/w/other", true).answer, Answer::kAllow);
  has.clear();
  rules.begin_run({.tv_sec = 1, .tv_nsec = 0});
  EXPECT_EQ(ask(rules, Act::kRenameFrom, "/w/pkg", true).answer, Answer::kAllow) << "the twin";
}

TEST(FileRules, ARootInTheGitDirectoryOfAnotherTakesNothingOutOfItsHold) {
  FileRulesOptions with = options();
  with.roots.push_back("/w/.git/modules");
  with.keep_git = with.roots;
  with.has_git = [](const std::string&) { return true; };
  const FileRules rules(std::move(with));
  EXPECT_EQ(rules.removal_rule("/w/.git/modules/x/HEAD", World({}, "/w/.git/modules/x/HEAD")).answer, Answer::kRefuse);
}

// The repository whose linked work tree the workspace is.
TEST(FileRules, ARootThatIsAGitDirectoryIsKeptAsAWorkTreesIs) {
  FileRulesOptions with = options();
  with.roots.push_back("/repo/.git");
  with.keep_git = with.roots;
  with.is_git = [](const std::string& root) { return root == "/repo/.git"; };
  const FileRules rules(std::move(with));
  for (const char* const kept : {"/repo/.git/HEAD", "/repo/.git/refs", "/repo/.git/worktrees/w", "/repo/.git/objects"})
    EXPECT_EQ(rules.removal_rule(kept, World({}, kept)).answer, Answer::kRefuse) << kept;
  for (const char* const free : {"/repo/.git/index.lock", "/repo/.git/MERGE_HEAD", "/w/x"})
    EXPECT_EQ(rules.removal_rule(free, World({}, free)).answer, Answer::kAllow) << free;
  EXPECT_FALSE(rules.keeps_git("/repo/.git"));
}

// A link there would show under a name of the pattern's what lies under none.
TEST(FileRules, ALinkDoesNotStandForADirectoryOfAPattern) {
  FileRulesOptions with = options();
  with.filesystem.entries = {{.path = "/w/projects/*/memory", .glob = true, .access = Access::kRead},
                             {.path = "/w/**/.env", .glob = true, .access = Access::kNone},
                             {.path = "/w/open/*/x", .glob = true, .access = Access::kWrite}};
  const FileRules rules(std::move(with));
  EXPECT_EQ(ask(rules, Act::kSymlink, "/w/projects/-srv").answer, Answer::kRefuse);
  EXPECT_EQ(ask(rules, Act::kSymlink, "/w/projects").answer, Answer::kRefuse);
  EXPECT_EQ(ask(rules, Act::kMkdir, "/w/projects/-srv", true).answer, Answer::kAllow);
  for (const char* path : {"/w/projects/a/b", "/w/projects/a/b/c", "/w/other", "/w/a", "/w/open/a"})
    EXPECT_EQ(ask(rules, Act::kSymlink, path).answer, Answer::kAllow) << path;
}

TEST(FileRules, AllOfGitOrNothing) {
  FileRulesOptions all = options();
  all.filesystem.protect = Protect::kAll;
  const FileRules rules(std::move(all));
  EXPECT_EQ(ask(rules, Act::kWrite, "/w/a/.git/index").answer, Answer::kRefuse);
  EXPECT_EQ(ask(rules, Act::kMkdir, "/w/a/.git", true).answer, Answer::kRefuse);
  EXPECT_EQ(ask(rules, Act::kRead, "/w/a/.git/index").answer, Answer::kAllow);
  EXPECT_EQ(answer(Act::kWrite, "/w/a/.git/index"), Answer::kJudge);
}

TEST(FileRules, AnExplicitGrantLiftsAnAgentName) {
  const FileRules rules(options({{.path = "/w", .access = Access::kWrite}, {.path = "/w/.vscode", .access = Access::kWrite}}));
  EXPECT_EQ(ask(rules, Act::kWrite, "/w/.vscode/tasks.json").answer, Answer::kAllow);
  EXPECT_EQ(ask(rules, Act::kWrite, "/w/.idea/x").answer, Answer::kRefuse);
}

TEST(FileRules, EveryProtectedNameIsFound) {
  std::set<std::string> seen;
  for (const policy::ProtectedName& one : policy::protected_names()) {
    std::string name(one.name);
    EXPECT_TRUE(seen.insert(name).second) << name << " is there twice";
    if (name == ".gitmodules") continue;  // by content
    EXPECT_FALSE(one.tool.empty() || one.reads.empty()) << name;
    for (const char* star : {"", "x.", "."}) {
      std::string spelled = name;
      if (const std::size_t at = name.find('*'); at != std::string::npos) spelled.replace(at, 1, star);
      EXPECT_EQ(answer(Act::kWrite, "/w/" + spelled), Answer::kRefuse) << spelled;
      EXPECT_EQ(answer(Act::kWrite, "/w/x" + spelled), Answer::kAllow) << spelled;
    }
  }
  for (const char* name : {"mise.staging.toml", ".mise.local.toml", "lefthook-local.yaml", ".config/mise/config.toml", ".HELIX/x"})
    EXPECT_EQ(answer(Act::kWrite, std::string("/w/") + name), Answer::kRefuse) << name;
  for (const char* name : {".vim/coc-settings.json", "crush.json", ".crush.json", ".crushrc", "Crushrc", ".factory/hooks.json",
                           ".kilocode/mcp.json", ".kilo/kilo.json", "kilo.jsonc", ".github/hooks/a.json"})
    EXPECT_EQ(answer(Act::kWrite, std::string("/w/") + name), Answer::kRefuse) << name;
  for (const char* name : {"mise.md", "mise", "lefthook.go", ".config/other", "optimise.toml", ".vim/after.vim", "crush.toml",
                           "kilo.js", ".github/workflows/x.yml", ".Rprofile", ".pdbrc"})
    EXPECT_EQ(answer(Act::kWrite, std::string("/w/") + name), Answer::kAllow) << name;
}

TEST(FileRules, Globs) {
  const FileRules rules(
      options({{.path = "/w", .access = Access::kWrite},
               {.path = "**/.env", .glob = true, .access = Access::kNone, .origin = {.layer = "user", .file = "p.toml", .line = 3}},
               {.path = "**/*.pem", .glob = true, .access = Access::kRead},
               {.path = "/w/ok/x.pem", .access = Access::kWrite}}));
  EXPECT_TRUE(rules.reads_matter());
  const Ruling hidden = ask(rules, Act::kRead, "/w/a/b/.env");
  EXPECT_EQ(hidden.answer, Answer::kRefuse);
  EXPECT_EQ(hidden.errnum, EACCES);
  ASSERT_NE(hidden.origin, nullptr);
  EXPECT_EQ(hidden.origin->line, 3);
  EXPECT_EQ(ask(rules, Act::kRead, "/home/.env/x").answer, Answer::kRefuse);
  EXPECT_EQ(ask(rules, Act::kRead, "/w/a.env").answer, Answer::kAllow);
  EXPECT_EQ(ask(rules, Act::kRead, "/w/k.pem").answer, Answer::kAllow);
  EXPECT_EQ(ask(rules, Act::kWrite, "/w/k.pem").errnum, EROFS);
  EXPECT_EQ(ask(rules, Act::kUnlink, "/w/k.pem").answer, Answer::kRefuse);
  EXPECT_EQ(ask(rules, Act::kWrite, "/w/k.pen").answer, Answer::kAllow);
  EXPECT_EQ(ask(rules, Act::kWrite, "/w/ok/x.pem").answer, Answer::kAllow);
  EXPECT_EQ(ask(rules, Act::kWrite, "/w/x").answer, Answer::kAllow);
  EXPECT_FALSE(FileRules(options()).reads_matter());
}

TEST(FileRules, PlainPathsOnlyWhereNobodyElseHoldsThem) {
  FileRulesOptions without_mounts = options({{.path = "/w", .access = Access::kWrite}, {.path = "/w/ro", .access = Access::kRead}});
  const FileRules mounts(without_mounts);
  EXPECT_EQ(ask(mounts, Act::kWrite, "/w/ro/x").answer, Answer::kAllow);
  without_mounts.hold_paths = true;
  const FileRules alone(std::move(without_mounts));
  EXPECT_EQ(ask(alone, Act::kWrite, "/w/ro/x").answer, Answer::kRefuse);
  EXPECT_EQ(ask(alone, Act::kWrite, "/w/rox").answer, Answer::kAllow);
  EXPECT_EQ(ask(alone, Act::kRenameFrom, "/w/ro", true).answer, Answer::kRefuse);
}

bool walks(const FileRules& rules, std::string_view from, std::string_view to, Names names = {}) {
  return rules.must_walk(from, to, World(std::move(names), to)) != WalkScope::kNone;
}

TEST(FileRules, WhichRenamesNeedALook) {
  const FileRules rules(options());
  EXPECT_FALSE(walks(rules, "/w/a", "/w/b"));
  EXPECT_TRUE(walks(rules, "/w/a", "/w/.git"));
  EXPECT_TRUE(walks(rules, "/w/a", "/w/.git/hooks"));
  EXPECT_TRUE(walks(rules, "/w/private/a", "/w/b"));
  EXPECT_FALSE(walks(rules, "/w/a", "/w/src/hooks"));
  EXPECT_TRUE(walks(rules, "/w/a", "/w/r/hooks", {"/w/r/objects", "/w/r/refs"}));
  EXPECT_TRUE(walks(rules, "/w/a", "/w/.github"));
  EXPECT_TRUE(walks(rules, "/w/vendor/a", "/w/a"));
  EXPECT_TRUE(walks(rules, "/w/vendor", "/w/a"));
  EXPECT_FALSE(walks(rules, "/w/a", "/w/vendor/a"));
  EXPECT_FALSE(walks(rules, "/w/node_modules/.x", "/w/node_modules/x"));
  const FileRules names(options({{.path = "**/.env", .glob = true, .access = Access::kNone}}));
  EXPECT_FALSE(walks(names, "/w/a", "/w/b"));
  const FileRules below(options({{.path = "/w/prod/**/*.key", .glob = true, .access = Access::kNone}}));
  EXPECT_TRUE(walks(below, "/w/prod/a", "/w/b"));
  EXPECT_TRUE(walks(below, "/w/a", "/w/prod/b"));
  EXPECT_FALSE(walks(below, "/w/a", "/w/b"));
}

TEST(FileRules, AnOrdinaryPathAsksNothing) {
  const FileRules rules(options());
  const World world({}, "/w/src/main.cc");
  EXPECT_EQ(rules.rule_for(Act::kWrite, "/w/src/main.cc", false, world).answer, Answer::kAllow);
  EXPECT_EQ(world.asked, 0);
}

}  // namespace
}  // namespace belljar::broker
