#include "broker/git_names.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace belljar::broker {
namespace {

GitName certain(std::string_view path, bool is_dir = false) { return git_roles(path, is_dir).certain.name; }
GitName near(std::string_view path, int up, bool is_dir = false) {
  const GitRoles roles = git_roles(path, is_dir);
  for (int i = 0; i < roles.count; ++i) {
    if (roles.if_git_dir.at(static_cast<std::size_t>(i)).up == up) return roles.if_git_dir.at(static_cast<std::size_t>(i)).name;
  }
  return GitName::kNone;
}

TEST(GitNames, OfARepositoryAtAnyDepth) {
  EXPECT_EQ(certain("/w/.git", true), GitName::kDotGit);
  EXPECT_EQ(certain("/w/.git"), GitName::kPointer);
  EXPECT_EQ(certain("/w/a/b/c/d/e/f/.git/config"), GitName::kConfig);
  EXPECT_EQ(certain("/w/.git/config.worktree"), GitName::kConfig);
  EXPECT_EQ(certain("/w/.git/commondir"), GitName::kPointer);
  EXPECT_EQ(certain("/w/.git/hooks", true), GitName::kControlDir);
  EXPECT_EQ(certain("/w/.git/hooks/pre-commit"), GitName::kHook);
  EXPECT_EQ(certain("/w/.git/hooks/lib/x.sh"), GitName::kHook);
  EXPECT_EQ(certain("/w/.git/hooks/pre-commit.sample"), GitName::kSampleHook);
  EXPECT_EQ(certain("/w/.git/hooks/lib/x.sample"), GitName::kHook);
  EXPECT_EQ(certain("/w/.git/info/attributes"), GitName::kAttributes);
  EXPECT_EQ(certain("/w/.git/objects/info/alternates"), GitName::kAlternates);
  EXPECT_EQ(certain("/w/.git/objects/info/http-alternates"), GitName::kAlternates);
  EXPECT_EQ(certain("/w/.git/rebase-merge/git-rebase-todo"), GitName::kTodo);
  EXPECT_EQ(certain("/w/.git/remotes/evil"), GitName::kLegacyRemote);
  EXPECT_EQ(certain("/w/.git/remotes/.gitmodules"), GitName::kLegacyRemote);
  EXPECT_EQ(certain("/w/.git/branches/.gitmodules"), GitName::kLegacyRemote);
  EXPECT_EQ(certain("/w/.git/rebase-merge/author-script"), GitName::kOption);
  EXPECT_EQ(certain("/w/.git/x/.gitmodules"), GitName::kModulesFile);
  EXPECT_EQ(certain("/w/a/.gitmodules"), GitName::kModulesFile);
  EXPECT_EQ(certain("/w/.git/worktrees/x/gitdir"), GitName::kPointer);
  EXPECT_EQ(certain("/w/.git/worktrees/x/config.worktree"), GitName::kConfig);
  EXPECT_EQ(certain("/w/.git/worktrees/x/hooks/post-checkout"), GitName::kHook);
  EXPECT_EQ(certain("/w/.git/modules/x/config"), GitName::kConfig);
  EXPECT_EQ(certain("/w/.git/modules/x/modules/y/config"), GitName::kConfig);
  EXPECT_EQ(certain("/w/.git/modules/x/worktrees/y/commondir"), GitName::kPointer);
}

TEST(GitNames, IndexesAndOptions) {
  EXPECT_EQ(certain("/w/.git/index"), GitName::kIndex);
  EXPECT_EQ(certain("/w/.git/INDEX"), GitName::kIndex);
  EXPECT_EQ(certain("/w/.git/sharedindex.0123"), GitName::kIndex);
  EXPECT_EQ(certain("/w/.git/modules/x/index"), GitName::kIndex);
  EXPECT_EQ(certain("/w/.git/worktrees/x/index"), GitName::kIndex);
  EXPECT_EQ(near("/w/r.git/index", 1), GitName::kIndex);
  EXPECT_EQ(certain("/w/.git/rebase-merge/strategy"), GitName::kOption);
  EXPECT_EQ(certain("/w/.git/rebase-apply/apply-opt"), GitName::kOption);
  EXPECT_EQ(certain("/w/.git/sequencer/opts"), GitName::kOption);
}

TEST(GitNames, RecordsOfRerereAndWhatOtherCommandsGoOnWith) {
  for (const std::string_view path : {"/w/.git/MERGE_RR", "/w/.git/Merge_rr", "/w/.GIT/MERGE_RR", "/w/.git/worktrees/x/MERGE_RR",
                                      "/w/.git/modules/x/MERGE_RR", "/w/.git/MERGE\u200D_RR"})
    EXPECT_EQ(certain(path), GitName::kMergeRecords) << path;
  EXPECT_EQ(near("/w/r.git/MERGE_RR", 1), GitName::kMergeRecords);
  EXPECT_EQ(near("/w/r.git/worktrees/x/MERGE_RR", 3), GitName::kMergeRecords);
  EXPECT_EQ(near("/w/.git/modules/a/b/MERGE_RR", 1), GitName::kMergeRecords);
  EXPECT_EQ(certain("/w/.git/MERGE_RR.lock"), GitName::kNone);
  EXPECT_EQ(certain("/w/MERGE_RR"), GitName::kNone);
  EXPECT_EQ(certain("/w/.git/BISECT_NAMES"), GitName::kOption);
  EXPECT_EQ(certain("/w/.git/gitweb", true), GitName::kControlDir);
  EXPECT_EQ(certain("/w/.git/gitweb/httpd"), GitName::kProgram);
  EXPECT_EQ(near("/w/r.git/gitweb/gitweb_config.perl", 2), GitName::kProgram);
  EXPECT_EQ(certain("/w/.git/modules/a/gitweb/config"), GitName::kNone);  // of a module `a/gitweb`, told by its neighbours
  EXPECT_EQ(certain("/w/gitweb/x"), GitName::kNone);
  EXPECT_EQ(certain("/w/.git/lazygit.yml"), GitName::kProgram);
  EXPECT_EQ(certain("/w/.git/sl/config"), GitName::kProgram);
  EXPECT_EQ(certain("/w/.git/sl/store"), GitName::kNone);
}

TEST(GitNames, WhatGitWritesAllTheTimeIsNone) {
  for (const std::string_view path :
       {"/w/.git/HEAD", "/w/.git/index.lock", "/w/.git/config.lock", "/w/.git/objects/ab/cdef", "/w/.git/refs/heads/config",
        "/w/.git/logs/refs/heads/hooks/x", "/w/.git/refs/heads/hooks/x", "/w/.git/COMMIT_EDITMSG", "/w/.git/info/exclude",
        "/w/.git/rebase-merge/done", "/w/config", "/w/.gitignore", "/w/.github/x", "/w/git/config", "/w/x.git/config"}) {
    EXPECT_EQ(certain(path), GitName::kNone) << path;
  }
}

TEST(GitNames, OfADirectoryThatMayBeAGitDirectory) {
  EXPECT_EQ(near("/w/r.git/config", 1), GitName::kConfig);
  EXPECT_EQ(near("/w/r.git/hooks/post-update", 2), GitName::kHook);
  EXPECT_EQ(near("/w/r.git/info/attributes", 2), GitName::kAttributes);
  EXPECT_EQ(near("/w/r.git/objects/info/alternates", 3), GitName::kAlternates);
  EXPECT_EQ(near("/w/r.git/worktrees/x/commondir", 3), GitName::kPointer);
  EXPECT_EQ(near("/w/r.git/worktrees/x/hooks/y", 4), GitName::kHook);
  EXPECT_EQ(near("/w/.git/modules/a/b/config", 1), GitName::kConfig);
  EXPECT_EQ(near("/w/.git/modules/a/hooks/post-update", 2), GitName::kHook);
  EXPECT_EQ(near("/w/.git/refs/heads/config", 1), GitName::kConfig);
  // Two at once.
  EXPECT_EQ(near("/w/hooks/config", 1), GitName::kConfig);
  EXPECT_EQ(near("/w/hooks/config", 2), GitName::kHook);
  EXPECT_EQ(git_roles("/w/src/main.cc", false).count, 0);
}

TEST(GitNames, InOtherSpellings) {
  for (const std::string_view name :
       {".git", ".GIT", ".Git", "git~1", "GIT~1", ".git.", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x", ".g\u200Cit",
        "\uFEFF.git", ".gi\u00ADt", ".git\u200D"}) {
    EXPECT_TRUE(is_dot_git(name)) << name;
    EXPECT_EQ(certain("/w/" + std::string(name) + "/HOOKS/pre-commit"), GitName::kHook) << name;
  }
  for (const std::string_view name : {".gita", "git", ".gi", "", "git~2", ".git~1", "x.git", ".gi\u00E9t", ".gi\xCC"})
    EXPECT_FALSE(is_dot_git(name)) << name;
  EXPECT_EQ(certain("/w/.git/Config"), GitName::kConfig);
  EXPECT_EQ(certain("/w/.git/hoo\u212As/x"), GitName::kHook);
  EXPECT_EQ(certain("/w/.git/hook\u017F/x"), GitName::kHook);
  EXPECT_EQ(certain("/w/.git/hooks/x.SAMPLE"), GitName::kSampleHook);
}

TEST(GitNames, SurviveDeepAndOddPaths) {
  std::string deep = "/w";
  for (int i = 0; i < 1000; ++i) deep += "/modules/x";
  EXPECT_EQ(certain(deep + "/config"), GitName::kNone);
  EXPECT_EQ(certain("/w/.git" + deep + "/config"), GitName::kNone);
  std::string nested = "/w/.git";
  for (int i = 0; i < 300; ++i) nested += "/modules/x";
  EXPECT_EQ(certain(nested + "/config"), GitName::kConfig);
  for (const std::string_view path : {"/", "", "//", "a", "/.git/", "/hooks", "/.git//hooks/x"}) (void)git_roles(path, false);
  EXPECT_EQ(fold_name("\xFF\xC3"), "\xFF\xC3");
}

}  // namespace
}  // namespace belljar::broker
