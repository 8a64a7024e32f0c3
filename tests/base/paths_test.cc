#include "base/paths.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/made_directories.h"
#include "base/real_path.h"

namespace belljar {
namespace {

TEST(Paths, LiteralOnesHaveNoDotsOfTheirOwn) {
  for (const char* path : {"/", "/a", "a/b", "/a/.git/config", "/...", "/a/..b", ".hidden", "/.a/b."}) {
    EXPECT_EQ(is_literal(path), std::string_view(path) != "/") << path;
  }
  for (const char* path : {"//", "/a//b", "/a/", "/a/.", "/.", "/..", "/a/../b", "./a", "..", "/a/./b"})
    EXPECT_FALSE(is_literal(path)) << path;
}

class PathsOfFiles : public ::testing::Test {
 protected:
  PathsOfFiles() {
    std::string name = std::filesystem::temp_directory_path() / "belljar-paths-XXXXXX";
    top = std::filesystem::canonical(::mkdtemp(name.data())).string();
  }
  ~PathsOfFiles() override { std::filesystem::remove_all(top); }
  std::string top;
};

TEST_F(PathsOfFiles, MissingDirectoriesAreMadeToStay) {
  const auto made = make_directories(top + "/a/b/c");
  EXPECT_EQ(made.errnum, 0) << made.path;
  struct stat status{};
  ASSERT_EQ(::stat((top + "/a/b").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  EXPECT_EQ(make_directories(top + "/a/b/c").errnum, 0);
}

TEST_F(PathsOfFiles, AFileInTheWayIsNamed) {
  std::ofstream(top + "/file") << "x";
  const auto made = make_directories(top + "/file/below/further");
  EXPECT_EQ(made.errnum, ENOTDIR);
  EXPECT_EQ(made.path, top + "/file/below");
}

TEST_F(PathsOfFiles, ThoseForAWhileGoWithTheirMaker) {
  {
    MadeDirectories made;
    EXPECT_EQ(made.make(top + "/x/y").errnum, 0);
    EXPECT_EQ(made.count(), 2U);
  }
  EXPECT_FALSE(std::filesystem::exists(top + "/x"));
}

// Who comes meanwhile must not take such a one for the user's.
TEST_F(PathsOfFiles, ThoseForAWhileAreMarkedUntilTheyStay) {
  const auto mode = [&] {
    struct stat status{};
    EXPECT_EQ(::stat((top + "/x").c_str(), &status), 0);
    return status.st_mode & 07777U;
  };
  {
    MadeDirectories made;
    EXPECT_EQ(made.make(top + "/x").errnum, 0);
    EXPECT_EQ(mode(), 0700U | kTemporary);
    EXPECT_EQ(make_directories(top + "/x/kept").errnum, 0);
    EXPECT_EQ(mode(), 0700U);
  }
  EXPECT_TRUE(std::filesystem::exists(top + "/x/kept"));
  std::filesystem::remove_all(top + "/x");
  MadeDirectories made;
  EXPECT_EQ(made.make(top + "/x").errnum, 0);
  made.keep();
  EXPECT_EQ(mode(), 0700U);
}

TEST_F(PathsOfFiles, ARealPathHasNoLinks) {
  std::filesystem::create_directory(top + "/there");
  std::filesystem::create_symlink("there", top + "/link");
  EXPECT_EQ(real_path(top + "/link/../link"), top + "/there");
  EXPECT_EQ(real_path_or_given(top + "/link"), top + "/there");
  EXPECT_EQ(real_path(top + "/absent"), "");
  EXPECT_EQ(real_path_or_given(top + "/absent"), top + "/absent");
}

}  // namespace
}  // namespace belljar
