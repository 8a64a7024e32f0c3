// A command from start to end, under plans without a tree of their own: what ends it, what is kept, what is left.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "base/format.h"
#include "runtime/supervise.h"
#include "runtime/support_plain.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar::runtime {
namespace {

using namespace std::chrono_literals;
using test::run_shell;
using test::with_pid_namespace;

Policy limited(Limits limits) {
  Policy policy;
  policy.limits = limits;
  return policy;
}

using Limit = std::optional<std::chrono::milliseconds> Limits::*;

// `text`, ended by `limit`, which doubles from 250 ms on until the command has come as far as its first output by then: a busy
// machine needs its time.
struct Ended {
  RunOutcome ran;
  std::chrono::milliseconds after;
};
Ended run_until_told(const std::string& text, Limit limit, Limits limits = {},
                     backend::Prepared (*prepared)() = with_pid_namespace) {
  Ended ended{.ran = {}, .after = 125ms};
  do {
    ended.after *= 2;
    limits.*limit = ended.after;
    ended.ran = run_shell(text, limited(limits), {}, prepared);
  } while (ended.ran.result.out.bytes.empty() && ended.after < 60s);
  return ended;
}

TEST(Supervise, ReportsExitCodeAndBothStreams) {
  const RunOutcome ran = run_shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(ran.result.exit_code, 7);
  EXPECT_EQ(ran.result.reason, Reason::kExited);
  EXPECT_EQ(ran.result.out.bytes, "out\n");
  EXPECT_EQ(ran.result.err.bytes, "err\n");
  EXPECT_FALSE(ran.result.signal);
}

TEST(Supervise, DeathBySignalIs128PlusSignal) {
  const RunOutcome ran = run_shell("kill -SEGV $$");
  EXPECT_EQ(ran.result.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(ran.result.reason, Reason::kSignalled);
  EXPECT_EQ(ran.result.signal, SIGSEGV);
  EXPECT_EQ(ran.result.message, "killed by SIGSEGV");
}

TEST(Supervise, TimeoutKeepsPartialOutput) {
  const auto [ran, timeout] = run_until_told("echo before; sleep 1000", &Limits::timeout);
  EXPECT_EQ(ran.result.exit_code, 124);
  EXPECT_EQ(ran.result.reason, Reason::kTimeout);
  EXPECT_EQ(ran.result.out.bytes, "before\n");
  EXPECT_EQ(ran.result.message, timeout_message(timeout));
  EXPECT_GE(ran.result.duration, timeout);
}

TEST(Supervise, ATimeoutThatIsNotReachedChangesNothing) {
  const RunOutcome ran = run_shell("echo done", limited({.timeout = 60s}));
  EXPECT_EQ(ran.result.exit_code, 0);
  EXPECT_EQ(ran.result.reason, Reason::kExited);
}

TEST(Supervise, MaxTimeoutCapsWhatWasAskedFor) {
  EXPECT_EQ(effective_timeout({.timeout = 60s, .max_timeout = 2s}), 2s);
  EXPECT_EQ(effective_timeout({.timeout = 1s, .max_timeout = 2s}), 1s);
  EXPECT_EQ(effective_timeout({.max_timeout = 2s}), 2s);
  EXPECT_EQ(effective_timeout({}), std::nullopt);
  EXPECT_EQ(run_shell("sleep 1000", limited({.timeout = 60s, .max_timeout = 100ms})).result.exit_code, 124);
}

TEST(Supervise, ATimeoutLetsTheProgramCleanUp) {
  const RunOutcome ran = run_until_told("trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
                                        &Limits::timeout, {.kill_grace = 600s})
                             .ran;
  EXPECT_EQ(ran.result.out.bytes, "ready\ncleaned\n");
  EXPECT_EQ(ran.result.exit_code, 124);  // not the 0 of its trap
}

TEST(Supervise, WhoIgnoresTermIsKilledAfterTheGrace) {
  const auto [ran, timeout] =
      run_until_told("trap '' TERM; echo ready; while :; do sleep 0.05; done", &Limits::timeout, {.kill_grace = 200ms});
  EXPECT_EQ(ran.result.exit_code, 124);
  EXPECT_EQ(ran.result.signal, SIGKILL);
  EXPECT_GE(ran.result.duration, timeout + 200ms);
  EXPECT_EQ(ran.result.out.bytes, "ready\n");
}

TEST(Supervise, AStoppedProgramStillEndsAtItsTimeout) {
  const RunOutcome ran = run_until_told("echo stops; kill -STOP $$; sleep 1000", &Limits::timeout, {.kill_grace = 600s}).ran;
  EXPECT_EQ(ran.result.exit_code, 124);
  EXPECT_EQ(ran.result.signal, SIGTERM) << "continued, not killed after the grace";
}

class BothTrees : public testing::TestWithParam<backend::Prepared (*)()> {};
INSTANTIATE_TEST_SUITE_P(, BothTrees, testing::Values(test::plain, test::with_pid_namespace),
                         [](const auto& one) { return one.param == test::plain ? "Subreaper" : "PidNamespace"; });

TEST_P(BothTrees, DescendantsThatHoldStdoutDieAndDoNotDelayTheEnd) {
  const test::Leftovers left;
  const RunOutcome ran = run_shell("(setsid sh -c 'trap \"\" TERM HUP; sleep 1000' &) ; echo done", {}, {}, GetParam());
  EXPECT_EQ(ran.result.exit_code, 0);
  EXPECT_EQ(ran.result.out.bytes, "done\n");
  EXPECT_LT(ran.result.duration, 500s) << "half of what they sleep";
  EXPECT_EQ(left.report(), "");
}

TEST_P(BothTrees, ATimeoutTakesDoubleForkedDescendantsAlong) {
  const test::Leftovers left;
  const RunOutcome ran = run_until_told("(setsid sh -c '(setsid sleep 1000 &)'); trap '' TERM; echo ready; sleep 1000; sleep 1000",
                                        &Limits::timeout, {.kill_grace = 100ms}, GetParam())
                             .ran;
  EXPECT_EQ(ran.result.out.bytes, "ready\n");
  EXPECT_EQ(ran.result.exit_code, 124);
  EXPECT_EQ(left.report(), "");
}

TEST(Supervise, IdleTimeoutEndsAProgramThatDoesNothing) {
  const RunOutcome ran = run_until_told("echo hello; sleep 1000", &Limits::idle_timeout).ran;
  EXPECT_EQ(ran.result.exit_code, 124);
  EXPECT_EQ(ran.result.reason, Reason::kIdle);
  EXPECT_EQ(ran.result.out.bytes, "hello\n");
}

TEST(Supervise, OutputKeepsAnIdleProgramAlive) {
  // Nine lines over 1.8 times what it may be idle. A machine that holds up one of them for that long gets more time.
  RunOutcome ran;
  int idle = 250;
  do {
    idle *= 2;
    ran = run_shell(format("for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep {}; done", idle / 5000.0),
                    limited({.idle_timeout = std::chrono::milliseconds(idle)}));
  } while (ran.result.reason == Reason::kIdle && idle < 30'000);
  EXPECT_EQ(ran.result.exit_code, 0);
  EXPECT_EQ(ran.result.out.bytes, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
}

TEST(Supervise, OutputBeyondTheCapIsDrainedAndCounted) {
  const RunOutcome ran = run_shell("head -c 3000000 /dev/zero | tr '\\0' x; echo last >&2", limited({.output_bytes = Bytes{1000}}));
  EXPECT_EQ(ran.result.exit_code, 0);
  EXPECT_EQ(ran.result.out.bytes, std::string(1000, 'x'));
  EXPECT_EQ(ran.result.out.total, 3000000U);
  EXPECT_EQ(ran.result.out.omitted, 2999000U);
  EXPECT_EQ(ran.result.err.bytes, "last\n");
  EXPECT_EQ(ran.result.limits_hit, std::vector<std::string>{"output"});
}

TEST(Supervise, OutputActionKillEndsTheCommand) {
  const RunOutcome ran = run_shell("yes", limited({.output_bytes = Bytes{1000}, .output_action = OutputAction::kKill}));
  EXPECT_EQ(ran.result.exit_code, 137);
  EXPECT_EQ(ran.result.reason, Reason::kOutput);
  EXPECT_EQ(ran.result.out.bytes.size(), 1000U);
  EXPECT_EQ(ran.result.limits_hit, std::vector<std::string>{"output"});
}

TEST(Supervise, OutputAtTheCapIsNoHit) {
  const RunOutcome ran = run_shell("printf 12345", limited({.output_bytes = Bytes{5}, .output_action = OutputAction::kKill}));
  EXPECT_EQ(ran.result.exit_code, 0);
  EXPECT_TRUE(ran.result.limits_hit.empty());
}

backend::Prepared hanging() {
  backend::Prepared prepared = with_pid_namespace();
  prepared.plan.seccomp = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),  // which nobody answers before the start is told
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  prepared.plan.seccomp_listener = true;
  return prepared;
}

TEST(Supervise, ASignalEndsAStartThatHangs) {
  RunSettings session;
  session.signals = front::Signals::Mode::kForwarded;
  session.on_ready = [](const EnforcementReport&) { ::kill(::getpid(), SIGHUP); };
  const RunOutcome ended = run_shell("echo ran", {}, session, hanging);
  EXPECT_EQ(ended.result.reason, Reason::kCancelled);
  EXPECT_EQ(ended.result.exit_code, 128 + SIGHUP);
  ASSERT_TRUE(ended.start_failure);
  EXPECT_EQ(ended.start_failure->code(), Code::kCanceled) << ended.start_failure->line();
  // The twin: where the start ends, the signal is the command's.
  const RunOutcome told = run_shell("sleep 1000", {}, session);
  EXPECT_EQ(told.result.reason, Reason::kSignalled) << told.result.message;
  EXPECT_EQ(told.result.exit_code, 128 + SIGHUP);
}

TEST(Supervise, ACancelDescriptorEndsAStartThatHangs) {
  const UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  RunSettings session;
  session.cancel_fd = cancel.get();
  const RunOutcome ended = run_shell("echo ran", {}, session, hanging);
  EXPECT_EQ(ended.result.reason, Reason::kCancelled);
  EXPECT_EQ(ended.result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(ended.result.out.bytes, "");
}

TEST(Supervise, ACancelDescriptorEndsTheCommand) {
  // Its own output cancels it, once its trap is set.
  const test::PipePair cancel = test::open_pipe();
  const RunSettings session{.stdio = {.host = {0, cancel.write.get(), 2}}, .cancel_fd = cancel.read.get()};
  const RunOutcome ran =
      run_shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done", limited({.kill_grace = 600s}), session);
  EXPECT_EQ(ran.result.reason, Reason::kCancelled);
  EXPECT_EQ(ran.result.exit_code, 128 + SIGTERM);
}

TEST(Supervise, UsageCountsTheCommand) {
  const RunOutcome ran = run_shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
  EXPECT_GT(ran.result.usage.cpu_user + ran.result.usage.cpu_system, 5ms);
}

TEST(StartFailure, AProgramThatIsNotThereIs127) {
  auto ran = run_prepared(test::with_pid_namespace(), {}, {.argv = {"no-such-program"}}, "/tmp",
                          {.stdio = {.output = front::OutputTo::kCapture}});
  ASSERT_TRUE(ran) << ran.error().line();
  EXPECT_EQ(ran->result.exit_code, 127);
  EXPECT_EQ(ran->result.reason, Reason::kStartFailed);
  EXPECT_NE(ran->result.message.find("cannot run `no-such-program`; there is no such program in the PATH"), std::string::npos);
}

TEST(StartFailure, SaysWhyAFileCannotRun) {
  const test::TempDir dir;
  std::string foreign(
      "\x7F"
      "ELF\x02\x01\x01",
      7);
  foreign.resize(120);
  foreign[16] = 2, foreign[18] = static_cast<char>(183);  // ET_EXEC, EM_AARCH64
  const struct {
    std::string path;
    int exit_code;
    std::string_view says;
  } cases[] = {
      {dir.write("plain", "echo hi\n", 0644), 126, "permission denied"},
      {dir.write("text", "echo hi\n", 0755), 126, "belljar run -- sh"},
      {dir.write("empty", "", 0755), 126, "empty"},
      {dir.write("foreign", foreign, 0755), 126, "aarch64"},
      {dir.write("script", "#!/no/such/interpreter -x\n", 0755), 127, "`/no/such/interpreter`"},
      {dir.make_dir("folder"), 126, "directory"},
      {dir / "absent", 127, "there is no such file"},
  };
  for (const auto& c : cases) {
    auto ran =
        run_prepared(test::with_pid_namespace(), {}, {.argv = {c.path}}, "/tmp", {.stdio = {.output = front::OutputTo::kCapture}});
    ASSERT_TRUE(ran) << ran.error().line();
    EXPECT_EQ(ran->result.exit_code, c.exit_code) << c.path;
    EXPECT_NE(ran->result.message.find(c.says), std::string::npos) << ran->result.message;
  }
  // The twin: the same file with a right first line runs.
  const std::string good = dir.write("good", "#!/bin/sh\necho fine\n", 0755);
  auto ran =
      run_prepared(test::with_pid_namespace(), {}, {.argv = {good}}, "/tmp", {.stdio = {.output = front::OutputTo::kCapture}});
  ASSERT_TRUE(ran) << ran.error().line();
  EXPECT_EQ(ran->result.out.bytes, "fine\n");
}

}  // namespace
}  // namespace belljar::runtime
