// `belljar learn`: what a command used becomes a policy that lets it run again and refuses what it did not do.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

class Learn : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    base_.make_dir("ws/out");
    base_.write("home/data/in", "INPUT\n");
    base_.write("home/data/other", "OTHER\n");
    base_.write("home/.ssh/id", "KEY\n");
    base_.make_dir("home/extra");
    if (is_root()) base_.give_to(user_uid(), user_gid());
  }
  RunOptions options() const {
    RunOptions options{.stdin_is = Input::kNull};
    options.cwd = base_ / "ws";
    options.env = {{"HOME", base_ / "home"}, {"XDG_CONFIG_HOME", ""}};
    return options;
  }
  Outcome learn(const std::string& text, std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"learn", "--output", policy()});
    flags.insert(flags.end(), {"--", "/bin/sh", "-c", text});
    return belljar(flags, options());
  }
  Outcome run_learned(const std::string& text) const {
    return belljar({"run", "--policy", policy(), "--", "/bin/sh", "-c", text}, options());
  }
  std::string policy() const { return base_ / "learned.toml"; }
  std::string in(const char* name) const { return base_ / (std::string("home/data/") + name); }
  TempDir base_;
};

TEST_F(Learn, TheCommandRunsAgainAndAChangedOneIsRefused) {
  const std::string text = "cat " + in("in") + " > result && mkdir -p made/deep && mv result made/deep/r && cat made/deep/r";
  const Outcome first = learn(text);
  ASSERT_EQ(first.exit_code, 0) << first;
  EXPECT_EQ(first.out, "INPUT\n");
  const Outcome again = run_learned(text);
  EXPECT_EQ(again.exit_code, 0) << again << read_file(policy());
  EXPECT_EQ(again.out, "INPUT\n");
  for (const std::string& changed : {"cat " + in("other"), "ls " + (base_ / "home/data") + "/other", "echo x > " + in("in"),
                                     "echo x > " + (base_ / "home/extra/new"), std::string("cat /var/lib/dpkg/status")}) {
    const Outcome refused = run_learned(changed);
    EXPECT_NE(refused.exit_code, 0) << changed << refused;
    EXPECT_EQ(refused.out, "") << changed;
  }
  EXPECT_EQ(read_file(in("in")), "INPUT\n");
  // The twin: without the learned policy the same reads work.
  EXPECT_EQ(belljar({"run", "--", "cat", in("other")}, options()).out, "OTHER\n");
}

// Before the command runs nobody answers what its filter notifies: the search for it may ask nothing.
TEST_F(Learn, ADirectoryOfThePathThatCannotBeSearchedIsPassedOver) {
  const std::string closed = base_ / "closed";
  base_.write("closed/sh", "", 0755);
  RunOptions with_path = options();
  with_path.env["PATH"] = closed + ":/usr/bin:/bin";
  const auto learn_program = [&](const char* program) {
    return belljar({"learn", "--output", policy(), "--hide", closed, "--", program, "-c", "cat " + in("in")}, with_path);
  };
  const Outcome learned = learn_program("sh");
  EXPECT_EQ(learned.exit_code, 0) << learned;
  EXPECT_EQ(learned.out, "INPUT\n");
  EXPECT_EQ(learn_program("no-such-program-here").exit_code, 127);
  with_path.env["PATH"] = "/usr/bin:/bin";
  EXPECT_EQ(learn_program("sh").out, "INPUT\n") << "as without it";
}

TEST_F(Learn, AWriteInOneDirectoryOpensThatDirectoryAlone) {
  const std::string text = "echo data > out/file && chmod 600 out/file";
  ASSERT_EQ(learn(text).exit_code, 0);
  EXPECT_NE(read_file(policy()).find("mode = \"read-only\""), std::string::npos) << read_file(policy());
  EXPECT_EQ(run_learned(text).exit_code, 0) << read_file(policy());
  EXPECT_NE(run_learned("echo data > file").exit_code, 0);
  EXPECT_FALSE(exists(base_ / "ws/file"));
}

TEST_F(Learn, ADirectoryThatIsThereIsNotMade) {
  const std::string text = "mkdir -p out/sub; rm -f nothing; ln -s x out 2>/dev/null; echo data > out/sub/file";
  ASSERT_EQ(learn(text).exit_code, 0);
  EXPECT_NE(read_file(policy()).find("mode = \"read-only\""), std::string::npos) << read_file(policy());
  EXPECT_EQ(run_learned(text).exit_code, 0) << read_file(policy());
  EXPECT_NE(run_learned("echo data > file").exit_code, 0);
  // The twin: a directory that is made in the workspace opens it.
  ASSERT_EQ(learn("mkdir fresh").exit_code, 0);
  EXPECT_EQ(run_learned("mkdir other").exit_code, 0) << read_file(policy());
}

TEST_F(Learn, ACommandThatWritesNothingMayNotWrite) {
  ASSERT_EQ(learn("cat " + in("in")).exit_code, 0);
  EXPECT_EQ(run_learned("cat " + in("in")).out, "INPUT\n");
  EXPECT_NE(run_learned("echo x > out/x").exit_code, 0);
  EXPECT_NE(run_learned("cat " + in("in") + " >&2; mkdir new").exit_code, 0);
}

