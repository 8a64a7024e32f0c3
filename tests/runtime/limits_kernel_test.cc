// Limits as a sandbox feels them: LimitSet, launcher and the loop between them, with this machine's mechanisms and without cgroups.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/units.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_host.h"
#include "launch/launcher.h"
#include "launch/plan.h"
#include "runtime/limits.h"
#include "runtime/support_plain.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::runtime {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const kernel::CgroupHost kNoCgroups;

launch::Plan plan_for(const LimitSet& limits) {
  launch::Plan plan;
  plan.clone_flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  plan.identity = test::is_root() ? launch::Identity::kRootMapped : launch::Identity::kSelfMapped;
  if (!test::is_root()) plan.clone_flags |= CLONE_NEWUSER;
  plan.inside_uid = 1234;
  plan.inside_gid = 1234;
  plan.outside_uid = test::user_uid();
  plan.outside_gid = test::user_gid();
  plan.env = {"PATH=/usr/bin:/bin"};
  plan.rlimits = limits.rlimits();
  plan.cgroup_fd = limits.cgroup_fd();
  plan.join_files = limits.join_files();
  return plan;
}

struct Outcome {
  Finish finish;
  int wait_status = -1;
  std::vector<Hit> hits;
  std::string out;
};

enum class Stdin { kNull, kUntilAHit };  // kUntilAHit: a pipe that ends when a limit is reported as hit

// The supervise loop in small.
Outcome run(LimitSet& limits, std::vector<std::string> argv, const std::string& cwd, const launch::Plan& plan,
            Stdin input = Stdin::kNull) {
  Outcome outcome;
  auto [reader, writer] = test::open_pipe();
  test::PipePair until_hit;
  if (input == Stdin::kUntilAHit) until_hit = test::open_pipe();
  launch::ExecRequest request{.argv = std::move(argv), .cwd = cwd};
  request.stdio[0] = until_hit.read.get();
  request.stdio[1] = request.stdio[2] = writer.get();
  auto sandbox = launch::start(plan, &request);
  if (!sandbox) {
    ADD_FAILURE() << sandbox.error().line();
    return outcome;
  }
  writer.reset();
  limits.attach(sandbox->init_pid());
  rusage usage{};
  for (const auto give_up = Clock::now() + 120s;;) {
    if (Clock::now() >= give_up) {
      ADD_FAILURE() << "neither the command nor a limit ended it";
      break;
    }
    if (auto event = sandbox->next_event()) {
      if (event->kind == launch::Event::Kind::kExited) outcome.wait_status = event->exit.wait_status, usage = event->exit.usage;
      if (event->kind == launch::Event::Kind::kExited || event->kind == launch::Event::Kind::kGone) break;
      continue;
    }
    std::vector<pollfd> waits{{.fd = sandbox->control_fd(), .events = POLLIN}};
    for (const kernel::CgroupNotice& notice : limits.notices()) waits.push_back({.fd = notice.fd, .events = notice.events});
    auto until = give_up;
    if (const auto next = limits.next_sample()) until = std::min(until, *next);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    ::poll(waits.data(), waits.size(), static_cast<int>(std::max<long>(left, 0)));
    if (auto hit = limits.sample(Clock::now())) {
      outcome.hits.push_back(*hit);
      until_hit.write.reset();
      if (hit->kill) sandbox->kill_and_reap();
      if (hit->kill) outcome.wait_status = SIGKILL;
      if (hit->kill) break;
    }
  }
  outcome.finish = limits.finish(outcome.wait_status, usage);
  sandbox->kill_and_reap();
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
    outcome.out.append(buffer, static_cast<std::size_t>(got));
  return outcome;
}

Outcome run(LimitSet& limits, std::vector<std::string> argv, const std::string& cwd = "/") {
  return run(limits, std::move(argv), cwd, plan_for(limits));
}

LimitSet make(const Limits& limits, const std::string& workspace = "/") {
  return LimitSet::create(limits, {.workspace = workspace}).value();
}
LimitSet make_without_cgroups(const Limits& limits) { return LimitSet::create(limits, {.cgroups = &kNoCgroups}).value(); }

bool holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// tail keeps its input until it has seen the end: SIZE of memory in one process.
std::vector<std::string> hog(const std::string& size) { return {"sh", "-c", "head -c " + size + " /dev/zero | tail | wc -c"}; }
std::vector<std::string> exec_hog(const std::string& size) {
  return {"bash", "-c", "exec tail < <(exec head -c " + size + " /dev/zero) > /dev/null"};
}
// As many sleepers as it can have, at most 64, then their number.
const std::vector<std::string> kForks = {"bash", "-c", "for i in {1..64}; do sleep 60 & done 2>/dev/null; jobs -r | wc -l"};

