// Root where idmapped mounts are refused: the workspace lies on an overlayfs that the test makes in a mount namespace of its own,
// as in a container. Ids 21200 and 21201 are given an account and none.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

class RootOnOverlay : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(as_root());
    BELLJAR_NEEDS(program("unshare"));
    place_.write("inside", R"(set -e
cd "$1"; mkdir -p layers m result
mount -t tmpfs tmpfs layers; mkdir layers/lower layers/upper layers/work layers/ws
mount -t overlay overlay -o lowerdir=layers/lower,upperdir=layers/upper,workdir=layers/work m
cp /etc/passwd passwd; echo "owner:x:21200:21200::$1/m/home:/bin/sh" >>passwd; mount --bind passwd /etc/passwd
mkdir -p m/home/.ssh m/home/ws m/nobodys/ws m/nobodys/.ssh m/nobodys/.cache/pip m/roots m/callers/.ssh m/open
chmod 1777 m/open; echo key >m/open/roots; chmod 600 m/open/roots; echo key >m/nobodys/.ssh/id_rsa; chmod 600 m/nobodys/.ssh/id_rsa
echo key >m/home/.ssh/id_rsa; echo key >m/callers/.ssh/id_rsa; echo private >m/home/private; chmod 600 m/home/private
chown -R 21200:21200 m/home; chmod 700 m/home m/callers; chown -R 21201:21201 m/nobodys; chmod 755 "$1" m
export HOME="${CALLERS_HOME:-$1/m/callers}"
layers=$1/layers result=$1/result
cd "$1/m/$2"; shift 2
status=0; "$@" || status=$?
cp -r "$layers/upper/." "$result"
exit "$status"
)");
  }
  // belljar run ARGUMENTS, with the workspace `folder` of the overlay.
  Outcome run_at(const std::string& folder, std::vector<std::string> arguments, RunOptions options = {}) const {
    std::vector<std::string> words = {"unshare",         "--mount",    "--propagation", "private", "sh",
                                      place_ / "inside", made_.path(), folder,          kBelljar,  "run"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run(words, std::move(options));
  }
  TempDir place_, made_{"/var/tmp"};
};

