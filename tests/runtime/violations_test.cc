#include "runtime/violations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"

namespace belljar::runtime {
namespace {

TEST(LimitViolations, TheBytesOfEgressAreNamedAndNotToldTwice) {
  Policy policy;
  policy.limits.egress_bytes = Bytes{1000};
  ExecResult result;
  Violation violation;
  violation.operation = "egress";
  violation.rule = "limits.egress_bytes";
  result.violations = {violation};
  add_limit_violations(result, policy, nullptr, "p", {});
  EXPECT_EQ(result.limits_hit, std::vector<std::string>{"egress_bytes"});
  EXPECT_EQ(result.violations.size(), 1U);

  ExecResult hidden;  // by ignore_violations
  EgressRecord record;
  record.reason = "egress_bytes";
  hidden.egress = {record};
  add_limit_violations(hidden, policy, nullptr, "p", {});
  EXPECT_EQ(hidden.limits_hit, std::vector<std::string>{"egress_bytes"});
  EXPECT_TRUE(hidden.violations.empty());

  ExecResult within;
  record.reason = "allowed";
  within.egress = {record};
  add_limit_violations(within, policy, nullptr, "p", {});
  EXPECT_TRUE(within.limits_hit.empty()) << "the twin";
}

// The key is not called as the limit is.
TEST(LimitViolations, OutputHasTheRuleThatCapsIt) {
  Policy policy;
  policy.limits.output_bytes = Bytes{1024};
  ExecResult result;
  result.limits_hit = {"output"};
  add_limit_violations(result, policy, nullptr, "p", {});
  ASSERT_EQ(result.violations.size(), 1U);
  EXPECT_EQ(result.violations.front().rule, "limits.output_bytes");

  ExecResult unasked;  // the cap of --json
  unasked.limits_hit = {"output"};
  add_limit_violations(unasked, Policy(), nullptr, "p", {});
  EXPECT_TRUE(unasked.violations.empty()) << "the twin";
}

}  // namespace
}  // namespace belljar::runtime
