// A live sandbox whose workspace is a transaction: what it changed, snapshots between two commands, the way back.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "belljar/decorators.h"
#include "belljar/sandbox.h"
#include "belljar/txn.h"
#include "support/as_user.h"
#include "support/clock.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class Layers : public testing::Test {
 protected:
  Layers() : home_("/var/tmp") {
    if (test::on_overlay(home_.path())) apart_.emplace(test::layers_base(home_.path()));
  }
  void SetUp() override {
    BELLJAR_NEEDS(test::user_namespaces());
    home_.write("ws/kept", "old\n");
    home_.write("ws/gone", "x\n");
    std::filesystem::create_directory(state());
    if (test::is_root()) home_.give_to(test::user_uid(), test::user_gid());
    test::let_the_clock_tick();
  }
  std::string workspace() const { return home_ / "ws"; }
  std::string state() const { return (apart_ ? *apart_ : home_) / "state"; }
  txn::Place place() const { return {.workspace = workspace(), .state_dir = state(), .name = "live"}; }

  SandboxConfig config() const {
    SandboxConfig config;
    config.workspace = workspace();
    config.transaction = "live";
    config.state_dir = state();
    return config;
  }
  std::shared_ptr<Sandbox> started() const {
    auto made = make_sandbox(config());
    EXPECT_TRUE(made) << made.error().line();
    if (!made) return nullptr;
    const auto began = (*made)->start();
    EXPECT_TRUE(began) << began.error().line();
    return began ? *made : nullptr;
  }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    const auto result = sandbox.exec(text);
    return result ? result->out.bytes + result->err.bytes : result.error().line();
  }
  static std::string changed(Sandbox& sandbox) {
    const auto changes = sandbox.changes();
    if (!changes) return changes.error().line();
    std::string all;
    for (const txn::Change& change : *changes) {
      constexpr const char* kSigns[] = {"+", "~", "-", ">"};
      all += (all.empty() ? "" : " ") + std::string(kSigns[static_cast<int>(change.kind)]) + change.path;
    }
    return all;
  }

  test::TempDir home_;
  std::optional<test::TempDir> apart_;
};

TEST_F(Layers, TheHostSeesNothingUntilACommit) {
  const auto before = test::describe_tree(workspace());
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "echo new > kept; rm gone; echo more > made; cat kept made"), "new\nmore\n");
  ASSERT_TRUE(sandbox->write_file("by-call", "x"));
  EXPECT_EQ(changed(*sandbox), "+by-call -gone ~kept +made");
  EXPECT_EQ(sandbox->read_file("kept").value_or("?"), "new\n");
  EXPECT_EQ(test::describe_tree(workspace()), before);
  // Nobody else changes it meanwhile.
  const auto early = txn::commit(place(), {});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(sandbox->stop());
  const auto committed = txn::commit(place(), {});
  ASSERT_TRUE(committed) << committed.error().line();
  EXPECT_TRUE(committed->applied);
  EXPECT_EQ(committed->changes.size(), 4u);
  EXPECT_FALSE(std::filesystem::exists(workspace() + "/gone"));
  EXPECT_TRUE(std::filesystem::exists(workspace() + "/made"));
}

// What its commands make nobody looks at until the commit, which refuses it by name; its own file calls are judged at once.
TEST_F(Layers, ACommitRefusesWhatACommandPlanted) {
  const auto before = test::describe_tree(workspace());
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "echo '{}' > .mcp.json; mkdir -p a/.git/hooks; echo x > a/.git/hooks/pre-commit; echo y > a/b"), "");
  EXPECT_FALSE(sandbox->write_file(".cursorrules", "x"));
  ASSERT_TRUE(sandbox->stop());
  const auto refused = txn::commit(place(), {});
  ASSERT_TRUE(refused) << refused.error().line();
  EXPECT_FALSE(refused->applied);
  std::string names;
  for (const txn::Refused& one : refused->refused) names += one.path + " ";
  EXPECT_EQ(names, ".mcp.json a/.git/hooks/pre-commit ");
  EXPECT_EQ(test::describe_tree(workspace()), before);
  const auto part = txn::commit(place(), {.paths = {"a/b"}});
  ASSERT_TRUE(part) << part.error().line();
  EXPECT_TRUE(part->applied) << "the twin";
}

