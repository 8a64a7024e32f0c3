// The helpers that judge others must themselves be able to fail.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/as_user.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support/time_enough.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

TEST(Run, CollectsBothOutputsAndTheExitCode) {
  const Outcome outcome = run({"/bin/sh", "-c", "cat; echo wrong >&2; exit 3"}, {.input = "hello"});
  EXPECT_EQ(outcome.out, "hello");
  EXPECT_EQ(outcome.err, "wrong\n");
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_EQ(outcome.signal, 0);
}

TEST(Run, PassesMoreThanAPipeHoldsBothWays) {
  const std::string big(3 << 20, 'x');
  const Outcome outcome = run({"/bin/cat"}, {.input = big});
  EXPECT_EQ(outcome.out.size(), big.size());
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST(Run, NamesTheSignal) { EXPECT_EQ(run({"/bin/sh", "-c", "kill -SEGV $$"}).signal, SIGSEGV); }

TEST(Run, KillsTheGroupWhenTimeIsUp) {
  const Outcome outcome = with_time_enough(
      [](auto timeout) { return run({"/bin/sh", "-c", "echo partial; sleep 600 & sleep 600"}, {.timeout = timeout}); },
      [](const Outcome& tried) { return !tried.out.empty(); });
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(outcome.out, "partial\n");
}

TEST(Run, SaysWhenASurvivorHoldsTheOutput) {
  const Outcome outcome = run({"/bin/sh", "-c", "sleep 600 & echo $!"}, {.held_after = 200ms});
  EXPECT_TRUE(outcome.output_held) << outcome;
  const Outcome twin = run({"/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"});
  EXPECT_FALSE(twin.output_held) << twin;
  for (const Outcome& ended : {outcome, twin}) ASSERT_EQ(::kill(std::stoi(ended.out), SIGKILL), 0) << ended;
}

TEST(Run, GivesTheEnvironmentAndTheDirectory) {
  const TempDir dir;
  EXPECT_EQ(run({"/bin/sh", "-c", "echo $A $HOME; pwd"}, {.cwd = dir.path(), .all_env = {{{"A", "1"}}}}).out,
            "1\n" + dir.path() + "\n");
}

TEST(TempDir, GoesWhateverModesATestLeftOnIt) {
  std::string path;
  {
    const TempDir dir;
    path = dir.path();
    dir.write("a/b/f", "");
    for (const std::string& closed : {dir / "a/b", dir / "a", path}) ASSERT_EQ(::chmod(closed.c_str(), 0555), 0);
  }
  EXPECT_FALSE(exists(path));
}

// As an ordinary user: what another owns stays, and the test that left it fails.
TEST(TempDir, ThatCannotBeRemovedFailsTheTest) {
  BELLJAR_NEEDS(as_ordinary_user());
  const TempDir outer;
  std::string held;
  EXPECT_NONFATAL_FAILURE(
      {
        const TempDir dir(outer.path());
        held = dir.path();
        ::chmod(outer.path().c_str(), 0555);
      },
      "cannot remove the test's directory");
  EXPECT_TRUE(exists(held));
  ::chmod(outer.path().c_str(), 0755);
}

TEST(Run, WhatTheProgramKeepsStaysInTheTest) {
  const Outcome outcome = run({"/bin/sh", "-c", "echo $XDG_STATE_HOME"});
  EXPECT_TRUE(outcome.out.find("/belljar-test.") != std::string::npos) << outcome;
}

TEST(Run, ClosedAndNullInputDiffer) {
  EXPECT_NE(run({"/bin/sh", "-c", "[ -e /proc/self/fd/0 ]"}, {.stdin_is = Input::kClosed}).exit_code, 0);
  EXPECT_EQ(run({"/bin/sh", "-c", "readlink /proc/self/fd/0"}, {.stdin_is = Input::kNull}).out, "/dev/null\n");
}

TEST(Running, WaitsForOutputAndForwardsSignals) {
  Running program({"/bin/sh", "-c", "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(program.wait_for_output("ready"));
  program.send(SIGTERM);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.out, "ready\ncaught\n");
}

TEST(Leftovers, NoneWhenNothingHappened) {
  const TempDir dir;
  dir.write("kept", "same");
  const Leftovers left({dir.path()});
  EXPECT_EQ(run({"/bin/true"}).exit_code, 0);
  EXPECT_EQ(left.report(), "");
}

TEST(Leftovers, FindsAProcessThatLeftItsSession) {
  const Leftovers left;
  EXPECT_EQ(run({"/bin/sh", "-c", "setsid -f sleep 600.125 >/dev/null 2>&1"}).exit_code, 0);
  const std::string report = left.report(100ms);
  EXPECT_NE(report.find("sleep 600.125"), std::string::npos) << report;
  for (const auto& [pid, line] : descendants()) ::kill(pid, SIGKILL);
  EXPECT_EQ(left.report(), "") << "it goes away within the patience";
}

TEST(Leftovers, FindsAMountOfOursAndNobodyElses) {
  const TempDir dir;
  const std::string name = dir.path().substr(dir.path().rfind('/'));
  const auto line = [](const std::string& root, const std::string& point, const std::string& source) {
    return "40 29 0:35 " + root + " " + point + " rw,relatime shared:1 - tmpfs " + source + " rw";
  };
  for (const std::string& ours : {line("/", dir / "work", "tmpfs"), line(name, "/tmp/elsewhere", "tmpfs"),
                                  line("/", "/mnt/given/x", "tmpfs"), line("/", "/tmp", "tmpfs"), line("/", "/etc", "tmpfs"),
                                  line("/", "/proc/sys", "proc"), line("/", "/", "tmpfs"), line("/", "/run/belljar/root", "tmpfs")})
    EXPECT_TRUE(is_ours(ours, {"/mnt/given"})) << ours;
  for (const std::string& others :
       {line("/", "/var/lib/docker/overlay2/0123/merged", "overlay"), line("/", "/run/user/1000", "tmpfs"),
        line("/", "/mnt/stick", "/dev/sdb1"), line("/", "/tmp/belljar-test.000000/work", "belljar"),
        line("/belljar-test.000000", "/tmp/x", "tmpfs")})
    EXPECT_FALSE(is_ours(others, {"/mnt/given"})) << others;
}

// In a mount namespace of the test's own thread: the machine's stays as it is.
TEST(Leftovers, FindsAMountThatStays) {
  BELLJAR_NEEDS(as_root());
  const TempDir dir;
  std::thread([&] {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    const Leftovers left;
    ASSERT_EQ(::mount("nobody", dir.path().c_str(), "tmpfs", 0, nullptr), 0);
    EXPECT_NE(left.report(0ms).find(dir.path()), std::string::npos) << left.report(0ms);
    ASSERT_EQ(::umount2(dir.path().c_str(), 0), 0);
    EXPECT_EQ(left.report(), "");
  }).join();
}

TEST(Leftovers, FindsFilesThatAreNewChangedOrGone) {
  const TempDir dir;
  dir.write("changed", "before");
  dir.write("gone", "x");
  const Leftovers left({dir.path()});
  dir.write("new", "");
  dir.write("changed", "behind");  // the same size
  ::unlink((dir / "gone").c_str());
  const std::string report = left.report(0ms);
  EXPECT_NE(report.find("/new is new"), std::string::npos) << report;
  EXPECT_NE(report.find("/changed changed"), std::string::npos) << report;
  EXPECT_NE(report.find("/gone is gone"), std::string::npos) << report;
}

TEST(TempDir, IsRemovedWithWhatCannotBeEntered) {
  std::string path;
  {
    const TempDir dir;
    path = dir.path();
    dir.write("closed/file", "x");
    ::chmod((dir / "closed").c_str(), 0);
  }
  EXPECT_FALSE(exists(path));
}

TEST(AsUser, IsNeverRootAndHasNoCapabilities) {
  EXPECT_EQ(run(as_user({"id", "-u"})).out, std::to_string(user_uid()) + "\n");
  EXPECT_NE(user_uid(), 0U);
  EXPECT_NE(run(as_user({"grep", "^CapEff", "/proc/self/status"})).out.find("0000000000000000"), std::string::npos);
}

TEST(Identity, UnmetNeedsNameTheFeature) {
  EXPECT_EQ(landlock_abi_at_least(0), "");
  EXPECT_EQ(landlock_abi_at_least(999), "needs Landlock ABI 999, kernel has " + std::to_string(landlock_abi()));
  EXPECT_EQ(program("sh"), "");
  EXPECT_EQ(program("no-such-program"), "needs the program no-such-program (./dev setup test)");
  EXPECT_NE(as_root().empty(), as_ordinary_user().empty());
}

}  // namespace
}  // namespace belljar::test
