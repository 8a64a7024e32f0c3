// A command that tries to loosen its own policy (CVE-2025-59532, CVE-2025-53773, claude-code #86504).
#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Escalation : Attack {};

TEST_F(Escalation, PolicyInTheWorkspaceCannotWiden) {
  plant(beside("file"));
  EXPECT_EQ(inside({"write", beside("file")}, {"--write", beside()}), "ok");
  const std::string root = "[filesystem]\nwritable_roots = [\"" + beside() + "\"]\n";
  for (const std::string& wider :
       {root, std::string("mode = \"danger-full-access\"\n"), std::string("[network]\nmode = \"host\"\n"),
        std::string("[environment]\npass = [\"AWS_SECRET_ACCESS_KEY\"]\n")}) {
    plant(workspace(".belljar/policy.toml"), wider);
    const Outcome outcome = run_in({"-c", "echo evil > " + beside("file")});
    EXPECT_EQ(outcome.exit_code, 125) << wider << outcome;
    EXPECT_NE(outcome.err.find("may not widen"), std::string::npos) << wider << outcome;
    EXPECT_EQ(read_file(beside("file")), "planted") << wider;
  }
}

// A checked-in policy file that spells out `.vscode` as writable: the workspace is, but that name is protected.
TEST_F(Escalation, PolicyInTheWorkspaceLiftsNoProtection) {
  plant(workspace(".vscode/tasks.json"));
  const std::string write = "[filesystem]\nwritable_roots = [\"" + workspace(".vscode") + "\"]\n";
  plant(workspace(".belljar/policy.toml"), write);
  const Outcome outcome = run_in({"-c", "echo evil > .vscode/tasks.json"});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
  EXPECT_NE(outcome.err.find("may not widen"), std::string::npos) << outcome;
  EXPECT_EQ(read_file(workspace(".vscode/tasks.json")), "planted");
  plant(workspace(".belljar/policy.toml"), "");
  EXPECT_EQ(inside({"write", workspace(".vscode/tasks.json")}, {"--write", workspace(".vscode")}), "ok");
}

TEST_F(Escalation, PolicyInTheWorkspaceNarrows) {
  plant(workspace("kept/file"));
  plant(workspace(".belljar/policy.toml"), "[filesystem]\nreadonly_paths = [\"" + workspace("kept") + "\"]\n");
  EXPECT_NE(inside({"write", workspace("kept/file")}), "ok");
  EXPECT_EQ(inside({"create", workspace("other")}), "ok");
}

// CVE-2025-61260: the user's own layer, from where the command may write.
TEST_F(Escalation, UsersPolicyIsNotWritable) {
  plant(home(".config/belljar/policy.toml"), "");
  const std::string file = home(".config/belljar/policy.toml");
  EXPECT_NE(inside({"write", file}), "ok");
  EXPECT_NE(inside({"create", home(".config/belljar/other.toml")}), "ok");
  EXPECT_NE(inside({"write", file}, {"--write", home(".config")}), "ok");
  EXPECT_EQ(outside({"write", file}), "ok");
}

}  // namespace
}  // namespace belljar::test
