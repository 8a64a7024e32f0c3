// Each test would wait for ever, or see both at once, if a lock held too long or not at all.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernel/tree_lock.h"
#include "support/awaited.h"
#include "support/eventually.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using kernel::TreeLock;

class TreeLocks : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"project/inner/deep", "projects", "other"}) std::filesystem::create_directories(dir_ / name);
  }
  std::string folder() const { return dir_ / "state/locks"; }
  TreeLock open(std::vector<std::string> names) const {
    for (std::string& name : names) name = name.empty() ? dir_.path() : dir_ / name;
    return *TreeLock::open(folder(), names);
  }
  // Whether `other` waits while `lock` is held alone.
  bool waits(TreeLock& lock, TreeLock& other) const {
    std::atomic<bool> in = false;
    std::unique_lock alone(lock);
    std::thread reader([&] {
      const std::shared_lock shared(other);
      in = true;
    });
    const bool waited = eventually([&] { return in || is_awaited(folder()); }) && !in;
    alone.unlock();
    reader.join();
    return waited && in;
  }
  long files() const { return std::distance(std::filesystem::directory_iterator(folder()), {}); }

  TempDir dir_;
};

TEST_F(TreeLocks, DirectoriesThatOverlapHaveOneInCommonWhoeverCameFirst) {
  TreeLock project = open({"project"});
  TreeLock same = open({"project"});
  TreeLock below = open({"project/inner"});
  TreeLock beside = open({"projects"});
  EXPECT_TRUE(waits(project, same));
  EXPECT_TRUE(waits(project, below));
  EXPECT_TRUE(waits(below, project));
  EXPECT_FALSE(waits(project, beside));
  TreeLock several = open({"other", "project/inner/deep", "not there"});
  EXPECT_TRUE(waits(several, below));
  EXPECT_TRUE(waits(project, several));
  TreeLock above = open({""});
  EXPECT_TRUE(waits(below, above)) << "who was there first";
  EXPECT_TRUE(waits(above, beside));
  TreeLock outside = open({"other"});
  EXPECT_FALSE(waits(outside, project));
}

TEST_F(TreeLocks, ReadersAreInTogetherAndWritersAlone) {
  auto* const value =
      static_cast<std::atomic<int>*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(value, MAP_FAILED);
  constexpr int kRounds = 2000;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    TreeLock lock = open({i == 0 ? "project" : "project/inner"});
    for (int round = 0; round < kRounds; ++round) {
      {
        const std::unique_lock alone(lock);
        value[0] = value[0] + 1;
        value[1] = value[1] + 1;
      }
      const std::shared_lock shared(lock);
      if (value[0] != value[1]) _exit(1);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(value[0], 3 * kRounds);
  munmap(value, 4096);
  TreeLock one = open({"project"}), other = open({"project"});
  const std::shared_lock shared(one);
  const std::shared_lock also(other);
  std::thread([&] { const std::shared_lock another(one); }).join();
}

// A child that holds it is killed.
TEST_F(TreeLocks, WhatAKilledHolderHeldIsFree) {
  TreeLock lock = open({"project"});
  for (const bool alone : {true, false}) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      TreeLock own = open({"project/inner"});
      if (alone) own.lock();
      else own.lock_shared();
      if (write(ready[1], "x", 1) == 1) pause();
      _exit(1);
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]), close(ready[1]);
    std::atomic<bool> in = false;
    std::thread writer([&] {
      if (alone) {
        const std::shared_lock shared(lock);
        in = true;
      }
      const std::unique_lock also(lock);
      in = true;
    });
    // A writer that waits for readers has shut the door: who comes then waits for it in the kernel.
    TreeLock behind = open({"project"});
    std::thread reader([&] {
      while (!alone && !in && behind.lock_shared([] { return true; })) behind.unlock_shared();
      const std::shared_lock shared(behind);
    });
    EXPECT_TRUE(eventually([&] { return in || is_awaited(folder()); }));
    EXPECT_FALSE(in);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    writer.join();
    reader.join();
    EXPECT_TRUE(in);
  }
}