TEST(Limits, WithoutLimitsTheSameActsSucceed) {
  LimitSet limits = make({});
  EXPECT_EQ(run(limits, hog("64M")).out, "67108864\n");
  const Outcome forks = run(limits, kForks);
  EXPECT_EQ(forks.out, "64\n");
  EXPECT_TRUE(forks.finish.limits_hit.empty());
  EXPECT_FALSE(forks.finish.reason);
}

TEST(Limits, MemoryByCgroupEndsTheHogAndNamesIt) {
  LimitSet limits = make({.memory = 32_MiB});
  if (limits.clauses().at(0).mechanism.find("cgroup") == std::string::npos)
    GTEST_SKIP() << "needs a cgroup: " << limits.clauses()[0].detail;
  EXPECT_EQ(limits.clauses()[0].enforced, Enforced::kFull) << limits.clauses()[0].detail;
  const Outcome small = run(limits, hog("8M"));
  EXPECT_EQ(small.out, "8388608\n");
  EXPECT_TRUE(small.finish.limits_hit.empty());
  const Outcome large = run(limits, exec_hog("64M"));
  EXPECT_TRUE(WIFSIGNALED(large.wait_status)) << large.wait_status;
  EXPECT_EQ(large.finish.limits_hit, std::vector<std::string>{"memory"});
  EXPECT_EQ(large.finish.reason, Reason::kMemory);
  EXPECT_NE(large.finish.message.find("32MiB"), std::string::npos) << large.finish.message;
  // Besides tail the kernel may end what only begins to use memory meanwhile, such as wc: the command is the shell, which does not.
  const Outcome child = run(limits, {"sh", "-c", "head -c 64M /dev/zero | tail | wc -c; exit 0"});
  EXPECT_EQ(child.finish.limits_hit, std::vector<std::string>{"memory"}) << "also when the command survived it";
  EXPECT_FALSE(child.finish.reason);
  const Outcome after = run(limits, hog("8M"));
  EXPECT_TRUE(after.finish.limits_hit.empty()) << "what an earlier command hit is not named again";
  EXPECT_LE(after.finish.usage.peak_memory.value_or(Bytes{}), 32_MiB);
}

TEST(Limits, MemoryWithoutCgroupsRefusesOneProcessAndEndsManyTogether) {
  LimitSet one = make_without_cgroups({.memory = 32_MiB});
  EXPECT_EQ(run(one, hog("8M")).out, "8388608\n");
  // Refused by RLIMIT_DATA or ended by a sample, whichever comes first.
  const Outcome large = run(one, exec_hog("128M"));
  EXPECT_NE(large.wait_status, 0) << large.out;
  EXPECT_EQ(large.finish.limits_hit, std::vector<std::string>{"memory"});
  // Four of 12 MiB each: every one is within its own limit.
  LimitSet many = make_without_cgroups({.memory = 32_MiB});
  const Outcome sum =
      run(many, {"bash", "-c", "for i in 1 2 3 4; do { head -c 12M /dev/zero; sleep 1000; } | tail > /dev/null & done; wait"});
  EXPECT_EQ(sum.finish.limits_hit, std::vector<std::string>{"memory"});
  EXPECT_EQ(sum.finish.reason, Reason::kMemory);
}

TEST(Limits, PidsBoundAForkBombAndAreNamed) {
  for (const bool cgroups : {true, false}) {
    LimitSet limits = cgroups ? make({.memory = 1_GiB, .pids = 16}) : make_without_cgroups({.pids = 16});
    SCOPED_TRACE(limits.clauses().back().mechanism);
    EXPECT_EQ(limits.clauses().back().enforced, Enforced::kFull);
    // The subshell ends at the first refusal and frees a place, which the next sleeper takes. A group counts refusals; RLIMIT_NPROC
    // leaves no trace, so there it stays full until a sample has seen it.
    const bool counted = limits.clauses().back().mechanism.starts_with("cgroup");
    const std::vector<std::string> bomb = {"sh", "-c", "(for i in $(seq 64); do sleep 60 & done); sleep 60 & exec cat"};
    const Outcome outcome = run(limits, bomb, "/", plan_for(limits), counted ? Stdin::kNull : Stdin::kUntilAHit);
    EXPECT_TRUE(holds(outcome.finish.limits_hit, "pids"));
    EXPECT_NE(outcome.out.find("fork"), std::string::npos) << "the shell says so: " << outcome.out;
    const Outcome few = run(limits, {"bash", "-c", "for i in {1..12}; do sleep 0.3 & done; wait; echo done"});  // for some samples
    EXPECT_EQ(few.out, "done\n");
    EXPECT_FALSE(holds(few.finish.limits_hit, "pids"));
  }
}

