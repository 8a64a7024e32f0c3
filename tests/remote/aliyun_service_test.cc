// AgentBay's sessions and the gateway, as the service and the machine of remote/shell, against a small AgentBay of our own.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "belljar/aliyun.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/gateway.h"
#include "remote/aliyun/rpc.h"
#include "remote/aliyun/service.h"
#include "remote/aliyun/session.h"
#include "remote/aliyun/wire.h"
#include "remote/retry.h"
#include "remote/shell/machine.h"
#include "support/fake_aliyun.h"
#include "support/identity.h"
#include "support/leftovers.h"

namespace belljar::remote::aliyun {
namespace {

using namespace std::chrono_literals;
using MachinePtr = std::shared_ptr<const shell::Machine>;

class AliyunService : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(program("python3"));
    left_ = std::make_unique<test::Leftovers>();
    fake_ = std::make_unique<test::FakeAliyun>();
    options_ = fake_->options();
  }
  void TearDown() override {
    if (fake_ == nullptr) return;
    fake_.reset();
    EXPECT_EQ(left_->report(), "") << "of a session that was ended";
  }

  Rpc rpc() const { return {http_, *find_address(options_, {}), options_.request_timeout}; }
  AgentBay service() const { return {rpc(), options_}; }
  MachinePtr create() const {
    auto machine = service().create({}, {});
    EXPECT_TRUE(machine) << machine.error().line();
    return machine ? *machine : nullptr;
  }
  Error refusal() const {
    auto machine = service().create({}, {});
    return machine ? Error(Code::kUnknown, "it was created") : machine.error();
  }
  static std::string out(const MachinePtr& machine, const std::string& script) {
    auto said = machine->run(script, 60s, -1);
    EXPECT_TRUE(said) << said.error().line();
    return said ? said->out : "";
  }

  http::Client http_;
  AliyunOptions options_;
  std::unique_ptr<test::Leftovers> left_;
  std::unique_ptr<test::FakeAliyun> fake_;
};

// --- life

TEST_F(AliyunService, ASessionIsMadeAskedAndEnded) {
  options_.labels = {{"owner", "a test"}};
  options_.policy_id = "policy-1";
  options_.network_id = "network-1";
  options_.region = "cn-hangzhou";
  options_.idle_release = 90s;
  const MachinePtr machine = create();
  EXPECT_EQ(out(machine, "echo here"), "here\n");
  for (const char* field : {"ImageId=linux_latest", "Timeout=90", "McpPolicyId=policy-1", "NetworkId=network-1",
                            "LoginRegionId=cn-hangzhou", "owner%22%3A%22a%20test", "%22belljar%22%3A%22"})
    EXPECT_EQ(fake_->asked(field), 1U) << field;
  EXPECT_TRUE(machine->health());
  EXPECT_TRUE(service().set_timeout(machine->id(), 90s));
  EXPECT_EQ(fake_->asked("Action=RefreshSessionIdleTime"), 1U);
  EXPECT_EQ(service().set_timeout(machine->id(), 1h).error().code(), Code::kUnimplemented);
  EXPECT_TRUE(service().kill(machine->id()).value());
  EXPECT_FALSE(service().kill(machine->id()).value()) << "it is gone already";
  EXPECT_EQ(machine->health().error().code(), Code::kUnavailable);
  EXPECT_EQ(machine->run("true", 60s, -1).error().code(), Code::kNotFound);
  EXPECT_EQ(service().connect(machine->id(), {}).error().code(), Code::kNotFound);
  EXPECT_EQ(fake_->log().find("?Authorization"), std::string::npos);
}

TEST_F(AliyunService, AnEndThatTakesItsTimeIsWaitedFor) {
  const MachinePtr machine = create();
  fake_->set("delete=3\nGetSessionDetail=500*1");
  EXPECT_TRUE(service().kill(machine->id()).value());
  EXPECT_EQ(fake_->asked("Action=GetSessionDetail"), 5U);
  const MachinePtr other = create();
  fake_->set("delete=1000000");
  options_.settle_timeout = 1s;
  const Error late = service().kill(other->id()).error();
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_NE(late.reason().find("DELETING"), std::string::npos) << late.line();
}

