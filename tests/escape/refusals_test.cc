// Attacks on the built program by the classes of the security dossier. Each row is one act: what it does when refused (its output
// must hold `refused` and its effect be absent), and the options that allow it (its output must hold `allowed`).
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

// A workspace and a home below one directory, the home with a secret in it.
class Escape : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    base_.make_dir("ws");
    base_.write("home/.ssh/id", "KEY\n", 0600);
    base_.write("outside", "before\n");
  }
  Outcome attack(const std::string& text, std::vector<std::string> options = {}, std::string input = "") const {
    std::vector<std::string> args{"run"};
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"-c", text});
    return belljar(std::move(args), {.input = std::move(input),
                                     .cwd = base_ / "ws",
                                     .env = {{"HOME", base_ / "home"}},
                                     .held_after = std::chrono::seconds(60)});
  }
  TempDir base_;
};

TEST_F(Escape, WritesOutsideAreRefusedAndAllowedByWrite) {  // FS-01, FS-02
  const std::string text = "ln -s " + (base_ / "target") + " link; echo after >link/file && echo WROTE";
  base_.make_dir("target");
  const Outcome refused = attack(text);
  EXPECT_EQ(refused.out.find("WROTE"), std::string::npos) << refused;
  EXPECT_FALSE(exists(base_ / "target/file"));
  EXPECT_NE(attack(text, {"--write", base_ / "target"}).out.find("WROTE"), std::string::npos);
  EXPECT_TRUE(exists(base_ / "target/file"));
}

TEST_F(Escape, AWritableRootThroughALinkOfTheWorkspaceIsRefused) {  // CE-01
  base_.make_dir("target");
  attack("ln -s " + (base_ / "target") + " planted");
  const Outcome refused = attack("true", {"--write", base_ / "ws/planted"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("symbolic link inside a writable directory"), std::string::npos) << refused;
}

TEST_F(Escape, SecretsAnswerEaccesToEverything) {  // FS-05, FS-18
  const Outcome refused = attack(
      "cat ~/.ssh/id; ls ~/.ssh; echo x >~/.ssh/new; chmod 700 ~/.ssh; mv ~/.ssh ~/q; cat ~/.aws/credentials; mkdir -p ~/.aws; cat "
      "/proc/self/root" +
      (base_ / "home/.ssh/id"));
  EXPECT_EQ(refused.out.find("KEY"), std::string::npos) << refused;
  EXPECT_NE(refused.err.find("Permission denied"), std::string::npos) << refused;
  EXPECT_EQ(read_file(base_ / "home/.ssh/id"), "KEY\n");
  EXPECT_NE(attack("cat ~/.ssh/id", {"--read", base_ / "home/.ssh"}).out.find("KEY"), std::string::npos);
}

TEST_F(Escape, ASecretThatAppearsAfterStartIsHiddenToo) {  // FS-06
  Running run({kBelljar, "run", "-c", "echo started; read go; cat ~/.aws/credentials"},
              {.cwd = base_ / "ws", .env = {{"HOME", base_ / "home"}}});
  ASSERT_TRUE(run.wait_for_output("started"));
  base_.write("home/.aws/credentials", "LATE\n");
  run.close_input();
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.out.find("LATE"), std::string::npos) << outcome;
  EXPECT_NE(outcome.err.find("No such file"), std::string::npos) << outcome;
  EXPECT_NE(attack("cat ~/.aws/credentials", {"--read", base_ / "home/.aws"}).out.find("LATE"), std::string::npos);
}

TEST_F(Escape, AHiddenPathInTheWorkspaceHoldsAgainstRenameLinkAndMode) {
  base_.write("ws/deep/key", "KEY\n");
  const std::string text = "cat deep/key; mv deep d2; cat d2/key; ln d2/key k; cat k; chmod 777 d2/key; cat d2/key";
  EXPECT_EQ(attack(text, {"--hide", base_ / "ws/deep/key"}).out.find("KEY"), std::string::npos);
  base_.make_dir("ws2");
  EXPECT_NE(attack("cat d2/key deep/key 2>/dev/null").out.find("KEY"), std::string::npos);
}