TEST(Limits, AGroupNamesAHitOfAMoment) {
  LimitSet limits = make({.pids = 8});
  if (limits.clauses().at(0).mechanism.find("cgroup") == std::string::npos)
    GTEST_SKIP() << "needs a cgroup: RLIMIT_NPROC leaves no trace";
  EXPECT_EQ(run(limits, {"sh", "-c", "for i in $(seq 64); do sleep 1000 & done"}).finish.limits_hit,
            std::vector<std::string>{"pids"});
  EXPECT_TRUE(run(limits, {"sh", "-c", "for i in 1 2 3; do sleep 1000 & done"}).finish.limits_hit.empty());
}

TEST(Limits, PidsAreExact) {
  for (const bool cgroups : {true, false}) {
    LimitSet limits = cgroups ? make({.memory = 1_GiB, .pids = 8}) : make_without_cgroups({.pids = 8});
    SCOPED_TRACE(limits.clauses().back().mechanism);
    EXPECT_EQ(run(limits, {"sh", "-c", "for i in 1 2 3 4 5 6 7; do sleep 1000 & done; echo all"}).out, "all\n");
    const Outcome one_more = run(limits, {"sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo all"});
    EXPECT_EQ(one_more.out.find("all"), std::string::npos) << one_more.out;
  }
}

TEST(Limits, PidsOutsideDoNotCount) {
  std::vector<pid_t> others;
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (test::is_root() && setuid(test::user_uid()) != 0) _exit(1);
      pause();
      _exit(0);
    }
    others.push_back(pid);
  }
  LimitSet limits = make_without_cgroups({.pids = 8});
  EXPECT_EQ(run(limits, {"sh", "-c", "for i in 1 2 3 4 5 6 7; do sleep 1000 & done; echo all"}).out, "all\n");
  for (const pid_t pid : others) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST(Limits, FileSizeEndsTheWriterAndIsNamed) {
  const test::TempDir dir;
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  LimitSet limits = make({.file_size = 1_MiB});
  const Outcome large = run(limits, {"sh", "-c", "exec head -c 2M /dev/zero > file"}, dir.path());
  EXPECT_EQ(large.finish.limits_hit, std::vector<std::string>{"file_size"}) << large.wait_status << large.out;
  EXPECT_EQ(test::read_file(dir / "file").size(), 1U << 20);
  EXPECT_EQ(run(limits, {"sh", "-c", "exec head -c 1M /dev/zero > file"}, dir.path()).wait_status, 0);
}

TEST(Limits, OpenFilesAreBounded) {
  LimitSet limits = make({.open_files = 20});
  const std::string open_all = "for i in {3..40}; do eval \"exec $i</dev/null\" || exit 9; done 2>/dev/null; echo all";
  EXPECT_EQ(run(limits, {"bash", "-c", open_all}).out.find("all"), std::string::npos);
  LimitSet none = make({});
  EXPECT_EQ(run(none, {"bash", "-c", open_all}).out, "all\n");
}

TEST(Limits, NoCoreFileIsLeft) {
  const test::TempDir dir;
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  LimitSet limits = make({});
  const Outcome outcome = run(limits, {"sh", "-c", "kill -ABRT $$"}, dir.path());
  EXPECT_EQ(WTERMSIG(outcome.wait_status), SIGABRT);
  EXPECT_FALSE(WCOREDUMP(outcome.wait_status));
}

TEST(Limits, DiskGrowthEndsTheTreeAndOldFilesDoNotCount) {
  const test::TempDir dir;
  dir.write("old", std::string(12U << 20, 'x'));
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  LimitSet limits = make({.disk = 8_MiB}, dir.path());
  // The sleep is for some samples: without them the limit could not end it by mistake.
  const Outcome small = run(limits, {"sh", "-c", "head -c 2M /dev/urandom > new; sleep 0.5; echo kept"}, dir.path());
  EXPECT_EQ(small.out, "kept\n");
  EXPECT_TRUE(small.finish.limits_hit.empty()) << small.finish.message;
  const Outcome large =
      run(limits, {"sh", "-c", "for i in 1 2 3 4; do head -c 4M /dev/urandom > new$i; done; sleep 1000; echo kept"}, dir.path());
  EXPECT_EQ(large.out, "");
  EXPECT_EQ(large.finish.limits_hit, std::vector<std::string>{"disk"});
  EXPECT_EQ(large.finish.reason, Reason::kDisk);
}

