#include "kernel/cgroup_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "kernel/cgroup_name.h"
#include "kernel/process_tree.h"
#include "kernel/small_file.h"

namespace belljar::kernel {
namespace {

constexpr std::string_view kHybridMounts =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 master:1 - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr std::string_view kHybridMembership =
    "8:pids:/\n4:memory:/agents/one\n2:cpu,cpuacct:/slice\n1:name=systemd:/init.scope\n0::/user.slice\n";

TEST(CgroupHost, FindsEachV1HierarchyAndOurPlaceInIt) {
  const CgroupHost host = parse_cgroup_host(kHybridMounts, kHybridMembership);
  ASSERT_EQ(host.v1.size(), 3U);
  EXPECT_EQ(host.find_v1(Controller::kMemory)->own, "/sys/fs/cgroup/memory/agents/one");
  EXPECT_EQ(host.find_v1(Controller::kPids)->own, "/sys/fs/cgroup/pids");
  EXPECT_EQ(host.find_v1(Controller::kCpu), host.find_v1(Controller::kCpuacct));
  EXPECT_EQ(host.find_v1(Controller::kCpu)->own, "/sys/fs/cgroup/cpu,cpuacct/slice");
  EXPECT_EQ(host.find_v1(Controller::kFreezer), nullptr);
  ASSERT_TRUE(host.v2);
  EXPECT_EQ(host.v2->own, "/sys/fs/cgroup/unified/user.slice");
}

TEST(CgroupHost, UnifiedOnly) {
  const CgroupHost host =
      parse_cgroup_host("30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n", "0::/user.slice/a.scope\n");
  EXPECT_TRUE(host.v1.empty());
  EXPECT_EQ(host.v2.value().own, "/sys/fs/cgroup/user.slice/a.scope");
}

TEST(CgroupHost, AMountOfASubtreeHidesItsRootFromThePath) {
  const CgroupHost host =
      parse_cgroup_host("30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/abc/inner\n");
  EXPECT_EQ(host.v2.value().own, "/sys/fs/cgroup/inner");
}

TEST(CgroupHost, AGroupOutsideWhatIsMountedIsLeftOut) {
  EXPECT_FALSE(parse_cgroup_host("30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/abcdef\n").v2);
  EXPECT_FALSE(parse_cgroup_host("30 24 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/../outside\n").v2);
}

TEST(CgroupHost, MountPointsAreUnescaped) {
  const CgroupHost host = parse_cgroup_host("30 24 0:26 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n", "0::/\n");
  EXPECT_EQ(host.v2.value().mount_point, "/mnt/my groups");
}

TEST(CgroupHost, GarbageIsNothing) {
  for (const char* text : {"", "\n", "1 2", " - - -", "30 24 0:26 / /x rw - cgroup2", "\\0\\1 - cgroup"}) {
    const CgroupHost host = parse_cgroup_host(text, text);
    EXPECT_TRUE(host.v1.empty() && !host.v2) << text;
  }
}

TEST(CgroupName, ReadsItsOwnNamesAndNoOthers) {
  const std::string name = cgroup_name();
  const auto owner = parse_cgroup_name(name);
  ASSERT_TRUE(owner) << name;
  EXPECT_EQ(owner->pid, getpid());
  EXPECT_EQ(owner->pid_namespace, own_pid_namespace());
  EXPECT_NE(cgroup_name(), name);
  EXPECT_TRUE(is_own_leaf(cgroup_name("self")));
  EXPECT_FALSE(is_own_leaf(name));
  for (const char* other :
       {"", "belljar", "belljar.", "belljar.x-1.2", "belljar.-1-1.2", "belljar.12", "belljar.12-3", "belljar.12-3.", "docker-1.2"})
    EXPECT_FALSE(parse_cgroup_name(other)) << other;
}

TEST(SmallFile, FlatKeyedFilesAreReadByWholeKeys) {
  constexpr std::string_view kEvents = "low 0\nhigh 3\nmax 17\noom 2\noom_kill 1\noom_group_kill 0\n";
  EXPECT_EQ(find_key(kEvents, "oom_kill"), 1U);
  EXPECT_EQ(find_key(kEvents, "oom"), 2U);
  EXPECT_FALSE(find_key(kEvents, "kill"));
  EXPECT_FALSE(parse_number("max"));
}

TEST(ProcessStat, ANameMayHoldAnything) {
  const auto stat = parse_process_stat("42 (a) b) (x 7) S 7 42 42 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 5 0 123 456");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->cpu_ticks, 100U);
  EXPECT_EQ(stat->threads, 5U);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->started_ticks, 123U);
  for (const char* text : {"", "42", "42 (x", "42 (x)", "42 (x) ", "42 (x) S y"}) EXPECT_FALSE(parse_process_stat(text)) << text;
}

}  // namespace
}  // namespace belljar::kernel
