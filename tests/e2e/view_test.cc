// What a policy shows of this machine, tried with the built program: secrets, /tmp, volumes, devices.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

// A home with a key in it, and a policy file outside of the workspace.
class Shown : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    home_.write(".ssh/id_rsa", "the key", 0600);
    home_.write("src/f", "the source");
    policy_.write("p.toml", "");
    if (is_root()) home_.give_to(user_uid(), user_gid());
  }
  Outcome under(const std::string& policy, std::vector<std::string> args) const {
    args.insert(args.begin(), {"--policy", policy_.write("p.toml", policy)});
    return run_in(std::move(args), {.stdin_is = Input::kNull, .env = {{"HOME", home_.path()}}});
  }
  Outcome project(const std::string& policy, std::vector<std::string> args) const {
    workspace_.write(".belljar/policy.toml", policy);
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
    return run_in(std::move(args), {.stdin_is = Input::kNull, .env = {{"HOME", home_.path()}}});
  }

  TempDir home_;
  TempDir policy_{"/tmp"};
};

constexpr char kSharedWithout[] = "[filesystem]\ntmp = \"shared\"\nexclude_slash_tmp = true\n";

// The place where a tree is built is writable and un-hides every name.
TEST_F(Shown, TheStageIsNotInAnyView) {
  for (const std::string policy :
       {"[filesystem]\ntmp = \"shared\"\n", kSharedWithout, "[filesystem]\nexclude_slash_tmp = true\n", ""}) {
    const Outcome key =
        under(policy, {"--require", "filesystem.secrets", "-c",
                       "rmdir /tmp/mask*/* /tmp/mask*/.ssh 2>/dev/null; ls -d /tmp/mask* /tmp/hidden; cat ~/.ssh/id_rsa"});
    EXPECT_EQ(key.out, "") << policy << key;
    EXPECT_EQ(under(policy, {"-c", "cat ~/src/f; echo x > made && cat made"}).out, "the sourcex\n") << policy;
  }
}

TEST_F(Shown, ASharedTmpThatIsExcludedIsReadOnly) {
  EXPECT_EQ(under(kSharedWithout, {"-c", "ls -d " + policy_.path()}).exit_code, 0);
  EXPECT_NE(under(kSharedWithout, {"-c", "echo x > /tmp/belljar-made"}).exit_code, 0);
  EXPECT_EQ(under("[filesystem]\ntmp = \"shared\"\n", {"-c", "f=$(mktemp /tmp/XXXXXX) && rm $f"}).exit_code, 0);
}

TEST_F(Shown, AFileOfTheWorkspaceOpensNothingOfTmp) {
  const TempDir beside("/tmp");
  const std::string file = beside.write("f", "of the host");
  if (is_root()) beside.give_to(user_uid(), user_gid());
  EXPECT_NE(project("[filesystem]\nexclude_slash_tmp = true\n", {"-c", "cat " + file}).out, "of the host");
  EXPECT_EQ(project("[filesystem]\nexclude_slash_tmp = true\n", {"-c", "echo x > $TMPDIR/f && cat $TMPDIR/f"}).out, "x\n");
  EXPECT_EQ(project("[filesystem]\nreadonly_paths = [\"" + file + "\"]\n", {"--", "cat", file}).exit_code, 125);
  EXPECT_EQ(project("", {"--read", file, "--", "cat", file}).out, "of the host");
}

TEST_F(Shown, AVolumeDoesNotLeadAroundWhatIsHidden) {
  const auto volume = [&](const std::string& source) {
    return "[filesystem]\nvolumes = [{ source = \"" + source + "\", target = \"/mnt\" }]\n";
  };
  const Outcome refused = under(volume(home_.path()), {"--", "cat", "/mnt/.ssh/id_rsa"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("would not hold there"), std::string::npos) << refused;
  EXPECT_EQ(under(volume(home_ / "src"), {"--", "cat", "/mnt/f"}).out, "the source");
}

TEST_F(Shown, ADeviceIsADevice) {
  const Outcome refused = under("", {"--device", home_ / ".ssh", "--", "cat", home_ / ".ssh/id_rsa"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_EQ(under("", {"--device", "/etc/hostname", "--", "true"}).exit_code, 125);
  EXPECT_EQ(under("", {"--device", "/dev/null", "--", "true"}).exit_code, 0);
}

TEST_F(Shown, ASecretBelowAWritableDirectoryStaysHidden) {
  home_.write(".config/gh/hosts.yml", "the token");
  if (is_root()) home_.give_to(user_uid(), user_gid());
  const Outcome outcome =
      under("", {"--write", home_ / ".config", "-c", "cat ~/.config/gh/hosts.yml; echo x > ~/.config/f && cat ~/.config/f"});
  EXPECT_EQ(outcome.out, "x\n") << outcome;
}

TEST_F(Shown, TheWorkspaceIsWritableInReadOnlyWhereSomebodySaysSo) {
  EXPECT_NE(run_in({"--policy", "read-only", "-c", "echo x > f"}).exit_code, 0);
  EXPECT_EQ(run_in({"--policy", "read-only", "--write", workspace_.path(), "-c", "echo x > f"}).exit_code, 0);
}

TEST_F(Shown, AShippedProfileStartsWithoutItsDirectories) {
  const RunOptions options{.stdin_is = Input::kNull, .env = {{"HOME", home_.path()}}};
  for (const std::string profile : {"build", "agent-claude", "agent-codex"}) {
    const Outcome outcome = run_in({"--policy", profile, "--verbose", "--", "true"}, options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_NE(outcome.err.find("do not exist and are left out"), std::string::npos) << outcome;
  }
  EXPECT_EQ(run_in({"--write", home_ / "new", "--", "true"}, options).exit_code, 125);
}

}  // namespace
}  // namespace belljar::test
