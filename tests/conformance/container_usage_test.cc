// What is measured of commands in containers, with one container for all of them and with one for each.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "belljar/events.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

constexpr char kBusy[] = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

class ContainerUsage : public testing::TestWithParam<ContainerMode> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_));
    work_.give_to(test::user_uid(), test::user_gid());
    SandboxConfig config;
    config.backend = "container";
    config.workspace = work_.path();
    config.container = {.engine = engine_->address(), .image = test::Engine::image(), .pull = PullPolicy::kNever};
    config.container.mode = GetParam();
    auto made = make_sandbox(config);
    ASSERT_TRUE(made) << made.error().line();
    sandbox_ = *std::move(made);
    const auto started = sandbox_->start();
    ASSERT_TRUE(started) << started.error().line();
  }

  std::unique_ptr<test::Engine> engine_;
  test::TempDir work_;
  std::shared_ptr<Sandbox> sandbox_;
};

TEST_P(ContainerUsage, StatsAreOfAllCommands) {
  const auto sleeps = sandbox_->spawn(shell_command("sleep 300"));
  ASSERT_TRUE(sleeps) << sleeps.error().line();
  const auto one = sandbox_->stats();
  ASSERT_TRUE(one) << one.error().line();
  EXPECT_GE(one->processes, 2U) << "pid 1 and the command";
  EXPECT_GT(one->memory.count, 0U);
  const auto more = sandbox_->spawn(shell_command("sleep 300 & sleep 300 & wait"));
  ASSERT_TRUE(more) << more.error().line();
  EXPECT_TRUE(test::eventually([&] { return sandbox_->stats()->processes >= one->processes + 2; }));
  const auto before = sandbox_->stats()->cpu;
  const auto busy = sandbox_->exec(kBusy);
  ASSERT_TRUE(busy) << busy.error().line();
  const auto spent = busy->usage.cpu_user + busy->usage.cpu_system;
  EXPECT_GT(spent, 0us);
  const auto after = sandbox_->stats()->cpu;
  EXPECT_GT(after, before);
  EXPECT_GE(after, spent) << "of a command that ended";
  ASSERT_TRUE((*sleeps)->signal(9));
  ASSERT_TRUE((*sleeps)->wait());
  EXPECT_GE(sandbox_->stats()->cpu, after) << "never less than before";
}

TEST_P(ContainerUsage, SamplesAndAlertsWork) {
  const auto bus = std::make_shared<EventBus>();
  const auto seen = bus->subscribe({.kinds = {EventKind::kResource, EventKind::kAlert}});
  const auto watched = with_events(sandbox_, bus, {.sample_every = 50ms, .alerts = {.memory_limit = 1_KiB}});
  ASSERT_TRUE(watched->stop());
  ASSERT_TRUE(watched->start());
  const auto sleeps = watched->spawn(shell_command("sleep 300"));
  ASSERT_TRUE(sleeps) << sleeps.error().line();
  bool sampled = false, alerted = false;
  EXPECT_TRUE(test::eventually([&] {
    while (const auto event = seen->next(0ms)) {
      if (const auto* sample = std::get_if<ResourceEvent>(&event->body))
        sampled = sampled || (sample->processes >= 2 && sample->memory.count > 0);
      if (const auto* alert = std::get_if<AlertEvent>(&event->body))
        alerted = alerted || (alert->resource == "memory" && alert->raised);
    }
    return sampled && alerted;
  }));
  EXPECT_TRUE(sampled);
  EXPECT_TRUE(alerted);
  EXPECT_TRUE(watched->stop());
}

// One process: what it computes is part of how long it took, execve(2) included.
TEST_P(ContainerUsage, NoCommandComputesLongerThanItTakes) {
  for (int i = 0; i < (GetParam() == ContainerMode::kSession ? 40 : 5); ++i) {
    const auto result = sandbox_->exec(Command{.argv = {"true"}});
    ASSERT_TRUE(result) << result.error().line();
    EXPECT_LE(result->usage.cpu_user + result->usage.cpu_system, result->duration);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ContainerUsage, testing::Values(ContainerMode::kSession, ContainerMode::kPerCommand),
                         [](const auto& mode) { return mode.param == ContainerMode::kSession ? "Session" : "PerCommand"; });

}  // namespace
}  // namespace belljar
