// How long a sandbox lives, what stays of it, and who makes it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/mock.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "command/request.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/held_start.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Lifecycle : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
    config_.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
  }
  void TearDown() override { EXPECT_EQ(left_.report(), ""); }

  std::shared_ptr<Sandbox> start() {
    auto made = make_sandbox(config_);
    if (!made) {
      ADD_FAILURE() << made.error().line();
      return nullptr;
    }
    const auto started = (*made)->start();
    EXPECT_TRUE(started) << started.error().line();
    return *made;
  }
  Error refusal() const {
    auto made = make_sandbox(config_);
    if (made) return Error(Code::kUnknown, "it was made");
    return made.error();
  }

  const test::TempDir place_;
  const test::Leftovers left_;
  SandboxConfig config_;
};

TEST_F(Lifecycle, UnusedItStopsByItself) {
  config_.workspace = place_.path();
  using Clock = std::chrono::steady_clock;
  // A busy machine may take longer from one use to the next than it may be idle: then again, with more time.
  for (auto idle = 300ms; idle < 60s; idle *= 2) {
    config_.idle_timeout = idle;
    const auto sandbox = start();
    ASSERT_TRUE(sandbox);
    auto last_use = Clock::now();  // or before it
    bool in_time = true;
    const auto uses = [&](auto use) {
      const auto begun = Clock::now();
      const bool used = use();
      in_time = in_time && Clock::now() - last_use < idle;
      if (in_time) {
        EXPECT_TRUE(used) << "in use for longer than the timeout";
      }
      last_use = begun;
    };
    for (int i = 0; i < 8 && in_time; ++i) {
      std::this_thread::sleep_for(idle / 3);
      uses([&] { return bool(sandbox->write_file("used", "x")); });
    }
    const auto twice = (2 * idle).count();
    const auto lasts = sandbox->exec(format("sleep {}.{:03}; echo a command is use", twice / 1000, twice % 1000));
    in_time = in_time && lasts;
    if (!in_time) continue;
    EXPECT_EQ(lasts->out.bytes, "a command is use\n");
    EXPECT_TRUE(test::eventually([&] { return !sandbox->stats(); }));
    const auto late = sandbox->exec("true");
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), Code::kFailedPrecondition);
    EXPECT_EQ(late.error().reason(), "it was not used for " + to_string(idle));
    ASSERT_TRUE(sandbox->start());
    EXPECT_TRUE(test::eventually([&] {
      const auto kept = sandbox->exec("cat used");
      if (kept && kept->out.bytes == "x") return true;
      (void)sandbox->start();  // it was idle already
      return false;
    }));
    return;
  }
  FAIL() << "it was never used in time";
}

TEST_F(Lifecycle, AnIdleTimeoutIsPositive) {
  config_.workspace = place_.path();
  for (const auto time : {0ms, -1ms}) {
    config_.idle_timeout = time;
    auto made = make_sandbox(config_);
    ASSERT_TRUE(made) << made.error().line();
    EXPECT_EQ((*made)->start().error().code(), Code::kInvalidArgument);
  }
  config_.idle_timeout = 1h;
  EXPECT_TRUE(start()->exec("true"));
}

TEST_F(Lifecycle, AWorkspaceOfItsOwnGoesWithIt) {
  config_.workspaces = place_.path();
  config_.on_stop = OnStop::kClean;
  const auto sandbox = start();
  EXPECT_TRUE(sandbox->workspace().starts_with(place_.path() + "/"));
  EXPECT_TRUE(sandbox->write_file("d/f", "x"));
  EXPECT_EQ(sandbox->exec("mkdir -p closed/in; chmod 0 closed").value().exit_code, 0);
  EXPECT_TRUE(sandbox->stop());
  EXPECT_TRUE(fs::is_empty(place_.path()));
  EXPECT_TRUE(sandbox->start());
  EXPECT_EQ(sandbox->list("d").error().code(), Code::kNotFound);
  EXPECT_TRUE(sandbox->stop());

  config_.on_stop = OnStop::kKeep;
  const auto kept = start();
  EXPECT_TRUE(kept->write_file("f", "x"));
  EXPECT_TRUE(kept->stop());
  EXPECT_TRUE(fs::exists(kept->workspace() + "/f"));
}