TEST_F(AliyunService, PauseKeepsFilesAndConnectResumes) {
  const MachinePtr machine = create();
  EXPECT_EQ(out(machine, "echo kept >file"), "");
  fake_->set("pause=2\nresume=2");
  ASSERT_TRUE(service().pause(machine->id()));
  EXPECT_EQ(machine->health().error().reason(), "its status is PAUSED");
  const auto again = service().connect(machine->id(), {});
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_EQ(out(*again, "cat file"), "kept\n");
  options_.settle_timeout = 500ms;
  fake_->set("pause=1000000");
  EXPECT_EQ(service().pause(machine->id()).error().code(), Code::kDeadlineExceeded);
  fake_->set("");
  const auto later = service().connect(machine->id(), {});
  EXPECT_TRUE(later || later.error().code() == Code::kDeadlineExceeded);
}

TEST_F(AliyunService, PausingThatTheAccountMayNotIsRefusedByName) {
  const MachinePtr machine = create();
  for (const char* how : {"PauseSessionAsync=unknown", "PauseSessionAsync=forbidden"}) {
    fake_->set(how);
    const Error error = service().pause(machine->id()).error();
    EXPECT_EQ(error.code(), Code::kUnimplemented) << how;
    EXPECT_NE(error.next().find("ask Aliyun"), std::string::npos) << error.line();
  }
  fake_->set("PauseSessionAsync=gone");
  EXPECT_EQ(service().pause(machine->id()).error().code(), Code::kNotFound);
  fake_->set("");
  EXPECT_TRUE(service().pause(machine->id()));
}

TEST_F(AliyunService, ContextsAreLoadedBeforeItIsUsed) {
  options_.contexts = {{.context_id = "ctx-1", .path = "/data", .sync_policy = R"({"downloadPolicy":{"autoDownload":true}})"},
                       {.context_id = "ctx-2", .path = "/more", .sync_policy = ""}};
  fake_->set("contexts=2");
  create();
  EXPECT_EQ(fake_->asked("Action=GetContextInfo"), 3U);
  EXPECT_NE(fake_->log().find(
                form_of({{"PersistenceDataList",
                          R"([{"ContextId":"ctx-1","Path":"/data","Policy":"{\"downloadPolicy\":{\"autoDownload\":true}}"},)"
                          R"({"ContextId":"ctx-2","Path":"/more"}])"}})),
            std::string::npos)
      << fake_->log();
  fake_->set("contexts=failed");
  const Error failed = refusal();
  EXPECT_EQ(failed.code(), Code::kUnavailable);
  EXPECT_NE(failed.reason().find("ctx-1"), std::string::npos) << failed.line();
  EXPECT_EQ(fake_->asked("Action=DeleteSessionAsync"), 1U) << "what cannot be used is ended";
  options_.settle_timeout = 600ms;
  fake_->set("contexts=100000");
  EXPECT_EQ(refusal().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(fake_->asked("Action=DeleteSessionAsync"), 2U);
  options_.settle_timeout = 60s;
  const CancelToken cancel = CancelToken::create().value();
  cancel.cancel();
  const auto cancelled = service().create({}, cancel);
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), Code::kCanceled) << "who waits for them may give up";
  EXPECT_EQ(fake_->asked("Action=DeleteSessionAsync"), 3U);
}

TEST_F(AliyunService, KeepsItAliveWhileItIsUsed) {
  // Where nothing but RefreshSessionIdleTime is a use, and where it is as late as is said here.
  const auto set_time = [&](int milliseconds) { fake_->set("idle=1500\nlongest=50000\nnow=" + std::to_string(milliseconds)); };
  set_time(0);
  const MachinePtr made = create();
  const auto data = rpc().ask("GetSession", {{"SessionId", made->id()}}, Repeat::kAlways);
  const Session session(rpc(), *parse_session_access(data->data), 900ms);
  EXPECT_EQ(session.limits().longest, 450ms);
  for (int turn = 1; turn <= 6; ++turn) {
    EXPECT_TRUE(session.run("sleep 0.4", 60s, -1)) << turn;
    set_time(turn * 400);
  }
  EXPECT_GE(fake_->asked("Action=RefreshSessionIdleTime"), 3U);
  EXPECT_TRUE(session.health()) << "the twin";
  set_time(6 * 400 + 1600);
  EXPECT_EQ(session.run("true", 60s, -1).error().code(), Code::kNotFound) << "and it is released when it is not";
}