// A file that a command puts in the place of another is younger than what the command before it saw.
TEST_F(Layers, AnEditOnTheHostIsSeenHoweverOftenACommandReplacesTheFile) {
  home_.write("ws/replaced", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  home_.write("ws/removed", "x\n");
  home_.write("ws/appended", "1\n");
  if (test::is_root()) home_.give_to(test::user_uid(), test::user_gid());
  test::let_the_clock_tick();
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "sed -i s/1/one/ replaced; rm removed"), "");
  test::let_the_clock_tick();
  home_.write("ws/replaced", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
  home_.write("ws/removed", "edited\n");
  home_.write("ws/appended", "1\n2\n");
  if (test::is_root()) home_.give_to(test::user_uid(), test::user_gid());
  test::let_the_clock_tick();
  EXPECT_EQ(out(*sandbox, "sed -i s/2/two/ replaced; echo new > removed; echo 3 >> appended; cat appended"), "1\n2\n3\n");
  ASSERT_TRUE(sandbox->stop());
  const auto done = txn::commit(place(), {});
  ASSERT_TRUE(done) << done.error().line();
  EXPECT_FALSE(done->applied);
  std::string names;
  for (const auto& conflict : done->conflicts) names += conflict.path + " ";
  // The third was copied after the edit; of which file, the kernel notes for root's mounts alone.
  EXPECT_EQ(names, test::lent_by_root(workspace()) ? "removed replaced " : "appended removed replaced ");
  EXPECT_EQ(test::read_file(workspace() + "/replaced"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

TEST_F(Layers, ASnapshotIsReturnedToBetweenTwoCommands) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "echo one > kept; mkdir d; echo deep > d/e"), "");
  const auto kept = sandbox->snapshot("first");
  ASSERT_TRUE(kept) << kept.error().line();
  EXPECT_EQ(out(*sandbox, "echo two > kept; rm -r d gone; touch later; cat kept"), "two\n");
  ASSERT_TRUE(sandbox->snapshot("second"));
  EXPECT_EQ(out(*sandbox, "echo three > kept"), "");
  EXPECT_EQ(changed(*sandbox), "-gone ~kept +later");
  const auto back = sandbox->rollback("first");
  ASSERT_TRUE(back) << back.error().line();
  EXPECT_EQ(out(*sandbox, "cat kept d/e; ls"), "one\ndeep\nd\ngone\nkept\n");
  EXPECT_EQ(changed(*sandbox), "+d +d/e ~kept");
  // What came after it is not to be returned to.
  const auto later = sandbox->rollback("second");
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code(), Code::kNotFound);
  EXPECT_EQ(out(*sandbox, "cat kept"), "one\n");
  ASSERT_TRUE(sandbox->rollback());
  EXPECT_EQ(out(*sandbox, "cat kept gone; ls"), "old\nx\ngone\nkept\n");
  EXPECT_EQ(changed(*sandbox), "");
  EXPECT_EQ(out(*sandbox, "echo on > kept; cat kept"), "on\n");
}

TEST_F(Layers, OnlyTheWorkspaceOutlivesASnapshot) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "echo x > /tmp/t; cat /tmp/t"), "x\n");
  ASSERT_TRUE(sandbox->snapshot("s"));
  EXPECT_EQ(out(*sandbox, "test -e /tmp/t || echo gone"), "gone\n");
  EXPECT_TRUE(sandbox->health());
}

TEST_F(Layers, WhatWasKilledHoldsNothingUp) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  for (int i = 0; i < 10; ++i) {
    auto process = sandbox->spawn(shell_command("sleep 60 & sleep 60 & wait"));
    ASSERT_TRUE(process) << process.error().line();
    ASSERT_TRUE((*process)->signal(SIGKILL));
    ASSERT_TRUE((*process)->wait(60s));
    const auto kept = sandbox->snapshot("s" + std::to_string(i));
    EXPECT_TRUE(kept) << kept.error().line();
  }
  // The twin: one that has taken its name off runs all the same.
  EXPECT_EQ(out(*sandbox,
                "perl -e '$0 = \"\"; print \"on\"; close STDOUT; close STDERR; open F, \">/tmp/on\"; sleep 1000' & "
                "until [ -e /tmp/on ]; do sleep 0.05; done"),
            "on");
  EXPECT_EQ(sandbox->snapshot("last").error().code(), Code::kFailedPrecondition);
}

TEST_F(Layers, WhatRunsIsNamedAndNotEnded) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "sleep 1000 > /dev/null 2>&1 & echo $! > /tmp/pid; until grep -q sleep /proc/$!/comm; do :; done"), "");
  for (const auto& refused : {sandbox->snapshot("s"), sandbox->rollback()}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
    EXPECT_NE(refused.error().reason().find("sleep"), std::string::npos) << refused.error().line();
  }
  EXPECT_EQ(out(*sandbox, "kill $(cat /tmp/pid) && echo ended"), "ended\n");
  EXPECT_TRUE(test::eventually([&] { return bool(sandbox->snapshot("s")); }));
  EXPECT_TRUE(sandbox->rollback("s"));
}

