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

// A host could be kept from being looked into, and a value be no credential any more: then its file is shown.
TEST_F(Escalation, PolicyInTheWorkspaceGivesNoCredentialAway) {
  const std::string value = "a-value-of-the-users";
  plant(home("key"), value);
  const std::string net = "[network]\nmode = \"proxy\"\nallowed_domains = [\"cred.test\"]\n";
  plant(home(".config/belljar/policy.toml"), net + "credentials = [\"KEY=file:~/key for cred.test\"]\n");
  const auto read = [&] { return run_in({"-c", "cat " + home("key") + "; echo key=$KEY"}); };
  const Outcome hidden = read();
  EXPECT_NE(hidden.out.find("key="), std::string::npos) << hidden;
  EXPECT_EQ(hidden.out.find(value), std::string::npos) << hidden;
  for (const char* text : {"credentials = []\n", "tls_passthrough = [\"cred.test:9444\"]\n", "tls_passthrough = [\"*\"]\n"}) {
    plant(workspace(".belljar/policy.toml"), std::string("[network]\n") + text);
    const Outcome outcome = read();
    EXPECT_EQ(outcome.exit_code, 125) << text << outcome;
    EXPECT_NE(outcome.err.find("may not widen"), std::string::npos) << text << outcome;
    EXPECT_EQ(outcome.out.find(value), std::string::npos) << text << outcome;
  }
  plant(workspace(".belljar/policy.toml"), "");
  plant(home(".config/belljar/policy.toml"), net);
  EXPECT_NE(read().out.find(value), std::string::npos) << "the twin: without the credential it is a file like any other";
}

// The command line is read after the workspace's file, and closes what that named deeper down.
TEST_F(Escalation, PolicyInTheWorkspaceOutlastsNoFlag) {
  plant(workspace("gen/deep/file"));
  plant(workspace(".belljar/policy.toml"), "[filesystem]\nwritable_roots = [\"gen/deep\"]\n");
  EXPECT_EQ(inside({"write", workspace("gen/deep/file")}), "ok");
  EXPECT_NE(inside({"write", workspace("gen/deep/file")}, {"--read", workspace("gen")}), "ok");
  EXPECT_NE(inside({"read", workspace("gen/deep/file")}, {"--hide", workspace("gen")}), "ok");
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
