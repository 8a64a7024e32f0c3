// The volcengine backend as a Sandbox, against a server of our own. Its parts one by one: volcengine_service_test.cc; that it is a
// Sandbox like every other: tests/conformance.
#include "belljar/volcengine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "belljar/cloud.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/policy.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "support/eventually.h"
#include "support/fake_volcengine.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"
#include "support/time_enough.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class Volcengine : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(program("python3"));
    left_ = std::make_unique<test::Leftovers>();
    fake_ = std::make_unique<test::FakeVolcengine>();
    // A real directory: what runs there is on this machine, and knows no /home/gem.
    config_.workspace = work_.path();
    config_.caller_env = {{"PATH", "/nowhere"}, {"LANG", "C.UTF-8"}, {"TOLD", "named"}};
    config_.policy.limits.kill_grace = 200ms;
  }
  void TearDown() override {
    if (fake_ == nullptr) return;
    fake_.reset();
    EXPECT_EQ(left_->report(), "") << "of a sandbox that was ended";
  }

  std::shared_ptr<CloudSandbox> create(VolcengineOptions options) const {
    auto sandbox = VolcengineSandbox::create(10min, std::move(options), config_);
    EXPECT_TRUE(sandbox) << sandbox.error().line();
    return sandbox ? *sandbox : nullptr;
  }
  std::shared_ptr<CloudSandbox> create() const { return create(fake_->options()); }
  Error refusal(VolcengineOptions options) const {
    auto sandbox = VolcengineSandbox::create(10min, std::move(options), config_);
    return sandbox ? Error(Code::kUnknown, "it was created") : sandbox.error();
  }
  Error refusal() const { return refusal(fake_->options()); }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    auto result = sandbox.exec(text);
    EXPECT_TRUE(result) << result.error().line();
    return result ? result->out.bytes + result->err.bytes : "";
  }
  static std::string clause(const Sandbox& sandbox, const std::string& name) {
    for (const EnforcementClause& found : sandbox.enforcement()) {
      if (found.clause == name) return std::string(to_string(found.enforced));
    }
    return "absent";
  }

  test::TempDir work_;
  SandboxConfig config_;
  std::unique_ptr<test::Leftovers> left_;
  std::unique_ptr<test::FakeVolcengine> fake_;
};

TEST_F(Volcengine, CreateRunsForTenMinutesAndStopKills) {
  const auto sandbox = create();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(sandbox->backend(), "volcengine");
  EXPECT_NE(fake_->log().find(R"(\"Timeout\":600,\"TimeoutUnit\":\"second\")"), std::string::npos);
  EXPECT_EQ(sandbox->exec("echo out; exit 3")->exit_code, 3);
  EXPECT_EQ(sandbox->exec("sleep 300", {.timeout = 300ms})->exit_code, 124);
  EXPECT_EQ(out(*sandbox, "pwd"), work_.path() + "\n");
  const std::string id = sandbox->sandbox_id();
  EXPECT_TRUE(sandbox->set_timeout(1h));
  EXPECT_TRUE(sandbox->stop());
  EXPECT_NE(fake_->log().find("Action=KillSandbox"), std::string::npos);
  EXPECT_EQ(sandbox->exec("true").error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(sandbox->kill().value()) << "it is gone already";
  EXPECT_EQ(VolcengineSandbox::connect(id, fake_->options(), config_).error().code(), Code::kNotFound);
}

TEST_F(Volcengine, OneLineChangesTheBackend) {
  config_.factory = volcengine_backend(fake_->options());
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox);
  EXPECT_EQ((*sandbox)->exec("true").error().code(), Code::kFailedPrecondition) << "not started";
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ(out(**sandbox, "echo here"), "here\n");
  config_.factory = {};
  config_.backend = "volcengine";
  EXPECT_NE(make_sandbox(config_).error().next().find("set config.factory = volcengine_backend() (belljar/volcengine.h)"),
            std::string::npos);
}

TEST_F(Volcengine, AMapOfConfigurationMakesOne) {
  auto config = volcengine_config_from({{"region", "cn-beijing"},
                                        {"access_key_id", fake_->options().access_key_id},
                                        {"secret_access_key", test::FakeVolcengine::secret()},
                                        {"instance_type", "performance"},
                                        {"timeout", "900"},
                                        {"auto_destroy", "false"},
                                        {"workdir", work_.path()}},
                                       fake_->options());
  ASSERT_TRUE(config) << config.error().line();
  config->policy.limits.kill_grace = 200ms;
  const auto sandbox = make_sandbox(*config);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_NE(fake_->log().find(R"(\"Timeout\":900)"), std::string::npos);
  EXPECT_NE(fake_->log().find(R"(\"CpuMilli\":4000)"), std::string::npos);
  EXPECT_TRUE((*sandbox)->stop());
  EXPECT_EQ(fake_->log().find("Action=KillSandbox"), std::string::npos) << "auto_destroy = false";
}

