// `belljar run` as people use it: exit codes, streams, signals. Every refusal has a twin that works.
#include "support/run.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/eventually.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"
#include "support/time_enough.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

TEST(Program, SaysItsVersion) {
  const Outcome outcome = belljar({"--version"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(outcome.out.starts_with("belljar ")) << outcome;
}

TEST_F(Run, ExitCodesAreTheProgramsOwn) {
  EXPECT_EQ(run_in({"--", "true"}).exit_code, 0);
  EXPECT_EQ(run_in({"--", "sh", "-c", "exit 42"}).exit_code, 42);
  EXPECT_EQ(shell("kill -TERM $$").exit_code, 143);
  EXPECT_EQ(shell("kill -KILL $$").exit_code, 137);
  EXPECT_EQ(run_in({"--timeout", "200ms", "--", "sleep", "1000"}).exit_code, 124);
  EXPECT_EQ(run_in({"--", "no-such-program"}).exit_code, 127);
  EXPECT_EQ(run_in({"--", "/etc/passwd"}).exit_code, 126);
}

TEST_F(Run, StreamsPassThroughUntouched) {
  const Outcome outcome = run_in({"--", "sh", "-c", "cat; printf '\\001\\377' >&2"}, {.input = "in\nput"});
  EXPECT_EQ(outcome.out, "in\nput");
  EXPECT_EQ(outcome.err, "\x01\xFF");
}

TEST_F(Run, ArgumentsArriveAsTheyAre) {
  EXPECT_EQ(run_in({"--", "printf", "%s|", "a b", "", "--", "--json", "\xFF\n"}).out, "a b||--|--json|\xFF\n|");
  EXPECT_EQ(run_in({"-c", "echo $0 $1", "--", "zero", "one"}).out, "zero one\n");
}

TEST_F(Run, ShellTextReadsInputThatWasGiven) {
  EXPECT_EQ(run_in({"-c", "cat"}, {.input = "given"}).out, "given");
  EXPECT_EQ(run_in({"-c", "cat"}, {.stdin_is = Input::kClosed}).exit_code, 0);
}

TEST_F(Run, ALoginShellReadsTheUsersProfileAndIsShWhereNoneIsNamed) {
  const TempDir home(place_of_programs());
  home.write(".profile", "export FROM_PROFILE=yes\n");
  if (is_root()) home.give_to(user_uid(), user_gid());
  const auto in_home = [&](std::vector<std::string> args, const std::string& shell) {
    return run_in(std::move(args), {.stdin_is = Input::kNull, .env = {{"HOME", home.path()}, {"SHELL", shell}}});
  };
  const std::string text = "echo $0 $FROM_PROFILE";
  EXPECT_EQ(in_home({"--login", "-c", text}, "/bin/bash").out, "/bin/bash yes\n");
  EXPECT_EQ(in_home({"--login", "-c", text}, "").out, "/bin/sh yes\n");
  EXPECT_EQ(in_home({"-c", text}, "/bin/bash").out, "/bin/sh\n");
  const Outcome unset = run({"env", "-u", "SHELL", kBelljar, "run", "--login", "-c", text},
                            {.stdin_is = Input::kNull, .cwd = workspace_.path(), .env = {{"HOME", home.path()}}});
  EXPECT_EQ(unset.out, "/bin/sh yes\n") << unset;
}

TEST_F(Run, ACwdIsWhereItsLinkLeads) {
  workspace_.make_dir("sub");
  ASSERT_EQ(::symlink("/etc", (workspace_ / "evil").c_str()), 0);
  ASSERT_EQ(::symlink("sub", (workspace_ / "good").c_str()), 0);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  for (const char* cwd : {"evil", "sub/../evil", "good/../evil"}) {
    const Outcome refused = run_in({"--cwd", cwd, "--", "pwd"});
    EXPECT_EQ(refused.exit_code, 125) << refused;
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("workdir escapes workspace: `/etc` is not inside"), std::string::npos) << refused;
  }
  EXPECT_EQ(run_in({"--cwd", "good", "--", "/bin/pwd"}).out, workspace_ / "sub\n");
}

TEST_F(Run, AVariableWithARelativePathNamesNoPlace) {
  workspace_.make_dir("rel");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  for (const char* name : {"HOME", "TMPDIR", "XDG_RUNTIME_DIR"}) {
    for (const std::string& path : {std::string("rel"), workspace_ / "rel"})
      EXPECT_EQ(run_in({"--", "echo", "fine"}, {.stdin_is = Input::kNull, .env = {{name, path}}}).out, "fine\n") << name << path;
  }
}

TEST_F(Run, OutputThatWasCutIsTold) {
  const Outcome cut = run_in({"--output-bytes", "3", "-c", "echo hello; echo more >&2"});
  EXPECT_EQ(cut.exit_code, 0) << cut;
  EXPECT_EQ(cut.out, "hel");
  EXPECT_EQ(cut.err, "morbelljar: the limit `output` was reached: 5 bytes of output dropped\n");
  const Outcome failed = run_in({"--output-bytes", "3", "-c", "echo hell; exit 2"});
  EXPECT_EQ(failed.exit_code, 2) << failed;
  EXPECT_EQ(failed.err, "belljar: the limit `output` was reached: 2 bytes of output dropped\n");
  const Outcome json = run_in({"--json", "--output-bytes", "5", "-c", "echo hello"});
  EXPECT_EQ(json.err, "belljar: the limit `output` was reached: 1 byte of output dropped\n");
  // What is passed on ends inside no character, whatever the cap.
  for (const auto& [cap, out] :
       {std::pair("2", "a"), {"3", "a\xC3\xA9"}, {"4", "a\xC3\xA9"}, {"5", "a\xC3\xA9"}, {"6", "a\xC3\xA9\xE2\x82\xAC"}})
    EXPECT_EQ(run_in({"--output-bytes", cap, "-c", R"(printf 'a\303\251\342\202\254z')"}).out, out) << cap;
  EXPECT_EQ(run_in({"--output-bytes", "4", "-c", R"(printf 'a\303\251\342')"}).out, "a\xC3\xA9\xE2") << "the command's own end";
  const Outcome whole = run_in({"--output-bytes", "6", "-c", "echo hello"});
  EXPECT_EQ(whole.out, "hello\n");
  EXPECT_EQ(whole.err, "") << "the twin";
}

TEST_F(Run, WritesTheWorkspaceAndNothingElse) {
  const TempDir other;
  if (is_root()) other.give_to(user_uid(), user_gid());
  const Outcome outcome = shell("echo yes > inside && echo no > " + other.path() + "/outside");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_EQ(read_file(workspace_ / "inside"), "yes\n");
  EXPECT_FALSE(exists(other / "outside"));
}

TEST_F(Run, TwoHundredMegabytesPassThrough) {
  const std::string file = workspace_ / "out";
  // To a file (relayed) and to a pipe (handed over).
  const Outcome relayed = run({"/bin/sh", "-c",
                               std::string("cd ") + workspace_.path() + " && " + kBelljar +
                                   " run -- head -c 200000000 /dev/zero > out && stat -c %s out && " + kBelljar +
                                   " run -- head -c 200000000 /dev/zero | wc -c"});
  EXPECT_EQ(relayed.out, "200000000\n200000000\n") << relayed;
}

TEST_F(Run, AReaderThatLeavesEndsTheCommand) {
  const Outcome outcome =
      run({"/bin/bash", "-c",
           std::string("cd ") + workspace_.path() + " && " + kBelljar + " run -- yes | head -1; echo ${PIPESTATUS[0]}"});
  EXPECT_EQ(outcome.out, "y\n141\n") << outcome;
}

TEST_F(Run, ClosedStreamsConfuseNothing) {
  const std::string cd = "cd " + workspace_.path() + "; ";
  for (const std::string closed : {"0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"}) {
    // The command's descriptors 0 to 2 are open whatever the caller closed, and none of them is one of ours.
    const Outcome outcome = run({"/bin/sh", "-c",
                                 cd + kBelljar +
                                     " run -- sh -c 'test -e /proc/self/fd/0 && test -e /proc/self/fd/1 && "
                                     "test -e /proc/self/fd/2 && ! test -e /proc/self/fd/10' " +
                                     closed});
    EXPECT_EQ(outcome.exit_code, 0) << closed << outcome;
  }
}

TEST_F(Run, WhatIsWrittenToAClosedStdoutIsNotLostInSilence) {
  const std::string start = "cd " + workspace_.path() + "; " + kBelljar + " run ";
  EXPECT_EQ(run({"/bin/sh", "-c", start + "-- sh -c 'echo x' >&-"}).exit_code,
            run({"/bin/sh", "-c", "sh -c 'echo x' >&-"}).exit_code);
  const Outcome json = run({"/bin/sh", "-c", start + "--json -- true >&-"});
  EXPECT_EQ(json.exit_code, 125) << json;
  EXPECT_NE(json.err.find("leave stdout open, or use --report FILE"), std::string::npos) << json;
  EXPECT_EQ(run({"/bin/sh", "-c", start + "--json -- true >/dev/null"}).exit_code, 0);
}

TEST_F(Run, SignalsReachTheCommand) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1}) {
    Running running(command_line({"--", "sh", "-c", "echo ready; exec sleep 1000"}),
                    {.stdin_is = Input::kNull, .cwd = workspace_.path()});
    ASSERT_TRUE(running.wait_for_output("ready"));
    running.send(signal);
    const Outcome outcome = running.wait();
    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome;
  }
}

