// Cgroups of this machine, whichever version it has, as the user who runs the tests.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "belljar/units.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_host.h"
#include "kernel/cgroup_name.h"
#include "kernel/process_tree.h"
#include "kernel/small_file.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::kernel {
namespace {

using namespace std::chrono_literals;

// Why `request` cannot be held here; empty when it can.
std::string cgroups_hold(const CgroupRequest& request) {
  const Cgroup group = Cgroup::create(request, read_cgroup_host());
  for (std::size_t i = 0; i < kCgroupSettings; ++i) {
    const auto setting = static_cast<CgroupSetting>(i);
    if (request.wants(setting) && !group.outcome(setting).held)
      return "needs a cgroup we may make: " + group.outcome(setting).missing;
  }
  return {};
}

// Runs `body` in a child that has joined `group`. Its wait status.
template <class Body>
pid_t start_in(const Cgroup& group, Body body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  for (const std::string& file : group.all_join_files())
    if (write_small_file(AT_FDCWD, file.c_str(), "0") != 0) _exit(99);
  body();
  _exit(0);
}

int wait_for(pid_t pid) {
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

bool gone(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories)
    if (test::exists(directory)) return false;
  return true;
}

// Touches `size` bytes, one write a page.
void use_memory(std::size_t size) {
  auto* memory = static_cast<volatile char*>(malloc(size));
  for (std::size_t i = 0; i < size; i += 4096) memory[i] = 1;
}

TEST(Cgroup, MemoryHogIsKilledAndCounted) {
  BELLJAR_NEEDS(cgroups_hold({.memory = 32_MiB}));
  Cgroup group = Cgroup::create({.memory = 32_MiB}, read_cgroup_host());
  const std::vector<std::string> directories = group.directories();
  ASSERT_FALSE(group.notices().empty());
  const int small = wait_for(start_in(group, [] { use_memory(8U << 20); }));
  EXPECT_TRUE(WIFEXITED(small) && WEXITSTATUS(small) == 0) << small;
  EXPECT_EQ(group.events().oom_kills, 0U);

  const int large = wait_for(start_in(group, [] { use_memory(64U << 20); }));
  EXPECT_TRUE(WIFSIGNALED(large) && WTERMSIG(large) == SIGKILL) << large;
  pollfd notice{.fd = group.notices()[0].fd, .events = group.notices()[0].events};
  EXPECT_EQ(poll(&notice, 1, 60'000), 1) << "the oom is told by a descriptor";
  group.acknowledge();
  EXPECT_EQ(group.events().oom_kills, 1U);
  if (const auto peak = group.memory_peak()) {
    EXPECT_GT(*peak, 24_MiB);
    EXPECT_LE(*peak, 32_MiB);
  }
  group = Cgroup();
  EXPECT_TRUE(gone(directories));
}

TEST(Cgroup, ForksBeyondThePidsLimitAreRefusedAndCounted) {
  BELLJAR_NEEDS(cgroups_hold({.pids = 16}));
  Cgroup group = Cgroup::create({.pids = 16}, read_cgroup_host());
  const int status = wait_for(start_in(group, [] {
    int forks = 0;
    for (; forks < 64; ++forks) {
      const pid_t child = fork();
      if (child < 0) break;
      if (child == 0) {
        pause();
        _exit(0);
      }
    }
    _exit(forks);
  }));
  EXPECT_EQ(WEXITSTATUS(status), 15);
  EXPECT_EQ(group.events().pids_refused, 1U);
  EXPECT_EQ(group.processes().size(), 15U) << "orphans stay in the group";
  EXPECT_TRUE(group.kill_all(60s));
  EXPECT_TRUE(group.processes().empty());
}

TEST(Cgroup, TheDestructorEndsWhatIgnoresTermAndLeftItsSession) {
  for (const CgroupRequest& request : {CgroupRequest{.pids = 16}, CgroupRequest{.memory = 32_MiB}, CgroupRequest{.kill = true}}) {
    BELLJAR_NEEDS(cgroups_hold(request));
    std::vector<std::string> directories;
    pid_t pid = -1;
    {
      const Cgroup group = Cgroup::create(request, read_cgroup_host());
      directories = group.directories();
      int ready[2];
      ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
      pid = start_in(group, [&] {
        std::signal(SIGTERM, SIG_IGN);
        setsid();
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
      });
      close(ready[1]);
      char byte = 0;
      ASSERT_EQ(read(ready[0], &byte, 1), 1);
      close(ready[0]);
      EXPECT_EQ(group.processes(), std::vector<int>{pid});
    }
    EXPECT_EQ(WTERMSIG(wait_for(pid)), SIGKILL);
    EXPECT_TRUE(gone(directories));
  }
}

// Always about eight processes, each of which lives a moment and leaves another: what was listed is gone when it is signalled.
void keep_forking() {
  for (int i = 0; i < 8; ++i)
    if (fork() == 0) break;
  for (const auto end = std::chrono::steady_clock::now() + 120s; std::chrono::steady_clock::now() < end;)
    if (fork() != 0) _exit(0);
}

TEST(Cgroup, AForkBombIsEndedEvenWithoutAPidsLimit) {
  CgroupHost host = read_cgroup_host();
  for (const bool freezer : {false, true}) {
    if (freezer) host.v2.reset();
    Cgroup group = Cgroup::create({.kill = true}, host);
    if (!group.outcome(CgroupSetting::kKill).held)
      GTEST_SKIP() << "needs a cgroup to kill by: " << group.outcome(CgroupSetting::kKill).missing;
    const pid_t pid = start_in(group, keep_forking);
    ASSERT_TRUE(test::eventually([&] { return !group.processes().empty(); }));
    EXPECT_TRUE(group.kill_all(60s)) << group.outcome(CgroupSetting::kKill).mechanism;
    EXPECT_TRUE(group.processes().empty());
    wait_for(pid);
  }
}

// How long 100 ms of processor time take in `group`: no load on the machine makes that less.
std::chrono::nanoseconds time_for_work_in(const Cgroup& group) {
  const auto begun = std::chrono::steady_clock::now();
  wait_for(start_in(group, [] {
    timespec used{};
    do ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 100'000'000);
  }));
  return std::chrono::steady_clock::now() - begun;
}

TEST(Cgroup, CpuQuotaHoldsBelowHalfOfWhatItWouldTake) {
  BELLJAR_NEEDS(cgroups_hold({.cpus = 0.05}));
  const Cgroup group = Cgroup::create({.cpus = 0.05}, read_cgroup_host());
  EXPECT_GE(time_for_work_in(group), 1s) << "two seconds, when it is exact";
  EXPECT_TRUE(test::eventually([] { return time_for_work_in(Cgroup()) < 500ms; })) << "the twin, once the machine has time for it";
}

TEST(Cgroup, OrphansOfProcessesThatAreGoneAreSweptAndOthersAreNot) {
  BELLJAR_NEEDS(cgroups_hold({.pids = 16}));
  const Cgroup group = Cgroup::create({.pids = 16}, read_cgroup_host());
  const std::string parent = group.directories()[0].substr(0, group.directories()[0].rfind('/'));
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  wait_for(dead);
  const std::string orphan = parent + "/belljar." + std::to_string(dead) + "-0." + own_pid_namespace();
  const std::string foreign = parent + "/belljar." + std::to_string(dead) + "-0.1";  // same number, another pid namespace
  ASSERT_EQ(mkdir(foreign.c_str(), 0755), 0);
  const pid_t inside = fork();
  if (inside == 0) {
    for (;;) pause();
  }
  // Another test may sweep the empty group before the process is in it.
  do ::mkdir(orphan.c_str(), 0755);
  while (write_small_file(AT_FDCWD, (orphan + "/cgroup.procs").c_str(), std::to_string(inside)) != 0);
  {
    const Cgroup next = Cgroup::create({.pids = 16}, read_cgroup_host());
  }
  EXPECT_EQ(WTERMSIG(wait_for(inside)), SIGKILL);
  EXPECT_FALSE(test::exists(orphan));
  EXPECT_TRUE(test::exists(foreign));
  EXPECT_TRUE(test::exists(group.directories()[0])) << "our own lives";
  EXPECT_EQ(rmdir(foreign.c_str()), 0);
}

TEST(ProcessTree, ListsDescendantsOfThreadsAndMeasuresThem) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t top = fork();
  if (top == 0) {
    if (fork() == 0) {
      use_memory(24U << 20);
      if (write(ready[1], "x", 1) != 1) _exit(1);
    }
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::vector<int> tree = list_tree(top);
  EXPECT_EQ(tree.size(), 2U);
  const TreeUsage usage = measure_tree(tree, true);
  EXPECT_EQ(usage.tasks, 2U);
  EXPECT_GT(usage.memory, 24_MiB);
  EXPECT_LT(usage.memory, 40_MiB);
  for (const int pid : tree) kill(pid, SIGKILL);
  wait_for(top);
  EXPECT_TRUE(list_tree(top).empty());
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace belljar::kernel