TEST_F(Learn, WhatIsRefusedWhileLearningIsNotGranted) {
  const std::string text = "cat " + (base_ / "home/.ssh/id") + "; echo x > " + (base_ / "home/extra/file") + "; true";
  const Outcome first = learn(text);
  EXPECT_EQ(first.out, "") << first;
  EXPECT_FALSE(exists(base_ / "home/extra/file"));
  const std::string toml = read_file(policy());
  EXPECT_NE(toml.find("# read " + (base_ / "home/.ssh/id") + "; --read " + (base_ / "home/.ssh") + " would permit it"),
            std::string::npos)
      << toml;
  EXPECT_NE(toml.find("# write " + (base_ / "home/extra/file") + "; --write " + (base_ / "home/extra")), std::string::npos) << toml;
  EXPECT_EQ(run_learned(text).out, "");
  EXPECT_FALSE(exists(base_ / "home/extra/file"));
}

// Tried while the directory is there, and while it is not: what the policy opens is nothing that a command chooses by trying.
TEST_F(Learn, AnAttemptAtAProtectedNameOpensNothing) {
  const std::string text = "echo x > .vscode/tasks.json; echo x > .claude/settings.json; echo x > .belljar/policy.toml; :";
  for (const bool there : {false, true}) {
    ASSERT_EQ(learn(text).exit_code, 0);
    EXPECT_EQ(read_file(policy()).find("writable_roots"), std::string::npos) << read_file(policy());
    for (const char* name : {"ws/.vscode", "ws/.claude", "ws/.belljar"}) base_.make_dir(name);
    if (is_root()) base_.give_to(user_uid(), user_gid());
    (void)run_learned(text);
    for (const char* file : {"ws/.vscode/tasks.json", "ws/.claude/settings.json", "ws/.belljar/policy.toml"})
      EXPECT_FALSE(exists(base_ / file)) << file << there;
  }
  // The twin: opened by its name while learning, it is learned.
  ASSERT_EQ(learn("echo x > .vscode/tasks.json", {"--write", base_ / "ws/.vscode"}).exit_code, 0);
  EXPECT_EQ(run_learned("echo x > .vscode/tasks.json").exit_code, 0) << read_file(policy());
}

TEST_F(Learn, WhatIsGrantedWhileLearningIsLearnedAndMarked) {
  const std::string text = "echo x > " + (base_ / "home/extra/file") + " && cat " + (base_ / "home/.ssh/id");
  const Outcome first = learn(text, {"--write", base_ / "home/extra", "--read", base_ / "home/.ssh"});
  EXPECT_EQ(first.out, "KEY\n") << first;
  const std::string toml = read_file(policy());
  EXPECT_NE(toml.find("# RISK write " + (base_ / "home/extra")), std::string::npos) << toml;
  EXPECT_NE(toml.find("# RISK read " + (base_ / "home/.ssh")), std::string::npos) << toml;
  EXPECT_NE(first.err.find("belljar: risk: write " + (base_ / "home/extra")), std::string::npos) << first;
  EXPECT_EQ(run_learned(text).out, "KEY\n") << toml;
}

TEST_F(Learn, TellsTheDifferenceAndPassesTheExitCodeOn) {
  const Outcome first = learn("exit 7");
  EXPECT_EQ(first.exit_code, 7) << first;
  EXPECT_NE(first.err.find("difference: mode: \"workspace-write\" -> \"read-only\""), std::string::npos) << first;
  EXPECT_NE(first.err.find("difference: limits.pids: unset -> "), std::string::npos) << first;
  EXPECT_NE(first.err.find("difference: + none /"), std::string::npos) << first;
}

TEST_F(Learn, WithoutAFileStdoutIsThePolicyAlone) {
  const Outcome first = belljar({"learn", "--", "/bin/sh", "-c", "echo words"}, options());
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(first.out.find("words"), std::string::npos) << first;
  EXPECT_NE(first.err.find("words"), std::string::npos) << first;
  base_.write("stdout.toml", first.out);
  EXPECT_EQ(belljar({"policy", "check", base_ / "stdout.toml"}, options()).exit_code, 0) << first;
}

TEST_F(Learn, ConnectionsWithoutANetworkAreNamedAndNotGranted) {
  BELLJAR_NEEDS(program("python3"));
  const Outcome first =
      learn("python3 -c 'import socket\ntry: socket.create_connection((\"192.0.2.1\", 443))\nexcept OSError: print(\"none\")'");
  EXPECT_EQ(first.out, "none\n") << first;
  const std::string toml = read_file(policy());
  EXPECT_NE(toml.find("# refused: connect to 192.0.2.1:443"), std::string::npos) << toml;
  EXPECT_NE(toml.find("\n[network]"), std::string::npos);
  EXPECT_NE(toml.find("mode = \"none\""), std::string::npos);
}

TEST_F(Learn, WhereNothingCanBeSeenItSaysSo) {
  const Outcome refused = learn("true", {"--policy", "danger-full-access"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("cannot see which files the command uses"), std::string::npos) << refused;
  EXPECT_EQ(belljar({"learn"}, options()).exit_code, 125);
}

}  // namespace
}  // namespace belljar::test