TEST_F(Volcengine, FilesGoThereAndBack) {
  const auto sandbox = create();
  std::string bytes(300'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  ASSERT_TRUE(sandbox->write_file("dir/file", bytes));
  EXPECT_TRUE(sandbox->read_file("dir/file").value() == bytes);
  ASSERT_TRUE(sandbox->write_file("dir/file", "tail", {.how = WriteMode::kAppend}));
  EXPECT_EQ(sandbox->stat("dir/file")->size, bytes.size() + 4);
  EXPECT_EQ(sandbox->read_file("missing").error().code(), Code::kNotFound);
  EXPECT_FALSE(sandbox->read_file("../out"));
}

TEST_F(Volcengine, PauseKeepsFilesAndStartResumes) {
  VolcengineOptions options = fake_->options();
  options.on_stop = CloudOnStop::kPause;
  const auto sandbox = create(options);
  const std::string id = sandbox->sandbox_id();
  ASSERT_TRUE(sandbox->write_file("file", "kept"));
  ASSERT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->health().error().code(), Code::kUnavailable);
  ASSERT_TRUE(sandbox->start());
  EXPECT_NE(fake_->log().find("Action=ResumeSandbox"), std::string::npos);
  EXPECT_EQ(sandbox->sandbox_id(), id);
  EXPECT_EQ(sandbox->read_file("file").value(), "kept");
  EXPECT_TRUE(sandbox->kill().value());
}

TEST_F(Volcengine, ConnectLeavesWhatItFound) {
  const auto first = create();
  ASSERT_TRUE(first->write_file("file", "x"));
  {
    const auto second = VolcengineSandbox::connect(first->sandbox_id(), fake_->options(), config_);
    ASSERT_TRUE(second) << second.error().line();
    EXPECT_EQ((*second)->read_file("file").value(), "x");
    EXPECT_EQ(fake_->log().find("Action=SetSandboxTimeout"), std::string::npos) << "its time is its owner's";
  }
  EXPECT_EQ(out(*first, "cat file"), "x");
}

TEST_F(Volcengine, WhenItsTimeIsOverTheCommandsAreLost) {
  const auto sandbox = create();
  std::atomic<bool> came{false};
  auto sleeper = sandbox->spawn(shell_command("echo begun; sleep 300"), {.on_stdout = [&](std::string_view) { came = true; }});
  ASSERT_TRUE(sleeper);
  EXPECT_TRUE(test::eventually([&] {
    EXPECT_FALSE((*sleeper)->wait(20ms)->has_value());
    return came.load();
  }));
  fake_->misbehave("expired=1");  // whatever was asked for
  EXPECT_EQ(sandbox->health().error().code(), Code::kUnavailable);
  EXPECT_FALSE(sandbox->exec("true"));
  const ExecResult cut = (*sleeper)->wait()->value();
  EXPECT_EQ(cut.reason, Reason::kCancelled);
  EXPECT_NE(cut.exit_code, 0);
}

TEST_F(Volcengine, WhatCannotBeHeldIsSaidAndRefused) {
  {
    const auto sandbox = create();
    EXPECT_EQ(clause(*sandbox, "filesystem.root"), "full");
    EXPECT_EQ(clause(*sandbox, "filesystem.write"), "none");
    EXPECT_EQ(clause(*sandbox, "network"), "partial");
  }
  config_.policy.limits.memory = 1_GiB;
  config_.policy.limits.cpus = 2;
  {
    const auto sandbox = create();
    EXPECT_EQ(clause(*sandbox, "limits.memory"), "partial");
    EXPECT_EQ(clause(*sandbox, "limits.cpus"), "partial");
    EXPECT_NE(fake_->log().find(R"(\"CpuMilli\":2000)"), std::string::npos);
  }
  config_.policy.limits.memory = 100_MiB;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.limits.memory = {};
  config_.policy.limits.disk = 1_GiB;
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
  config_.policy.accept = {"limits.disk"};
  EXPECT_EQ(refusal().what(), "it was created");
  config_.policy.network.mode = NetMode::kProxy;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.network.mode = NetMode::kHost;
  EXPECT_EQ(refusal().what(), "it was created");
}

