// The aliyun backend against a small AgentBay of our own, which the request core of Aliyun's clients drives as well
// (e2e/aliyun_test.cc). That it is a Sandbox like every other is tests/conformance; its wire is aliyun_service_test.cc.
#include "belljar/aliyun.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cloud.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/process.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "support/eventually.h"
#include "support/fake_aliyun.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"
#include "support/time_enough.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class Aliyun : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(program("python3"));
    left_ = std::make_unique<test::Leftovers>();
    fake_ = std::make_unique<test::FakeAliyun>();
    // A real directory: what runs there is on this machine, and knows no /home/wuying.
    config_.workspace = work_.path();
    config_.caller_env = {{"PATH", "/nowhere"}, {"LANG", "C.UTF-8"}, {"TOLD", "named"}};
    config_.policy.limits.kill_grace = 200ms;
    config_.policy.network.mode = NetMode::kHost;
  }
  void TearDown() override {
    if (fake_ == nullptr) return;
    fake_.reset();
    EXPECT_EQ(left_->report(), "") << "of a sandbox that was ended";
  }

  std::shared_ptr<CloudSandbox> create(AliyunOptions options) const {
    auto sandbox = AliyunSandbox::create(std::move(options), config_);
    EXPECT_TRUE(sandbox) << sandbox.error().line();
    return sandbox ? *sandbox : nullptr;
  }
  std::shared_ptr<CloudSandbox> create() const { return create(fake_->options()); }
  Error refusal(AliyunOptions options) const {
    auto sandbox = AliyunSandbox::create(std::move(options), config_);
    return sandbox ? Error(Code::kUnknown, "it was created") : sandbox.error();
  }
  Error refusal() const { return refusal(fake_->options()); }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    auto result = sandbox.exec(text);
    EXPECT_TRUE(result) << result.error().line();
    return result ? result->out.bytes + result->err.bytes : "";
  }
  // What is said is heard while somebody waits.
  static bool comes(Process& process, const std::atomic<bool>& came) {
    return test::eventually([&] {
      EXPECT_FALSE(process.wait(20ms)->has_value());
      return came.load();
    });
  }

  test::TempDir work_;
  SandboxConfig config_;
  std::unique_ptr<test::Leftovers> left_;
  std::unique_ptr<test::FakeAliyun> fake_;
};

TEST_F(Aliyun, CreateRunsAndStopKills) {
  const auto sandbox = create();
  EXPECT_EQ(sandbox->backend(), "aliyun");
  EXPECT_EQ(sandbox->exec("exit 3")->exit_code, 3);
  EXPECT_EQ(sandbox->exec("sleep 300", {.timeout = 200ms})->reason, Reason::kTimeout);
  const std::string id = sandbox->sandbox_id();
  EXPECT_TRUE(sandbox->set_timeout(10min)) << "what it was made with";
  EXPECT_EQ(sandbox->set_timeout(1h).error().code(), Code::kUnimplemented);
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->exec("true").error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(sandbox->kill().value()) << "it is gone already";
  EXPECT_EQ(AliyunSandbox::connect(id, fake_->options(), config_).error().code(), Code::kNotFound);
}

TEST_F(Aliyun, OneLineChangesTheBackend) {
  config_.factory = aliyun_backend(fake_->options());
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  EXPECT_EQ((*sandbox)->exec("true").error().code(), Code::kFailedPrecondition) << "not started";
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ(out(**sandbox, "echo here"), "here\n");
  config_.factory = {};
  config_.backend = "aliyun";
  EXPECT_NE(make_sandbox(config_).error().next().find("set config.factory = aliyun_backend() (belljar/aliyun.h)"),
            std::string::npos);
}

TEST_F(Aliyun, FilesGoThereAndBackByEitherWay) {
  for (const char* way : {"", "link=off", "data=string\nlink=off"}) {
    fake_->set(way);
    const auto sandbox = create();
    std::string bytes(200'000, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    ASSERT_TRUE(sandbox->write_file("dir/a file", bytes)) << way;
    EXPECT_EQ(sandbox->read_file("dir/a file").value(), bytes) << way;
    EXPECT_EQ(sandbox->list("dir")->size(), 1U);
    EXPECT_EQ(out(*sandbox, "wc -c <'dir/a file'"), "200000\n");
    EXPECT_EQ(sandbox->read_file("missing").error().code(), Code::kNotFound);
  }
}

TEST_F(Aliyun, PauseKeepsFilesAndStartResumes) {
  AliyunOptions options = fake_->options();
  options.on_stop = CloudOnStop::kPause;
  const auto sandbox = create(options);
  const std::string id = sandbox->sandbox_id();
  ASSERT_TRUE(sandbox->write_file("file", "kept"));
  ASSERT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->health().error().code(), Code::kUnavailable);
  ASSERT_TRUE(sandbox->start());
  EXPECT_EQ(sandbox->sandbox_id(), id);
  EXPECT_EQ(sandbox->read_file("file").value(), "kept");
  EXPECT_TRUE(sandbox->kill().value());
}

