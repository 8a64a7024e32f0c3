// Decorators hand on how long a call may last, and wait no longer themselves.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/decorators.h"
#include "belljar/events.h"
#include "belljar/files.h"
#include "belljar/mock.h"
#include "belljar/sandbox.h"
#include "support/eventually.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<MockSandbox> mock_that_runs() {
  auto mock = MockSandbox::create();
  (void)mock->start();
  (void)mock->write_file("f", "one needle\n");
  return mock;
}

// Answers no measure and no read of a file before its caller has enough.
class Slow final : public SandboxDecorator {
 public:
  using SandboxDecorator::SandboxDecorator;
  Result<SandboxStats> stats(const CallOptions& options) override {
    ++measures;
    return wait<SandboxStats>(options, [&] { return inner().stats(options); });
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    ++reads;
    return wait<std::string>(options.call, [&] { return inner().read_file(path, options); });
  }
  std::atomic<int> measures{0}, reads{0};
  std::atomic<bool> slow{true};

 private:
  template <class T, class Act>
  Result<T> wait(const CallOptions& options, Act act) {
    if (!slow) return act();
    (void)test::eventually([&] { return !options.check(""); });
    BELLJAR_CHECK(options.check("cannot do it"));
    return act();
  }
};

TEST(DecoratorsInTime, AWaitForATurnEndsWithTheCall) {
  SandboxPtr sandbox = with_rate_limit(mock_that_runs(), {.per_second = 0.001, .burst = 2, .patience = 10h});
  EXPECT_TRUE(sandbox->stat("f", CallOptions::within(10min))) << "the twin has a turn";
  EXPECT_TRUE(sandbox->stat("f"));
  EXPECT_EQ(sandbox->stat("f", CallOptions::within(30ms)).error().code(), Code::kDeadlineExceeded);
  const CancelToken cancel = CancelToken::create().value();
  std::jthread canceller([&] { cancel.cancel(); });
  EXPECT_EQ(sandbox->read_file("f", {.call = {.cancel = cancel}}).error().code(), Code::kCanceled);
}

TEST(DecoratorsInTime, AMeasureThatIsNotAnsweredHoldsUpNoStop) {
  const auto mock = MockSandbox::create();
  const auto slow = std::make_shared<Slow>(mock);
  const auto bus = std::make_shared<EventBus>();
  const auto sandbox = with_events(slow, bus, {.sample_every = 10ms});
  ASSERT_TRUE(sandbox->start());
  ASSERT_TRUE(test::eventually([&] { return slow->measures > 0; }));
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(mock->health().error().code(), Code::kUnavailable) << "it was stopped";
}

TEST(DecoratorsInTime, WhatWasNotCleanedInTimeIsNotShown) {
  const auto slow = std::make_shared<Slow>(mock_that_runs());
  const auto sandbox = with_redaction(slow, nullptr);
  const CancelToken cancel = CancelToken::create().value();
  std::jthread canceller([&] {
    (void)test::eventually([&] { return slow->reads > 0; });
    cancel.cancel();
  });
  const auto cut = sandbox->grep("needle", {.walk = {.cancel = cancel}});
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->matches.empty());
  EXPECT_FALSE(cut->complete);
  slow->slow = false;
  const auto whole = sandbox->grep("needle");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->matches.size(), 1U) << "the twin";
  EXPECT_TRUE(whole->complete);
}

TEST(DecoratorsInTime, ARehearsalLooksInsideNoLongerThanItsCaller) {
  const auto slow = std::make_shared<Slow>(mock_that_runs());
  const auto sandbox = with_dry_run(slow, {});
  EXPECT_EQ(sandbox->read_file("f", {.call = CallOptions::within(30ms)}).error().code(), Code::kDeadlineExceeded);
  const auto late = CallOptions::within(-1s);
  EXPECT_EQ(sandbox->write_file("g", "x", {.call = late}).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(sandbox->rename("f", "g", late).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(sandbox->list(".", CallOptions::within(10min)).value().size(), 1U) << "nothing was pretended";
  EXPECT_TRUE(sandbox->write_file("g", "x", {.call = CallOptions::within(10min)})) << "the twin";
  EXPECT_EQ(sandbox->list(".").value().size(), 2U);
}

}  // namespace
}  // namespace belljar
