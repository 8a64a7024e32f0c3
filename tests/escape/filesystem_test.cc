// Out of the writable roots and into what is hidden (docs/SECURITY_MODEL.md, first two rows).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "escape/support_attack.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

struct Filesystem : Attack {};

TEST_F(Filesystem, WritesOutsideAreRefusedByEverySpelling) {
  plant(beside("file"));
  ASSERT_EQ(::symlink(beside().c_str(), workspace("link").c_str()), 0);
  ASSERT_EQ(::symlink(beside("file").c_str(), workspace("to-file").c_str()), 0);
  for (const std::string& path :
       {beside("file"), workspace("../beside/file"), workspace("link/file"), workspace("link//./file"), workspace("to-file"),
        "/proc/self/root" + beside("file"), "/proc/1/root" + beside("file"), std::string("/proc/self/cwd/../beside/file")}) {
    EXPECT_NE(inside({"write", path}), "ok") << path;
    if (!path.starts_with("/proc/1")) {
      EXPECT_EQ(outside({"write", path}), "ok") << path;
    }
  }
  EXPECT_EQ(inside({"write", workspace("link/file")}, {"--write", beside()}), "ok");
  EXPECT_EQ(inside({"write", beside("file")}, {"--policy", "danger-full-access"}), "ok");
}

TEST_F(Filesystem, MetadataOutsideStaysAsItIs) {
  plant(beside("file"));
  plant(beside("other"));
  const std::vector<std::vector<std::string>> acts = {{"create", beside("new")},
                                                      {"mkdir", beside("dir")},
                                                      {"truncate", beside("other")},
                                                      {"utimes", beside("file")},
                                                      {"chmod", beside("file"), "644"},
                                                      {"link", beside("file"), beside("hard")},
                                                      {"rename", beside("other"), beside("moved")},
                                                      {"mkfifo", beside("fifo")},
                                                      {"unlink", beside("file")}};
  for (const auto& act : acts) EXPECT_NE(inside(act), "ok") << act[0];
  for (const auto& act : acts) EXPECT_EQ(inside(act, {"--write", beside()}), "ok") << act[0];
}

// FS-07: a hard link made inside would carry the write out.
TEST_F(Filesystem, HardLinkToOutsideIsRefused) {
  plant(beside("file"));
  EXPECT_NE(inside({"link", beside("file"), workspace("hard")}), "ok");
  EXPECT_EQ(outside({"link", beside("file"), workspace("hard")}), "ok");
}

// Root lends the command what is made writable, and with it what the owner's mode would have held.
TEST_F(Filesystem, SecretsInAWritableSystemDirectoryStayHidden) {
  if (on_overlay("/etc")) GTEST_SKIP() << "needs an /etc that can be lent, it is on overlayfs";
  BELLJAR_NEEDS(as_root());
  EXPECT_EQ(inside({"read", "/etc/shadow"}), "EACCES");
  EXPECT_EQ(inside({"read", "/etc/shadow"}, {"--write", "/etc"}), "EACCES");
  EXPECT_EQ(inside({"read", "/etc/hostname"}, {"--write", "/etc"}), "ok");
  EXPECT_EQ(outside_as_ourselves({"read", "/etc/shadow"}), "ok");
}

// FS-08, CVE-2025-31133: init's links lead to a tree that is no wider.
TEST_F(Filesystem, InitsRootLeadsNowhere) {
  EXPECT_NE(inside({"list", "/proc/1/root"}), "ok");
  EXPECT_EQ(inside({"list", "/proc/self/root"}), "ok");
}

// CVE-2024-21626: a directory descriptor that the caller left open.
TEST_F(Filesystem, InheritedDescriptorsAreClosed) {
  const int leak = ::open("/", O_RDONLY | O_DIRECTORY);  // NOLINT(android-cloexec-open): the point
  ASSERT_GE(leak, 0);
  EXPECT_EQ(inside({"descriptors"}), "ok");
  EXPECT_NE(outside({"descriptors"}), "ok");
  ::close(leak);
}

// FS-10: stdin, opened for reading, reopened for writing.
TEST_F(Filesystem, StdinCannotBeReopenedWithMoreRights) {
  plant(beside("input"), "as it was");
  const Outcome attack = run_in({"--", "./probe", "reopen_stdin"}, {.input = beside("input"), .stdin_is = Input::kFile});
  // It may write to a pipe that is its own; the file stays as it is.
  EXPECT_EQ(attack.exit_code, 0) << attack;
  EXPECT_EQ(read_file(beside("input")), "as it was");
  EXPECT_EQ(run(as_user({"/bin/sh", "-c", "./probe reopen_stdin <" + beside("input")}), in_workspace()).out, "ok\n");
  EXPECT_NE(read_file(beside("input")), "as it was");
}

