// include/belljar/run.h, as an embedder uses it: a policy written in code, no files, no flags.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>

#include "belljar/run.h"
#include "runtime/support_plain.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class Library : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (test::is_root()) {
      workspace_.give_to(test::user_uid(), test::user_gid());
      other_.give_to(test::user_uid(), test::user_gid());
    }
  }
  ExecResult shell(const std::string& text, const Policy& policy = {}, RunOptions options = {}) const {
    options.workspace = workspace_.path();
    auto result = run(policy, shell_command(text), options);
    if (!result) {
      ADD_FAILURE() << result.error().line();
      return {};
    }
    return *std::move(result);
  }
  test::TempDir workspace_, other_;
};

TEST_F(Library, ADefaultPolicyWritesTheWorkspaceOnly) {
  const ExecResult result = shell("pwd; echo in > file && echo out > " + other_.path() + "/file");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.out.bytes, workspace_.path() + "\n");
  EXPECT_EQ(test::read_file(workspace_ / "file"), "in\n");
  EXPECT_FALSE(test::exists(other_ / "file"));
}

TEST_F(Library, ARuleOfTheCallerAddsToTheDefault) {
  Policy policy;
  policy.filesystem.entries.push_back({.path = other_.path(), .access = Access::kWrite});
  EXPECT_EQ(shell("echo out > " + other_.path() + "/file", policy).exit_code, 0);
  EXPECT_EQ(test::read_file(other_ / "file"), "out\n");
}

TEST_F(Library, ReadOnlyIsReadOnly) {
  Policy policy;
  policy.mode = Mode::kReadOnly;
  EXPECT_NE(shell("echo in > file", policy).exit_code, 0);
  EXPECT_FALSE(test::exists(workspace_ / "file"));
}

TEST_F(Library, SecretsAreHiddenUnlessThePolicySaysOtherwise) {
  const std::string key = other_.write(".ssh/id_rsa", "secret\n");
  if (test::is_root()) other_.give_to(test::user_uid(), test::user_gid());
  const RunOptions options{.caller_env = {{"HOME", other_.path()}, {"PATH", "/usr/bin:/bin"}}};
  Policy open;
  open.filesystem.entries.push_back({.path = other_.path(), .access = Access::kRead});
  EXPECT_NE(shell("cat " + key, open, options).exit_code, 0);
  open.filesystem.secrets = Secrets::kNone;
  EXPECT_EQ(shell("cat " + key, open, options).out.bytes, "secret\n");
}

TEST_F(Library, WhatMountsRefuseIsAViolation) {
  const std::string hidden = workspace_.write("hidden", "KEPT\n");
  if (test::is_root()) workspace_.give_to(test::user_uid(), test::user_gid());
  Policy policy;
  policy.filesystem.entries.push_back({.path = hidden, .access = Access::kNone});
  const ExecResult refused = shell("echo out >/etc/belljar-test; rm hidden; echo in >free", policy);
  ASSERT_EQ(refused.violations.size(), 2U) << refused.err.bytes;
  EXPECT_EQ(refused.violations[0].operation + " " + refused.violations[0].target, "create /etc/belljar-test");
  EXPECT_EQ(refused.violations[1].operation + " " + refused.violations[1].target, "delete " + hidden);
  EXPECT_EQ(test::read_file(hidden), "KEPT\n");
  EXPECT_TRUE(shell("rm hidden").violations.empty());
  EXPECT_FALSE(test::exists(hidden));
}

TEST_F(Library, InputAndEnvironmentArrive) {
  auto pipe = test::open_pipe();
  ASSERT_EQ(write(pipe.write.get(), "given", 5), 5);
  pipe.write.reset();
  Command command = shell_command("cat; echo $GREETING");
  command.env["GREETING"] = "hello";
  auto result = run({}, command, {.workspace = workspace_.path(), .input_fd = pipe.read.get()});
  ASSERT_TRUE(result) << result.error().line();
  EXPECT_EQ(result->out.bytes, "givenhello\n");
}

