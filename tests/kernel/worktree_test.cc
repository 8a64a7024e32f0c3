#include "kernel/worktree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using kernel::repository_of_worktree;

// As `git worktree add ../tree` lays it out.
class Worktree : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const directory : {"repo/.git/objects", "repo/.git/refs", "tree"}) place_.make_dir(directory);
    place_.write("repo/.git/HEAD", "ref: refs/heads/main\n");
    place_.write("repo/.git/worktrees/tree/commondir", "../..\n");
    place_.write("repo/.git/worktrees/tree/gitdir", tree_ + "/.git\n");
    place_.write("tree/.git", "gitdir: " + repository_ + "/worktrees/tree\n");
  }
  TempDir place_;
  const std::string tree_ = place_ / "tree", repository_ = place_ / "repo/.git";
};

TEST_F(Worktree, ItsRepositoryIsTheOneThatKnowsIt) { EXPECT_EQ(repository_of_worktree(tree_), repository_); }

TEST_F(Worktree, PointersMayBeRelative) {
  place_.write("tree/.git", "gitdir: ../repo/.git/worktrees/tree");
  place_.write("repo/.git/worktrees/tree/gitdir", "../../../../tree/.git\n");
  EXPECT_EQ(repository_of_worktree(tree_), repository_);
}

TEST_F(Worktree, ARepositoryThatDoesNotKnowItIsNotIts) {
  place_.make_dir("other");
  place_.write("other/.git", read_file(tree_ + "/.git"));
  EXPECT_EQ(repository_of_worktree(place_ / "other"), "");
  place_.write("repo/.git/worktrees/tree/gitdir", place_ / "other/.git");
  EXPECT_EQ(repository_of_worktree(tree_), "");
}

TEST_F(Worktree, WhatIsNoRepositoryIsNone) {
  std::filesystem::remove(repository_ + "/HEAD");
  EXPECT_EQ(repository_of_worktree(tree_), "");
}

TEST_F(Worktree, ALinkInPlaceOfAPointerIsNone) {
  std::filesystem::rename(tree_ + "/.git", place_ / "pointer");
  std::filesystem::create_symlink(place_ / "pointer", tree_ + "/.git");
  EXPECT_EQ(repository_of_worktree(tree_), "");
}

// It was judged when it was a directory.
TEST_F(Worktree, ALinkOnTheWayIsNone) {
  std::filesystem::create_symlink(place_ / "repo", place_ / "other");
  place_.write("tree/.git", "gitdir: " + (place_ / "other/.git/worktrees/tree") + "\n");
  EXPECT_EQ(repository_of_worktree(tree_), "");
  place_.write("tree/.git", "gitdir: " + repository_ + "/worktrees/tree\n");
  EXPECT_EQ(repository_of_worktree(tree_), repository_) << "the twin";
  std::filesystem::create_symlink(tree_, place_ / "link");
  place_.write("repo/.git/worktrees/tree/gitdir", place_ / "link/.git\n");
  EXPECT_EQ(repository_of_worktree(tree_), "");
}

// An ordinary directory that was made to look like one, or a bare repository with work trees in it.
TEST_F(Worktree, ADirectoryOfAnotherNameIsNone) {
  std::filesystem::rename(repository_, place_ / "repo/bare");
  place_.write("tree/.git", "gitdir: " + (place_ / "repo/bare/worktrees/tree") + "\n");
  EXPECT_EQ(repository_of_worktree(tree_), "");
}

TEST_F(Worktree, AWorkTreeWithItsOwnRepositoryIsNone) {
  EXPECT_EQ(repository_of_worktree(place_ / "repo"), "");
  EXPECT_EQ(repository_of_worktree(place_.path()), "");
  place_.write("tree/.git", "gitdir: \n");
  EXPECT_EQ(repository_of_worktree(tree_), "");
  place_.write("tree/.git", "gitdir: /\n");
  EXPECT_EQ(repository_of_worktree(tree_), "");
}

}  // namespace
}  // namespace belljar::test