// --- ways to a tool

TEST_F(AliyunService, EitherWayLeadsToItsShell) {
  const std::vector<std::pair<const char*, const char*>> ways = {{"", "/link/"},
                                                                 {"toollist=array", "/link/"},
                                                                 {"direct=string", "/link/"},
                                                                 {"link=off", "CallMcpTool"},
                                                                 {"link=off\ndata=string", "CallMcpTool"},
                                                                 {"toollist=none", "CallMcpTool"},
                                                                 {"grant=http", "CallMcpTool"}};
  for (const auto& [settings, way] : ways) {
    fake_->set(settings);
    const MachinePtr machine = create();
    const std::size_t before = fake_->asked(way);
    const auto said = machine->run("echo out; echo err >&2; exit 3", 60s, -1);
    ASSERT_TRUE(said) << settings << said.error().line();
    EXPECT_EQ(said->exit_code, 3) << settings;
    EXPECT_EQ(said->out, "out\n");
    EXPECT_EQ(said->err, "err\n");
    EXPECT_EQ(fake_->asked(way), before + 1) << settings;
    const std::string odd = "a 'quoted' \"word\" $HOME \\ & + % \xc3\xbc \xe2\x82\xac";
    EXPECT_EQ(out(machine, "cat <<'END'\n" + odd + "\nEND"), odd + "\n");
  }
}

TEST_F(AliyunService, EachShapeOfAnExitStatusIsRead) {
  for (const char* link : {"", "link=off\n"}) {
    for (const char* shape : {"shell=iserror", "shell=exitcode", ""}) {
      fake_->set(std::string(link) + shape);
      const MachinePtr machine = create();
      EXPECT_EQ(machine->run("exit 7", 60s, -1)->exit_code, 7) << link << shape;
      EXPECT_EQ(machine->run("kill -9 $$", 60s, -1)->exit_code, 137) << link << shape;
      EXPECT_EQ(machine->run("no-such-program", 60s, -1)->exit_code, 127) << link << shape;
    }
    fake_->set(std::string(link) + "shell=text");
    EXPECT_EQ(create()->run("true", 60s, -1).error().code(), Code::kDataLoss);
    fake_->set(std::string(link) + "shell=nocode");
    EXPECT_EQ(create()->run("true", 60s, -1).error().code(), Code::kDataLoss);
    fake_->set(std::string(link) + "shell=errortext");
    const Error error = create()->run("true", 60s, -1).error();
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_NE(error.reason().find("on fire \\x1b"), std::string::npos) << error.line();
  }
}

TEST_F(AliyunService, WhatItSaysItCarriesItCarries) {
  for (const char* link : {"", "link=off"}) {
    fake_->set(link);
    const MachinePtr machine = create();
    const auto limits = machine->limits();
    EXPECT_EQ(limits.longest, 45s);
    EXPECT_EQ(out(machine, "head -c " + std::to_string(limits.output) + " /dev/zero | tr '\\0' x").size(), limits.output);
    const std::string tail = "\necho whole";
    EXPECT_EQ(out(machine, "#" + std::string(limits.script - tail.size() - 1, 'x') + tail), "whole\n");
  }
  EXPECT_EQ(create()->run("echo \xff", 60s, -1).error().code(), Code::kUnimplemented);
}

TEST_F(AliyunService, AnExpiredTokenIsRenewedOnce) {
  const MachinePtr machine = create();
  fake_->set("callTool=expired*1");
  EXPECT_EQ(out(machine, "echo again >>ran; cat ran"), "again\n");
  EXPECT_EQ(fake_->asked("Action=GetSession&"), 1U);
  fake_->set("callTool=401");
  const Error error = machine->run("true", 60s, -1).error();
  EXPECT_EQ(error.code(), Code::kUnauthenticated);
  EXPECT_EQ(error.line().find(test::FakeAliyun::key()), std::string::npos);
  fake_->set("");
  EXPECT_EQ(out(machine, "cat ran"), "again\n");
}

