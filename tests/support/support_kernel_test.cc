// The helpers that judge others must themselves be able to fail.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "support/as_user.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

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
  const Outcome outcome = run({"/bin/sh", "-c", "echo partial; sleep 600 & sleep 600"}, {.timeout = 300ms});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(outcome.out, "partial\n");
}

TEST(Run, SaysWhenASurvivorHoldsTheOutput) {
  const Outcome outcome = run({"/bin/sh", "-c", "sleep 3 & echo started"});
  EXPECT_TRUE(outcome.output_held) << outcome;
  EXPECT_FALSE(run({"/bin/sh", "-c", "sleep 3 >/dev/null 2>&1 & echo started"}).output_held);
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
  EXPECT_EQ(run({"setsid", "-f", "sleep", "2.125"}).exit_code, 0);
  const std::string report = left.report(100ms);
  EXPECT_NE(report.find("sleep 2.125"), std::string::npos) << report;
  EXPECT_EQ(left.report(5s), "") << "it goes away by itself within the patience";
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