TEST_F(Lifecycle, AWorkspaceOfItsOwnGoesWhenIdlenessEndsIt) {
  config_.workspaces = place_.path();
  config_.on_stop = OnStop::kClean;
  // Used once: on a busy machine that may take more time than it may be idle.
  const auto used = [&] {
    for (auto idle = 200ms;; idle *= 2) {
      config_.idle_timeout = idle;
      auto sandbox = start();
      if (!sandbox || sandbox->write_file("f", "x") || idle > 60s) return sandbox;
    }
  };
  const auto sandbox = used();
  ASSERT_TRUE(sandbox);
  EXPECT_TRUE(test::eventually([&] { return fs::is_empty(place_.path()); }));
  EXPECT_TRUE(sandbox->start()) << "and is made again";
  EXPECT_TRUE(test::eventually([&] {
    const auto read = sandbox->read_file("f");
    if (!read && read.error().code() == Code::kNotFound) return true;
    (void)sandbox->start();  // it was idle already
    return false;
  }));
  EXPECT_TRUE(sandbox->stop());

  config_.on_stop = OnStop::kKeep;
  const auto kept = used();
  ASSERT_TRUE(kept);
  EXPECT_TRUE(test::eventually([&] { return !kept->stats(); }));
  EXPECT_TRUE(fs::exists(kept->workspace() + "/f"));
}

std::size_t own_watches() {
  std::size_t count = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    count += fs::read_symlink(entry, gone) == "anon_inode:inotify" ? 1 : 0;
  }
  return count;
}

// A user has 128 inotify instances on most machines, and may have more sandboxes.
TEST_F(Lifecycle, AWatchIsMadeForTheFirstControlFileOnly) {
  config_.workspace = place_.path();
  const auto sandbox = start();
  ASSERT_EQ(sandbox->exec("git init -q r && cat r/.git/config > copy").value().exit_code, 0);
  EXPECT_EQ(own_watches(), 0U);
  for (int i = 0; i < 2; ++i) {
    // A shell's own printf ends by dup2, which nobody is asked about; mkdir is.
    const auto written =
        sandbox->exec("printf '[user]\n\tname = D\n' >> r/.git/config && mkdir -p later && tail -n 1 r/.git/config");
    EXPECT_EQ(written.value().out.bytes, "\tname = D\n");
    EXPECT_EQ(own_watches(), 1U);
  }
  EXPECT_TRUE(sandbox->stop());
  // A thread that did a call for the broker may be the last to let go of it.
  EXPECT_TRUE(test::eventually([] { return own_watches() == 0; }));
}

TEST_F(Lifecycle, OneThatWasNeverStartedLeavesNothing) {
  config_.workspaces = place_.path();
  config_.on_stop = OnStop::kClean;
  EXPECT_TRUE(make_sandbox(config_));
  config_.backend = "no-such";
  EXPECT_FALSE(make_sandbox(config_));
  EXPECT_TRUE(fs::is_empty(place_.path()));
}

TEST_F(Lifecycle, APersistentVolumeKeepsOrForgets) {
  config_.persistent_volume = place_.path();
  {
    const auto sandbox = start();
    EXPECT_EQ(sandbox->exec("mkdir d && echo state >d/f").value().exit_code, 0);
  }
  {
    const auto sandbox = start();
    EXPECT_EQ(sandbox->read_file("d/f").value(), "state\n");
  }
  config_.on_start = OnStart::kEmpty;
  const auto sandbox = start();
  EXPECT_TRUE(sandbox->list()->empty());
  EXPECT_TRUE(fs::is_empty(place_.path()));
}

TEST_F(Lifecycle, AVolumeInUseIsNotEmptied) {
  config_.persistent_volume = place_.path();
  const auto first = start();
  ASSERT_TRUE(first->write_file("f", "x"));
  const auto second = start();
  EXPECT_EQ(second->read_file("f").value(), "x") << "two may share it";
  config_.on_start = OnStart::kEmpty;
  const auto third = make_sandbox(config_).value();
  EXPECT_EQ(third->start().error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(first->read_file("f").value(), "x");
  EXPECT_TRUE(first->stop());
  EXPECT_FALSE(third->start());
  EXPECT_TRUE(second->stop());
  EXPECT_TRUE(third->start());
  EXPECT_TRUE(third->list()->empty());
}

TEST_F(Lifecycle, ANulByteInAPathIsRefused) {
  const std::string cut = place_.path() + std::string("\0/x", 3);
  for (std::string SandboxConfig::* path :
       {&SandboxConfig::workspace, &SandboxConfig::workspaces, &SandboxConfig::persistent_volume, &SandboxConfig::state_dir,
        &SandboxConfig::transaction, &SandboxConfig::backend}) {
    SandboxConfig config = config_;
    config.*path = cut;
    const auto made = make_sandbox(config);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument) << made.error().line();
    EXPECT_EQ(made.error().reason(), "it holds a NUL byte");
  }
  config_.workspace = place_.path();
  EXPECT_TRUE(start()->exec("true"));
}