TEST_F(AliyunService, ACancelledOrLateCallReturns) {
  for (const char* link : {"", "link=off"}) {
    fake_->set(link);
    const MachinePtr machine = create();
    EXPECT_EQ(machine->run("sleep 300", 300ms, -1).error().code(), Code::kDeadlineExceeded);
    const int fd = ::eventfd(1, EFD_CLOEXEC);
    EXPECT_EQ(machine->run("sleep 300", 60s, fd).error().code(), Code::kCanceled);
    ::close(fd);
    EXPECT_TRUE(service().kill(machine->id()).value());
  }
}

// --- a service that misbehaves

TEST_F(AliyunService, ABrokenCreateIsOneErrorAndLeavesNothing) {
  const std::vector<std::pair<const char*, Code>> cases = {{"500", Code::kUnavailable},
                                                           {"page", Code::kUnavailable},
                                                           {"504", Code::kUnavailable},
                                                           {"401", Code::kUnauthenticated},
                                                           {"403", Code::kPermissionDenied},
                                                           {"html", Code::kDataLoss},
                                                           {"list", Code::kDataLoss},
                                                           {"fail", Code::kUnavailable},
                                                           {"datafail", Code::kResourceExhausted},
                                                           {"nodata", Code::kDataLoss},
                                                           {"unknown", Code::kUnimplemented},
                                                           {"lost", Code::kUnavailable},
                                                           {"cut", Code::kUnavailable},
                                                           {"throttle", Code::kResourceExhausted},
                                                           {"throttle:9223372036854775807", Code::kResourceExhausted}};
  for (const auto& [fault, code] : cases) {
    fake_->set(std::string("CreateMcpSession=") + fault);
    const Error error = refusal();
    EXPECT_EQ(error.code(), code) << fault << ": " << error.line();
    EXPECT_FALSE(error.reason().empty()) << fault;
    EXPECT_EQ(error.line().find(test::FakeAliyun::key()), std::string::npos) << error.line();
    EXPECT_EQ(error.line().find('\x1b'), std::string::npos) << error.line();
  }
  fake_->set("grant=wrong");
  EXPECT_EQ(refusal().code(), Code::kDataLoss);
  fake_->set("");
  const auto left = rpc().ask("ListSession", {}, Repeat::kAlways);
  EXPECT_EQ(left->data, Json::array()) << "of those that were made before the answer was lost";
  fake_->set("CreateMcpSession=slow");
  EXPECT_EQ(out(create(), "echo slow"), "slow\n");
}

TEST_F(AliyunService, ACreateIsSentAgainOnlyWhenItWasRefusedUnread) {
  fake_->set("CreateMcpSession=throttle*2");
  EXPECT_EQ(refusal().what(), "it was created");
  EXPECT_EQ(fake_->asked("Action=CreateMcpSession"), 3U);
  fake_->set("CreateMcpSession=throttle:429*1");
  EXPECT_EQ(refusal().what(), "it was created");
  EXPECT_EQ(fake_->asked("Action=CreateMcpSession"), 5U);
  for (const char* fault : {"503", "504", "cut", "lost"}) {
    const std::size_t before = fake_->asked("Action=CreateMcpSession");
    fake_->set(std::string("CreateMcpSession=") + fault + "*1");
    EXPECT_EQ(refusal().code(), Code::kUnavailable) << fault;
    EXPECT_EQ(fake_->asked("Action=CreateMcpSession"), before + 1) << fault;
  }
}

TEST_F(AliyunService, WhatCannotBeFoundAgainIsNamed) {
  fake_->set("CreateMcpSession=lost\nListSession=500");
  const Error error = refusal();
  EXPECT_NE(error.next().find("has the label belljar="), std::string::npos) << error.line();
  fake_->set("CreateMcpSession=lost\nDeleteSessionAsync=500");
  EXPECT_NE(refusal().next().find("end the session `session-"), std::string::npos);
  options_.endpoint = "http://127.0.0.1:1";
  EXPECT_EQ(refusal().code(), Code::kUnavailable);
}

