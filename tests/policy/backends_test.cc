#include "policy/backends.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

using Names = std::vector<std::string>;

Names order(std::string_view backend, const Names& fallback = {}, Isolation wanted = Isolation::kNone) {
  const auto found = backend_order(backend, fallback, wanted);
  return found ? *found : Names{found.error().line()};
}

TEST(Backends, TheListIsTriedInItsOrderEachOnce) {
  EXPECT_EQ(order("native"), Names{"native"});
  EXPECT_EQ(order(""), Names{"native"});
  EXPECT_EQ(order("native", {"e2b", "landlock", "native"}), (Names{"native", "e2b", "landlock"}));
  EXPECT_EQ(order("mock", {"native"}), (Names{"mock", "native"})) << "who names it gets it";
}

TEST(Backends, AutoTakesAContainerOnlyWhereMoreThanNamespacesIsAsked) {
  EXPECT_EQ(order("auto"), (Names{"native", "landlock"}));
  EXPECT_EQ(order("auto", {}, Isolation::kNamespace), (Names{"native", "landlock"}));
  EXPECT_EQ(order("auto", {}, Isolation::kContainer), (Names{"native", "landlock", "container"}));
  EXPECT_EQ(order("auto", {"e2b"}, Isolation::kVm), (Names{"native", "landlock", "container", "e2b"}));
}

TEST(Backends, OnlyAContainerHasAnImage) {
  Policy policy;
  policy.container.image = "golang:1.21";
  const Names native{"native", "landlock"}, both{"native", "container"};
  const auto refused = check_backend_keys(policy, native);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what(), "`container.image` cannot be used with the backend `native`");
  EXPECT_TRUE(check_backend_keys(policy, both));
  EXPECT_TRUE(check_backend_keys(Policy{}, native));
}

TEST(Backends, TheEnvironmentNamesOneAsTheDocumentsDo) {
  using Variables = std::map<std::string, std::string>;
  const auto said = [](const Variables& variables) {
    const auto found = backend_of_environment([&](const char* name) {
      const auto variable = variables.find(name);
      return variable == variables.end() ? std::string() : variable->second;
    });
    return found ? found->variable + " " + found->backend + (found->own_containers ? " each" : "") : found.error().what();
  };
  EXPECT_EQ(said({}), " ");
  EXPECT_EQ(said({{"BELLJAR_ENV", "development"}}), "BELLJAR_ENV local");
  EXPECT_EQ(said({{"BELLJAR_ENV", "test"}}), "BELLJAR_ENV mock");
  EXPECT_EQ(said({{"BELLJAR_ENV", "production"}}), "BELLJAR_ENV native");
  EXPECT_EQ(said({{"BELLJAR_ENV", "staging"}}), "BELLJAR_ENV is `staging`");
  EXPECT_EQ(said({{"SANDBOX_COMMANDS", "true"}, {"BELLJAR_ENV", "production"}}), "SANDBOX_COMMANDS container each");
  EXPECT_EQ(said({{"SANDBOX_COMMANDS", "1"}}), " ") << "true, exactly";
  EXPECT_EQ(said({{"BELLJAR_BACKEND", "landlock"}, {"BELLJAR_ENV", "test"}}), "BELLJAR_BACKEND landlock");
  EXPECT_EQ(said({{"BELLJAR_BACKEND", "docker"}}), "BELLJAR_BACKEND is `docker`");
}

TEST(Backends, GuardRailsAreNeverFallenBackTo) {
  for (const char* name : {"local", "mock", "auto", "docker", ""}) {
    const auto refused = backend_order("native", Names{name}, Isolation::kNone);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(backend_order("native", Names{"landlock"}, Isolation::kNone)) << "the twin";
}

TEST(Backends, WhatIsTooWeakIsKnownBefore) {
  EXPECT_EQ(too_weak("landlock", Isolation::kNamespace), "isolation namespace is required, and it has landlock at most");
  EXPECT_EQ(too_weak("mock", Isolation::kGuardRails), "isolation guard-rails is required, and it has none at most");
  EXPECT_EQ(too_weak("aliyun", Isolation::kVm), "isolation vm is required, and it has container at most");
  for (const BackendKind& kind : backend_kinds()) EXPECT_EQ(too_weak(kind.name, kind.most), "") << kind.name;
  EXPECT_EQ(too_weak("container", Isolation::kVm), "") << "its runtime decides";
}

TEST(Backends, AnotherIsTriedForWhatAnotherCouldDoBetter) {
  EXPECT_TRUE(is_worth_another(Error(Code::kUnavailable, "no engine")));
  EXPECT_TRUE(is_worth_another(Error(Code::kFailedPrecondition, "no user namespaces")));
  EXPECT_TRUE(is_worth_another(Error(Code::kUnimplemented, "no --txn")));
  EXPECT_FALSE(is_worth_another(Error(Code::kInvalidArgument, "no command")));
  EXPECT_FALSE(is_worth_another(Error(Code::kInternal, "a bug")));
}

TEST(Backends, OneMessageTellsOfAll) {
  const std::vector<TriedBackend> tried = {{"native", "no user namespaces"}, {"container", "no engine"}};
  EXPECT_EQ(none_starts(tried).what(), "no backend can start this: tried native, container");
  EXPECT_EQ(none_starts(tried).reason(), "native: no user namespaces; container: no engine");
  EXPECT_EQ(fallback_note("landlock", tried),
            "warning: the landlock backend holds this run, by fallback: native: no user namespaces; container: no engine");
}

TEST(Backends, TheClauseReadsNoneWhereLessHolds) {
  Policy policy;
  EnforcementReport report;
  report_isolation(policy, Isolation::kNone, "nothing", report);
  EXPECT_TRUE(report.empty()) << "nothing was asked";
  policy.isolation = Isolation::kContainer;
  report_isolation(policy, Isolation::kVm, "runtime kata", report);
  report_isolation(policy, Isolation::kNamespace, "namespaces", report);
  ASSERT_EQ(report.size(), 2U);
  EXPECT_EQ(report[0].enforced, Enforced::kFull);
  EXPECT_EQ(report[1].enforced, Enforced::kNone);
}

}  // namespace
}  // namespace belljar::policy
