#include "backend/paths/live_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "backend/backend.h"
#include "backend/paths/fake_host.h"
#include "backend/paths/plan.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/seccomp.h"

namespace belljar::backend {
namespace {

class Nothing final : public broker::Surroundings {
 public:
  bool exists(int, std::string_view) const override { return false; }
};

struct Planned {
  PathPlan paths;
  std::shared_ptr<const broker::FileRules> rules;

  bool refuses(broker::Act act, std::string_view path) const {
    return rules->rule_for(act, path, false, Nothing()).answer == broker::Answer::kRefuse;
  }
};

Planned plan(const FsEntry& entry) {
  test::FakeHost host;
  host.dir("/home/u/ws/real").dir("/home/u/ro").link("/home/u/ws/link", "/home/u/ws/real");
  Policy policy;
  policy.filesystem.entries = {{.path = "/", .access = Access::kRead}, entry};
  auto paths = plan_paths(host, policy, {.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/home/u"});
  EXPECT_TRUE(paths);
  auto rules = make_file_rules(policy, *paths);
  return {*std::move(paths), std::move(rules)};
}

TEST(LiveRules, AHiddenNameThatIsAbsentBelowWhatIsWritableIsHeldByTheBroker) {
  const Planned planned = plan({.path = "/home/u/ws/later", .access = Access::kNone});
  for (const broker::Act act : {broker::Act::kRead, broker::Act::kCreate, broker::Act::kMkdir, broker::Act::kRenameTo}) {
    EXPECT_TRUE(planned.refuses(act, "/home/u/ws/later"));
    EXPECT_TRUE(planned.refuses(act, "/home/u/ws/later/x"));
    EXPECT_FALSE(planned.refuses(act, "/home/u/ws/later2"));
  }
  EXPECT_EQ(file_calls(planned.rules.get()), kernel::FileCalls::kAll);
  // Elsewhere the command makes nothing, and opens are not asked about.
  EXPECT_EQ(file_calls(plan({.path = "/home/u/ro/later", .access = Access::kNone}).rules.get()), kernel::FileCalls::kWrites);
}

TEST(LiveRules, AnAbsentNameIsHeldWhereALinkOnTheWayLeads) {
  const Planned hidden = plan({.path = "/home/u/ws/link/later", .access = Access::kNone});
  EXPECT_TRUE(hidden.refuses(broker::Act::kRead, "/home/u/ws/real/later"));
  EXPECT_TRUE(hidden.refuses(broker::Act::kCreate, "/home/u/ws/link/later"));  // were the link a directory by then
  EXPECT_FALSE(hidden.refuses(broker::Act::kRead, "/home/u/ws/real/other"));
  const Planned readonly = plan({.path = "/home/u/ws/link/later", .access = Access::kRead});
  EXPECT_TRUE(readonly.refuses(broker::Act::kCreate, "/home/u/ws/real/later"));
  EXPECT_FALSE(readonly.refuses(broker::Act::kRead, "/home/u/ws/real/later"));
}

TEST(LiveRules, WhatGoesAroundAHeldPatternIsNamed) {
  const Planned planned = plan({.path = "**/*.bin", .glob = true, .access = Access::kNone});
  const auto gap = std::ranges::find(planned.paths.gaps, "filesystem.globs", &Gap::clause);
  ASSERT_NE(gap, planned.paths.gaps.end());
  const EnforcementClause clause = held_clause(*gap, Mounts::kOwn);
  EXPECT_EQ(clause.enforced, Enforced::kPartial);
  EXPECT_NE(clause.detail.find("run as a program"), std::string::npos);
  const Planned granted = plan({.path = "**/*.out", .glob = true, .access = Access::kWrite});
  const auto grant = std::ranges::find(granted.paths.gaps, "filesystem.globs", &Gap::clause);
  EXPECT_EQ(held_clause(*grant, Mounts::kOwn).enforced, Enforced::kFull);
}

// The workspace of a transaction and nothing else: see is_judged_at_commit().
TEST(LiveRules, ACommitJudgesWhereNothingElseReachesTheHost) {
  const auto judged = [](const std::function<void(Policy&, Workplace&)>& change) {
    test::FakeHost host;
    host.dir("/home/u/ws/real").dir("/home/u/other").dir("/tmp");
    Policy policy;
    policy.filesystem.entries = {{.path = "/", .access = Access::kRead}};
    Workplace place{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/home/u"};
    place.layers = WorkspaceLayers{.pool = "/state/layers", .lower = {}, .upper = "1/up", .work = "1/work"};
    change(policy, place);
    auto paths = plan_paths(host, policy, place);
    EXPECT_TRUE(paths);
    const auto rules = make_file_rules(policy, *paths);
    return is_judged_at_commit(policy, *paths, *rules);
  };
  const auto with = [&](const FsEntry& entry) {
    return judged([&](Policy& policy, Workplace&) { policy.filesystem.entries.push_back(entry); });
  };
  EXPECT_TRUE(judged([](Policy&, Workplace&) {}));
  EXPECT_TRUE(with({.path = "/home/u/other", .access = Access::kNone}));
  EXPECT_FALSE(with({.path = "/home/u/ws/real", .access = Access::kRead})) << "what the host puts in its place is held by name";
  EXPECT_FALSE(judged([](Policy&, Workplace& place) { place.layers.reset(); }));
  EXPECT_FALSE(judged([](Policy& policy, Workplace&) { policy.filesystem.protect = Protect::kAll; }));
  EXPECT_FALSE(judged([](Policy& policy, Workplace&) { policy.filesystem.tmp = Tmp::kShared; }));
  EXPECT_FALSE(with({.path = "/home/u/other", .access = Access::kWrite}));
  EXPECT_FALSE(with({.path = "/home/u/ws/real", .access = Access::kWrite})) << "a root of its own, which no commit knows";
  EXPECT_FALSE(with({.path = "/home/u/ws/later", .access = Access::kRead}));
  EXPECT_FALSE(with({.path = "/home/u/ws/later", .access = Access::kNone}));
  EXPECT_FALSE(with({.path = "**/*.bin", .glob = true, .access = Access::kRead}));
  EXPECT_FALSE(judged([](Policy& policy, Workplace&) {
    policy.filesystem.volumes = {{.source = "/home/u/other", .target = "/data", .readonly = false}};
  }));
}

// By the host that git would ask, wherever else a name that is allowed stands in the URL.
TEST(LiveRules, AGitServerIsReachedAsThePolicySays) {
  const auto reaches = [](NetMode mode, std::string_view url) {
    test::FakeHost host;
    host.dir("/home/u/ws");
    Policy policy;
    policy.network.mode = mode;
    policy.network.allowed_domains = {"here.test:443", "shell.test:22"};
    policy.filesystem.entries = {{.path = "/", .access = Access::kRead}};
    const auto paths = plan_paths(host, policy, {.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/home/u"});
    EXPECT_TRUE(paths);
    return make_file_rules(policy, *paths)->reaches(url);
  };
  for (const char* url : {"https://here.test/x", "https://u:p@here.test/x", "https://here.test:443/x", "ssh://git@shell.test/x",
                          "git@shell.test:x", "shell.test:x@y"})
    EXPECT_TRUE(reaches(NetMode::kProxy, url)) << url;
  for (const char* url : {"http://here.test/x", "https://there.test/x", "https://here.test@there.test/x",
                          "https://here.test?@there.test/x", "https://there.test?@here.test/x", "git@there.test:a@shell.test",
                          "git@there.test:a:shell.test", "git@there.test:/@shell.test", "[shell.test:22]:x", "git://here.test/x"})
    EXPECT_FALSE(reaches(NetMode::kProxy, url)) << url;
  EXPECT_FALSE(reaches(NetMode::kNone, "https://here.test/x"));
  EXPECT_TRUE(reaches(NetMode::kHost, "https://there.test/x"));
}

}  // namespace
}  // namespace belljar::backend