TEST_F(AliyunService, AWrongKeyOrImageIsSaid) {
  options_.api_key = "akm-other-0123456789";
  EXPECT_EQ(refusal().code(), Code::kUnauthenticated);
  EXPECT_EQ(refusal().line().find("akm-other"), std::string::npos);
  options_ = fake_->options();
  options_.image_id = "missing";
  EXPECT_EQ(refusal().code(), Code::kNotFound);
  options_.image_id = "linux_latest";
  EXPECT_EQ(refusal().what(), "it was created");
}

TEST_F(AliyunService, ABrokenCallRanAtMostOnce) {
  const std::vector<std::pair<const char*, Code>> cases = {
      {"500", Code::kUnavailable}, {"504", Code::kUnavailable},  {"page", Code::kUnavailable}, {"html", Code::kDataLoss},
      {"list", Code::kDataLoss},   {"lost", Code::kUnavailable}, {"cut", Code::kUnavailable},  {"huge", Code::kDataLoss}};
  for (const char* where : {"callTool", "CallMcpTool"}) {
    const std::string link = where[0] == 'C' ? "link=off\n" : "";
    fake_->set(link);
    const MachinePtr machine = create();
    for (const auto& [fault, code] : cases) {
      fake_->set(link + where + "=" + fault);
      const auto said = machine->run(std::string("echo ") + fault + " >>ran", 60s, -1);
      ASSERT_FALSE(said) << where << fault;
      EXPECT_EQ(said.error().code(), code) << where << fault << said.error().line();
      EXPECT_EQ(said.error().line().find(test::FakeAliyun::key()), std::string::npos) << said.error().line();
    }
    fake_->set(link + where + "=throttle:429*2");
    EXPECT_EQ(out(machine, "cat ran"), "lost\ncut\nhuge\n") << "what was refused unread is sent again, what may have begun is not";
    fake_->set(link + where + "=slow");
    EXPECT_EQ(out(machine, "cat ran"), "lost\ncut\nhuge\n");
  }
  fake_->set("callTool=noresult");
  EXPECT_EQ(create()->run("true", 60s, -1).error().code(), Code::kDataLoss);
}

TEST_F(AliyunService, LooksAreRepeatedWhereTheServiceIsAway) {
  const MachinePtr machine = create();
  fake_->set("GetSession=503*2");
  EXPECT_TRUE(service().connect(machine->id(), {}));
  fake_->set("GetSession=500");
  EXPECT_EQ(service().connect(machine->id(), {}).error().code(), Code::kUnavailable);
  fake_->set("GetSession=silent");
  options_.request_timeout = 300ms;
  EXPECT_EQ(service().connect(machine->id(), {}).error().code(), Code::kDeadlineExceeded);
}

// --- what is held

TEST_F(AliyunService, OnlyAPolicyOrANetworkOfTheAccountIsSaidToCloseIt) {
  EXPECT_EQ(service().holds({}, "network").enforced, Enforced::kNone);
  EXPECT_EQ(service().holds({}, "limits.memory").enforced, Enforced::kNone);
  options_.policy_id = "policy-1";
  EXPECT_EQ(service().holds({}, "network").enforced, Enforced::kPartial);
  EXPECT_EQ(service().holds({}, "network").mechanism, "McpPolicyId policy-1");
  EXPECT_EQ(service().holds({}, "limits.memory").enforced, Enforced::kNone);
  EXPECT_EQ(service().host(), "127.0.0.1");
  EXPECT_EQ(service().workspace(), "/home/wuying");
  options_.image_id = "code_latest";
  EXPECT_EQ(service().workspace(), "/workspace");
}

