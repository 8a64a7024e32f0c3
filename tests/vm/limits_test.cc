// What the limits rest on where the cgroups are v1, or not there at all, and under Landlock ABI 6.
#include "support/has.h"
#include "support_guest.h"

namespace belljar::vm {
namespace {

using test::has;

struct CgroupV1 : Suite {
  static void SetUpTestSuite() { boot({.kernel = "6.1", .cgroup = "v1"}); }
};

struct NoCgroup : Suite {
  static void SetUpTestSuite() { boot({.kernel = "6.12", .cgroup = "none"}); }
};

VM_CASE(CgroupV1, RootHoldsEveryLimit, {.script = R"(
  belljar run --json --memory 64MiB --pids 30 --cpus 0.5 -- python3 -c 'x = bytearray(200 << 20)'; echo "refused $?"
  belljar run --memory 512MiB --pids 30 --cpus 0.5 -- python3 -c 'x = bytearray(200 << 20)'; echo "allowed $?"
  find /sys/fs/cgroup -name 'belljar*')"}) {
  EXPECT_TRUE(has(outcome.out, R"("reason":"memory")")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"cgroup v1 memory.limit_in_bytes","enforced":"full")")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"cgroup v1 pids.max","enforced":"full")")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"cgroup v1 cpu.cfs_quota_us","enforced":"full")")) << outcome;
  EXPECT_TRUE(outcome.out.ends_with("allowed 0\n")) << outcome;
}

constexpr const char* kWithoutGroups = R"(
  belljar run --json --memory 64MiB --pids 30 -- python3 -c 'x = bytearray(200 << 20)'; echo "refused $?"
  belljar run --memory 512MiB --pids 30 -- python3 -c 'x = bytearray(200 << 20)'; echo "allowed $?"
  belljar run --cpus 0.5 -- true; echo "cpus $?"
  belljar run --cpus 0.5 --accept limits.cpus -- true; echo "accepted $?")";

void judge_without_groups(const Outcome& outcome) {
  EXPECT_TRUE(
      has(outcome.out, R"("mechanism":"RLIMIT_DATA for each process, sampled sum over all with kill","enforced":"partial")"))
      << outcome;
  EXPECT_TRUE(has(outcome.out, "RLIMIT_NPROC in the sandbox's user namespace")) << outcome;
  EXPECT_FALSE(has(outcome.out, "refused 0\n")) << outcome;
  EXPECT_TRUE(has(outcome.out, "allowed 0\ncpus 125\naccepted 0\n")) << outcome;
  EXPECT_TRUE(has(outcome.err, "limits.cpus cannot be enforced on this machine")) << outcome;
  EXPECT_TRUE(has(outcome.err, "warning: limits.cpus is none, as accepted")) << outcome;
}

VM_CASE(CgroupV1, AUserHasNoGroups, {.as = As::kUser, .script = kWithoutGroups}) { judge_without_groups(outcome); }
VM_CASE(NoCgroup, AUserHasNoGroups, {.as = As::kUser, .script = kWithoutGroups}) { judge_without_groups(outcome); }
VM_CASE(NoCgroup, RootHasNoGroups, {.script = kWithoutGroups}) { judge_without_groups(outcome); }

VM_CASE(NoCgroup, Linux612HasLandlockAbi6, {.as = As::kUser, .script = "belljar run --json -- true"}) {
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"Landlock, ABI 6","enforced":"partial")")) << outcome;
}

}  // namespace
}  // namespace belljar::vm