TEST_F(Volcengine, BadOptionsAreRefusedBeforeAnybodyIsAsked) {
  const auto code = [&](auto&& change) {
    VolcengineOptions options = fake_->options();
    change(options);
    return refusal(options).code();
  };
  EXPECT_EQ(VolcengineSandbox::create(1min, fake_->options(), config_).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(VolcengineSandbox::connect("", fake_->options(), config_).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(VolcengineSandbox::connect("../x", fake_->options(), config_).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(code([](VolcengineOptions& options) { options.ready_interval = 0ms; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](VolcengineOptions& options) { options.request_timeout = 0ms; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](VolcengineOptions& options) { options.secret_access_key.clear(); }), Code::kInvalidArgument);
  EXPECT_EQ(code([](VolcengineOptions& options) { options.endpoint = "http://elsewhere.example.com"; }), Code::kInvalidArgument);
  EXPECT_EQ(fake_->log(), "");
  EXPECT_EQ(code([](VolcengineOptions&) {}), Code::kUnknown) << "it was created";
}

TEST_F(Volcengine, AContainerIsUsedAndLeft) {
  EXPECT_EQ(refusal(fake_->aio_options()).code(), Code::kFailedPrecondition) << "who started it decides about its network";
  config_.policy.accept = {"network"};
  {
    const auto sandbox = create(fake_->aio_options());
    ASSERT_NE(sandbox, nullptr);
    EXPECT_EQ(clause(*sandbox, "network"), "none");
    ASSERT_TRUE(sandbox->write_file("file", "x"));
    EXPECT_EQ(out(*sandbox, "cat file"), "x");
    EXPECT_EQ(sandbox->set_timeout(10min).error().code(), Code::kUnimplemented);
    EXPECT_EQ(sandbox->kill().error().code(), Code::kUnimplemented);
    EXPECT_TRUE(sandbox->stop());
  }
  const auto again = create(fake_->aio_options());
  EXPECT_EQ(out(*again, "cat file; ls -A"), "xfile\n");
  VolcengineOptions options = fake_->aio_options();
  options.on_stop = CloudOnStop::kKill;
  EXPECT_EQ(refusal(options).code(), Code::kInvalidArgument);
  options = fake_->aio_options();
  options.aio_api_key = "wrong-key-for-it";
  EXPECT_EQ(refusal(options).code(), Code::kUnauthenticated);
  EXPECT_EQ(fake_->log().find("Action="), std::string::npos) << "nobody else is asked";
}

TEST_F(Volcengine, ABrokenWayThereIsNoResult) {
  const auto attempt = [&](std::chrono::milliseconds time) -> std::string {
    VolcengineOptions options = fake_->options();
    options.request_timeout = time;  // also for what is to be answered
    const auto made = VolcengineSandbox::create(10min, options, config_);
    if (!made) return made.error().line();
    const auto& sandbox = *made;
    for (const char* fault : {"bash/exec=500", "bash/exec=html", "bash/exec=401", "bash/exec=cut"}) {
      fake_->misbehave(fault);
      const auto result = sandbox->exec("true", {.timeout = 20s});
      EXPECT_TRUE(!result || result->reason != Reason::kExited) << fault;
      const std::string said = result ? result->message : result.error().line();
      EXPECT_FALSE(said.empty()) << fault;
      EXPECT_EQ(said.find(test::FakeVolcengine::gateway_key()), std::string::npos) << said;
    }
    fake_->misbehave("");
    const auto again = sandbox->exec("echo again");
    return again ? again->out.bytes : again.error().line();
  };
  EXPECT_EQ(test::with_time_enough(attempt, [](const std::string& said) { return said == "again\n"; }, 2s), "again\n");
}

TEST_F(Volcengine, OneAnswerThatIsLostIsAskedForAgain) {
  const auto sandbox = create();
  // Not the one that starts a command: those that look at it.
  auto process = sandbox->spawn(shell_command("echo first; until [ -e go ]; do sleep 0.05; done; echo second; exit 5"));
  ASSERT_TRUE(process);
  EXPECT_FALSE((*process)->wait(200ms)->has_value());
  const auto asked = [&] {
    const std::string log = fake_->log();
    return static_cast<std::size_t>(std::ranges::count(log, '\n'));
  };
  const std::size_t before = asked();
  fake_->misbehave("bash/exec=503:0*1");
  std::jthread later([&] {
    EXPECT_TRUE(test::eventually([&] { return asked() > before; })) << "nobody looked";
    work_.write("go", "");
  });
  const ExecResult result = (*process)->wait()->value();
  EXPECT_EQ(result.out.bytes, "first\nsecond\n");
  EXPECT_EQ(result.exit_code, 5);
}

TEST_F(Volcengine, KeysAreNotInTheSandbox) {
  config_.policy.environment.pass = {"TOLD"};
  const std::string seen = out(*create(), "env; cat /proc/$PPID/cmdline | tr '\\0' ' '");
  EXPECT_NE(seen.find("TOLD=named\n"), std::string::npos);
  for (const char* secret :
       {test::FakeVolcengine::secret(), test::FakeVolcengine::gateway_key(), "AKLTEXAMPLE", "/nowhere", "C.UTF-8"})
    EXPECT_EQ(seen.find(secret), std::string::npos) << secret;
}

}  // namespace
}  // namespace belljar
