// Sandboxes that stay are ordered among all that work in the same directories (kernel/tree_lock.h).
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "belljar/sandbox.h"
#include "belljar/state_dir.h"
#include "kernel/tree_lock.h"
#include "support/as_user.h"
#include "support/awaited.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class Order : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    const char* const state = std::getenv("XDG_STATE_HOME");  // NOLINT(concurrency-mt-unsafe)
    if (state != nullptr) before_ = state;
    ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
    locks_ = kernel::tree_locks_in(default_state_dir());
  }
  void TearDown() override {
    if (before_.empty()) ::unsetenv("XDG_STATE_HOME");    // NOLINT(concurrency-mt-unsafe)
    else ::setenv("XDG_STATE_HOME", before_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  std::shared_ptr<Sandbox> start() const {
    SandboxConfig config;
    config.backend = GetParam();
    config.workspace = place_.path();
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
    auto made = make_sandbox(config).value();
    const auto started = made->start();
    EXPECT_TRUE(started) << started.error().line();
    return made;
  }
  kernel::TreeLock others() const { return kernel::TreeLock::open(locks_, {place_.path()}).value(); }

  const test::TempDir place_, state_;
  std::string locks_, before_;
};

TEST_P(Order, ACommandWaitsForWhoHoldsItsDirectory) {
  const auto sandbox = start();
  kernel::TreeLock other = others();
  std::unique_lock alone(other);
  const auto command = sandbox->spawn(shell_command("mkdir made")).value();
  EXPECT_TRUE(test::eventually([&] { return test::is_awaited(locks_); }));
  EXPECT_FALSE(test::exists(place_ / "made"));
  alone.unlock();
  EXPECT_EQ((*command->wait())->exit_code, 0);
  EXPECT_TRUE(test::exists(place_ / "made"));
}

// One that was stopped (SIGSTOP) while it held it, say.
TEST_P(Order, WhoHoldsItForEverHoldsUpNoDeadlineAndNoEnd) {
  const auto sandbox = start();
  kernel::TreeLock other = others();
  std::unique_lock alone(other);
  const auto late = sandbox->exec("mkdir made", {.timeout = 300ms});
  ASSERT_TRUE(late) << late.error().line();
  EXPECT_EQ(late->reason, Reason::kTimeout);
  const auto command = sandbox->spawn(shell_command("mkdir made")).value();
  EXPECT_TRUE(test::eventually([&] { return test::is_awaited(locks_); }));
  EXPECT_TRUE(sandbox->stop());
  (void)command->wait();
  EXPECT_FALSE(test::exists(place_ / "made"));
  alone.unlock();
  EXPECT_EQ(start()->exec("mkdir made")->exit_code, 0) << "the twin";
}

// A control file of git that was written is shown when its directory can be had, or refused.
TEST_P(Order, WhatCannotBeShownIsToldAndLeavesWhatStoodThere) {
  const std::string old = "[user]\n\tname = A\n";
  place_.write(".git/HEAD", "ref: refs/heads/main\n");
  place_.write(".git/config", old);
  for (const char* dir : {".git/objects", ".git/refs"}) place_.make_dir(dir);
  if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
  const auto sandbox = start();
  for (const bool held : {true, false}) {
    const std::string go = place_ / (held ? "go1" : "go2"), opened = go + ".opened";
    const std::string writes =
        "exec 9>>.git/config; touch " + opened + "; until test -e " + go + "; do sleep 0.02; done; echo '# B' >&9";
    const auto command = sandbox->spawn(shell_command(writes)).value();
    ASSERT_TRUE(test::eventually([&] { return test::exists(opened); }));
    kernel::TreeLock other = others();
    if (held) other.lock();
    place_.write(held ? "go1" : "go2", "");
    const ExecResult ended = **command->wait();
    if (held) other.unlock();
    ASSERT_EQ(ended.violations.size(), held ? 1U : 0U);
    EXPECT_TRUE(!held || ended.violations[0].allowed.starts_with("another process holds the directory"));
    EXPECT_EQ(test::read_file(place_ / ".git/config"), held ? old : old + "# B\n");
  }
}

INSTANTIATE_TEST_SUITE_P(On, Order, testing::Values("native", "landlock"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace belljar
