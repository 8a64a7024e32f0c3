// A program that forks: what the parent has stays the parent's, whatever its child does with the copies.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "belljar/decorators.h"
#include "belljar/events.h"
#include "belljar/pool.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/in_a_child.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

using test::in_a_child;
using test::is_refused;

class Forked : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
  }
  SandboxConfig config() const {
    SandboxConfig config;
    config.backend = GetParam();
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
    config.policy.limits.kill_grace = 100ms;
    return config;
  }

  const test::TempDir place_;
};

TEST_P(Forked, ASandboxAndItsProcessesStayTheParents) {
  SandboxConfig config = this->config();
  config.workspaces = place_.path();
  config.on_stop = OnStop::kClean;
  auto bus = std::make_shared<EventBus>();
  auto sandbox = with_events(make_sandbox(config).value(), bus, {.sample_every = 50ms});
  ASSERT_TRUE(sandbox->start());
  ASSERT_TRUE(sandbox->write_file("here", "1"));
  auto process = sandbox->spawn(shell_command("read line; exit 7"), {.input = SpawnInput::kPipe}).value();
  const std::string mark = "100000." + std::to_string(::getpid());  // "local" sees the sleepers of other tests
  auto left = sandbox->spawn(shell_command("exec sleep " + mark)).value();
  ASSERT_TRUE(left->detach());
  const int code = in_a_child([&] {
    if (!is_refused(sandbox->exec("true", {.timeout = 1s})) || !is_refused(sandbox->read_file("here"))) return 1;
    if (!is_refused(sandbox->stop()) || !is_refused(sandbox->start()) || !is_refused(sandbox->health())) return 2;
    if (!sandbox->enforcement().empty()) return 4;
    if (!is_refused(process->wait(1s)) || !is_refused(process->signal(SIGKILL)) || !is_refused(process->close_stdin())) return 3;
    process.reset();
    left.reset();
    sandbox.reset();
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(std::filesystem::exists(sandbox->workspace() + "/here")) << "the child removed the workspace";
  const auto alive =
      sandbox->exec("until pgrep -fx 'sleep " + mark + "' >/dev/null; do sleep 0.05; done; cat here", {.timeout = 60s});
  ASSERT_TRUE(alive) << alive.error().line();
  EXPECT_EQ(alive->out.bytes, "1") << alive->message;
  EXPECT_TRUE(process->write_stdin("x\n"));
  const auto ended = process->wait(60s);
  ASSERT_TRUE(ended && *ended);
  EXPECT_EQ((*ended)->exit_code, 7) << "the child ended it";
  EXPECT_TRUE(sandbox->stop()) << "the twin: the parent may";
  EXPECT_FALSE(std::filesystem::exists(sandbox->workspace()));
}

TEST_P(Forked, AWatchStaysTheParents) {
  SandboxConfig config = this->config();
  config.workspace = place_.path();
  auto sandbox = make_sandbox(config).value();
  ASSERT_TRUE(sandbox->start());
  auto watch = sandbox->watch(".", {}).value();
  ASSERT_TRUE(sandbox->write_file("here", "1"));
  EXPECT_EQ(in_a_child([&] {
              const bool refused = is_refused(watch->next(1s));
              watch.reset();
              return refused ? 0 : 1;
            }),
            0);
  const auto changes = watch->next(60s);
  ASSERT_TRUE(changes) << changes.error().line();
  ASSERT_FALSE(changes->empty()) << "the child took them";
  EXPECT_EQ(changes->front().path, "here");
}

class Kept final : public EventSink {
 public:
  void publish(Event event) noexcept override {
    const std::lock_guard guard(mutex_);
    if (std::holds_alternative<ExecutionEvent>(event.body)) ++executions;
    const auto* const lifecycle = std::get_if<LifecycleEvent>(&event.body);
    if (lifecycle != nullptr && lifecycle->what == Lifecycle::kStopped) ++stops;
  }
  int executions = 0, stops = 0;

 private:
  std::mutex mutex_;
};

TEST_P(Forked, WhatBecomesOfTheChildsCopiesIsNotTold) {
  SandboxConfig config = this->config();
  config.workspace = place_.path();
  const std::string recording = place_ / "recording";
  auto sink = std::make_shared<Kept>();
  int audited = 0;
  const auto on_entry = [&](const AuditEntry& entry) { audited += entry.kind == "spawn" ? 1 : 0; };
  auto sandbox = with_events(with_audit(with_recording(make_sandbox(config).value(), recording).value(), on_entry), sink);
  ASSERT_TRUE(sandbox->start());
  auto process = sandbox->spawn(shell_command("read line; exit 7"), {.input = SpawnInput::kPipe}).value();
  const auto recorded = std::filesystem::file_size(recording);
  EXPECT_EQ(in_a_child([&] {
              process.reset();
              if (audited != 0) return 1;
              if (std::filesystem::file_size(recording) != recorded) return 2;
              if (!is_refused(sandbox->stop()) || !is_refused(sandbox->stop()) || sink->stops != 0) return 3;
              return sink->executions == 0 ? 0 : 4;
            }),
            0);
  EXPECT_EQ(audited, 0);
  EXPECT_TRUE(process->write_stdin("x\n"));
  ASSERT_TRUE(process->wait(60s));
  process.reset();
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(audited, 1) << "the twin: the parent's is told";
  EXPECT_EQ(sink->executions, 1);
  EXPECT_EQ(sink->stops, 1);
  EXPECT_GT(std::filesystem::file_size(recording), recorded);
}

TEST_P(Forked, TheChildMakesItsOwn) {
  SandboxConfig config = this->config();
  config.workspace = place_.path();
  auto before = make_sandbox(config).value();  // not started: nothing in it is the parent's
  auto ours = make_sandbox(config).value();
  ASSERT_TRUE(ours->start());
  auto watched = with_events(make_sandbox(config).value(), std::make_shared<EventBus>(), {.sample_every = 10ms});
  ASSERT_TRUE(watched->start());
  ASSERT_TRUE(watched->stop());
  const auto works = [](Sandbox& sandbox) {
    if (!sandbox.start()) return false;
    const auto result = sandbox.exec("exit 3", {.timeout = 60s});
    return result && result->exit_code == 3 && sandbox.stop();
  };
  EXPECT_EQ(in_a_child([&] { return works(*before) && works(*make_sandbox(config).value()) ? 0 : 1; }), 0);
  EXPECT_EQ(in_a_child([&] {
              const bool worked = works(*watched) && watched->start();
              watched.reset();  // with its sampler, which is the child's
              return worked ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(works(*watched));
  EXPECT_EQ(ours->exec("exit 4")->exit_code, 4);
  EXPECT_TRUE(works(*before));
}

TEST_P(Forked, APoolStaysTheParents) {
  PoolOptions options;
  options.sandbox = config();
  options.workspaces = place_.path();
  options.ready = 1;
  auto pool = Pool::create(options).value();
  std::optional<Lease> lease = pool->take().value();
  ASSERT_TRUE((*lease)->write_file("here", "1"));
  const int code = in_a_child([&] {
    if (!is_refused(pool->take({.patience = 1s})) || pool->stats().in_use != 0) return 1;
    pool->stop();
    lease.reset();
    pool.reset();
    return 0;
  });
  EXPECT_EQ(code, 0);
  const auto found = (*lease)->read_file("here");
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ((*lease)->exec("exit 5")->exit_code, 5);
  lease.reset();
  EXPECT_TRUE(pool->take({.patience = 60s}));
}

INSTANTIATE_TEST_SUITE_P(Every, Forked, testing::Values("native", "local"),
                         [](const testing::TestParamInfo<const char*>& one) { return std::string(one.param); });

}  // namespace
}  // namespace belljar
