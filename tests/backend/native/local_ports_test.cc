#include "backend/native/local_ports.h"

#include <gtest/gtest.h>

#include <string>

#include "belljar/exec_result.h"
#include "kernel/seccomp.h"

namespace belljar::backend {
namespace {

using kernel::LocalPorts;
using kernel::UnixSockets;

TEST(LocalPorts, TheBrokerJudgesAndWithoutItNobodyListensWhereNothingElseCould) {
  EXPECT_EQ(hold_local_ports(true, UnixSockets::kBrokered), LocalPorts::kJudged);
  EXPECT_EQ(hold_local_ports(true, UnixSockets::kAll), LocalPorts::kJudged);
  EXPECT_EQ(hold_local_ports(false, UnixSockets::kPairs), LocalPorts::kRefused);
  EXPECT_EQ(hold_local_ports(false, UnixSockets::kAll), LocalPorts::kOpen);
}

TEST(LocalPorts, TheClauseSaysWhatIsLeft) {
  for (const LocalPorts ports : {LocalPorts::kJudged, LocalPorts::kRefused}) {
    for (const int abi : {0, 3, 6}) {
      const EnforcementClause clause = local_binding_clause(ports, abi);
      EXPECT_EQ(clause.enforced, Enforced::kPartial);
      EXPECT_EQ(clause.detail, "TCP only: UDP ports can be bound");
      EXPECT_EQ(clause.mechanism.find("Landlock") != std::string::npos, abi >= 4) << clause.mechanism;
    }
  }
  const EnforcementClause bind_alone = local_binding_clause(LocalPorts::kOpen, 4);
  EXPECT_EQ(bind_alone.enforced, Enforced::kPartial);
  EXPECT_NE(bind_alone.detail.find("listen without it takes a port"), std::string::npos);
  EXPECT_EQ(local_binding_clause(LocalPorts::kOpen, 3).enforced, Enforced::kNone);
}

}  // namespace
}  // namespace belljar::backend