TEST_F(AliyunService, OptionsThatTheServiceWouldNotTakeAreRefused) {
  const auto code = [](const AliyunOptions& options) {
    const auto fine = check_options(options);
    return fine ? Code::kUnknown : fine.error().code();
  };
  EXPECT_EQ(code(options_), Code::kUnknown);
  AliyunOptions options = options_;
  options.idle_release = 59s;
  EXPECT_EQ(code(options), Code::kInvalidArgument);
  options.idle_release = 60s;
  EXPECT_EQ(code(options), Code::kUnknown);
  options.labels = {{"belljar", "x"}};
  EXPECT_EQ(code(options), Code::kInvalidArgument);
  options.labels.clear();
  options.contexts = {{.context_id = "c", .path = "data", .sync_policy = ""}};
  EXPECT_EQ(code(options), Code::kInvalidArgument);
  options.contexts = {{.context_id = "c", .path = "/data", .sync_policy = "[]"}};
  EXPECT_EQ(code(options), Code::kInvalidArgument);
  options.contexts.front().sync_policy = "{}";
  EXPECT_EQ(code(options), Code::kUnknown);
  options.settle_timeout = 0ms;
  EXPECT_EQ(code(options), Code::kInvalidArgument);
}

// --- the gateway

class AliyunGatewayService : public AliyunService {
 protected:
  void SetUp() override {
    AliyunService::SetUp();
    if (fake_ != nullptr) options_ = fake_->gateway();
  }
  Gateway gateway() const { return {GatewayTools(http_, *find_gateway(options_, {})), 60s}; }
};

TEST_F(AliyunGatewayService, RunsCommandsAndEndsNothing) {
  options_.security_token = "sts-0123456789";
  const auto machine = gateway().create({}, {});
  ASSERT_TRUE(machine) << machine.error().line();
  const auto said = (*machine)->run("echo out; echo err >&2; exit 3", 60s, -1);
  ASSERT_TRUE(said) << said.error().line();
  EXPECT_EQ(said->exit_code, 3);
  EXPECT_EQ(said->out, "out\n");
  EXPECT_EQ(said->err, "err\n");
  EXPECT_EQ(fake_->asked("\"X-Security-Token\": \"sts-0123456789\""), 2U);
  EXPECT_TRUE((*machine)->health());
  EXPECT_FALSE(gateway().kill((*machine)->id()).value());
  EXPECT_TRUE(gateway().connect((*machine)->id(), {}));
  EXPECT_EQ(gateway().connect("session-1", {}).error().code(), Code::kUnimplemented);
  EXPECT_EQ(gateway().pause("gateway").error().code(), Code::kUnimplemented);
  EXPECT_EQ(gateway().set_timeout("gateway", 1h).error().code(), Code::kUnimplemented);
  EXPECT_EQ(gateway().holds({}, "network").enforced, Enforced::kNone);
}

TEST_F(AliyunGatewayService, WhatGoesWrongIsOneErrorWithoutAKey) {
  const std::vector<std::pair<const char*, Code>> cases = {
      {"500", Code::kUnavailable},  {"html", Code::kDataLoss},   {"error", Code::kUnavailable}, {"list", Code::kDataLoss},
      {"lost", Code::kUnavailable}, {"cut", Code::kUnavailable}, {"huge", Code::kDataLoss}};
  const auto machine = *gateway().create({}, {});
  for (const auto& [fault, code] : cases) {
    fake_->set(std::string("mcp=") + fault);
    EXPECT_EQ(machine->run(std::string("echo ") + fault + " >>ran", 60s, -1).error().code(), code) << fault;
  }
  fake_->set("");
  EXPECT_EQ(out(machine, "cat ran"), "lost\ncut\nhuge\n") << "nothing ran twice";
  fake_->set("mcp=noshell");
  EXPECT_EQ(gateway().create({}, {}).error().code(), Code::kUnimplemented);
  fake_->set("");
  options_.secret_key = "secret-of-somebody-else";
  const Error wrong = gateway().create({}, {}).error();
  EXPECT_EQ(wrong.code(), Code::kUnauthenticated);
  EXPECT_EQ(wrong.reason(), "http error: 401 - invalid access key [redacted]");
}

}  // namespace
}  // namespace belljar::remote::aliyun