TEST_F(Aliyun, ConnectLeavesWhatItFound) {
  const auto first = create();
  ASSERT_TRUE(first->write_file("file", "x"));
  {
    const auto second = AliyunSandbox::connect(first->sandbox_id(), fake_->options(), config_);
    ASSERT_TRUE(second) << second.error().line();
    EXPECT_EQ((*second)->read_file("file").value(), "x");
    auto sleeper = (*second)->spawn(shell_command("sleep 300"));
    ASSERT_TRUE(sleeper) << sleeper.error().line();
    EXPECT_TRUE((*second)->stop());
    EXPECT_EQ((*sleeper)->wait()->value().reason, Reason::kCancelled);
  }
  EXPECT_EQ(out(*first, "cat file"), "x");
  EXPECT_EQ(AliyunSandbox::connect("", fake_->options(), config_).error().code(), Code::kInvalidArgument);
}

TEST_F(Aliyun, ASessionThatWasReleasedIsGone) {
  const auto sandbox = create();
  std::atomic<bool> came = false;
  auto sleeper = sandbox->spawn(shell_command("echo begun; sleep 300"), {.on_stdout = [&](std::string_view) { came = true; }});
  ASSERT_TRUE(sleeper) << sleeper.error().line();
  ASSERT_TRUE(comes(**sleeper, came));
  fake_->set("idle=0");
  const ExecResult cut = (*sleeper)->wait()->value();
  EXPECT_EQ(cut.reason, Reason::kCancelled) << cut.message;
  EXPECT_EQ(cut.out.bytes, "begun\n") << "what came before is kept";
  EXPECT_EQ(sandbox->health().error().code(), Code::kUnavailable);
  EXPECT_FALSE(sandbox->exec("true"));
}

TEST_F(Aliyun, AStopThatFailedIsTriedAgain) {
  const auto sandbox = create();
  fake_->set("DeleteSessionAsync=500*1");
  EXPECT_EQ(sandbox->stop().error().code(), Code::kUnavailable);
  EXPECT_FALSE(sandbox->sandbox_id().empty());
  EXPECT_TRUE(sandbox->stop());
  EXPECT_TRUE(sandbox->sandbox_id().empty());
}

// --- policy

TEST_F(Aliyun, WhatCannotBeHeldIsSaidAndRefused) {
  EXPECT_EQ(refusal().what(), "it was created");
  config_.policy.network.mode = NetMode::kNone;
  const Error open = refusal();
  EXPECT_EQ(open.code(), Code::kFailedPrecondition);
  EXPECT_NE(open.line().find("network"), std::string::npos) << open.line();
  AliyunOptions closed = fake_->options();
  closed.policy_id = "policy-1";
  EXPECT_EQ(refusal(closed).what(), "it was created") << "partial: the account's own policy";
  config_.policy.accept = {"network"};
  EXPECT_EQ(refusal().what(), "it was created");
  config_.policy.accept.clear();
  config_.policy.network.mode = NetMode::kHost;
  config_.policy.limits.memory = 512_MiB;
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
  config_.policy.accept = {"limits.memory"};
  EXPECT_EQ(refusal().what(), "it was created");
  config_.policy.network.mode = NetMode::kProxy;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.network.mode = NetMode::kHost;
  EXPECT_EQ(refusal().what(), "it was created");
}

TEST_F(Aliyun, OnlyWhatIsNamedLeavesThisMachine) {
  const auto env = [&] { return out(*create(), "env"); };
  EXPECT_EQ(env().find("C.UTF-8"), std::string::npos);
  EXPECT_EQ(env().find("named"), std::string::npos);
  config_.policy.environment.pass = {"TOLD"};
  config_.policy.environment.set = {{"OWN", "value"}};
  const std::string more = env();
  EXPECT_NE(more.find("TOLD=named\n"), std::string::npos);
  EXPECT_NE(more.find("OWN=value\n"), std::string::npos);
  EXPECT_EQ(more.find("/nowhere"), std::string::npos);
  EXPECT_EQ(more.find(test::FakeAliyun::key()), std::string::npos);
}