TEST_F(Library, OutputIsCappedAndCounted) {
  const ExecResult result = shell("yes | head -c 300000");
  EXPECT_EQ(result.out.bytes.size(), 200000U);
  EXPECT_EQ(result.out.total, 300000U);
  EXPECT_EQ(result.out.omitted, 100000U);
}

// Nothing hides cgroupfs from a command with full access; in the sandbox it is read-only.
TEST_F(Library, AGroupThatTheCommandCouldChangeIsPartial) {
  const auto memory = [&](Mode mode) {
    Policy policy;
    policy.mode = mode;
    policy.limits.memory = Bytes{512U << 20};
    for (const EnforcementClause& clause : shell("true", policy).enforcement) {
      if (clause.clause == "limits.memory") return clause;
    }
    ADD_FAILURE() << "no clause";
    return EnforcementClause{};
  };
  const EnforcementClause open = memory(Mode::kDangerFullAccess);
  if (!open.mechanism.starts_with("cgroup")) GTEST_SKIP() << "needs a cgroup";
  EXPECT_EQ(open.enforced, Enforced::kPartial) << open.detail;
  EXPECT_NE(open.detail.find("its own group"), std::string::npos) << open.detail;
  EXPECT_EQ(memory(Mode::kWorkspaceWrite).detail.find("its own group"), std::string::npos);
}

TEST_F(Library, WhatTheCommandDoesIsAResult) {
  Policy policy;
  policy.limits.timeout = 200ms;
  EXPECT_EQ(shell("sleep 1000", policy).reason, Reason::kTimeout);
  EXPECT_EQ(shell("exit 3").exit_code, 3);
  auto missing = run({}, {.argv = {"no-such-program"}}, {.workspace = workspace_.path()});
  ASSERT_TRUE(missing) << missing.error().line();
  EXPECT_EQ(missing->reason, Reason::kStartFailed);
  EXPECT_EQ(missing->exit_code, 127);
}

TEST_F(Library, WhatTheCallerGotWrongIsAnError) {
  EXPECT_EQ(run({}, shell_command("true"), {.workspace = "/no/such/place"}).error().code(), Code::kNotFound);
  EXPECT_EQ(run({}, {}, {.workspace = workspace_.path()}).error().code(), Code::kInvalidArgument);
  Command outside = shell_command("true");
  outside.cwd = "/etc";
  EXPECT_EQ(run({}, outside, {.workspace = workspace_.path()}).error().code(), Code::kInvalidArgument);
  Policy elsewhere;
  elsewhere.backend = "docker";
  EXPECT_EQ(run(elsewhere, shell_command("true"), {.workspace = workspace_.path()}).error().code(), Code::kUnimplemented);
  Policy filtered;
  filtered.network.mode = NetMode::kProxy;
  EXPECT_TRUE(run(filtered, shell_command("true"), {.workspace = workspace_.path()}));
  filtered.network.allowed_domains = {"https://no.rule/"};
  EXPECT_EQ(run(filtered, shell_command("true"), {.workspace = workspace_.path()}).error().code(), Code::kInvalidArgument);
  filtered.network = {.mode = NetMode::kHost, .publish = {{8080, 8080}}};
  EXPECT_EQ(run(filtered, shell_command("true"), {.workspace = workspace_.path()}).error().code(), Code::kUnimplemented);
}

TEST_F(Library, ARuleForARelativePathIsAnError) {
  const std::string key = workspace_.write("key", "secret\n");
  if (test::is_root()) workspace_.give_to(test::user_uid(), test::user_gid());
  const auto hidden = [&](const std::string& path) {
    Policy policy;
    policy.filesystem.entries.push_back({.path = path, .access = Access::kNone});
    return run(policy, shell_command("cat " + key), {.workspace = workspace_.path()});
  };
  EXPECT_EQ(shell("cat " + key).out.bytes, "secret\n");
  for (const char* path : {"key", "./key", "~/key"}) {
    const auto refused = hidden(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument) << refused.error().line();
  }
  for (const std::string& path : {key, key + "/", workspace_.path() + "/./x/../key"}) {
    const auto held = hidden(path);
    ASSERT_TRUE(held) << held.error().line();
    EXPECT_EQ(held->out.bytes, "") << path;
    EXPECT_NE(held->exit_code, 0) << path;
  }
}

