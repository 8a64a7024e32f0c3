// What `belljar run --backend container` says on stderr, and how much of the output it passes on: as the native backend does.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/engine.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

class NotesOfAContainer : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_));
    work_.give_to(test::user_uid(), test::user_gid());
  }
  test::Outcome run(std::vector<std::string> words, const std::string& text, const std::string& cwd = {}) {
    words.insert(words.begin(), {"run", "--image", test::Engine::image(), "--pull", "never"});
    words.insert(words.end(), {"-c", text});
    return test::belljar(std::move(words), {.cwd = cwd.empty() ? work_.path() : cwd, .env = {{"DOCKER_HOST", engine_->address()}}});
  }

  std::unique_ptr<test::Engine> engine_;
  const test::TempDir work_;
};

TEST_F(NotesOfAContainer, OutputIsCutAtTheCapOfEachStream) {
  const auto cut = run({"--output-bytes", "10"}, "seq 100; echo to stderr >&2; exit 3");
  EXPECT_EQ(cut.exit_code, 3) << cut;
  EXPECT_EQ(cut.out, "1\n2\n3\n4\n5\n");
  // 282 and 0: "to stderr\n" is ten bytes.
  EXPECT_EQ(cut.err, "to stderr\nbelljar: the limit `output` was reached: 282 bytes of output dropped\n");
  const auto fits = run({"--output-bytes", "292"}, "seq 100; echo to stderr >&2");
  EXPECT_EQ(fits.out.size(), 292U) << "the twin";
  EXPECT_EQ(fits.err, "to stderr\n") << "the twin";
  const auto terminal = run({"--output-bytes", "10", "--pty"}, "echo 12345678901");
  EXPECT_EQ(terminal.out, "1234567890") << terminal;
  EXPECT_NE(terminal.err.find("the limit `output` was reached: 3 bytes of output dropped"), std::string::npos) << terminal;
}

TEST_F(NotesOfAContainer, OutputBeyondTheCapMayEndTheCommand) {
  const auto killed = run({"--output-bytes", "10", "--output-action", "kill"}, "seq 100; sleep 300");
  EXPECT_EQ(killed.exit_code, 137) << killed;
  EXPECT_EQ(killed.out, "1\n2\n3\n4\n5\n");
  EXPECT_EQ(killed.err, "belljar: the output exceeded the limit of 10 bytes\n");
  EXPECT_EQ(run({"--output-bytes", "10", "--output-action", "kill"}, "seq 5").exit_code, 0) << "the twin";
  const auto no_cap = run({"--output-action", "kill"}, "seq 100");
  EXPECT_EQ(no_cap.exit_code, 0) << no_cap;
  EXPECT_EQ(no_cap.out.size(), 292U) << "no limit was given";
}

TEST_F(NotesOfAContainer, LimitsThatWereReachedAreNamed) {
  const auto reached = run({"--pids", "8"}, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 300 & done; exit 1");
  EXPECT_NE(reached.err.find("belljar: the limit `pids` was reached\n"), std::string::npos) << reached;
  const auto enough = run({"--pids", "60"}, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1 & done; wait; exit 1");
  EXPECT_EQ(enough.exit_code, 1) << "the twin";
  EXPECT_EQ(enough.err, "") << "the twin";
}

TEST_F(NotesOfAContainer, WhatIsAcceptedIsNamedAtTheStart) {
  const auto accepted = run({"--accept", "network.unix_sockets"}, "true");
  EXPECT_EQ(accepted.exit_code, 0) << accepted;
  EXPECT_TRUE(accepted.err.starts_with("belljar: warning: network.unix_sockets is partial, as accepted: ")) << accepted;
  EXPECT_EQ(run({"--accept", "processes"}, "true").err, "") << "the twin: held in full";
}

TEST_F(NotesOfAContainer, RootsIdIsNamedAtTheStart) {
  const test::TempDir roots;
  const auto refused = run({"--user", "0:0"}, "id -u", roots.path());
  EXPECT_EQ(refused.exit_code, 125) << refused;
  const auto allowed = run({"--user", "0:0", "--allow-root-uid"}, "id -u", roots.path());
  EXPECT_EQ(allowed.out, "0\n") << allowed;
  EXPECT_EQ(allowed.err,
            "belljar: warning: identity is partial, as accepted: allow_root_uid: the command keeps host uid 0 for file access\n");
  EXPECT_EQ(run({"--allow-root-uid"}, "true").err, "") << "the twin: another id";
}

// Nothing to mount over, and no broker that would see it made.
TEST_F(NotesOfAContainer, AHiddenNameThatDoesNotExistIsRefusedByName) {
  const auto refused = run({"--hide", "later"}, "echo ran");
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(refused.err.starts_with("belljar: filesystem.hidden_absent cannot be enforced on this machine (")) << refused;
  EXPECT_NE(refused.err.find("/later hidden once it exists)"), std::string::npos) << refused;
  const auto accepted = run({"--hide", "later", "--accept", "filesystem.hidden_absent"}, "echo x > later; cat later");
  EXPECT_EQ(accepted.out, "x\n") << accepted;
  EXPECT_NE(accepted.err.find("warning: filesystem.hidden_absent is none, as accepted: "), std::string::npos) << accepted;
  const auto held = run({"--hide", "later"}, "cat later && echo seen");  // it is there now
  EXPECT_EQ(held.out, "") << "the twin: " << held;
  EXPECT_NE(held.exit_code, 125) << held;
}

}  // namespace
}  // namespace belljar