TEST_F(Lifecycle, ATimeoutOfThePolicyIsPositive) {
  config_.workspace = place_.path();
  config_.policy.limits.timeout = 0ms;
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
  config_.policy.limits.timeout = 5s;
  EXPECT_TRUE(start()->exec("true"));
}

TEST_F(Lifecycle, ABackendIsNamed) {
  config_.workspace = place_.path();
  config_.backend.clear();
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
}

TEST_F(Lifecycle, NobodysProjectIsCleaned) {
  config_.workspace = place_.path();
  config_.on_stop = OnStop::kClean;
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
  config_.on_stop = OnStop::kKeep;
  config_.on_start = OnStart::kEmpty;
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
  config_.on_start = OnStart::kRestore;
  config_.persistent_volume = place_.path();
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
  config_.persistent_volume.clear();
  EXPECT_TRUE(make_sandbox(config_));
}

TEST_F(Lifecycle, DiskThatGrowsTooMuchEndsTheCommandAndNotTheSandbox) {
  config_.workspace = place_.path();
  config_.policy.limits.disk = Bytes{8U << 20};
  const auto sandbox = start();
  const ExecResult result = sandbox->exec("head -c 60M /dev/zero >big; sleep 200").value();
  EXPECT_EQ(result.reason, Reason::kDisk) << result.message;
  ASSERT_EQ(result.violations.size(), 1U);
  EXPECT_EQ(result.violations[0].operation + " " + result.violations[0].target, "limit disk");
  EXPECT_EQ(result.violations[0].rule, "limits.disk");
  EXPECT_TRUE(sandbox->remove("big"));
  EXPECT_EQ(sandbox->exec("echo on").value().out.bytes, "on\n");
}

TEST_F(Lifecycle, ALimitThatWasReachedIsAViolationOfItsRule) {
  config_.workspace = place_.path();
  config_.policy.limits.timeout = 300ms;
  config_.policy.limits.max_timeout = 400ms;
  config_.origins = {{"limits.timeout", {"project", "/p/policy.toml", 3}}};
  const auto sandbox = start();
  const auto told = [&](const char* text, const ExecOptions& options) {
    std::string all;
    const ExecResult result = sandbox->exec(text, options).value();
    for (const Violation& each : result.violations)
      all += each.operation + " " + each.target + " " + each.rule + " " + to_string(each.origin) + " " + each.allowed + "\n";
    return all;
  };
  EXPECT_EQ(told("sleep 200", {}), "limit timeout limits.timeout project /p/policy.toml:3 up to 300ms\n");
  EXPECT_EQ(told("sleep 200", {.timeout = 10s}), "limit timeout limits.max_timeout built-in up to 400ms\n") << "its cap";
  EXPECT_EQ(told("sleep 200", {.timeout = 100ms}), "") << "the caller's own";
  EXPECT_EQ(told("sleep 200", {.timeout = 350ms}), "") << "the caller's own, too";
  EXPECT_TRUE(test::eventually([&] { return told("true", {}).empty(); })) << "300 ms are long enough, at some time";
}

// The times of the documents, where neither the call nor the policy says another; that one ends a command is seen with short ones.
TEST_F(Lifecycle, ACommandHasThirtySecondsAndFiveMinutesAtMost) {
  EXPECT_EQ(command::exec_timeout({}, {}), 30s);
  EXPECT_EQ(command::exec_timeout({.timeout = 24h}, {}), 5min);
  EXPECT_EQ(command::exec_timeout({.timeout = 1h}, {.max_timeout = 2h}), 1h) << "unless the policy says otherwise";
  for (const char* backend : {"native", "landlock", "local"}) {
    SCOPED_TRACE(backend);
    if (std::string(backend) == "landlock" && !test::landlock_abi_at_least(4).empty()) continue;
    config_.backend = backend;
    config_.workspace = place_.path();
    config_.policy.limits = {};
    const auto asked = [&] {
      const auto sandbox = start();
      const EnforcementReport report = sandbox ? sandbox->enforcement() : EnforcementReport();
      const auto clause = std::ranges::find(report, "limits.timeout", &EnforcementClause::clause);
      return clause == report.end() ? "no clause" : clause->asked;
    };
    EXPECT_EQ(asked(), "30s a command, at most 5m");
    config_.policy.limits.timeout = 200ms;
    config_.policy.limits.max_timeout = 300ms;
    EXPECT_EQ(asked(), "200ms a command, at most 300ms");
    const auto sandbox = start();
    ASSERT_TRUE(sandbox);
    const auto ended = [&](const ExecOptions& options) {
      const ExecResult result = sandbox->exec("sleep 1000", options).value();
      return format("{} {}", result.exit_code, result.message);
    };
    EXPECT_EQ(ended({}), "124 command timeout after 200ms");
    EXPECT_EQ(ended({.timeout = 24h}), "124 command timeout after 300ms");
  }
}