TEST_F(Library, AVariableWithARelativePathNamesNoPlace) {
  workspace_.make_dir("rel");
  if (test::is_root()) workspace_.give_to(test::user_uid(), test::user_gid());
  char before[PATH_MAX];
  ASSERT_NE(getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(chdir(workspace_.path().c_str()), 0);  // so that the relative names are there
  for (const char* name : {"HOME", "TMPDIR", "XDG_RUNTIME_DIR"}) {
    for (const std::string& path : {std::string("rel"), workspace_ / "rel"}) {
      const RunOptions options{.workspace = workspace_.path(), .caller_env = {{name, path}, {"PATH", "/usr/bin:/bin"}}};
      const auto ran = run({}, shell_command("echo fine"), options);
      EXPECT_EQ(ran ? ran->out.bytes : ran.error().line(), "fine\n") << name << " " << path;
    }
  }
  ASSERT_EQ(chdir(before), 0);
}

TEST_F(Library, ACommandThatCannotBePassedOnIsAnError) {
  const auto ran = [&](const Command& command) { return run({}, command, {.workspace = workspace_.path()}); };
  EXPECT_EQ(ran({{"echo", std::string("a\0b", 3)}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ran({.argv = {"true"}, .cwd = workspace_.path() + std::string("\0x", 2)}).error().code(), Code::kInvalidArgument);
  for (const char* name : {"A=B", ""})
    EXPECT_EQ(ran({.argv = {"env"}, .env = {{name, "x"}}}).error().code(), Code::kInvalidArgument) << name;
  const auto fine = ran({.argv = {"sh", "-c", "echo $A \"$1\"", "sh", "a b"}, .env = {{"A", "B=C"}}});
  ASSERT_TRUE(fine) << fine.error().line();
  EXPECT_EQ(fine->out.bytes, "B=C a b\n");
}

TEST_F(Library, ATimeoutIsPositive) {
  const auto code = [&](std::chrono::milliseconds timeout) {
    Policy policy;
    policy.limits.timeout = timeout;
    const auto ran = run(policy, shell_command("true"), {.workspace = workspace_.path()});
    return ran ? std::optional<Code>() : ran.error().code();
  };
  EXPECT_EQ(code(0s), Code::kInvalidArgument);
  EXPECT_EQ(code(-1s), Code::kInvalidArgument);
  EXPECT_EQ(code(30s), std::nullopt);
}

// Twin: every other test here names the workspace.
TEST_F(Library, AHomeOrRootIsNoWorkspaceUnlessNamed) {
  const test::TempDir home;
  if (test::is_root()) home.give_to(test::user_uid(), test::user_gid());
  char before[PATH_MAX];
  ASSERT_NE(getcwd(before, sizeof before), nullptr);
  const RunOptions at_home{.caller_env = {{"HOME", home.path()}, {"PATH", "/usr/bin:/bin"}}};
  ASSERT_EQ(chdir(home.path().c_str()), 0);
  EXPECT_EQ(run({}, shell_command("true"), at_home).error().code(), Code::kInvalidArgument);
  ASSERT_EQ(chdir("/"), 0);
  EXPECT_EQ(run({}, shell_command("true"), at_home).error().code(), Code::kInvalidArgument);
  ASSERT_EQ(chdir(workspace_.path().c_str()), 0);
  EXPECT_EQ(run({}, shell_command("true"), at_home)->exit_code, 0);
  ASSERT_EQ(chdir(before), 0);
}

TEST_F(Library, ManyRunsLeaveNoDescriptorAndNoProcess) {
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) != -1 ? 1 : 0;
    return count;
  };
  shell("true");
  const test::Leftovers left;
  const int before = open_files();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(shell("sleep 100 & echo x").exit_code, 0);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(left.report(), "");
}

}  // namespace
}  // namespace belljar