TEST_F(Layers, TheHandleOfACommandThatHasEndedIsNoHindrance) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  const auto process = sandbox->spawn(shell_command("echo x > kept"));
  ASSERT_TRUE(process);
  ASSERT_TRUE((*process)->wait(60s));
  const auto taken = sandbox->snapshot("s");
  EXPECT_TRUE(taken) << taken.error().line();
  EXPECT_EQ((*process)->signal(15).error().code(), Code::kFailedPrecondition);
}

TEST_F(Layers, NamesAreCheckedBeforeAnythingEnds) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "touch /tmp/still"), "");
  EXPECT_EQ(sandbox->snapshot("../up").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sandbox->rollback("none").error().code(), Code::kNotFound);
  EXPECT_EQ(out(*sandbox, "ls /tmp/still"), "/tmp/still\n");
  ASSERT_TRUE(sandbox->snapshot("s"));
  EXPECT_EQ(sandbox->snapshot("s").error().code(), Code::kAlreadyExists);
}

TEST_F(Layers, CallsOfOtherThreadsWaitOrAreRefusedNeverLost) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  std::atomic<int> written{0};
  std::thread other([&] {
    for (int i = 0; i < 60; ++i)
      if (sandbox->write_file("f" + std::to_string(i), "x")) ++written;
  });
  int taken = 0;
  for (int i = 0; i < 10; ++i) taken += sandbox->snapshot("s" + std::to_string(i)) ? 1 : 0;
  other.join();
  EXPECT_EQ(written.load(), 60);
  EXPECT_EQ(out(*sandbox, "ls | wc -l"), "62\n");
  ASSERT_TRUE(sandbox->stop());
  EXPECT_EQ(txn::diff(place())->size(), 60u) << taken << " snapshots";
}

TEST_F(Layers, StoppedItGoesOnWhereItWas) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(out(*sandbox, "echo one > kept"), "");
  ASSERT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->snapshot("s").error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(txn::snapshot(place(), "between"));
  ASSERT_TRUE(sandbox->start());
  EXPECT_EQ(out(*sandbox, "cat kept; echo two > kept"), "one\n");
  ASSERT_TRUE(sandbox->rollback("between"));
  EXPECT_EQ(out(*sandbox, "cat kept"), "one\n");
}

TEST_F(Layers, TheSecondSandboxOfATransactionDoesNotStart) {
  const auto one = started();
  ASSERT_NE(one, nullptr);
  const auto other = make_sandbox(config());
  ASSERT_TRUE(other);
  const auto refused = (*other)->start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(one->stop());
  EXPECT_TRUE((*other)->start());
}

TEST_F(Layers, WithoutATransactionItIsRefusedByName) {
  SandboxConfig plain = config();
  plain.transaction.clear();
  const auto sandbox = make_sandbox(plain);
  ASSERT_TRUE(sandbox);
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ((*sandbox)->snapshot("s").error().code(), Code::kUnimplemented);
  EXPECT_EQ((*sandbox)->rollback().error().code(), Code::kUnimplemented);
  EXPECT_EQ((*sandbox)->changes().error().code(), Code::kUnimplemented);
  for (const char* backend : {"mock", "local", "landlock", "container"}) {
    SandboxConfig other = config();
    other.backend = backend;
    const auto refused = make_sandbox(other);
    ASSERT_FALSE(refused) << backend;
    EXPECT_EQ(refused.error().code(), Code::kUnimplemented) << backend;
  }
}

TEST_F(Layers, AModeThatWritesAroundTheLayersIsRefused) {
  SandboxConfig other = config();
  other.policy.mode = Mode::kReadOnly;
  const auto sandbox = make_sandbox(other);
  ASSERT_TRUE(sandbox);
  EXPECT_EQ((*sandbox)->start().error().code(), Code::kInvalidArgument);
  const auto again = started();  // nothing is held
  EXPECT_NE(again, nullptr);
}

TEST_F(Layers, DecoratorsPassItOn) {
  const auto sandbox = started();
  ASSERT_NE(sandbox, nullptr);
  const auto quota = with_write_quota(sandbox, Bytes{1 << 20});
  ASSERT_TRUE(quota->write_file("made", "x"));
  EXPECT_EQ(changed(*quota), "+made");
  ASSERT_TRUE(quota->rollback());
  EXPECT_EQ(changed(*quota), "");
  const auto reading = with_read_only(sandbox);
  EXPECT_EQ(reading->rollback().error().code(), Code::kPermissionDenied);
}

}  // namespace
}  // namespace belljar
