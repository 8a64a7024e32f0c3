// Other processes, and rights that the command should not regain.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "escape/support_attack.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"

namespace belljar::test {
namespace {

struct Process : Attack {};

TEST_F(Process, HostProcessesAreOutOfReach) {
  const Running sleeper = victim();
  const std::string pid = std::to_string(sleeper.pid());
  for (const char* act : {"kill", "pidfd"}) {
    EXPECT_EQ(inside({act, pid}), "ESRCH") << act;
    EXPECT_EQ(outside({act, pid}), "ok") << act;
  }
  EXPECT_NE(inside({"ptrace", pid}), "ok");
  EXPECT_NE(inside({"signal", pid}), "ok");
  EXPECT_EQ(inside({"list", "/proc/" + pid}), "ENOENT");
  EXPECT_EQ(outside({"list", "/proc/" + pid}), "ok");
  EXPECT_EQ(outside({"ptrace", pid}), "ok");
  EXPECT_EQ(outside({"signal", pid}), "ok");  // the last: it ends the victim
}

TEST_F(Process, MemoryOfOthersIsOutOfReach) {
  const Running sleeper = victim();
  const std::string pid = std::to_string(sleeper.pid());
  // An address that the victim has: the first of its maps. They are closed to the user until it has become that user.
  std::string maps;
  EXPECT_TRUE(eventually([&] {
    maps = run(as_user({"head", "-c", "16", "/proc/" + pid + "/maps"})).out;
    return !maps.empty();
  }));
  const std::string address = "0x" + maps.substr(0, maps.find('-'));
  EXPECT_NE(inside({"vm_read", pid, address}), "ok");
  EXPECT_EQ(outside({"vm_read", pid, address}), "ok") << address;
}

TEST_F(Process, OwnProcessesAreInReach) {
  EXPECT_EQ(shell("sleep 1000 & ./probe kill $!; ./probe ptrace $!; kill $!").out, "ok\nok\n");
}

// PR-04, PR-05, CVE-2026-41163.
TEST_F(Process, InitTellsNothing) {
  for (const char* file : {"environ", "mem", "exe", "maps", "auxv"}) {
    EXPECT_NE(inside({"read", std::string("/proc/1/") + file}), "ok") << file;
    EXPECT_EQ(inside({"read", std::string("/proc/self/") + (file == std::string("mem") ? "stat" : file)}), "ok") << file;
  }
  for (const char* directory : {"/proc/1/fd", "/proc/1/cwd/", "/proc/1/map_files"})
    EXPECT_NE(inside({"list", directory}), "ok") << directory;
  EXPECT_NE(inside({"ptrace", "1"}), "ok");
  EXPECT_NE(inside({"vm_read", "1", "4096"}), "ok");
  EXPECT_EQ(shell("kill -KILL 1; echo alive").out, "alive\n");
}

// It starts every further command of a sandbox that stays: with room for three descriptors, or one second of cpu time, it would
// not.
TEST_F(Process, InitKeepsItsLimits) {
  EXPECT_EQ(inside({"limit", "1"}), "EPERM");
  EXPECT_EQ(inside({"limit", "child"}), "ok");
  const Running other = victim();
  EXPECT_EQ(outside({"limit", std::to_string(other.pid())}), "ok");  // who has the ids may
}

TEST_F(Process, OnlyItsOwnAreVisible) {
  EXPECT_EQ(
      shell("for p in /proc/[0-9]*; do c=$(cat $p/comm 2>/dev/null); case $c in sh|cat|init|belljar*|'') ;; *) echo $c; esac; done")
          .out,
      "");
  const std::string other = std::to_string(::getpid());
  EXPECT_EQ(outside({"list", "/proc/" + other}), "ok");
  EXPECT_EQ(inside({"list", "/proc/" + other}), "ENOENT");
}

TEST_F(Process, HoldsNoPrivilege) {
  const Outcome status = shell("id -u; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
  EXPECT_NE(status.out.substr(0, 2), "0\n");
  for (const char* line : {"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
                           "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"}) {
    EXPECT_NE(status.out.find(line), std::string::npos) << line << status;
  }
  EXPECT_NE(inside({"setuid0"}), "ok");
  EXPECT_EQ(outside_in_namespaces({"setuid0"}), "ok");
}

// PR-09: CVE-2022-0185 and most of its kind start in a namespace of their own.
TEST_F(Process, NamespacesOfItsOwnAreRefused) {
  for (const char* flags : {"0x10000000", "0x20000", "0x40000000", "0x20000000", "0x10020000"}) {
    EXPECT_NE(inside({"unshare", flags}), "ok") << flags;
    EXPECT_NE(inside({"clone", flags}), "ok") << flags;
    EXPECT_EQ(inside({"clone3", flags}), "ENOSYS") << flags;
  }
  EXPECT_EQ(inside({"clone", "0"}), "ok");
  EXPECT_EQ(outside({"clone", "0x10000000"}), "ok");
  EXPECT_EQ(outside({"unshare", "0x10000000"}), "ok");
  EXPECT_EQ(outside({"clone3", "0x10000000"}), "ok");
  EXPECT_EQ(inside({"unshare", "0x10000000"}, {"--allow-nested-userns"}), "ok");
}

TEST_F(Process, NamespacesOfOthersCannotBeEntered) {
  EXPECT_NE(inside({"setns", "/proc/1/ns/mnt"}), "ok");
  EXPECT_EQ(inside({"setns", "/proc/self/ns/net"}), "EPERM");
  EXPECT_EQ(outside_in_namespaces({"setns", "/proc/self/ns/net"}), "ok");
}

}  // namespace
}  // namespace belljar::test
