#include "base/remove_tree.h"

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