TEST_F(Run, ACommandThatHandlesASignalKeepsItsExitCode) {
  Running running(command_line({"--kill-grace", "600s", "--", "sh", "-c",
                                "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"}),
                  {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  running.send(SIGTERM);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.exit_code, 9) << outcome;
  EXPECT_EQ(outcome.out, "ready\ncaught\n");
}

// Our pid stands for the command's, not for its group: a supervisor that is told to reload keeps its workers. ^C and TERM, which
// means the end, go to all.
TEST_F(Run, ASignalReachesTheCommandAndAnInterruptItsWholeGroup) {
  for (const int signal : {SIGHUP, SIGUSR1, SIGTERM, SIGINT}) {
    const bool to_all = signal == SIGINT || signal == SIGTERM;
    const std::string expected = "ready\ncaught\nsleep " + std::to_string(to_all ? 128 + signal : 0) + "\n";
    // The signal is to come while the command waits for its child, which nobody else ends.
    const Outcome outcome = with_time_enough(
        [&](std::chrono::milliseconds time) {
          const std::string script = "trap 'echo caught' HUP USR1 TERM INT; sh -c 'echo ready; exec sleep " +
                                     std::to_string(time.count() / 1000) + "'; echo sleep $?";
          Running running(command_line({"--no-pty", "--kill-grace", "600s", "--", "bash", "-c", script}),
                          {.stdin_is = Input::kNull, .cwd = workspace_.path()});
          EXPECT_TRUE(running.wait_for_output("ready"));
          running.send(signal);
          return running.wait();
        },
        [&](const Outcome& tried) { return tried.out == expected; }, 1s);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.out, expected) << signal;
  }
}