TEST_F(TreeLocks, FilesOfTheDeadAreRemovedAndTheirPlaceIsTaken) {
  {
    const TreeLock one = open({"project"});
    const TreeLock two = open({"other"});
    EXPECT_EQ(files(), 2);
  }
  const TreeLock lock = open({"projects"});
  EXPECT_EQ(files(), 1);
  for (int i = 0; i < 1500; ++i) open({"projects"});
  EXPECT_EQ(files(), 1);
}

// Of nobody, in a state directory that was there before: used again, and no more than a few.
TEST_F(TreeLocks, AFewFilesStayInAStateDirectoryThatWasThere) {
  std::filesystem::create_directories(dir_ / "state");
  const auto inode = [&] {
    struct stat status{};
    for (const auto& entry : std::filesystem::directory_iterator(folder())) EXPECT_EQ(stat(entry.path().c_str(), &status), 0);
    return status.st_ino;
  };
  open({"project"});
  ASSERT_EQ(files(), 1);
  const auto first = inode();
  open({"project"});
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(inode(), first);
  TreeLock one = open({"project"}), other = open({"project/inner"});
  EXPECT_TRUE(waits(one, other)) << "by the file that stayed";
  for (int i = 0; i < 100; ++i) {
    const std::string name = "many/" + std::to_string(i);
    std::filesystem::create_directories(dir_ / name);
    open({name});
  }
  EXPECT_LE(files(), 20);
  EXPECT_TRUE(waits(one, other)) << "what is held is never removed";
}

TEST_F(TreeLocks, TwoNamesOfOneDirectoryWaitForNobody) {
  dir_.write("x1", "");
  ASSERT_EQ(link((dir_ / "x1").c_str(), (dir_ / "x2").c_str()), 0);
  TreeLock lock = open({"x1", "x2"});
  lock.lock();
  lock.unlock();
  EXPECT_EQ(files(), 1);
}

TEST_F(TreeLocks, WhoGivesUpHoldsNothing) {
  TreeLock holder = open({"project"}), waiting = open({"other", "project"}), beside = open({"other"});
  const auto at_once = [] { return true; };
  for (const bool alone : {true, false}) {
    if (alone) holder.lock();
    else holder.lock_shared();
    EXPECT_FALSE(waiting.lock(at_once));
    EXPECT_EQ(waiting.lock_shared(at_once), !alone);
    if (!alone) waiting.unlock_shared();
    EXPECT_TRUE(beside.lock(at_once)) << "what it had taken is free";
    beside.unlock();
    if (alone) holder.unlock();
    else holder.unlock_shared();
  }
  EXPECT_TRUE(waiting.lock(at_once)) << "the twin";
  waiting.unlock();
}

// Who may not wait does not wait for a reader of its own process, either, that waits for the holder.
TEST_F(TreeLocks, WhoGivesUpWaitsBehindNobody) {
  TreeLock holder = open({"project"}), ours = open({"project"});
  holder.lock();
  std::thread reader([&] { const std::shared_lock shared(ours); });
  EXPECT_TRUE(eventually([&] { return is_awaited(folder()); }));
  EXPECT_FALSE(ours.lock_shared([] { return true; }));
  holder.unlock();
  reader.join();
  EXPECT_TRUE(ours.lock_shared([] { return true; })) << "the twin";
  ours.unlock_shared();
}

// Who leaves last takes the folder along, and whoever made what is above it takes that.
TEST_F(TreeLocks, ThoseWhoComeWhileOthersGoFindTheFolder) {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (int round = 0; round < 1000; ++round) {
      if (!TreeLock::open(folder(), {dir_ / "project"})) _exit(1);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_FALSE(exists(folder()));
}

TEST_F(TreeLocks, AFolderThatCannotBeMadeIsSaid) {
  const auto lock = TreeLock::open("/proc/belljar/locks", {dir_ / "project"});
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().what(), "cannot lock `/proc/belljar`");
}

}  // namespace
}  // namespace belljar::test
