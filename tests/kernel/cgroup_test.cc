// Cgroup v2 on a fake tree: where a group goes and what is written to it. The real thing is cgroup_kernel_test.cc and the VM.
#include "kernel/cgroup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "belljar/units.h"
#include "kernel/cgroup_host.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::kernel {
namespace {

using test::read_file;

// What the kernel puts into a new group.
int make_group(const char* path) {
  if (::mkdir(path, 0755) != 0) return -1;
  for (const char* file : {"memory.max", "memory.low", "memory.swap.max", "memory.oom.group", "memory.peak", "memory.current",
                           "pids.max", "cpu.max", "cpu.weight", "cgroup.kill", "cgroup.procs", "cgroup.subtree_control"})
    std::ofstream(std::string(path) + "/" + file) << "";
  std::ofstream(std::string(path) + "/memory.events") << "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n";
  std::ofstream(std::string(path) + "/pids.events") << "max 0\n";
  return 0;
}

// <root>/user.slice/a.scope, we in a.scope.
struct FakeV2 {
  test::TempDir dir;
  CgroupHost host;
  FakeV2() {
    for (const char* group : {"", "user.slice/", "user.slice/a.scope/"}) {
      dir.write(std::string(group) + "cgroup.controllers", "cpuset cpu io memory pids\n");
      dir.write(std::string(group) + "cgroup.subtree_control", "");
    }
    host = parse_cgroup_host("30 24 0:26 / " + dir.path() + " rw - cgroup2 cgroup2 rw\n", "0::/user.slice/a.scope\n");
    host.make_directory = make_group;
  }
  std::string own() const { return dir / "user.slice/a.scope"; }
};

TEST(CgroupV2, WritesEachSettingUnderOurOwnGroup) {
  const FakeV2 fake;
  fake.dir.write("user.slice/a.scope/cgroup.subtree_control", "cpu memory pids\n");
  const Cgroup group = Cgroup::create(
      {.memory = 32_MiB, .memory_low = 8_MiB, .pids = 64, .cpus = 1.5, .cpu_weight = 0.5, .oom_group = true}, fake.host);
  ASSERT_EQ(group.directories().size(), 1U);
  const std::string at = group.directories()[0];
  EXPECT_EQ(at.find(fake.own() + "/belljar."), 0U) << at;
  EXPECT_EQ(read_file(at + "/memory.max"), "33554432");
  EXPECT_EQ(read_file(at + "/memory.swap.max"), "0");
  EXPECT_EQ(read_file(at + "/memory.oom.group"), "1");
  EXPECT_EQ(read_file(at + "/memory.low"), "8388608");
  EXPECT_EQ(read_file(at + "/pids.max"), "64");
  EXPECT_EQ(read_file(at + "/cpu.max"), "150000 100000");
  EXPECT_EQ(read_file(at + "/cpu.weight"), "50");
  EXPECT_EQ(group.outcome(CgroupSetting::kMemory).mechanism, "cgroup v2 memory.max");
  EXPECT_TRUE(group.join_files().empty());
  EXPECT_GE(group.directory_fd(), 0);
}

TEST(CgroupV2, ReadsTheCounters) {
  const FakeV2 fake;
  fake.dir.write("user.slice/a.scope/cgroup.subtree_control", "memory pids\n");
  const Cgroup group = Cgroup::create({.memory = 32_MiB, .pids = 64}, fake.host);
  ASSERT_FALSE(group.empty());
  std::ofstream(group.directories()[0] + "/memory.events") << "oom 4\noom_kill 3\n";
  std::ofstream(group.directories()[0] + "/pids.events") << "max 12\n";
  std::ofstream(group.directories()[0] + "/memory.peak") << "4096\n";
  std::ofstream(group.directories()[0] + "/cpu.stat") << "usage_usec 30\nuser_usec 20\nsystem_usec 10\n";
  EXPECT_EQ(group.events().oom_kills, 3U);
  EXPECT_EQ(group.events().pids_refused, 12U);
  EXPECT_EQ(group.memory_peak(), Bytes{4096});
  EXPECT_EQ(group.cpu().value().user.count(), 20);
  EXPECT_EQ(group.cpu().value().system.count(), 10);
}

TEST(CgroupV2, EnablesControllersThatAreOff) {
  const FakeV2 fake;
  const Cgroup group = Cgroup::create({.pids = 64}, fake.host);
  EXPECT_TRUE(group.outcome(CgroupSetting::kPids).held);
  EXPECT_EQ(read_file(fake.own() + "/cgroup.subtree_control"), "+pids");
}

TEST(CgroupV2, GoesOneUpWhereOurOwnGroupLacksTheController) {
  const FakeV2 fake;
  fake.dir.write("user.slice/a.scope/cgroup.controllers", "memory\n");
  fake.dir.write("user.slice/cgroup.subtree_control", "memory pids\n");
  const Cgroup group = Cgroup::create({.memory = 32_MiB, .pids = 64}, fake.host);
  ASSERT_EQ(group.directories().size(), 1U);
  EXPECT_EQ(group.directories()[0].find((fake.dir / "user.slice") + "/belljar."), 0U) << group.directories()[0];
}

TEST(CgroupV2, NeverLeavesAGroupThatHasLimitsItself) {
  const FakeV2 fake;
  fake.dir.write("user.slice/a.scope/cgroup.controllers", "memory\n");
  fake.dir.write("user.slice/a.scope/memory.max", "1073741824\n");
  fake.dir.write("user.slice/cgroup.subtree_control", "memory pids\n");
  const Cgroup group = Cgroup::create({.memory = 32_MiB, .pids = 64}, fake.host);
  EXPECT_TRUE(group.outcome(CgroupSetting::kMemory).held);
  EXPECT_FALSE(group.outcome(CgroupSetting::kPids).held);
  EXPECT_NE(group.outcome(CgroupSetting::kPids).missing.find("has no pids controller"), std::string::npos)
      << group.outcome(CgroupSetting::kPids).missing;
  ASSERT_EQ(group.directories().size(), 1U);
  EXPECT_EQ(group.directories()[0].find(fake.own() + "/belljar."), 0U);
}

TEST(CgroupV2, TakesThePidsLimitOfTheGroupItLeavesAlong) {
  const FakeV2 fake;
  fake.dir.write("user.slice/a.scope/cgroup.controllers", "");
  fake.dir.write("user.slice/a.scope/pids.max", "4915\n");
  fake.dir.write("user.slice/cgroup.subtree_control", "memory pids\n");
  const Cgroup memory = Cgroup::create({.memory = 32_MiB}, fake.host);
  ASSERT_EQ(memory.directories().size(), 1U);
  EXPECT_EQ(read_file(memory.directories()[0] + "/pids.max"), "4915");
  const Cgroup fewer = Cgroup::create({.pids = 64}, fake.host);
  EXPECT_EQ(read_file(fewer.directories().at(0) + "/pids.max"), "64");
  const Cgroup more = Cgroup::create({.pids = 10000}, fake.host);
  EXPECT_EQ(read_file(more.directories().at(0) + "/pids.max"), "4915");
}

TEST(CgroupV2, AnUndelegatedGroupIsNamed) {
  BELLJAR_NEEDS(as_ordinary_user());  // root may write anyway
  const FakeV2 fake;
  for (const char* group : {"user.slice/a.scope", "user.slice", "."}) ::chmod((fake.dir / group).c_str(), 0555);
  const Cgroup group = Cgroup::create({.pids = 64}, fake.host);
  EXPECT_TRUE(group.empty());
  EXPECT_NE(group.outcome(CgroupSetting::kPids).missing.find("not delegated"), std::string::npos);
}

TEST(Cgroup, NothingAskedMakesNothing) {
  const FakeV2 fake;
  const Cgroup group = Cgroup::create({}, fake.host);
  EXPECT_TRUE(group.empty());
  EXPECT_TRUE(group.notices().empty());
}

TEST(Cgroup, WithoutAnyHierarchyEachSettingSaysSo) {
  const Cgroup group = Cgroup::create({.memory = 32_MiB, .cpus = 1.0, .kill = true}, CgroupHost{});
  EXPECT_TRUE(group.empty());
  for (const CgroupSetting setting : {CgroupSetting::kMemory, CgroupSetting::kCpu, CgroupSetting::kKill}) {
    EXPECT_FALSE(group.outcome(setting).held);
    EXPECT_NE(group.outcome(setting).missing, "");
  }
}

}  // namespace
}  // namespace belljar::kernel