// FS-22: a set-id file left in the workspace would give its owner's rights to whoever runs it outside.
TEST_F(Filesystem, SetIdBitsAreRefused) {
  plant(workspace("tool"));
  for (const char* mode : {"4755", "2755", "6755"}) {
    for (const char* act : {"chmod", "fchmod", "fchmodat", "fchmodat2"}) {
      EXPECT_NE(inside({act, workspace("tool"), mode}), "ok") << act << " " << mode;
    }
    for (const char* act : {"open_mode", "creat_mode", "openat2", "mknod_mode"}) {
      inside({act, workspace("made"), mode});
      struct stat made{};
      if (::stat(workspace("made").c_str(), &made) != 0) continue;
      EXPECT_EQ(made.st_mode & 06000U, 0U) << act << " " << mode;
      ::unlink(workspace("made").c_str());
    }
  }
  struct stat tool{};
  ASSERT_EQ(::stat(workspace("tool").c_str(), &tool), 0);
  EXPECT_EQ(tool.st_mode & 06000U, 0U);
  EXPECT_EQ(inside({"chmod", workspace("tool"), "755"}), "ok");
  EXPECT_EQ(outside({"chmod", workspace("tool"), "4755"}), "ok");
}

TEST_F(Filesystem, DeviceNodesCannotBeMade) {
  EXPECT_NE(inside({"mknod_char", workspace("c")}), "ok");
  EXPECT_NE(inside({"mknod_block", workspace("b")}), "ok");
  EXPECT_NE(inside({"mknod_char", "/tmp/c"}), "ok");
  EXPECT_EQ(inside({"mkfifo", workspace("fifo")}), "ok");
  if (is_root()) {
    EXPECT_EQ(outside_as_ourselves({"mknod_char", workspace("c")}), "ok");
  }
}

TEST_F(Filesystem, MountsStayAsTheyAre) {
  const std::vector<std::vector<std::string>> acts = {
      {"mount", "/tmp"},   {"remount", "/"},   {"remount", workspace()}, {"bind", workspace(), "/tmp"},
      {"umount", "/proc"}, {"umount", "/tmp"}, {"open_tree", "/"},       {"fsopen"},
      {"chroot", "/"},     {"pivot_root"}};
  for (const auto& act : acts) EXPECT_NE(inside(act), "ok") << act[0];
  const std::vector<std::vector<std::string>> free = {
      {"mount", "/tmp"}, {"bind", workspace(), "/tmp"}, {"open_tree", workspace()}, {"fsopen"}, {"chroot", "/"}};
  for (const auto& act : free) EXPECT_EQ(outside_in_namespaces(act), "ok") << act[0];
  if (is_root()) {  // an ordinary user's namespace may not take off what it was given
    EXPECT_EQ(outside_in_namespaces({"remount", "/"}), "ok");
    EXPECT_EQ(outside_in_namespaces({"umount", "/proc"}), "ok");
  }
}

// FS-16, "shocker".
TEST_F(Filesystem, FilesCannotBeOpenedByHandle) {
  EXPECT_NE(inside({"open_by_handle", workspace()}), "ok");
  if (is_root() && !on_overlay(workspace())) {  // which has no handles
    EXPECT_EQ(outside_as_ourselves({"open_by_handle", workspace()}), "ok");
  }
}

TEST_F(Filesystem, HiddenPathsRefuseEveryTouch) {
  plant(home(".ssh/id_rsa"), "a key");
  plant_dir(home("other"));
  plant(beside("secret/file"), "a secret");
  const std::string key = home(".ssh/id_rsa");
  const std::vector<std::vector<std::string>> acts = {{"read", key},          {"write", key},
                                                      {"list", home(".ssh")}, {"create", home(".ssh/authorized_keys")},
                                                      {"unlink", key},        {"chmod", home(".ssh"), "777"}};
  for (const auto& act : acts) EXPECT_NE(inside(act, {"--write", home("other")}), "ok") << act[0];
  EXPECT_EQ(inside({"read", key}), "EACCES");
  EXPECT_EQ(inside({"list", home(".ssh")}), "EACCES");
  EXPECT_EQ(inside({"read", beside("secret/file")}), "ok");
  EXPECT_EQ(inside({"read", beside("secret/file")}, {"--hide", beside("secret")}), "EACCES");
  EXPECT_EQ(inside({"read", beside("secret/file")}, {"--hide", beside("secret/file")}), "EACCES");
  EXPECT_EQ(inside({"read", key}, {"--policy", "danger-full-access"}), "ok");
}

// A path inside the workspace, whose owner the command is.
TEST_F(Filesystem, HiddenPathsInTheWorkspaceStayHidden) {
  plant(workspace("deep/secret/file"), "a secret");
  const std::vector<std::string> hide = {"--hide", workspace("deep/secret")};
  EXPECT_EQ(inside({"read", workspace("deep/secret/file")}, hide), "EACCES");
  const Outcome tried = shell(
      "chmod -R 777 deep/secret; mv deep/secret shown; mv deep moved; umount deep/secret; ln deep/secret/file hard;"
      "cat deep/secret/file shown/file moved/secret/file hard",
      hide);
  EXPECT_EQ(tried.out, "") << tried;
  EXPECT_EQ(shell("mv deep moved; cat moved/secret/file").out, "a secret");
}

