#include "belljar/events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "belljar/decorators.h"
#include "belljar/mock.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

Event event_of(const std::string& sandbox, int exit_code) {
  Event event;
  event.sandbox = sandbox;
  event.body = ExecutionEvent{.command = "c", .exit_code = exit_code};
  return event;
}

int code_of(const Event& event) { return std::get<ExecutionEvent>(event.body).exit_code; }

TEST(EventBus, SubscribersGetWhatTheirFilterWants) {
  EventBus bus;
  const auto all = bus.subscribe();
  const auto mine = bus.subscribe({.sandbox = "mine"});
  const auto alerts = bus.subscribe({.kinds = {EventKind::kAlert}});
  const auto failures = bus.subscribe({.also = [](const Event& event) { return code_of(event) != 0; }});
  bus.publish(event_of("other", 0));
  bus.publish(event_of("mine", 1));
  EXPECT_EQ(all->next(0ms)->sandbox, "other");
  EXPECT_EQ(all->next(0ms)->sequence, 1U);
  EXPECT_FALSE(all->next(0ms));
  EXPECT_EQ(code_of(*mine->next(0ms)), 1);
  EXPECT_FALSE(mine->next(0ms));
  EXPECT_FALSE(alerts->next(0ms));
  EXPECT_EQ(failures->next(0ms)->sandbox, "mine");
}

TEST(EventBus, ASlowSubscriberLosesTheOldestAndIsToldHowMany) {
  EventBus bus;
  const auto slow = bus.subscribe({.capacity = 3});
  const auto fast = bus.subscribe();
  for (int i = 0; i < 10; ++i) bus.publish(event_of("s", i));
  EXPECT_EQ(slow->lost(), 7U);
  for (int i = 7; i < 10; ++i) EXPECT_EQ(code_of(*slow->next(0ms)), i);
  EXPECT_FALSE(slow->next(0ms));
  EXPECT_EQ(fast->lost(), 0U);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(code_of(*fast->next(0ms)), i);
}

TEST(EventBus, TheLongestPatienceIsForEver) {
  EventBus bus;
  const auto all = bus.subscribe();
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);  // next waits by then; one that comes later proves less
    bus.publish(event_of("s", 1));
  });
  EXPECT_TRUE(all->next(std::chrono::milliseconds::max()));
  later.join();
  EXPECT_FALSE(all->next(0ms));
}