// --- a service that misbehaves

TEST_F(Aliyun, ABrokenStartIsOneErrorAndLeavesNothing) {
  for (const char* fault : {"CreateMcpSession=504", "CreateMcpSession=cut", "callTool=500", "callTool=cut", "callTool=html",
                            "shell=text", "grant=wrong"}) {
    struct Tried {
      Error error;
      std::size_t left;  // sessions that were asked for and not ended
    };
    const std::size_t none = std::string(fault) == "CreateMcpSession=504" ? 1 : 0;
    const auto [error, left] = test::with_time_enough(
        [&](std::chrono::milliseconds time) {
          fake_->set(fault);
          AliyunOptions options = fake_->options();
          options.request_timeout = time;  // of what is to succeed, too
          const auto open = [&] { return fake_->asked("Action=CreateMcpSession") - fake_->asked("Action=DeleteSessionAsync"); };
          const std::size_t before = open();
          Error refused = refusal(options);
          return Tried{.error = std::move(refused), .left = open() - before};
        },
        [&](const Tried& tried) { return tried.left == none; }, 2s);
    EXPECT_EQ(left, none) << fault << ": a 504 made none, and every other was ended";
    EXPECT_NE(error.what(), "it was created") << fault;
    EXPECT_FALSE(error.reason().empty()) << fault;
    EXPECT_EQ(error.line().find(test::FakeAliyun::key()), std::string::npos) << error.line();
  }
  fake_->set("");
  EXPECT_EQ(refusal().what(), "it was created");
}

TEST_F(Aliyun, AFaultDuringACommandIsOneEndOfIt) {
  for (const char* fault : {"callTool=504*1", "callTool=cut*1", "callTool=lost*1", "callTool=slow*1", "callTool=expired*1",
                            "callTool=throttle:429*1"}) {
    const auto sandbox = create();
    std::atomic<bool> came = false;
    auto process = sandbox->spawn(shell_command("echo before; sleep 300"), {.on_stdout = [&](std::string_view) { came = true; }});
    ASSERT_TRUE(process) << process.error().line();
    ASSERT_TRUE(comes(**process, came)) << fault;
    fake_->set(fault);
    const auto ended = (*process)->wait(1500ms);
    ASSERT_TRUE(ended) << fault << ended.error().line();
    if (*ended) {  // given up, and said so; else it goes on
      EXPECT_EQ((*ended)->reason, Reason::kCancelled) << fault;
      EXPECT_NE((*ended)->exit_code, 0) << fault;
      EXPECT_EQ((*ended)->message.find(test::FakeAliyun::key()), std::string::npos) << (*ended)->message;
    }
    fake_->set("");
    EXPECT_EQ(out(*sandbox, "echo still here"), "still here\n") << fault;
    EXPECT_TRUE(sandbox->stop()) << fault;
    EXPECT_EQ((*process)->wait()->value().out.bytes, "before\n") << fault;
  }
}

// --- the gateway

TEST_F(Aliyun, AGatewayIsASandboxToo) {
  const auto sandbox = create(fake_->gateway());
  EXPECT_EQ(sandbox->sandbox_id(), "gateway");
  EXPECT_EQ(sandbox->exec("echo out; exit 3")->out.bytes, "out\n");
  ASSERT_TRUE(sandbox->write_file("file", "x"));
  EXPECT_EQ(sandbox->read_file("file").value(), "x");
  EXPECT_EQ(sandbox->exec("sleep 300", {.timeout = 200ms})->reason, Reason::kTimeout);
  EXPECT_TRUE(sandbox->stop()) << "which leaves the machine as it is";
  EXPECT_EQ(fake_->log().find(test::FakeAliyun::key()), std::string::npos);
}

TEST_F(Aliyun, EachRouteRefusesTheOthersOptionsByName) {
  AliyunOptions options = fake_->gateway();
  EXPECT_EQ(refusal(options).what(), "it was created");
  options.image_id = "code_latest";
  EXPECT_EQ(refusal(options).what(), "a gateway takes no image");
  options = fake_->gateway();
  options.on_stop = CloudOnStop::kPause;
  EXPECT_EQ(refusal(options).code(), Code::kInvalidArgument);
  options = fake_->options();
  options.access_key = "LTAI-1";
  EXPECT_EQ(refusal(options).what(), "AgentBay takes no access keys");
  EXPECT_EQ(refusal().what(), "it was created");
}

// --- configuration

