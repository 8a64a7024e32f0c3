// make_sandbox where several backends may serve: `fallback`, `backend = "auto"`, policy.isolation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "belljar/error.h"
#include "belljar/mock.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "runtime/enforcement.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/in_a_child.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

class ChosenSandbox : public testing::Test {
 protected:
  ChosenSandbox() {
    config_.workspace = place_.path();
    config_.container.engine = "unix:///nonexistent/sock";
  }
  const test::TempDir place_;
  SandboxConfig config_;
};

TEST_F(ChosenSandbox, IsTheFirstThatStarts) {
  config_.backend = "container";
  config_.fallback = {"e2b", "native"};
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  EXPECT_FALSE((*sandbox)->exec("true")) << "it was not started";
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ((*sandbox)->backend(), "native");
  EXPECT_EQ((*sandbox)->start().error().code(), Code::kFailedPrecondition) << "it runs already";
  ASSERT_TRUE((*sandbox)->write_file("x", "written"));
  const auto result = (*sandbox)->exec("cat x");
  ASSERT_TRUE(result) << result.error().line();
  EXPECT_EQ(result->out.bytes, "written");
  EXPECT_EQ(result->backend, "native");
  ASSERT_EQ(result->tried.size(), 2U);
  EXPECT_EQ(result->tried[0].backend, "container");
  EXPECT_EQ(result->tried[1].backend, "e2b");
  EXPECT_NE(result->tried[1].why.find("a library of its own"), std::string::npos);
  ASSERT_TRUE((*sandbox)->stop());
  ASSERT_TRUE((*sandbox)->start()) << "again, from the first";
}

TEST_F(ChosenSandbox, SaysOnceWhyNoneStarts) {
  config_.backend = "container";
  config_.fallback = {"landlock"};
  config_.policy.isolation = Isolation::kNamespace;
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  const auto started = (*sandbox)->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().what(), "no backend can start this: tried container, landlock");
  EXPECT_NE(started.error().reason().find("landlock: the landlock backend is too weak"), std::string::npos)
      << started.error().reason();
}

TEST_F(ChosenSandbox, AutoHoldsWhatIsRequired) {
  config_.backend = "auto";
  config_.policy.isolation = Isolation::kNamespace;
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ((*sandbox)->backend(), "native");
  config_.policy.isolation = Isolation::kVm;
  EXPECT_FALSE((*make_sandbox(config_))->start());
}

// Document 003: kind local, WorkDir "./workspace".
TEST_F(ChosenSandbox, ARelativeWorkspaceIsBelowTheCurrentDirectory) {
  config_.backend = "local";
  config_.workspace = "./" + std::filesystem::proximate(place_.path()).string();
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ((*sandbox)->workspace(), place_.path());
  EXPECT_EQ((*sandbox)->exec("pwd")->out.bytes, place_.path() + "\n");
}

TEST_F(ChosenSandbox, LocalWorksInTheCurrentDirectoryUnlessOneIsNamed) {
  config_.backend = "local";
  const auto wrote_in = [&](const std::string& workspace) {  // in a process with a current directory of its own
    return test::in_a_child([&] {
      if (::chdir(place_.path().c_str()) != 0) return 1;
      config_.workspace = workspace;
      const auto sandbox = make_sandbox(config_);
      if (!sandbox || !(*sandbox)->start()) return 2;
      if ((*sandbox)->workspace() != (workspace.empty() ? place_.path() : workspace)) return 3;
      const auto result = (*sandbox)->exec("echo here >by-command");
      if (!result || result->exit_code != 0 || !(*sandbox)->write_file("by-call", "here\n")) return 4;
      return (*sandbox)->stop() ? 0 : 5;
    });
  };
  const test::TempDir named;
  if (test::is_root()) {
    named.give_to(test::user_uid(), test::user_gid());
    place_.give_to(test::user_uid(), test::user_gid());
  }
  EXPECT_EQ(wrote_in(named.path()), 0) << "the twin";
  EXPECT_TRUE(std::filesystem::is_empty(place_.path()));
  EXPECT_EQ(test::read_file(named / "by-command"), "here\n");
  EXPECT_EQ(wrote_in(""), 0);
  EXPECT_EQ(test::read_file(place_ / "by-command"), "here\n");
  EXPECT_EQ(test::read_file(place_ / "by-call"), "here\n");
}

TEST_F(ChosenSandbox, GuardRailsAreOnlyForWhoNamesThem) {
  config_.fallback = {"local"};
  EXPECT_EQ(make_sandbox(config_).error().code(), Code::kInvalidArgument);
  config_.fallback.clear();
  config_.backend = "mock";
  EXPECT_TRUE(make_sandbox(config_));
  config_.policy.isolation = Isolation::kLandlock;
  EXPECT_EQ(make_sandbox(config_).error().code(), Code::kFailedPrecondition);
}

TEST_F(ChosenSandbox, OnesOwnFactoriesHaveNamesInTheList) {
  config_.backend = "container";
  config_.fallback = {"e2b"};
  config_.factories["e2b"] = [](const SandboxConfig&) -> Result<std::shared_ptr<Sandbox>> {
    return std::shared_ptr<Sandbox>(MockSandbox::create("/workspace"));
  };
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ((*sandbox)->workspace(), "/workspace");
  config_.factory = config_.factories["e2b"];
  config_.fallback = {"native"};
  const auto first = make_sandbox(config_);
  ASSERT_TRUE((*first)->start());
  EXPECT_EQ((*first)->workspace(), "/workspace") << "a factory stands for the backend";
}

TEST_F(ChosenSandbox, RefusesWhatAnyBackendWouldRefuse) {
  config_.fallback = {"landlock"};
  config_.workspace = "/no/such/place";
  EXPECT_FALSE(make_sandbox(config_));
}

// Nothing of a mock's is held, so nothing of it may be required.
TEST(MockReport, TheMockHoldsNothing) {
  const auto sandbox = MockSandbox::create("/ws");
  ASSERT_TRUE(sandbox->start());
  const EnforcementReport report = sandbox->enforcement();
  ASSERT_FALSE(report.empty());
  for (const EnforcementClause& clause : report) EXPECT_EQ(clause.enforced, Enforced::kNone) << clause.clause;
  Policy policy;
  EXPECT_TRUE(runtime::check_required(report, policy));
  policy.require = {"mode"};
  EXPECT_FALSE(runtime::check_required(report, policy));
}

}  // namespace
}  // namespace belljar