TEST_F(Run, ASecondInterruptKills) {
  Running running(command_line({"--", "sh", "-c", "trap 'echo once' INT; echo ready; while :; do sleep 0.05; done"}),
                  {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  running.send(SIGINT);
  ASSERT_TRUE(running.wait_for_output("once"));
  running.send(SIGINT);
  EXPECT_EQ(running.wait().exit_code, 137);
}

// timeout(1) waits for what it told to end, and tells it twice.
TEST_F(Run, ACommandThatIgnoresTermIsKilledAfterTheGrace) {
  std::vector<std::string> words =
      command_line({"--kill-grace", "50ms", "--json", "--", "sh", "-c", "trap '' TERM; touch ready; sleep 1000 & wait"});
  words.insert(words.begin(), {"timeout", "1000"});
  Running running(words, {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(eventually([&] { return exists(workspace_ / "ready"); }));
  running.send(SIGTERM);
  const Outcome ended = running.wait();
  EXPECT_EQ(ended.exit_code, 137) << ended;
  EXPECT_NE(ended.out.find("killed: it was told to end and had not within 50ms"), std::string::npos) << ended;
}

// People are told what a program reads in the result.
TEST_F(Run, ThatItWasKilledAfterTheGraceIsSaid) {
  Running running(command_line({"--kill-grace", "50ms", "--", "sh", "-c", "trap '' TERM; echo ready; sleep 1000 & wait"}),
                  {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  running.send(SIGTERM);
  EXPECT_EQ(running.wait().err, "belljar: killed: it was told to end and had not within 50ms\n");
  EXPECT_EQ(run_in({"-c", "kill -KILL $$"}).err, "") << "the twin: its exit code says it";
}

TEST_F(Run, ALaterTermKillsAtOnce) {
  Running running(
      command_line({"--kill-grace", "600s", "--", "sh", "-c", "trap 'echo got' TERM; echo ready; while :; do sleep 0.05; done"}),
      {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  running.send(SIGTERM);
  ASSERT_TRUE(running.wait_for_output("got"));
  std::this_thread::sleep_for(600ms);  // sooner it would be the same one, sent twice
  running.send(SIGTERM);
  const Outcome killed = running.wait();
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_TRUE(has(killed.err, "belljar: killed: it was told to end twice\n")) << killed;
}

// A program that copies a file's attributes (patch, tar, rsync) forgives EPERM, not EINVAL.
TEST_F(Run, AnOwnerThatCannotBeIsNotPermitted) {
  const Outcome foreign = shell("touch f; chgrp 65534 f");
  EXPECT_EQ(foreign.exit_code, 1) << foreign;
  EXPECT_NE(foreign.err.find("Operation not permitted"), std::string::npos) << foreign;
  EXPECT_EQ(shell("touch f; chown $(id -u):$(id -g) f && chown $(id -u) f && chgrp $(id -g) f").exit_code, 0);
}

TEST_F(Run, WithNestedNamespacesBubblewrapRunsInside) {
  BELLJAR_NEEDS(program("bwrap"));
  const std::vector<std::string> bwrap = {"--", "bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "echo", "fine"};
  std::vector<std::string> granted = {"--allow-nested-userns", "--verbose"};
  granted.insert(granted.end(), bwrap.begin(), bwrap.end());
  const Outcome nested = run_in(granted);
  EXPECT_EQ(nested.out, "fine\n") << nested;
  EXPECT_NE(nested.err.find("could mount in a namespace of its own"), std::string::npos) << nested;
  EXPECT_NE(run_in(bwrap).exit_code, 0);
  // The kernel lets a new /proc be mounted only where nothing of the old one is covered, and ours is: user_namespaces(7),
  // mount_too_revealing(). The key says so; what works is the /proc that is there.
  const auto with_proc = [&](const std::vector<std::string>& proc) {
    std::vector<std::string> words{"--allow-nested-userns", "--", "bwrap", "--ro-bind", "/", "/"};
    words.insert(words.end(), proc.begin(), proc.end());
    words.insert(words.end(), {"--unshare-all", "sh", "-c", "test -e /proc/self/stat && echo fine"});
    return run_in(words);
  };
  const Outcome own = with_proc({"--proc", "/proc"});
  EXPECT_NE(own.exit_code, 0) << own;
  EXPECT_NE(own.err.find("Can't mount proc on /newroot/proc: Operation not permitted"), std::string::npos) << own;
  EXPECT_EQ(with_proc({"--ro-bind", "/proc", "/proc"}).out, "fine\n") << "the twin";
  for (const Outcome& said : {belljar({"run", "--help", "all"}), belljar({"policy", "keys"})}) {
    std::string words;  // lines are broken to the width
    for (const char c : said.out) {
      if (c != ' ' && c != '\n') words += c;
      else if (!words.ends_with(' ')) words += ' ';
    }
    EXPECT_NE(words.find("user namespaces (Chromium, Bazel, bwrap), without a /proc of their own"), std::string::npos) << said;
  }
  // What hides and protects cannot be peeled off from a namespace inside.
  const Outcome peeled = run_in({"--allow-nested-userns", "--hide", workspace_ / "secret", "--", "unshare", "-rm", "sh", "-c",
                                 "umount secret; mount --bind . /mnt && cat /mnt/secret/key; cat secret/key"});
  EXPECT_NE(peeled.exit_code, 0) << peeled;
}

TEST_F(Run, StopAndContinue) {
  Running running(command_line({"--", "sh", "-c", "echo ready; until [ -e go ]; do sleep 0.02; done; echo done"}),
                  {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  const auto is_stopped = [&] {
    for (const auto& [pid, line] : descendants())
      if (line.find(" (sh): ") != std::string::npos && state_of(pid) == 'T') return state_of(running.pid()) == 'T';
    return false;
  };
  EXPECT_FALSE(is_stopped());
  running.send(SIGTSTP);
  ASSERT_TRUE(eventually(is_stopped)) << "itself and the command";
  workspace_.write("go", "");
  EXPECT_FALSE(running.wait_for_output("done", 1s));  // a slow machine only proves less
  running.send(SIGCONT);
  EXPECT_TRUE(running.wait_for_output("done"));
  EXPECT_EQ(running.wait().exit_code, 0);
}

TEST_F(Run, TheTreeDiesWithItsFront) {
  const Leftovers left;
  Running running(
      command_line({"--", "sh", "-c",
                    "(setsid sh -c 'trap \"\" TERM HUP INT; echo deep; sleep 1000' &); trap '' TERM; sleep 1000; sleep 1"}),
      {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("deep"));
  kill(running.pid(), SIGKILL);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(left.report(), "");
}

// As root on most machines with a group for the limits, which nothing inside could remove.
TEST_F(Run, TheTreeDiesWithItsFrontAndItsGroupToo) {
  const Leftovers left;
  Running running(
      command_line({"--pids", "100", "--memory", "512MiB", "--", "sh", "-c", "(setsid sleep 1000 &); echo deep; sleep 1000; :"}),
      {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("deep"));
  kill(running.pid(), SIGKILL);
  EXPECT_EQ(running.wait().signal, SIGKILL);
  EXPECT_EQ(left.report(), "");
}

// The fixture's workspace lies below /tmp, which is private to the command.
TEST_F(Run, AReadOnlyWorkspaceBelowTmpIsShownAndNotWritable) {
  workspace_.write("a", "kept");
  for (const bool readonly : {true, false}) {
    std::vector<std::string> args = {"-c", "cat a; echo x > b"};
    if (readonly) args.insert(args.begin(), {"--policy", "read-only"});
    const Outcome outcome = run_in(args);
    EXPECT_EQ(outcome.out, "kept") << outcome;
    EXPECT_EQ(outcome.exit_code == 0, !readonly) << outcome;
    EXPECT_EQ(exists(workspace_.path() + "/b"), !readonly);
  }
}

TEST_F(Run, LeavesNothingBehind) {
  const Leftovers left({workspace_.path()});
  EXPECT_EQ(shell("(setsid sleep 1000 &); echo x > /tmp/x; true").exit_code, 0);
  EXPECT_EQ(left.report(), "");
}

TEST_F(Run, JsonIsOneObjectWhateverHappens) {
  const Outcome fine = run_in({"--json", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(fine.exit_code, 3);
  EXPECT_EQ(fine.out.find("{\"exit_code\":3,\"signal\":null,\"reason\":\"exited\""), 0U) << fine;
  EXPECT_NE(fine.out.find(R"("stdout":"out\n","stdout_bytes":4,"stdout_omitted":0)"), std::string::npos) << fine;
  EXPECT_NE(fine.out.find(R"("stderr":"err\n")"), std::string::npos) << fine;
  const Outcome missing = run_in({"--json", "--", "no-such-program"});
  EXPECT_EQ(missing.out.find("{\"exit_code\":127,\"signal\":null,\"reason\":\"start_failed\""), 0U) << missing;
  const Outcome refused = run_in({"--json", "--net", "host", "--publish", "8080", "--", "true"});
  EXPECT_EQ(refused.exit_code, 125);
  EXPECT_EQ(refused.out.find("{\"exit_code\":125"), 0U) << refused;
}

TEST_F(Run, JsonKeepsTheHeadAndCountsTheRest) {
  const Outcome outcome = run_in({"--json", "-c", "yes | head -c 1000000"});
  EXPECT_NE(outcome.out.find(R"("stdout_bytes":1000000,"stdout_omitted":800000)"), std::string::npos);
}

TEST_F(Run, TheReportIsWrittenBesideTheOutput) {
  const std::string report = workspace_ / "report.json";
  const Outcome outcome = with_time_enough(
      [&](std::chrono::milliseconds time) {
        return run_in(
            {"--report", report, "--timeout", std::to_string(time.count()) + "ms", "--", "sh", "-c", "echo kept; sleep 1000"});
      },
      [](const Outcome& tried) { return !tried.out.empty(); });
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_EQ(outcome.out, "kept\n");
  EXPECT_EQ(read_file(report).find("{\"exit_code\":124,"), 0U);
  EXPECT_NE(read_file(report).find("\"reason\":\"timeout\""), std::string::npos);
}

// Whoever reads the file after a start that failed early must not take the last run's report for it.
TEST_F(Run, AReportOfAnEarlierRunDoesNotOutliveAFailedStart) {
  const std::string report = workspace_ / "r";
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{{"--policy", "nonexist", "--", "true"},
                                                                                   {"--memory", "bad", "--", "true"},
                                                                                   {"--nope", "--", "true"},
                                                                                   {"true"},
                                                                                   {"--cwd"},
                                                                                   {"--hide=", "--", "true"},
                                                                                   {}}) {
    for (const std::string& name : {report, std::string("r")}) {
      ASSERT_EQ(run_in({"--report", name, "--", "true"}).exit_code, 0);
      ASSERT_EQ(read_file(report).find("{\"exit_code\":0,"), 0U) << "the twin";
      std::vector<std::string> words{"--report", name, "--json"};
      words.insert(words.end(), bad.begin(), bad.end());
      const Outcome refused = run_in(words);
      EXPECT_EQ(refused.exit_code, 125) << refused;
      EXPECT_EQ(read_file(report).find("{\"exit_code\":125,"), 0U) << refused << read_file(report);
      EXPECT_NE(read_file(report).find("\"reason\":\"start_failed\""), std::string::npos) << read_file(report);
      EXPECT_EQ(refused.out.find("{\"exit_code\":125,"), 0U) << refused;
    }
  }
}

// The option that has no value is not the report's, and what stands behind it is none either.
TEST_F(Run, AnEmptyOptionTakesNoOtherWordForItsReport) {
  const std::string kept = workspace_.write("kept", "mine");
  EXPECT_EQ(run_in({"--report=", kept, "--", "true"}).exit_code, 125);
  EXPECT_EQ(read_file(kept), "mine");
  EXPECT_EQ(run_in({"--report", "--hide=", kept}).exit_code, 125);
  EXPECT_EQ(read_file(kept), "mine");
  EXPECT_EQ(run_in({"--hide=", "-c", "true", "--", "--report", kept}).exit_code, 125);
  EXPECT_EQ(read_file(kept), "mine") << "a word of the command's";
}

// Each in its own program; how the sandbox of a container is made is not asked before.
TEST_F(Run, AUsageErrorOfTheContainerProgramIsReportedToo) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--nope", "--", "true"}, {"--cwd"}, {"--hide=", "--", "true"}}) {
    for (const std::vector<std::string>& program :
         {std::vector<std::string>{kBelljar}, {std::string(kBelljar) + "-full", "container"}}) {
      const std::string report = workspace_.write("r", "of an earlier run");
      if (is_root()) workspace_.give_to(user_uid(), user_gid());
      std::vector<std::string> words = program;
      words.insert(words.end(), {"run", "--backend", "container", "--report", report, "--json"});
      words.insert(words.end(), bad.begin(), bad.end());
      const Outcome refused = run(words, {.stdin_is = Input::kNull, .cwd = workspace_.path()});
      EXPECT_EQ(refused.exit_code, 125) << refused;
      EXPECT_EQ(read_file(report).find("{\"exit_code\":125,"), 0U) << refused << read_file(report);
      EXPECT_EQ(refused.out.find("{\"exit_code\":125,"), 0U) << refused;
    }
  }
}

TEST_F(Run, AFailedStartsReportFollowsNoPlantedLinkEither) {
  const TempDir home;
  const std::string victim = home.write("rc", "precious");
  ASSERT_EQ(symlink(victim.c_str(), (workspace_ / "link").c_str()), 0);
  ASSERT_EQ(symlink(home.path().c_str(), (workspace_ / "dir").c_str()), 0);
  if (is_root()) home.give_to(user_uid(), user_gid());
  for (const std::string& path : {workspace_ / "link", workspace_ / "dir/rc", std::string("link")}) {
    for (const char* bad : {"--policy=nonexist", "--nope"}) {
      const Outcome refused = run_in({"--report", path, bad, "--", "true"});
      EXPECT_EQ(refused.exit_code, 125) << refused;
      EXPECT_NE(refused.err.find("cannot create the report"), std::string::npos) << refused;
      EXPECT_EQ(read_file(victim), "precious") << path;
    }
  }
}

TEST_F(Run, AReportDoesNotFollowAPlantedLink) {
  const TempDir home;
  const std::string victim = home.write("rc", "precious");
  ASSERT_EQ(symlink(victim.c_str(), (workspace_ / "report.json").c_str()), 0);
  const Outcome outcome = run_in({"--report", "report.json", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
  EXPECT_EQ(read_file(victim), "precious");
}

}  // namespace
}  // namespace belljar::test