TEST_F(Escape, StandardInputFromAFileCannotBeReopenedForWriting) {  // FS-10
  const Outcome outcome =
      belljar({"run", "-c", "echo after >/proc/self/fd/0; cat >/dev/null"},
              {.input = base_ / "outside", .stdin_is = Input::kFile, .cwd = base_ / "ws", .env = {{"HOME", base_ / "home"}}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(read_file(base_ / "outside"), "before\n");
}

TEST_F(Escape, InheritedDescriptorsAreClosed) {  // CVE-2024-21626
  const std::string command =
      "exec 7<" + (base_ / "home") + "; " + kBelljar + " run -c 'cat /proc/self/fd/7/.ssh/id; ls /proc/self/fd'";
  const Outcome outcome = run({"/bin/bash", "-c", command}, {.cwd = base_ / "ws", .env = {{"HOME", base_ / "home"}}});
  EXPECT_EQ(outcome.out.find("KEY"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.out.find("7\n"), std::string::npos) << outcome;
}

TEST_F(Escape, SetIdBitsCannotBeMade) {  // FS-22
  const Outcome outcome = attack("cp /bin/true t; chmod 4755 t; chmod u+s t; chmod 755 t && stat -c %a t");
  EXPECT_EQ(outcome.out, "755\n") << outcome;
  EXPECT_NE(outcome.err.find("Operation not permitted"), std::string::npos) << outcome;
}

TEST_F(Escape, KernelSettingsAreReadOnly) {  // FS-19
  const Outcome outcome =
      attack("echo x >/proc/sys/kernel/core_pattern; echo 1 >/proc/sys/vm/overcommit_memory; cat /proc/sys/kernel/ostype");
  EXPECT_EQ(outcome.out, "Linux\n") << outcome;
  EXPECT_NE(outcome.err.find("Read-only file system"), std::string::npos) << outcome;
}

TEST_F(Escape, ExistingControlDirectoriesStayAsTheyAre) {  // PP-01, PP-05
  base_.write("ws/.git/config", "[core]\n");
  base_.make_dir("ws/.vscode");
  const std::string text = "echo x >.git/hooks; echo x >>.git/config; mv .git g; echo x >.vscode/tasks.json; mv .vscode v";
  attack(text);
  EXPECT_EQ(read_file(base_ / "ws/.git/config"), "[core]\n");
  EXPECT_FALSE(exists(base_ / "ws/.vscode/tasks.json"));
  EXPECT_FALSE(exists(base_ / "ws/v"));
  attack("echo x >.vscode/tasks.json", {"--policy", base_.write("open.toml", "[filesystem]\nprotect = \"none\"\n")});
  EXPECT_TRUE(exists(base_ / "ws/.vscode/tasks.json"));
}

TEST_F(Escape, AProjectFileCannotWiden) {  // CE-02
  base_.write("ws/.belljar/policy.toml", "[network]\nmode = \"host\"\n");
  const Outcome refused = attack("true");
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("policy.toml"), std::string::npos) << refused;
  base_.write("ws/.belljar/policy.toml", "[limits]\npids = 100\n");
  EXPECT_EQ(attack("true").exit_code, 0);
}

TEST_F(Escape, HostProcessesAreOutOfSightAndReach) {  // PR-01, PR-02, PR-04
  const Outcome outcome =
      attack("kill -0 " + std::to_string(getpid()) +
             " && echo REACHED; ls /proc | grep -c '^[0-9]'; cat /proc/1/environ && echo READ; readlink /proc/1/exe && echo LINK");
  EXPECT_EQ(outcome.out.find("REACHED"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.out.find("READ"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.out.find("LINK"), std::string::npos) << outcome;
  EXPECT_LE(std::stoi(outcome.out), 6) << outcome;
}

TEST_F(Escape, NoPrivilegeIsHeldOrGained) {  // PR-06, PR-07, PR-09
  const Outcome outcome = attack(
      "id -u; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status; unshare -U true && echo NESTED; unshare -m true "
      "&& echo MOUNTS");
  EXPECT_NE(outcome.out.substr(0, 2), "0\n") << outcome;
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_NE(outcome.out.find(std::string(set) + ":\t0000000000000000"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find("NoNewPrivs:\t1"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.out.find("NESTED"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.out.find("MOUNTS"), std::string::npos) << outcome;
}

TEST_F(Escape, HostSocketsAreRefusedAndOwnOnesWork) {  // NW-04
  BELLJAR_NEEDS(program("python3"));
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string path = base_ / "ws/host.sock";
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  const std::string host = "python3 -c 'import socket; socket.socket(1).connect(\"host.sock\"); print(\"CONNECTED\")'";
  const Outcome refused = attack(host, {"--verbose"});
  EXPECT_EQ(refused.out, "") << refused;
  EXPECT_NE(refused.err.find("refused: unix-connect"), std::string::npos) << refused;
  EXPECT_EQ(attack(host, {"--allow-all-unix-sockets"}).out, "CONNECTED\n");
  EXPECT_EQ(attack("python3 -c 'import socket; a=socket.socket(1); a.bind(\"own\"); a.listen(); socket.socket(1).connect(\"own\"); "
                   "print(\"OWN\")'")
                .out,
            "OWN\n");
}

TEST_F(Escape, TheHostsLoopbackIsAnotherOne) {  // NW-01
  BELLJAR_NEEDS(program("python3"));
  const std::string text =
      "python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); "
      "socket.create_connection(s.getsockname()); print(\"OWN\")'";
  EXPECT_EQ(attack(text).out, "OWN\n");
  EXPECT_NE(attack("readlink /proc/self/ns/net").out, run({"readlink", "/proc/self/ns/net"}).out);
  EXPECT_EQ(attack("readlink /proc/self/ns/net", {"--net", "host"}).out, run({"readlink", "/proc/self/ns/net"}).out);
}

TEST_F(Escape, SecretLookingVariablesDoNotPassUnlessNamed) {  // EN-01
  ::setenv("BELLJAR_TEST_TOKEN", "abc", 1);
  const Outcome refused = attack("echo [$BELLJAR_TEST_TOKEN]");
  const Outcome allowed = attack("echo [$BELLJAR_TEST_TOKEN]", {"--pass-env", "BELLJAR_TEST_TOKEN"});
  ::unsetenv("BELLJAR_TEST_TOKEN");
  EXPECT_EQ(refused.out, "[]\n");
  EXPECT_EQ(allowed.out, "[abc]\n");
}

TEST_F(Escape, AForkBombStopsAtThePidsLimit) {  // RS-01
  const std::string text = "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; echo ALL";
  EXPECT_EQ(attack(text, {"--pids", "20"}).out.find("ALL"), std::string::npos);
  EXPECT_NE(attack(text, {"--pids", "200"}).out.find("ALL"), std::string::npos);
}

TEST_F(Escape, NothingSurvivesTheCommand) {  // RS-06, RS-07, RS-08
  const Leftovers left;
  const Outcome outcome = attack("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & (setsid sleep 1000 &); exit 3");
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_FALSE(outcome.output_held);
  EXPECT_EQ(left.report(), "");
}

TEST_F(Escape, TheTreeDiesWithTheFront) {  // RS-09
  const Leftovers left;
  Running run({kBelljar, "run", "-c", "setsid sleep 1000 & echo started; sleep 1000"},
              {.cwd = base_ / "ws", .env = {{"HOME", base_ / "home"}}});
  ASSERT_TRUE(run.wait_for_output("started"));
  run.send(SIGKILL);
  EXPECT_EQ(run.wait().signal, SIGKILL);
  EXPECT_EQ(left.report(), "");
}

TEST_F(Escape, WhatTheCommandNamesCannotSteerTheTerminal) {  // OC-01
  const Outcome outcome = attack("true", {"--write", "/nowhere/\x1b]52;c;eA==\x07"});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome;
}

}  // namespace
}  // namespace belljar::test
