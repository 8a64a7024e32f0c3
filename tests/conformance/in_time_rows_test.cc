// Rows of the conformance suite: a call that is over before it begins does nothing, and says why.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/sandbox.h"
#include "conformance/rows.h"
#include "conformance/timed_calls.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

// `over`: of a call that may not begin. The twins are given a token and a deadline as well.
Outcome check_over(Sandbox& sandbox, const CallOptions& over, Code code) {
  std::vector<TimedCall> calls = timed_calls();
  calls.push_back({"stop", [](Sandbox& one, const CallOptions& call) { return error_of(one.stop(call)); }});
  EXPECT_TRUE(sandbox.write_file("t/f", "old"));
  for (const TimedCall& call : calls) {
    const auto refused = call.act(sandbox, over);
    EXPECT_TRUE(refused) << call.name;
    if (refused) {
      EXPECT_EQ(refused->code(), code) << call.name << ": " << refused->line();
    }
  }
  const auto names = sandbox.list("t");
  EXPECT_TRUE(names && names->size() == 1 && names->at(0).path == "f") << "nothing was done";
  EXPECT_EQ(sandbox.read_file("t/f").value_or(""), "old");
  const CallOptions in_time = CallOptions::within(10min, CancelToken::create().value());
  for (const TimedCall& call : calls) {
    const auto failed = call.act(sandbox, in_time);
    EXPECT_FALSE(failed) << call.name << ": " << failed->line();
  }
  EXPECT_EQ(sandbox.start(over).error().code(), code) << "the twin of stop() did stop it";
  EXPECT_TRUE(sandbox.start(in_time));
  const auto after = sandbox.list("t");
  EXPECT_TRUE(after) << after.error().line();
  return Outcome::kSame;
}

}  // namespace

std::vector<Row> in_time_rows() {
  return {
      {"a cancelled token ends every call before it begins", false,
       [](const Bench& bench) {
         const CancelToken cancelled = CancelToken::create().value();
         cancelled.cancel();
         return check_over(*bench.sandbox, {.cancel = cancelled}, Code::kCanceled);
       }},
      {"a deadline that has passed ends every call before it begins", false,
       [](const Bench& bench) {
         return check_over(*bench.sandbox, {.deadline = std::chrono::steady_clock::now() - 1s}, Code::kDeadlineExceeded);
       }},
  };
}

}  // namespace belljar
