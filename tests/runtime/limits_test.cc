// Which mechanism is chosen where, and what the report says about it. Enforcement itself: limits_kernel_test.cc.
#include "runtime/limits.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/units.h"
#include "kernel/cgroup_host.h"
#include "launch/plan.h"
#include "runtime/enforcement.h"
#include "support/temp_dir.h"

namespace belljar::runtime {
namespace {

const kernel::CgroupHost kNoCgroups;

LimitSet make(const Limits& limits, LimitContext context = {}) {
  if (context.cgroups == nullptr) context.cgroups = &kNoCgroups;
  return LimitSet::create(limits, context).value();
}

const EnforcementClause& clause(const LimitSet& set, const std::string& name) {
  static const EnforcementClause kAbsent{.clause = "absent"};
  for (const EnforcementClause& c : set.clauses())
    if (c.clause == name) return c;
  return kAbsent;
}

std::optional<rlim_t> rlimit_of(const LimitSet& set, int resource) {
  for (const launch::RlimitSpec& spec : set.rlimits())
    if (spec.resource == resource) return spec.value.rlim_max;
  return std::nullopt;
}

TEST(LimitChoice, NothingAskedCostsNothing) {
  const LimitSet set = make({});
  EXPECT_TRUE(set.clauses().empty());
  EXPECT_TRUE(set.join_files().empty());
  EXPECT_EQ(set.cgroup_fd(), -1);
  EXPECT_FALSE(set.next_sample());
  ASSERT_EQ(set.rlimits().size(), 1U);
  EXPECT_LE(rlimit_of(set, RLIMIT_CORE).value(), 1U);
}

TEST(LimitChoice, MemoryWithoutCgroupsIsPartialAndSaysWhy) {
  LimitSet set = make({.memory = 64_MiB});
  EXPECT_EQ(clause(set, "limits.memory").enforced, Enforced::kPartial);
  EXPECT_NE(clause(set, "limits.memory").detail.find("memory controller"), std::string::npos)
      << clause(set, "limits.memory").detail;
  EXPECT_EQ(rlimit_of(set, RLIMIT_DATA), (80_MiB).count);
  EXPECT_FALSE(rlimit_of(set, RLIMIT_AS));
  EXPECT_FALSE(set.next_sample()) << "no process yet";
  set.attach(1);
  EXPECT_TRUE(set.next_sample());
}

TEST(LimitChoice, PidsAreFullInAFreshUserNamespaceOnly) {
  EXPECT_EQ(clause(make({.pids = 32}), "limits.pids").enforced, Enforced::kFull);
  EXPECT_EQ(rlimit_of(make({.pids = 32}), RLIMIT_NPROC), 33U);  // and init
  for (const LimitContext& context : {LimitContext{.user_namespace = false}, LimitContext{.kernel_uid_0 = true}}) {
    const LimitSet set = make({.pids = 32}, context);
    EXPECT_EQ(clause(set, "limits.pids").enforced, Enforced::kPartial);
    EXPECT_FALSE(rlimit_of(set, RLIMIT_NPROC)) << "it would count the whole host, or nothing";
  }
}

TEST(LimitChoice, CpusWithoutCgroupsIsNone) {
  const LimitSet set = make({.cpus = 1.5, .cpu_request = 0.5, .memory_request = 8_MiB});
  EXPECT_EQ(clause(set, "limits.cpus").enforced, Enforced::kNone);
  EXPECT_EQ(clause(set, "limits.cpu_request").enforced, Enforced::kNone);
  EXPECT_EQ(clause(set, "limits.memory_request").enforced, Enforced::kNone);
  EXPECT_NE(clause(set, "limits.cpus").detail, "");
}

TEST(LimitChoice, FilesAreRlimitsAndNeverRaiseWhatWeHave) {
  rlimit own{};
  getrlimit(RLIMIT_NOFILE, &own);
  const LimitSet set = make({.open_files = 1ULL << 40, .file_size = 5_MiB});
  EXPECT_EQ(rlimit_of(set, RLIMIT_NOFILE), own.rlim_max);
  EXPECT_EQ(rlimit_of(set, RLIMIT_FSIZE), (5_MiB).count);
  EXPECT_EQ(clause(set, "limits.open_files").enforced, Enforced::kFull);
  EXPECT_EQ(clause(make({.open_files = 64}, {.kernel_uid_0 = true}), "limits.open_files").enforced, Enforced::kPartial);
}

TEST(LimitChoice, DiskIsSampledAndTightensTmp) {
  const test::TempDir dir;
  const LimitSet set = make({.disk = 4_MiB}, {.workspace = dir.path()});
  EXPECT_EQ(clause(set, "limits.disk").enforced, Enforced::kPartial);
  EXPECT_EQ(tmp_limit({.disk = 4_MiB}, 1_GiB), 4_MiB);
  EXPECT_EQ(tmp_limit({.disk = 4_MiB}, 1_MiB), 1_MiB);
  EXPECT_EQ(tmp_limit({}, 1_GiB), 1_GiB);
  EXPECT_EQ(tmp_limit({.memory = 60_MiB}, 1_GiB), 60_MiB);
  EXPECT_EQ(tmp_limit({.memory = 60_MiB, .disk = 4_MiB}, 1_GiB), 4_MiB);
  EXPECT_TRUE(set.next_sample());
}

TEST(LimitChoice, ValuesThatNoKernelTakesAreRefusedByName) {
  for (const Limits& limits :
       {Limits{.cpus = 0.0}, Limits{.cpus = -1.0}, Limits{.memory = 4_KiB}, Limits{.pids = 0}, Limits{.open_files = 2}}) {
    const auto set = LimitSet::create(limits, {.cgroups = &kNoCgroups});
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(set.error().what().find("limits."), 0U) << set.error().what();
  }
  const auto absent = LimitSet::create({.disk = 1_MiB}, {.workspace = "/does/not/exist", .cgroups = &kNoCgroups});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::kNotFound);
}

TEST(LimitFinish, FileSizeIsNamedBySignalOnlyWhenAsked) {
  const rusage usage{};
  EXPECT_EQ(make({.file_size = 1_MiB}).finish(SIGXFSZ, usage).limits_hit, std::vector<std::string>{"file_size"});
  EXPECT_EQ(make({.file_size = 1_MiB}).finish(SIGXFSZ, usage).reason, Reason::kDisk);
  EXPECT_TRUE(make({}).finish(SIGXFSZ, usage).limits_hit.empty());
  EXPECT_TRUE(make({.file_size = 1_MiB}).finish(SIGKILL, usage).limits_hit.empty());
}

const EnforcementReport kReport = {{"limits.memory", "64MiB", "RLIMIT_DATA", Enforced::kPartial, "sampled"},
                                   {"limits.cpus", "1.5", "", Enforced::kNone, "no cgroup"},
                                   {"limits.pids", "32", "RLIMIT_NPROC", Enforced::kFull, ""}};

TEST(CheckRequired, NoneIsAnErrorUnlessAccepted) {
  const auto refused = check_required(kReport, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.error().line().find("limits.cpus"), std::string::npos);
  EXPECT_NE(refused.error().line().find("no cgroup"), std::string::npos);
  EXPECT_NE(refused.error().next().find("accept"), std::string::npos);
  EXPECT_TRUE(check_required(kReport, {.accept = {"limits.cpus"}}));
}

TEST(CheckRequired, ARequiredClauseMustBeFull) {
  EXPECT_TRUE(check_required(kReport, {.require = {"limits.pids"}, .accept = {"limits.cpus"}}));
  const auto refused = check_required(kReport, {.require = {"limits.memory"}, .accept = {"limits.cpus", "limits.memory"}});
  ASSERT_FALSE(refused) << "accept does not soften require";
  EXPECT_NE(refused.error().line().find("limits.memory"), std::string::npos);
}

TEST(CheckRequired, ARequirementWithoutARuleIsAnError) {
  const auto refused = check_required(kReport, {.require = {"limits.disk"}, .accept = {"limits.cpus"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().line().find("limits.disk"), std::string::npos);
}

}  // namespace
}  // namespace belljar::runtime