// CVE-2026-25724: another name for the same thing.
TEST_F(Filesystem, HiddenPathsAreHiddenThroughLinks) {
  plant(beside("secret/file"), "a secret");
  ASSERT_EQ(::symlink(beside("secret").c_str(), beside("alias").c_str()), 0);
  EXPECT_EQ(inside({"read", beside("alias/file")}), "ok");
  EXPECT_EQ(inside({"read", beside("alias/file")}, {"--hide", beside("secret")}), "EACCES");
  EXPECT_EQ(inside({"read", beside("secret/file")}, {"--hide", beside("alias")}), "EACCES");
}

// FS-06: made on the host while the command runs.
TEST_F(Filesystem, HiddenPathsThatAppearLaterAreHidden) {
  const auto late = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--", "sh", "-c", "echo ready; read go; ./probe read " + home(".aws/credentials")});
    Running running(program(options), in_workspace());
    EXPECT_TRUE(running.wait_for_output("ready"));
    plant(home(".aws/credentials"), "a key");
    running.close_input();
    const Outcome outcome = running.wait();
    ::unlink(home(".aws/credentials").c_str());
    ::rmdir(home(".aws").c_str());
    return outcome;
  };
  const Outcome hidden = late({});
  EXPECT_EQ(hidden.out, "ready\nENOENT\n") << hidden;
  const Outcome shown = late({"--policy", "danger-full-access"});
  EXPECT_EQ(shown.out, "ready\nok\n") << shown;
}

// FS-19, CVE-2022-0492.
TEST_F(Filesystem, KernelSettingsAreReadOnly) {
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger",
                           "/proc/sys/kernel/modprobe", "/sys/kernel/uevent_helper", "/sys/power/state"}) {
    EXPECT_NE(inside({"write", path}), "ok") << path;
  }
  EXPECT_EQ(inside({"read", "/proc/sys/kernel/ostype"}), "ok");
  if (is_root() && outside_as_ourselves({"write", "/proc/sys/vm/overcommit_memory"}) != "ok")
    GTEST_SKIP() << "needs a writable /proc/sys";
}

// FS-24.
TEST_F(Filesystem, DevicesAreFewAndWork) {
  for (const char* path :
       {"/dev/kmsg", "/dev/mem", "/dev/kvm", "/dev/fuse", "/dev/loop-control", "/dev/tty0", "/dev/vhost-vsock", "/dev/sda"}) {
    EXPECT_NE(inside({"read", path}), "ok") << path;
    EXPECT_NE(inside({"write", path}), "ok") << path;
  }
  if (is_root()) {
    EXPECT_EQ(outside_as_ourselves({"write", "/dev/kmsg"}), "ok");
  }
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random"}) {
    EXPECT_EQ(inside({"read", path}), "ok") << path;
  }
}

// FS-23: a FIFO on a read-only mount takes writes for whoever reads it outside.
TEST_F(Filesystem, FifosOfTheHostTakeNoWrites) {
  ASSERT_EQ(::mkfifo(beside("fifo").c_str(), 0666), 0);
  hand_over();
  const int reader = ::open(beside("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_NE(inside({"write", beside("fifo")}), "ok");
  EXPECT_EQ(inside({"write", beside("fifo")}, {"--write", beside()}), "ok");
  EXPECT_EQ(outside({"write", beside("fifo")}), "ok");
  ::close(reader);
}

// FS-21: what is put into /tmp does not reach the host, nor is the host's there.
TEST_F(Filesystem, TmpIsPrivate) {
  const TempDir host("/tmp");
  ASSERT_EQ(::chmod(host.path().c_str(), 0777), 0);
  const std::string act = "echo x > " + host.path() + "/left";
  EXPECT_NE(shell(act).exit_code, 0);
  EXPECT_FALSE(exists(host / "left"));
  EXPECT_EQ(shell("echo x > /tmp/mine && cat /tmp/mine && echo x > /dev/shm/mine").out, "x\n");
  EXPECT_EQ(shell(act, {"--policy", "danger-full-access"}).exit_code, 0);
  EXPECT_TRUE(exists(host / "left"));
}

TEST_F(Filesystem, FilesBelongToTheWorkspacesOwner) {
  EXPECT_EQ(shell("id -u > uid; mkdir made").exit_code, 0);
  struct stat made{};
  ASSERT_EQ(::stat(workspace("made").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, user_uid());
  EXPECT_NE(read_file(workspace("uid")), "0\n");
}

}  // namespace
}  // namespace belljar::test
