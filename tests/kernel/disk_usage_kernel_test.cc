#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/unique_fd.h"
#include "kernel/disk_usage.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::kernel {
namespace {

using namespace std::chrono_literals;

DiskUsage scan(const std::string& path) {
  const UniqueFd root{open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  DiskScan scan{root.get()};
  EXPECT_TRUE(scan.advance(60s));
  return scan.result();
}

std::uint64_t grown(const DiskUsage& before, const std::string& path) { return scan(path).used.count - before.used.count; }

constexpr std::uint64_t kFile = 256U << 10;
constexpr std::uint64_t kSlack = 64U << 10;  // directory blocks

TEST(DiskScan, CountsBlocksOnceAndNoHoles) {
  const test::TempDir dir;
  dir.make_dir("a/b");
  const DiskUsage before = scan(dir.path());
  dir.write("a/b/file", std::string(kFile, 'x'));
  EXPECT_GE(grown(before, dir.path()), kFile);
  ASSERT_EQ(link((dir / "a/b/file").c_str(), (dir / "second").c_str()), 0);
  EXPECT_LT(grown(before, dir.path()), kFile + kSlack) << "a hard link is the same file";
  dir.write("hole", "");
  ASSERT_EQ(truncate((dir / "hole").c_str(), 1L << 30), 0);
  EXPECT_LT(grown(before, dir.path()), kFile + kSlack);
}

TEST(DiskScan, FollowsNoLinkOutOfTheTree) {
  const test::TempDir dir, outside;
  outside.write("big", std::string(kFile, 'x'));
  const DiskUsage before = scan(dir.path());
  ASSERT_EQ(symlink(outside.path().c_str(), (dir / "link").c_str()), 0);
  ASSERT_EQ(symlink((outside / "big").c_str(), (dir / "file").c_str()), 0);
  EXPECT_LT(grown(before, dir.path()), kSlack);
}

TEST(DiskScan, GoesOnInSlices) {
  const test::TempDir dir;
  for (int i = 0; i < 300; ++i) dir.write("d" + std::to_string(i) + "/file", "x");
  const UniqueFd root{open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  DiskScan sliced{root.get()};
  int slices = 1;
  while (!sliced.advance(0us)) ++slices;
  EXPECT_GT(slices, 300);
  EXPECT_EQ(sliced.result().used, scan(dir.path()).used);
  EXPECT_EQ(sliced.result().files, 601U);
}

TEST(DiskScan, WhatCannotBeReadIsSaid) {
  const test::TempDir dir;
  dir.write("closed/file", "x");
  dir.make_dir("open");
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  ASSERT_EQ(chmod((dir / "closed").c_str(), 0), 0);
  const pid_t pid = fork();  // as a user whom modes bind
  if (pid == 0) {
    if (test::is_root() && (setgid(test::user_gid()) != 0 || setuid(test::user_uid()) != 0)) _exit(99);
    _exit(static_cast<int>(scan(dir.path()).unseen));
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(DiskScan, DeeperThanAPathIsLongIsSaidAndNotACrash) {
  const test::TempDir dir;
  const std::string name(200, 'd');
  int at = open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int depth = 0; depth < 30; ++depth) {
    ASSERT_EQ(mkdirat(at, name.c_str(), 0755), 0);
    const int next = openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(at);
    at = next;
  }
  close(at);
  EXPECT_EQ(scan(dir.path()).unseen, 1U);
  // Move the lower half up so that the directory can be removed by paths.
  std::string half = dir.path();
  for (int depth = 0; depth < 15; ++depth) half += "/" + name;
  ASSERT_EQ(rename(half.c_str(), (dir / "half").c_str()), 0);
  EXPECT_EQ(scan(dir.path()).unseen, 0U);
}

}  // namespace
}  // namespace belljar::kernel
