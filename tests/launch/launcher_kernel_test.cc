// The launcher alone, with plans written by hand: what a plan says is what happens.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "launch/launcher.h"
#include "launch/plan.h"
#include "support/identity.h"

namespace belljar::launch {
namespace {

struct Outcome {
  std::string out;
  int wait_status = -1;
  Event first;
};

Plan namespaces() {
  Plan plan;
  plan.clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP;
  plan.identity = Identity::kSelfMapped;
  plan.inside_uid = 1234;
  plan.inside_gid = 1234;
  plan.outside_uid = getuid();
  plan.outside_gid = getgid();
  plan.loopback_up = true;
  plan.env = {"PATH=/usr/bin:/bin"};
  return plan;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(size));
  return text;
}

Event wait_event(Sandbox& sandbox, Event::Kind kind) {
  for (;;) {
    if (auto event = sandbox.next_event()) {
      if (event->kind == kind || event->kind == Event::Kind::kGone || event->kind == Event::Kind::kExecFailed) return *event;
      continue;
    }
    pollfd ready{sandbox.control_fd(), POLLIN, 0};
    if (poll(&ready, 1, 10000) <= 0) return Event{};
  }
}

Outcome run(const Plan& plan, std::vector<std::string> argv) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ExecRequest request;
  request.argv = std::move(argv);
  request.stdio[1] = request.stdio[2] = writer.get();
  auto sandbox = start(plan, &request);
  Outcome outcome;
  if (!sandbox) {
    ADD_FAILURE() << sandbox.error().line();
    return outcome;
  }
  writer.reset();
  outcome.out = read_all(reader.get());
  const Event end = wait_event(*sandbox, Event::Kind::kExited);
  outcome.first = end;
  outcome.wait_status = end.exit.wait_status;
  return outcome;
}

// Inside another sandbox of ours there is nothing to start.
class Launcher : public testing::Test {
 protected:
  void SetUp() override { BELLJAR_NEEDS(user_namespaces()); }
};

TEST_F(Launcher, RunsACommandInAPidNamespaceUnderItsOwnId) {
  const Outcome outcome = run(namespaces(), {"sh", "-c", "echo $$ $(id -u) $(id -g)"});
  EXPECT_EQ(outcome.out, "3 1234 1234\n");  // 1 is init, 2 was the helper that made the network
  EXPECT_EQ(outcome.wait_status, 0);
}

TEST_F(Launcher, ReportsTheExitStatus) { EXPECT_EQ(WEXITSTATUS(run(namespaces(), {"sh", "-c", "exit 7"}).wait_status), 7); }

TEST_F(Launcher, ReportsDeathBySignal) {
  EXPECT_EQ(WTERMSIG(run(namespaces(), {"sh", "-c", "kill -KILL $$"}).wait_status), SIGKILL);
}

TEST_F(Launcher, AMissingProgramIsExecFailedWithEnoent) {
  const Outcome outcome = run(namespaces(), {"no-such-program-here"});
  EXPECT_EQ(outcome.first.kind, Event::Kind::kExecFailed);
  EXPECT_EQ(outcome.first.errnum, ENOENT);
}

TEST_F(Launcher, DaemonsDieWithTheCommandAndDoNotHoldItsOutput) {
  const Outcome outcome = run(namespaces(), {"sh", "-c", "(setsid sh -c 'trap \"\" TERM; sleep 1000' &) ; echo done"});
  EXPECT_EQ(outcome.out, "done\n");
}

TEST_F(Launcher, TheCommandHoldsNoCapabilityAndNoDescriptorAboveTwo) {
  const Outcome outcome = run(namespaces(), {"sh", "-c", "grep -h CapEff /proc/self/status; ls /proc/self/fd"});
  EXPECT_EQ(outcome.out, "CapEff:\t0000000000000000\n0\n1\n2\n3\n");  // 3 is ls reading the directory
}

TEST_F(Launcher, ASessionServesFurtherCommands) {
  Plan plan = namespaces();
  auto sandbox = start(plan, nullptr);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  for (int i = 0; i < 3; ++i) {
    ExecRequest request;
    request.argv = {"sh", "-c", "exit " + std::to_string(i)};
    const auto id = sandbox->exec(request);
    ASSERT_TRUE(id) << id.error().line();
    const Event end = wait_event(*sandbox, Event::Kind::kExited);
    EXPECT_EQ(end.exec_id, *id);
    EXPECT_EQ(WEXITSTATUS(end.exit.wait_status), i);
  }
  ExecRequest large;
  large.argv = {"sh", "-c", "exit $#", "sh"};
  large.argv.insert(large.argv.end(), 9, std::string(20000, 'x'));  // more than one inline message holds
  ASSERT_TRUE(sandbox->exec(large));
  EXPECT_EQ(WEXITSTATUS(wait_event(*sandbox, Event::Kind::kExited).exit.wait_status), 9);
}

TEST_F(Launcher, WithoutNamespacesTheSubreaperSweepsTheTree) {
  Plan plan;
  plan.subreaper = true;
  plan.drop_privileges = false;
  plan.env = {"PATH=/usr/bin:/bin"};
  const Outcome outcome = run(plan, {"sh", "-c", "(setsid sleep 1000 &) ; echo done"});
  EXPECT_EQ(outcome.out, "done\n");  // returns at once: the sleeper that held the pipe is gone
}

TEST_F(Launcher, AFailingStepNamesItselfAndItsOperation) {
  Plan plan = namespaces();
  plan.mounts.push_back({.kind = MountOpKind::kCapture, .slot = 0, .source = "/does/not/exist"});
  plan.slots = 1;
  ExecRequest request;
  request.argv = {"true"};
  const auto sandbox = start(plan, &request);
  ASSERT_FALSE(sandbox);
  EXPECT_EQ(sandbox.error().call(), "tree: copy `/does/not/exist`");
  EXPECT_EQ(sandbox.error().errnum(), ENOENT);
}

}  // namespace
}  // namespace belljar::launch