TEST_F(Aliyun, AMapOfConfigurationBecomesOptionsAndAPolicy) {
  const auto config = aliyun_config_from({{"endpoint", fake_->url()},
                                          {"region", "cn-hangzhou"},
                                          {"image", "code_latest"},
                                          {"workdir", work_.path()},
                                          {"timeout", "600"},
                                          {"idle_timeout", "300"},
                                          {"memory_limit", "1024"},
                                          {"cpu_limit", "2.0"},
                                          {"disk_limit", "2048"},
                                          {"network_mode", "full"}},
                                         {.route = AliyunRoute::kAgentBay, .api_key = test::FakeAliyun::key()});
  ASSERT_TRUE(config) << config.error().line();
  EXPECT_EQ(config->workspace, work_.path());
  EXPECT_EQ(config->policy.limits.timeout, 600s);
  EXPECT_EQ(config->policy.limits.memory, 1024_MiB);
  EXPECT_EQ(config->policy.limits.cpus, 2.0);
  EXPECT_EQ(config->policy.limits.disk, 2048_MiB);
  EXPECT_EQ(config->policy.network.mode, NetMode::kHost);
  SandboxConfig accepted = *config;
  EXPECT_EQ((*make_sandbox(accepted))->start().error().code(), Code::kFailedPrecondition) << "nobody holds its limits";
  accepted.policy.accept = {"limits.memory", "limits.cpus", "limits.disk"};
  const auto sandbox = make_sandbox(accepted);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  const auto started = (*sandbox)->start();
  ASSERT_TRUE(started) << started.error().line();
  EXPECT_EQ(fake_->asked("ImageId=code_latest"), 1U);
  EXPECT_EQ(fake_->asked("Timeout=300"), 1U) << "unused for so long, it ends";
  EXPECT_EQ(fake_->asked("LoginRegionId=cn-hangzhou"), 1U);
}

TEST_F(Aliyun, AccessKeysInTheMapAreForAGateway) {
  const std::map<std::string, std::string> keys = {{"endpoint", fake_->url() + "/mcp"},
                                                   {"access_key", test::FakeAliyun::access_key()},
                                                   {"secret_key", test::FakeAliyun::secret_key()},
                                                   {"security_token", "sts-1"},
                                                   {"workdir", work_.path()},
                                                   {"network_mode", "full"}};
  const auto config = aliyun_config_from(keys);
  ASSERT_TRUE(config) << config.error().line();
  const auto sandbox = make_sandbox(*config);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  const auto started = (*sandbox)->start();
  ASSERT_TRUE(started) << started.error().line();
  EXPECT_EQ(out(**sandbox, "echo here"), "here\n");
  SandboxConfig keyed = *aliyun_config_from({{"access_key", "LTAI-1"}, {"secret_key", "hush"}});
  keyed.caller_env = {{"NOTHING", "else"}};
  const Error error = make_sandbox(keyed).error();
  EXPECT_EQ(error.code(), Code::kUnauthenticated);
  EXPECT_NE(error.next().find("AGENTBAY_API_KEY"), std::string::npos) << error.line();
}

TEST_F(Aliyun, WhatTheMapCannotSayIsRefusedByName) {
  const Error unknown = aliyun_config_from({{"instance_type", "standard"}}).error();
  EXPECT_EQ(unknown.what(), "there is no Aliyun key `instance_type`");
  for (const auto& [key, text] : std::vector<std::pair<std::string, std::string>>{{"memory_limit", "much"},
                                                                                  {"cpu_limit", "-1"},
                                                                                  {"timeout", "soon"},
                                                                                  {"network_mode", "sometimes"},
                                                                                  {"timeout", ""},
                                                                                  {"idle_timeout", "soon"}})
    EXPECT_EQ(aliyun_config_from({{key, text}}).error().code(), Code::kInvalidArgument) << key << text;
  // Of document 003, and of no use here.
  for (const char* key : {"cpu_request", "memory_request"}) {
    const Error elsewhere = aliyun_config_from({{key, "1"}}).error();
    EXPECT_EQ(elsewhere.what(), std::string("cannot use the Aliyun key `") + key + "`");
    EXPECT_NE(elsewhere.next().find("leave it out, or use a backend of this machine"), std::string::npos) << elsewhere.next();
  }
  const auto restricted = aliyun_config_from({{"network_mode", "restricted"}, {"workdir", "/workspace"}}, fake_->options());
  ASSERT_TRUE(restricted) << restricted.error().line();
  EXPECT_EQ((*make_sandbox(*restricted))->start().error().code(), Code::kUnimplemented) << "our proxy is not there";
}

}  // namespace
}  // namespace belljar