TEST_F(Lifecycle, WhatEndedByItselfWasEndedByNoLimit) {
  config_.workspace = place_.path();
  config_.policy.limits.disk = Bytes{1U << 20};
  const auto sandbox = start();
  EXPECT_TRUE(sandbox->write_file("big", std::string(3U << 20, 'x')));
  // The look at the disk may come first, on a busy machine; whichever was first is told.
  const auto ended_by_itself = [&] {
    const ExecResult result = sandbox->exec("exit 3").value();
    EXPECT_EQ(result.reason, result.exit_code == 3 ? Reason::kExited : Reason::kDisk) << result.message;
    return result.exit_code == 3;
  };
  EXPECT_TRUE(test::eventually(ended_by_itself));
}

TEST(SandboxConfigFrom, EnvironmentsChooseBackends) {
  const auto backend = [](const std::map<std::string, std::string>& environment) {
    auto config = sandbox_config_from(environment);
    return config ? config->backend : std::string("refused");
  };
  EXPECT_EQ(backend({}), "native");
  EXPECT_EQ(backend({{"BELLJAR_ENV", "development"}}), "local");
  EXPECT_EQ(backend({{"BELLJAR_ENV", "test"}}), "mock");
  EXPECT_EQ(backend({{"BELLJAR_ENV", "production"}}), "native");
  EXPECT_EQ(backend({{"BELLJAR_ENV", "test"}, {"BELLJAR_BACKEND", "landlock"}}), "landlock");
  EXPECT_EQ(backend({{"BELLJAR_ENV", "Production"}}), "refused");
  EXPECT_EQ(backend({{"BELLJAR_TIMEOUT", "soon"}}), "refused");
  EXPECT_EQ(backend({{"BELLJAR_TIMEOUT", "0"}}), "refused");
  EXPECT_EQ(backend({{"BELLJAR_BACKEND", "auto"}}), "auto");
  const auto mistyped = sandbox_config_from({{"BELLJAR_BACKEND", "contianer"}});
  ASSERT_FALSE(mistyped);
  EXPECT_EQ(mistyped.error().line(), "BELLJAR_BACKEND is `contianer`; there is no such backend; next: did you mean `container`?");
  EXPECT_EQ(sandbox_config_from({{"BELLJAR_TIMEOUT", "90s"}})->policy.limits.timeout, 90s);
}

// A mistyped name is no backend that does not start: the fallback does not take its place.
TEST(MakeSandbox, AnUnknownBackendIsRefusedWithTheNearestName) {
  SandboxConfig config;
  config.workspace = "/tmp";
  const auto refusal = [&](const std::string& name) {
    config.backend = name;
    const auto made = make_sandbox(config);
    return made ? "made" : made.error().line();
  };
  EXPECT_EQ(refusal("docker"), "there is no backend `docker`; next: did you mean `container`?");
  config.fallback = {"landlock"};
  EXPECT_EQ(refusal("natve"), "there is no backend `natve`; next: did you mean `native`?");
  config.factories["mine"] = [](const SandboxConfig&) -> Result<std::shared_ptr<Sandbox>> {
    return std::shared_ptr<Sandbox>(MockSandbox::create("/workspace"));
  };
  EXPECT_EQ(refusal("mine"), "made") << "the twin";
}

TEST(SandboxFactory, OnesOwnBackendIsUsed) {
  SandboxConfig config;
  config.workspace = "/somewhere";
  config.factory = [](const SandboxConfig& given) -> Result<std::shared_ptr<Sandbox>> {
    return std::shared_ptr<Sandbox>(MockSandbox::create(given.workspace + "/else"));
  };
  const auto made = make_sandbox(config);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->workspace(), "/somewhere/else");
}

