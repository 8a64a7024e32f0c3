#include "belljar/outcome.h"

#include <gtest/gtest.h>

#include "belljar/mock.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

Result<ExecResult> ended(Reason reason, int exit_code, const std::string& err = "") {
  ExecResult result;
  result.reason = reason;
  result.exit_code = exit_code;
  result.err.bytes = err;
  return result;
}

TEST(Outcome, EachReasonIsOneOfFive) {
  EXPECT_EQ(outcome_of(ended(Reason::kExited, 0)), Outcome::kSucceeded);
  EXPECT_EQ(outcome_of(ended(Reason::kExited, 1)), Outcome::kCommandFailed);
  EXPECT_EQ(outcome_of(ended(Reason::kSignalled, 137)), Outcome::kCommandFailed);
  EXPECT_EQ(outcome_of(ended(Reason::kTimeout, 124)), Outcome::kTimedOut);
  EXPECT_EQ(outcome_of(ended(Reason::kIdle, 124)), Outcome::kTimedOut);
  for (const Reason reason : {Reason::kMemory, Reason::kPids, Reason::kDisk, Reason::kOutput})
    EXPECT_EQ(outcome_of(ended(reason, 137)), Outcome::kResourceLimit);
  EXPECT_EQ(outcome_of(ended(Reason::kStartFailed, 127)), Outcome::kExecutionFailed);
  EXPECT_EQ(outcome_of(ended(Reason::kCancelled, 137)), Outcome::kExecutionFailed);
  EXPECT_EQ(outcome_of(Error(Code::kUnavailable, "gone")), Outcome::kExecutionFailed);
}

TEST(Outcome, TheTextsAreThoseOfTheDocuments) {
  const auto both = [](const Result<ExecResult>& result) {
    return outcome_text(result) + " | " + outcome_text(result, Language::kChinese);
  };
  EXPECT_EQ(both(ended(Reason::kExited, 0)), " | ");
  EXPECT_EQ(both(ended(Reason::kTimeout, 124)), "command timed out | 命令超时");
  EXPECT_EQ(both(ended(Reason::kMemory, 137)), "resource limit | 资源限制");
  EXPECT_EQ(both(ended(Reason::kExited, 2, "no\x1b[31m rule")), "command failed: no\\x1b[31m rule | 命令失败: no\\x1b[31m rule");
  EXPECT_EQ(both(Error(Code::kUnavailable, "it is gone")), "execution failed: it is gone | 执行失败: it is gone");
  const ExecutionEvent event{.command = "go test", .duration = 1500ms, .exit_code = 2};
  EXPECT_EQ(execution_text(event), "sandbox executed: Command=go test Duration=1500ms ExitCode=2");
  EXPECT_EQ(execution_text(event, Language::kChinese), "沙箱执行: Command=go test Duration=1500ms ExitCode=2");
}

// A mock's timeout, as a program under test would see it.
TEST(Outcome, ATimeoutOfASandboxIsOne) {
  auto mock = MockSandbox::create();
  ASSERT_TRUE(mock->start());
  mock->set_output("build", "ok");
  EXPECT_EQ(outcome_of(mock->exec("build")), Outcome::kSucceeded);
  mock->set_delay("build", 10min);
  EXPECT_EQ(outcome_text(mock->exec("build"), Language::kChinese), "命令超时");
}

TEST(Timeouts, ThePresetsAreThoseOfTheDocuments) {
  EXPECT_EQ(kShortTask, 30s);
  EXPECT_EQ(kLongTask, 10min);
  EXPECT_EQ(kBatchTask, 1h);
}

}  // namespace
}  // namespace belljar