TEST(EventBus, ManyPublishersOneOrder) {
  EventBus bus;
  const auto all = bus.subscribe({.capacity = 10'000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) bus.publish(event_of("s", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_EQ(all->next(0ms)->sequence, i);
}

TEST(EventBus, ItsEndWakesWhoWaits) {
  auto bus = std::make_unique<EventBus>();
  const auto all = bus->subscribe();
  bool gone = false;
  std::thread waiter([&] { gone = !all->next(60s); });
  bus.reset();
  waiter.join();
  EXPECT_TRUE(gone);
}

// A mock whose stats are what the test says.
class Measured final : public SandboxDecorator {
 public:
  using SandboxDecorator::SandboxDecorator;
  Result<SandboxStats> stats(const CallOptions& /*options*/) override {
    SandboxStats stats;
    stats.memory = Bytes{memory.load()};
    stats.cpu = std::chrono::microseconds(cpu += cpu_step.load());
    stats.processes = 3;
    return stats;
  }
  std::atomic<std::uint64_t> memory{0};
  std::atomic<std::int64_t> cpu{0}, cpu_step{0};
};

std::shared_ptr<MockSandbox> mock_with_outputs() {
  auto mock = MockSandbox::create();
  mock->set_output("fail", "out", 3, "err");
  mock->set_answer("curl*", [](const Command&, const ExecOptions&) {
    ExecResult result;
    Violation violation;
    violation.operation = "egress";
    violation.target = "evil.example:443";
    result.violations = {violation};
    EgressRecord record;
    record.host = "good.example";
    record.bytes_received = 1000;
    record.bytes_sent = 10;
    result.egress = {record};
    return result;
  });
  return mock;
}

TEST(WithEvents, CommandsRefusalsEgressAndLifeAreTold) {
  auto bus = std::make_shared<EventBus>();
  const auto all = bus->subscribe();
  auto mock = mock_with_outputs();
  SandboxPtr sandbox = with_events(mock, bus);
  EXPECT_FALSE(sandbox->exec("fail")) << "it does not run yet";
  EXPECT_TRUE(sandbox->start());
  EXPECT_TRUE(sandbox->exec("fail"));
  EXPECT_TRUE(sandbox->exec("curl x"));
  EXPECT_TRUE(sandbox->stop());
  std::vector<Event> events;
  while (auto event = all->next(0ms)) events.push_back(*event);
  std::string kinds;
  for (const Event& event : events) kinds += std::string(to_string(event.kind())) + " ";
  EXPECT_EQ(kinds, "execution lifecycle execution violation egress execution lifecycle ");
  EXPECT_FALSE(std::get<ExecutionEvent>(events[0].body).error.empty());
  const auto& executed = std::get<ExecutionEvent>(events[2].body);
  EXPECT_EQ(executed.command, "fail");
  EXPECT_EQ(executed.exit_code, 3);
  EXPECT_EQ(executed.output_bytes, 6U);
  EXPECT_EQ(events[2].sandbox, mock->id());
  EXPECT_NE(to_line(events[2]).find("execution: `fail` exit_code=3 reason=exited"), std::string::npos) << to_line(events[2]);
  EXPECT_NE(to_json(events[2]).find(R"("kind":"execution","data":{"command":"fail",)"), std::string::npos) << to_json(events[2]);
}

TEST(WithEvents, ACommandNobodyWaitedForIsTold) {
  const test::TempDir dir;
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  SandboxConfig config;
  config.backend = "local";
  config.workspace = dir.path();
  auto bus = std::make_shared<EventBus>();
  const auto all = bus->subscribe({.kinds = {EventKind::kExecution}});
  SandboxPtr sandbox = with_events(make_sandbox(config).value(), bus);
  ASSERT_TRUE(sandbox->start());
  const auto told = [&] { return std::get<ExecutionEvent>(all->next(60s).value().body); };
  sandbox->spawn(shell_command("sleep 300")).value().reset();
  EXPECT_EQ(told().reason, Reason::kCancelled);
  EXPECT_TRUE(sandbox->spawn(shell_command("sleep 300")).value()->detach());
  EXPECT_EQ(told().reason, Reason::kExited);
  EXPECT_TRUE(sandbox->spawn(shell_command("exit 3")).value()->wait());
  EXPECT_EQ(told().exit_code, 3);
  EXPECT_TRUE(sandbox->stop());
  EXPECT_FALSE(all->next(0ms)) << "each once";
}

TEST(WithEvents, TheLongestIntervalIsNoBusyLoop) {
  auto bus = std::make_shared<EventBus>();
  const auto all = bus->subscribe({.kinds = {EventKind::kResource}});
  auto mock = mock_with_outputs();
  SandboxPtr sandbox = with_events(mock, bus, {.sample_every = std::chrono::milliseconds::max(), .measure_disk = true});
  ASSERT_TRUE(sandbox->start());
  EXPECT_FALSE(all->next(200ms)) << "not yet";
  EXPECT_TRUE(sandbox->stop());
}

TEST(WithEvents, SamplesHoldWhatIsUsedAndAlertsComeOnceAndGo) {
  auto bus = std::make_shared<EventBus>();
  const auto samples = bus->subscribe({.kinds = {EventKind::kResource}});
  const auto alerts = bus->subscribe({.kinds = {EventKind::kAlert}});
  auto measured = std::make_shared<Measured>(mock_with_outputs());
  std::atomic<int> called{0};
  SandboxPtr sandbox = with_events(
      measured, bus,
      {.sample_every = 10ms, .alerts = {.cpu = {}, .memory_limit = Bytes{1000}}, .on_alert = [&](const Event&) { ++called; }});
  EXPECT_TRUE(sandbox->start());
  EXPECT_TRUE(sandbox->exec("curl x"));
  measured->memory = 500;
  const auto wait_for = [&](double memory_percent) {
    for (int i = 0; i < 1000; ++i) {
      const auto event = samples->next(60s);
      if (!event) return false;
      const auto& sample = std::get<ResourceEvent>(event->body);
      EXPECT_EQ(sample.processes, 3U);
      if (sample.memory_percent != memory_percent) continue;  // perhaps from before the request
      EXPECT_EQ(sample.network_in, 1000U);
      EXPECT_EQ(sample.network_out, 10U);
      return true;
    }
    return false;
  };
  EXPECT_TRUE(wait_for(50));
  EXPECT_FALSE(alerts->next(0ms));
  measured->memory = 950;
  const auto raised = alerts->next(60s);
  ASSERT_TRUE(raised);
  EXPECT_EQ(std::get<AlertEvent>(raised->body).resource, "memory");
  EXPECT_EQ(std::get<AlertEvent>(raised->body).value, 95);
  EXPECT_TRUE(std::get<AlertEvent>(raised->body).raised);
  measured->memory = 880;  // below, but not by 5 points: no flutter
  EXPECT_TRUE(wait_for(88));
  measured->memory = 960;
  EXPECT_TRUE(wait_for(96));
  EXPECT_FALSE(alerts->next(0ms)) << "raised once";
  measured->memory = 100;
  const auto cleared = alerts->next(60s);
  ASSERT_TRUE(cleared);
  EXPECT_FALSE(std::get<AlertEvent>(cleared->body).raised);
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(called.load(), 2);
  while (samples->next(0ms)) {
  }
  EXPECT_FALSE(samples->next(50ms)) << "no samples after stop";
}

TEST(WithEvents, ABusyProcessorRaisesAnAlert) {
  auto bus = std::make_shared<EventBus>();
  const auto alerts = bus->subscribe({.kinds = {EventKind::kAlert}});
  auto measured = std::make_shared<Measured>(mock_with_outputs());
  SandboxPtr sandbox = with_events(measured, bus, {.sample_every = 10ms});
  EXPECT_TRUE(sandbox->start());
  EXPECT_FALSE(alerts->next(100ms)) << "idle";
  measured->cpu_step = 3'600'000'000;
  const auto raised = alerts->next(60s);
  ASSERT_TRUE(raised);
  EXPECT_EQ(std::get<AlertEvent>(raised->body).resource, "cpu");
}

TEST(WithEvents, AnAlertCallbackThatThrowsEndsNothing) {
  auto bus = std::make_shared<EventBus>();
  const auto alerts = bus->subscribe({.kinds = {EventKind::kAlert}});
  auto measured = std::make_shared<Measured>(mock_with_outputs());
  std::atomic<int> called{0};
  SandboxPtr sandbox = with_events(
      measured, bus, {.sample_every = 10ms, .alerts = {.cpu = {}, .memory_limit = Bytes{1000}}, .on_alert = [&](const Event&) {
                        ++called;
                        throw std::runtime_error("no such webhook");
                      }});
  measured->memory = 950;
  EXPECT_TRUE(sandbox->start());
  EXPECT_TRUE(alerts->next(60s));
  measured->memory = 100;
  EXPECT_TRUE(alerts->next(60s)) << "it goes on";
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(called.load(), 2);
}

TEST(WithEvents, ACommandWhoseCallbackThrewIsTold) {
  auto bus = std::make_shared<EventBus>();
  const auto executions = bus->subscribe({.kinds = {EventKind::kExecution}});
  auto mock = mock_with_outputs();
  SandboxPtr sandbox = with_events(mock, bus);
  EXPECT_TRUE(sandbox->start());
  EXPECT_THROW(std::ignore = sandbox->exec("fail", {.on_stdout = [](std::string_view) { throw std::runtime_error("mine"); }}),
               std::runtime_error);
  const auto told = executions->next(0ms);
  ASSERT_TRUE(told);
  EXPECT_NE(std::get<ExecutionEvent>(told->body).error.find("callback threw"), std::string::npos);
  EXPECT_TRUE(sandbox->exec("fail"));
  EXPECT_EQ(code_of(*executions->next(0ms)), 3);
}

TEST(WithEvents, DiskIsMeasuredWhenAsked) {
  const test::TempDir dir;
  dir.write("big", std::string(200'000, 'x'));
  auto bus = std::make_shared<EventBus>();
  const auto alerts = bus->subscribe({.kinds = {EventKind::kAlert}});
  auto mock = MockSandbox::create(dir.path());
  SandboxPtr sandbox =
      with_events(mock, bus, {.sample_every = 10ms, .measure_disk = true, .alerts = {.disk = 50, .disk_limit = Bytes{250'000}}});
  EXPECT_TRUE(sandbox->start());
  const auto raised = alerts->next(60s);
  ASSERT_TRUE(raised);
  EXPECT_EQ(std::get<AlertEvent>(raised->body).resource, "disk");
  EXPECT_GT(std::get<AlertEvent>(raised->body).value, 75);
}

}  // namespace
}  // namespace belljar