TEST(SandboxFactory, OneThatMakesNothingIsAnError) {
  SandboxConfig config;
  config.factory = [](const SandboxConfig&) -> Result<std::shared_ptr<Sandbox>> { return std::shared_ptr<Sandbox>(); };
  EXPECT_EQ(make_sandbox(config).error().code(), Code::kInternal);
  config.factories["own"] = std::exchange(config.factory, {});
  config.backend = "own";
  EXPECT_EQ(make_sandbox(config).error().code(), Code::kInternal);
}

// A cloud is made by a factory.
TEST_F(Lifecycle, APolicyThatMakesNoSenseIsRefusedByEveryBackend) {
  const SandboxFactory elsewhere = [](const SandboxConfig&) -> Result<std::shared_ptr<Sandbox>> {
    return std::shared_ptr<Sandbox>(MockSandbox::create("/workspace"));
  };
  config_.factories = {{"e2b", elsewhere}};
  config_.workspace = place_.path();
  for (const char* backend : {"native", "landlock", "local", "mock", "container", "e2b", "own"}) {
    config_.backend = backend;
    config_.factory = config_.backend == "own" ? elsewhere : SandboxFactory();
    config_.policy.filesystem.entries = {{.path = "key", .access = Access::kNone}};
    EXPECT_EQ(refusal().what(), "filesystem.entries: `key` is not an absolute path") << backend;
    EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
    config_.policy.filesystem.entries = {{.path = "/key", .access = Access::kNone}};
    EXPECT_TRUE(make_sandbox(config_)) << backend;
    config_.policy.limits.timeout = 0ms;
    EXPECT_EQ(refusal().what(), "`limits.timeout` is 0s") << backend;
    config_.policy.limits.timeout.reset();
  }
}

// What no backend serves is refused by name, by the one that serves nothing at all, too.
TEST_F(Lifecycle, AMockRefusesWhatNoBackendServes) {
  config_.backend = "mock";
  config_.policy.commands.deny = {"git push"};
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  EXPECT_NE(refusal().what().find("cannot enforce commands.deny"), std::string::npos) << refusal().line();
  config_.policy.commands = {};
  config_.policy.limits.write_quota = Bytes{1};
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.limits.write_quota.reset();
  EXPECT_TRUE(make_sandbox(config_));
}

// As a mount of a file system that does not answer makes it: 60 s are given to a start that nobody cancels.
TEST_F(Lifecycle, AStartThatHangsEndsWhenItIsCancelled) {
  config_.workspaces = place_.path();
  config_.on_stop = OnStop::kClean;
  for (const bool by_the_call : {false, true}) {  // whose token it is: the call's, or the sandbox's
    int go[2];
    ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
    const UniqueFd gone(go[0]);
    UniqueFd goes(go[1]);
    test::HeldStart held([&] {
      goes.reset();
      SandboxConfig config = config_;
      const auto token = CancelToken::create();
      if (!token) return 1;
      if (!by_the_call) config.cancel = *token;
      std::thread canceller([&] {
        char byte = 0;
        (void)!::read(gone.get(), &byte, 1);
        token->cancel();
      });
      int code = 2;
      if (const auto sandbox = make_sandbox(config); sandbox) {
        const auto started = (*sandbox)->start({.cancel = by_the_call ? *token : CancelToken()});
        code = started ? 3 : started.error().code() == Code::kCanceled ? 42 : 4;
      }
      canceller.join();
      return code;
    });
    ASSERT_TRUE(held.await_call());
    goes.reset();
    EXPECT_TRUE(held.await_all_ended(60s));
    EXPECT_EQ(held.wait(), 42);
    EXPECT_TRUE(fs::is_empty(place_.path()));
  }
}

TEST_F(Lifecycle, ACancelledTokenStartsNothingMore) {
  config_.workspace = place_.path();
  const auto token = CancelToken::create();
  ASSERT_TRUE(token);
  config_.cancel = *token;
  const auto sandbox = start();
  ASSERT_TRUE(sandbox);
  token->cancel();
  EXPECT_EQ(sandbox->exec("echo it runs on").value().out.bytes, "it runs on\n");
  ASSERT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->start().error().code(), Code::kCanceled);
}

}  // namespace
}  // namespace belljar