// At once and to the byte, however quick the writer is. What is larger already is written to as before.
TEST(Limits, NoFileGetsLargerThanTheDiskLimit) {
  const test::TempDir dir;
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  LimitSet limits = make({.disk = 5_MiB}, dir.path());
  const Outcome ended = run(limits, {"sh", "-c", "exec head -c 400000000 /dev/zero > new"}, dir.path());
  EXPECT_EQ(std::filesystem::file_size(dir.path() + "/new"), (5_MiB).count);
  EXPECT_EQ(ended.finish.limits_hit, std::vector<std::string>{"disk"}) << ended.finish.message;
  EXPECT_EQ(ended.finish.reason, Reason::kDisk);
  std::filesystem::remove(dir.path() + "/new");
  dir.write("old", std::string(12U << 20, 'x'));
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  LimitSet again = make({.disk = 5_MiB}, dir.path());
  EXPECT_EQ(run(again, {"sh", "-c", "head -c 1M /dev/zero >> old && echo more"}, dir.path()).out, "more\n");
  // The narrower of two counts, and is named.
  LimitSet both = make({.file_size = 1_MiB, .disk = 5_MiB}, dir.path());
  const Outcome narrow = run(both, {"sh", "-c", "exec head -c 8M /dev/zero > new"}, dir.path());
  EXPECT_EQ(narrow.finish.limits_hit, std::vector<std::string>{"file_size"}) << narrow.finish.message;
}

TEST(Limits, DiskGrowthTooQuickForASampleIsNamedAtTheEnd) {
  const test::TempDir dir;
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  LimitSet limits = make({.disk = 2_MiB}, dir.path());
  const Outcome outcome = run(limits, {"sh", "-c", "exec head -c 8M /dev/urandom > new"}, dir.path());
  EXPECT_TRUE(holds(outcome.finish.limits_hit, "disk"));
}

TEST(Limits, DiskGrowthIsNamedThoughAnotherFreedMoreMeanwhile) {
  const test::TempDir dir, beside;
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  const std::string freed = beside.path() + "/freed", made = dir.path() + "/made";
  for (const bool within : {true, false}) {
    std::ofstream(freed) << std::string(64U << 20, 'x');
    LimitSet limits = make({.disk = 2_MiB}, dir.path());
    ASSERT_EQ(::unlink(freed.c_str()), 0);
    const Outcome outcome =
        run(limits, {"sh", "-c", format("exec head -c {} /dev/urandom > made", within ? "1M" : "8M")}, dir.path());
    EXPECT_EQ(holds(outcome.finish.limits_hit, "disk"), !within);
    ASSERT_EQ(::unlink(made.c_str()), 0);
  }
}

TEST(Limits, DiskCountsThePrivateTmp) {
  const test::TempDir dir;
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  for (const bool within : {true, false}) {
    LimitSet limits = make({.disk = 4_MiB}, dir.path());
    launch::Plan plan = plan_for(limits);
    plan.slots = 1;
    // Private first: on a host with shared mounts the tmpfs would travel out to it.
    plan.mounts.push_back({.kind = launch::MountOpKind::kSetAttr, .flags = launch::kRecursive, .target = "/"});
    plan.mounts.push_back({.kind = launch::MountOpKind::kTmpfs, .slot = 0, .data = std::string("size=16m\0mode=1777", 18)});
    plan.mounts.push_back({.kind = launch::MountOpKind::kAttach, .slot = 0, .target = "/tmp"});
    const Outcome outcome = run(limits,
                                {"sh", "-c",
                                 format("for i in 1 2; do head -c {} /dev/zero > /tmp/big$i; done; sleep {}; echo kept",
                                        within ? "1M" : "3M", within ? 1 : 1000)},
                                "/", std::move(plan));
    EXPECT_EQ(outcome.out, within ? "kept\n" : "");
    EXPECT_EQ(holds(outcome.finish.limits_hit, "disk"), !within);
  }
}

TEST(Limits, TreeCpuGrowsWithWorkAndNotWithWaiting) {
  for (const bool cgroups : {true, false}) {
    LimitSet limits = cgroups ? make({.cpus = 2.0, .memory = 1_GiB}) : make_without_cgroups({.pids = 64});
    launch::ExecRequest request{.argv = {"sh", "-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; exec sleep 60"},
                                .cwd = "/"};
    auto sandbox = launch::start(plan_for(limits), &request);
    ASSERT_TRUE(sandbox) << sandbox.error().line();
    limits.attach(sandbox->init_pid());
    EXPECT_TRUE(test::eventually([&] { return limits.tree_cpu() >= 50ms; }));
  }
}

}  // namespace
}  // namespace belljar::runtime
