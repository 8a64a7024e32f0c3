#include "base/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;

TEST(RemoveTree, RemovesFilesLinksAndClosedDirectories) {
  const test::TempDir dir;
  const fs::path root = fs::path(dir.path()) / "root";
  fs::create_directories(root / "a/b/c");
  std::ofstream(root / "a/file") << "x";
  fs::create_symlink("/nowhere", root / "a/link");
  fs::permissions(root / "a/b", fs::perms::none);
  EXPECT_TRUE(remove_tree(root.string()));
  EXPECT_FALSE(fs::exists(root));
}

TEST(RemoveTree, StopsWhenItIsEnoughAndLeavesTheRest) {
  const test::TempDir dir;
  const fs::path root = fs::path(dir.path()) / "root";
  fs::create_directories(root / "a/b/c");
  int asked = 0;
  const auto ended = remove_tree_at(AT_FDCWD, root.string(), Deeper::kReport, [&] { return ++asked == 2; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), Code::kCanceled);
  EXPECT_TRUE(fs::exists(root / "a/b"));
  EXPECT_TRUE(remove_tree_at(AT_FDCWD, root.string(), Deeper::kReport, [] { return false; })) << "the twin";
  EXPECT_FALSE(fs::exists(root));
}

// As deep as a command likes: `mkdir` and `chdir` in turn know no limit.
void nest(const fs::path& top, int levels) {
  int here = ::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < levels; ++i) {
    ASSERT_EQ(::mkdirat(here, "d", 0755), 0);
    const int below = ::openat(here, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(here);
    here = below;
  }
  ASSERT_EQ(::fchmod(here, 0), 0);
  ::close(here);
}

TEST(RemoveTree, NoDepthIsTooDeep) {
  const test::TempDir dir;
  const fs::path root = fs::path(dir.path()) / "root";
  fs::create_directories(root / "deep-0/x");  // the name that a part is moved to
  nest(root, 1030);
  EXPECT_TRUE(remove_tree(root.string()));
  EXPECT_FALSE(fs::exists(root));
}

// Where names are judged nothing gets another path.
TEST(RemoveTree, WhatMayNotMoveIsReported) {
  const test::TempDir dir;
  const fs::path root = fs::path(dir.path()) / "root";
  fs::create_directories(root);
  nest(root, 520);
  EXPECT_FALSE(remove_tree_at(AT_FDCWD, root.string()));
  EXPECT_FALSE(fs::exists(root / "deep-0"));
  EXPECT_TRUE(remove_tree(root.string()));
}

TEST(RemoveTree, DoesNotFollowALinkOutOfTheTree) {
  const test::TempDir dir;
  const fs::path kept = fs::path(dir.path()) / "kept";
  fs::create_directories(kept);
  std::ofstream(kept / "file") << "x";
  const fs::path root = fs::path(dir.path()) / "root";
  fs::create_directories(root);
  fs::create_directory_symlink(kept, root / "out");
  EXPECT_TRUE(remove_tree(root.string()));
  EXPECT_TRUE(fs::exists(kept / "file"));
}

TEST(RemoveTree, AnAbsentPathIsDoneAlreadyAndAFileIsRefused) {
  const test::TempDir dir;
  EXPECT_TRUE(remove_tree(std::string(dir.path()) + "/none"));
  std::ofstream(fs::path(dir.path()) / "file") << "x";
  EXPECT_FALSE(remove_tree(std::string(dir.path()) + "/file"));
}

}  // namespace
}  // namespace belljar