TEST_F(RootOnOverlay, TheOwnerIsWhoTheCommandIs) {
  const Leftovers left;
  const Outcome outcome = run_at(
      "home/ws",
      {"-c", "id -u; echo in >file; stat -c %u:%g file; grep CapEff /proc/self/status; cat /proc/self/uid_map; cat $HOME/private"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "21200\n21200:21200\nCapEff:\t0000000000000000\n     21200      21200          1\nprivate\n") << outcome;
  EXPECT_EQ(read_file(made_ / "result/home/ws/file"), "in\n");
  EXPECT_EQ(left.report(), "");
}

TEST_F(RootOnOverlay, TheOwnersSecretsAndTheCallersHomeAreOutOfReach) {
  const Outcome outcome =
      run_at("home/ws", {"-c", "cat $HOME/.ssh/id_rsa; cat ../../callers/.ssh/id_rsa; cat /etc/shadow; echo x >../file; true"});
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_NE(outcome.err.find("id_rsa: Permission denied"), std::string::npos) << outcome;
  EXPECT_NE(outcome.err.find("/etc/shadow: Permission denied"), std::string::npos) << outcome;
  EXPECT_FALSE(exists(made_ / "result/home/file"));
}

TEST_F(RootOnOverlay, SecretsOpenedByNameAreTheTwin) {
  const Outcome outcome = run_at("home/ws", {"--read", made_ / "m/home/.ssh", "-c", "cat $HOME/.ssh/id_rsa"});
  EXPECT_EQ(outcome.out, "key\n") << outcome;
}

TEST_F(RootOnOverlay, ACallersHomeThatIsNotThereIsNoError) {
  const Outcome outcome = run_at("home/ws", {"-c", "id -u"}, {.env = {{"CALLERS_HOME", "/nonexistent"}}});
  EXPECT_EQ(outcome.out, "21200\n") << outcome;
}

TEST_F(RootOnOverlay, AnOwnerWithoutAnAccountWorksToo) {
  const Outcome outcome = run_at("nobodys", {"-c", "id -u; echo in >file; stat -c %u:%g file; cat ../callers/.ssh/id_rsa"});
  EXPECT_EQ(outcome.out, "21201\n21201:21201\n") << outcome;
  EXPECT_EQ(read_file(made_ / "result/nobodys/file"), "in\n");
}

TEST_F(RootOnOverlay, AHomeOfTheirsIsTheirsWithoutAnAccount) {
  const RunOptions options{.env = {{"CALLERS_HOME", made_ / "m/nobodys"}}};
  const std::string text = "cd ~; ls -d ws; cat .ssh/id_rsa; echo in >.cache/pip/file; cat .cache/pip/file";
  EXPECT_EQ(run_at("nobodys/ws", {"-c", text}, options).out, "ws\nin\n");
  EXPECT_FALSE(exists(made_ / "result/nobodys/.cache/pip/file"));
  // The twin: root's home is nobody's.
  EXPECT_EQ(run_at("nobodys/ws", {"-c", "ls ~"}, {.env = {{"CALLERS_HOME", made_ / "m/callers"}}}).out, "");
}

TEST_F(RootOnOverlay, AnotherUsersDirectoryIsRefusedByName) {
  const Outcome outcome = run_at("home/ws", {"--write", made_ / "m/roots", "-c", "true"});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
  EXPECT_NE(outcome.err.find("m/roots"), std::string::npos) << outcome;
}

TEST_F(RootOnOverlay, ADirectoryThatIsOpenToAllNeedsNoLending) {
  const Outcome outcome =
      run_at("home/ws", {"--write", made_ / "m/open", "-c", "cd ../../open && echo in >file && stat -c %u file; cat roots"});
  EXPECT_EQ(outcome.out, "21200\n") << outcome;
  EXPECT_NE(outcome.err.find("roots: Permission denied"), std::string::npos) << outcome;
  EXPECT_EQ(read_file(made_ / "result/open/file"), "in\n");
}

// Root's home in a container, and a workspace of root's on another file system: a volume.
TEST_F(RootOnOverlay, AHomeThatCannotBeLentEndsNoRunInAWorkspaceThatCan) {
  const std::string text = "id -u; echo in >file; cd ~ && ls -d roots; cat .ssh/id_rsa roots; echo x >file";
  for (const char* home : {"callers", "open"}) {
    for (const std::string policy : {"workspace-write", "read-only"}) {
      const Outcome outcome =
          run_at("../layers/ws", {"--policy", policy, "-c", text}, {.env = {{"CALLERS_HOME", made_ / "m/" + home}}});
      const bool open = std::string(home) == "open";
      EXPECT_EQ(outcome.out, open ? "1000\nroots\n" : "1000\n") << "others may enter the open one: " << outcome;
      EXPECT_NE(outcome.err.find("file: Read-only file system"), std::string::npos) << outcome;
      EXPECT_EQ(outcome.err.find("cannot lend"), std::string::npos) << outcome;
      EXPECT_FALSE(exists(made_ / "result/" + home + "/file"));
    }
  }
}

TEST_F(RootOnOverlay, AWorkspaceOfRootsIsRefusedByName) {
  const Outcome outcome = run_at("roots", {"-c", "echo ran >file"});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
  EXPECT_NE(outcome.err.find("does not support idmapped mounts"), std::string::npos) << outcome;
  EXPECT_NE(outcome.err.find("--allow-root-uid"), std::string::npos) << outcome;
  EXPECT_FALSE(exists(made_ / "result/roots/file"));
}

TEST_F(RootOnOverlay, AllowRootUidIsItsTwin) {
  const Outcome outcome = run_at("roots", {"--allow-root-uid", "-c", "echo ran >file; cat /etc/shadow; cat $HOME/.ssh/id_rsa"});
  EXPECT_EQ(read_file(made_ / "result/roots/file"), "ran\n") << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(outcome.err.starts_with("belljar: warning: identity is partial, as accepted: allow_root_uid: ")) << outcome;
}

}  // namespace
}  // namespace belljar::test
