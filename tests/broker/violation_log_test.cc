#include "broker/violation_log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace belljar::broker {
namespace {

Violation act(std::string operation, std::string target) {
  Violation violation;
  violation.operation = std::move(operation);
  violation.target = std::move(target);
  violation.rule = "r";
  violation.program = "p";
  violation.errnum = 13;
  return violation;
}

std::uint64_t acts(const std::vector<Violation>& violations) {
  std::uint64_t sum = 0;
  for (const Violation& violation : violations) sum += violation.count;
  return sum;
}

TEST(ViolationLog, CountsALoopInOneRecordAfterTheFirstFew) {
  ViolationLog log(100);
  for (int i = 0; i < 10'000; ++i) log.add(act("connect", "a:1"));
  log.add(act("connect", "b:1"));
  const auto kept = log.take();
  ASSERT_EQ(kept.size(), ViolationLog::kRecordsAlike + 1);
  EXPECT_EQ(kept[ViolationLog::kRecordsAlike - 1].count, 10'000 - ViolationLog::kRecordsAlike + 1);
  EXPECT_EQ(kept.back().target, "b:1");
  EXPECT_EQ(kept.back().sequence, 10'000U);
  EXPECT_EQ(acts(kept), 10'001U);
  EXPECT_EQ(log.dropped(), 0U);
}

TEST(ViolationLog, AFloodOfOneOperationLeavesRoomForOthers) {
  ViolationLog log(100);
  for (int i = 0; i < 5'000; ++i) log.add(act("write", "/w/" + std::to_string(i)));
  log.add(act("unix-connect", "/run/docker.sock"));
  const auto kept = log.take();
  EXPECT_EQ(kept.back().target, "/run/docker.sock");
  EXPECT_EQ(acts(kept) + log.dropped(), 5'001U);
  EXPECT_LE(kept.size(), 100U);
}

TEST(ViolationLog, HoldsNoMoreThanItsLimit) {
  ViolationLog log(10);
  for (int i = 0; i < 50; ++i) log.add(act("op" + std::to_string(i), "t"));
  EXPECT_EQ(log.take().size(), 10U);
  EXPECT_EQ(log.dropped(), 40U);
  log.add(act("op", "t"));  // taken: there is room again
  EXPECT_EQ(log.take().size(), 1U);
}

TEST(ViolationLog, IgnoredActsAreCountedAndTakeNoRoom) {
  ViolationLog log(2, [](const Violation& violation) { return violation.target == "noise"; });
  for (int i = 0; i < 50; ++i) log.add(act("op", "noise"));
  log.add(act("op", "signal"));
  EXPECT_EQ(log.hidden(), 50U);
  EXPECT_EQ(log.dropped(), 0U);
  ASSERT_EQ(log.take().size(), 1U);
}

TEST(ViolationLog, LosesNothingWhenManyThreadsWrite) {
  ViolationLog log(64);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&log, thread] {
      for (int i = 0; i < 2'000; ++i) log.add(act("op" + std::to_string(thread), std::to_string(i % 100)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(acts(log.take()) + log.dropped(), 16'000U);
}

}  // namespace
}  // namespace belljar::broker
