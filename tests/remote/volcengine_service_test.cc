// The port behind the sandbox: Volcengine's control plane and AIO's data plane, against a server that stands in for both and can be
// told to misbehave (tests/support/fake_volcengine.py; the official client drives it in tests/remote/e2e). That a sandbox made of
// it is like every other is volcengine_test.cc and tests/conformance.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/units.h"
#include "belljar/volcengine.h"
#include "http/client.h"
#include "remote/shell/machine.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/control.h"
#include "remote/volcengine/service.h"
#include "support/eventually.h"
#include "support/fake_volcengine.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/time_enough.h"

namespace belljar::remote::volcengine {
namespace {

using namespace std::chrono_literals;
using MachinePtr = std::shared_ptr<const shell::Machine>;

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

class VolcengineService : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(program("python3"));
    left_ = std::make_unique<test::Leftovers>();
    fake_ = std::make_unique<test::FakeVolcengine>();
  }
  void TearDown() override {
    if (fake_ == nullptr) return;
    fake_.reset();
    EXPECT_EQ(left_->report(), "") << "of a sandbox that was ended";
  }

  VefaasService service(const VolcengineOptions& options, const Policy& policy = {}) const {
    auto address = find_address(options, {});
    EXPECT_TRUE(address) << address.error().line();
    return {http_, Control(http_, address ? *address : Address(), options.request_timeout), options, policy};
  }
  VefaasService service() const { return service(fake_->options()); }
  MachinePtr create(const VefaasService& from) const {
    auto machine = from.create({}, {});
    EXPECT_TRUE(machine) << machine.error().line();
    return machine ? *machine : nullptr;
  }
  Error refusal(const VolcengineOptions& options, const Policy& policy = {}) const {
    const auto machine = service(options, policy).create(policy, {});
    return machine ? Error(Code::kUnknown, "it was made") : machine.error();
  }
  Error refusal() const { return refusal(fake_->options()); }
  // What a refusal advises, with a timeout of requests that is reached by one that is repeated, and enough for the others to say
  // `part`.
  std::string next_of(VolcengineOptions options, const std::string& part) const {
    return test::with_time_enough(
        [&](std::chrono::milliseconds time) {
          options.request_timeout = time;
          return refusal(options).next();
        },
        [&](const std::string& next) { return next.find(part) != std::string::npos; }, 1s);
  }
  static Error failure(const shell::Machine& machine, const std::string& script, std::chrono::milliseconds patience = 60s) {
    const auto said = machine.run(script, patience, -1);
    return said ? Error(Code::kUnknown, "it ran") : said.error();
  }
  // No secret of the configuration, whoever repeats it.
  static void expect_clean(const Error& error) {
    for (const char* secret : {test::FakeVolcengine::secret(), test::FakeVolcengine::gateway_key(), "AKLTEXAMPLE0123456789"})
      EXPECT_EQ(error.line().find(secret), std::string::npos) << error.line();
  }

  http::Client http_;
  std::unique_ptr<test::Leftovers> left_;
  std::unique_ptr<test::FakeVolcengine> fake_;
};

// --- life

TEST_F(VolcengineService, WhatIsAskedForIsSent) {
  VolcengineOptions options = fake_->options();
  options.lifetime = 15min;
  options.instance_type = VolcengineInstance::kPerformance;
  options.envs = {{"WORD", "from create"}};
  options.metadata = {{"owner", "a test"}};
  Policy policy;
  policy.limits.memory = 1536_MiB;
  const auto from = service(options, policy);
  const auto machine = from.create(policy, {});
  ASSERT_TRUE(machine) << machine.error().line();
  const std::string log = fake_->log();
  for (const char* part :
       {R"(\"Timeout\":900,\"TimeoutUnit\":\"second\")", R"(\"CpuMilli\":4000)", R"(\"MemoryMB\":1536)",
        R"(\"AllowEgressAccess\":false)", R"(\"made_by\":\"belljar\")", R"(\"owner\":\"a test\")", R"(\"session\":\")"})
    EXPECT_NE(log.find(part), std::string::npos) << part;
  EXPECT_EQ((*machine)->run("echo $WORD", 60s, -1)->out, "from create\n");
  options.instance_type = VolcengineInstance::kStandard;
  ASSERT_TRUE(service(options).create({}, {}));
  for (const char* part : {R"(\"CpuMilli\":1000)", R"(\"MemoryMB\":2048)"})
    EXPECT_NE(fake_->log().find(part), std::string::npos) << part;
  EXPECT_TRUE(from.kill((*machine)->id()).value());
  EXPECT_FALSE(from.kill((*machine)->id()).value()) << "it is gone already";
  EXPECT_EQ(from.connect((*machine)->id(), {}).error().code(), Code::kNotFound);
}

TEST_F(VolcengineService, ANetworkIsLeftOpenWhenThePolicySaysSo) {
  Policy policy;
  policy.network.mode = NetMode::kHost;
  ASSERT_TRUE(service().create(policy, {}));
  EXPECT_EQ(fake_->log().find("AllowEgressAccess"), std::string::npos);
}

TEST_F(VolcengineService, ItIsAwaitedUntilItIsReady) {
  fake_->misbehave("starting=4");
  ASSERT_NE(create(service()), nullptr);
  EXPECT_EQ(count(fake_->log(), "Action=DescribeSandbox"), 4U);
  fake_->misbehave("sandbox=503*2");  // the instance is there, the server in it not yet
  EXPECT_NE(create(service()), nullptr);
}

TEST_F(VolcengineService, OneThatDoesNotBecomeReadyIsEnded) {
  fake_->misbehave("becomes=failed");
  const Error failed = refusal();
  EXPECT_EQ(failed.code(), Code::kUnavailable);
  EXPECT_NE(failed.reason().find("function_health_check_failed: told to fail"), std::string::npos) << failed.line();
  EXPECT_EQ(count(fake_->log(), "Action=KillSandbox"), 1U);
  fake_->misbehave("starting=1000000");
  VolcengineOptions options = fake_->options();
  options.ready_within = 200ms;
  EXPECT_EQ(refusal(options).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(count(fake_->log(), "Action=KillSandbox"), 2U);
  fake_->misbehave("becomes=failed KillSandbox=500");
  EXPECT_NE(next_of(options, "end the sandbox `sb-").find("end the sandbox `sb-"), std::string::npos);
}

TEST_F(VolcengineService, WhoWaitsForOneMayGiveUpAndItIsEnded) {
  fake_->misbehave("starting=1000000");
  VolcengineOptions options = fake_->options();
  options.ready_within = 60s;
  const CancelToken cancel = CancelToken::create().value();
  std::jthread impatient([&] {
    EXPECT_TRUE(test::eventually([&] { return count(fake_->log(), "Action=DescribeSandbox") > 1; }));
    cancel.cancel();
  });
  const auto machine = service(options).create({}, cancel);
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code(), Code::kCanceled) << "and not that its time is over: " << machine.error().line();
  EXPECT_EQ(count(fake_->log(), "Action=KillSandbox"), 1U);
  fake_->misbehave("starting=4");
  EXPECT_TRUE(service(options).create({}, CancelToken::create().value())) << "nobody cancelled this one";
}

TEST_F(VolcengineService, PauseKeepsFilesAndConnectResumes) {
  const auto from = service();
  const auto machine = create(from);
  ASSERT_TRUE(machine->run("echo kept >~/file", 60s, -1));
  ASSERT_TRUE(from.pause(machine->id()));
  EXPECT_EQ(machine->health().error().code(), Code::kUnavailable);
  const auto again = from.connect(machine->id(), {});
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_EQ((*again)->run("cat ~/file", 60s, -1)->out, "kept\n");
  EXPECT_TRUE(from.set_timeout(machine->id(), 1h));
  EXPECT_NE(fake_->log().find(R"(\"Timeout\":3600,\"TimeoutUnit\":\"second\")"), std::string::npos);
  EXPECT_EQ(from.set_timeout(machine->id(), 1min).error().code(), Code::kInvalidArgument) << "less than the service takes";
}

TEST_F(VolcengineService, WhoMayDoMoreThanThePolicyIsNotConnectedTo) {
  Policy open;
  open.network.mode = NetMode::kHost;
  const auto machine = service().create(open, {});
  ASSERT_TRUE(machine);
  const std::string id = (*machine)->id();
  EXPECT_EQ(service().connect(id, {}).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(service(fake_->options(), open).connect(id, {}));
  Policy accepted;
  accepted.accept = {"network"};
  EXPECT_TRUE(service(fake_->options(), accepted).connect(id, {}));
  Policy small = open;
  small.limits.memory = 1_GiB;
  EXPECT_EQ(service(fake_->options(), small).connect(id, {}).error().code(), Code::kFailedPrecondition);
  small.limits.memory = 4_GiB;
  EXPECT_TRUE(service(fake_->options(), small).connect(id, {}));
}

TEST_F(VolcengineService, TheEndpointIsFoundOrGiven) {
  VolcengineOptions options = fake_->options();
  EXPECT_NE(create(service(options)), nullptr);
  EXPECT_EQ(count(fake_->log(), "Action=ListRoutes&Version=2022-11-12"), 1U);
  options.endpoint = fake_->url() + "/gw";
  EXPECT_NE(create(service(options)), nullptr);
  EXPECT_EQ(count(fake_->log(), "Action=ListRoutes"), 1U) << "not asked again";
  options.endpoint.clear();
  fake_->misbehave("triggers=none");
  EXPECT_NE(refusal(options).next().find("SANDBOX_ENDPOINT"), std::string::npos);
  EXPECT_EQ(count(fake_->log(), "Action=CreateSandbox"), 2U) << "and nothing was made";
}

TEST_F(VolcengineService, LimitsBelowTheSmallestAreRefusedByName) {
  Policy policy;
  policy.limits.memory = 256_MiB;
  EXPECT_EQ(service().check_supported(policy).error().code(), Code::kUnimplemented);
  policy.limits.memory = 512_MiB;
  EXPECT_TRUE(service().check_supported(policy));
  policy.limits.cpus = 0.1;
  EXPECT_NE(service().check_supported(policy).error().what().find("limits.cpus below 0.25"), std::string::npos);
  policy.limits.cpus = 0.5;
  EXPECT_TRUE(service().check_supported(policy));
  EXPECT_EQ(service().holds(policy, "limits.cpus").mechanism, "CpuMilli = 500");
  EXPECT_EQ(service().holds(policy, "limits.memory").enforced, Enforced::kPartial);
  EXPECT_EQ(service().holds(policy, "network").enforced, Enforced::kPartial);
  EXPECT_EQ(service().holds(policy, "limits.disk").enforced, Enforced::kNone);
  EXPECT_FALSE(check_lifetime(1min));
  EXPECT_TRUE(check_lifetime(3min));
  EXPECT_FALSE(check_lifetime(25h));
}

// --- a control plane that misbehaves

TEST_F(VolcengineService, ABrokenControlPlaneIsOneClearError) {
  VolcengineOptions options = fake_->options();
  for (const auto& [fault, code] :
       {std::pair{"control=401", Code::kUnauthenticated}, std::pair{"control=403", Code::kPermissionDenied},
        std::pair{"control=404", Code::kNotFound}, std::pair{"control=400", Code::kInvalidArgument},
        std::pair{"control=500", Code::kUnavailable}, std::pair{"control=503:999999999999", Code::kUnavailable},
        std::pair{"control=throttled", Code::kResourceExhausted}, std::pair{"control=other", Code::kInvalidArgument},
        std::pair{"control=html", Code::kDataLoss}, std::pair{"control=json", Code::kDataLoss},
        std::pair{"control=cut", Code::kUnavailable}, std::pair{"control=stall", Code::kDeadlineExceeded}}) {
    fake_->misbehave(fault);
    const Error error = test::with_time_enough(
        [&](std::chrono::milliseconds time) {
          options.request_timeout = time;  // of what is to be answered, too
          return refusal(options);
        },
        [&, wanted = code](const Error& tried) { return tried.code() == wanted; }, 1500ms);
    EXPECT_EQ(error.code(), code) << fault << ": " << error.line();
    EXPECT_FALSE(error.reason().empty()) << fault;
    expect_clean(error);
  }
}

TEST_F(VolcengineService, WhatPassesIsTriedAgain) {
  fake_->misbehave("ListTriggers=500:0*2 CreateSandbox=throttled*2 DescribeSandbox=503:0*1");
  EXPECT_NE(create(service()), nullptr);
  EXPECT_EQ(count(fake_->log(), "Action=ListTriggers"), 3U);
  EXPECT_EQ(count(fake_->log(), "Action=CreateSandbox"), 3U) << "refused before anything was made";
}

TEST_F(VolcengineService, ACreateIsSentOnceAndWhatItMadeIsEnded) {
  fake_->misbehave("CreateSandbox=500*1");
  const Error unheard = refusal();
  EXPECT_EQ(unheard.code(), Code::kUnavailable);
  EXPECT_NE(unheard.next().find("metadata session="), std::string::npos) << "none is there yet: " << unheard.next();
  EXPECT_EQ(count(fake_->log(), "Action=CreateSandbox"), 1U);
  for (const char* fault : {"create=lost", "create=noid", "create=huge"}) {
    const std::size_t before = count(fake_->log(), "Action=KillSandbox");
    fake_->misbehave(fault);
    const Error error = refusal();
    EXPECT_TRUE(error.code() == Code::kUnavailable || error.code() == Code::kDataLoss) << error.line();
    EXPECT_EQ(count(fake_->log(), "Action=KillSandbox"), before + 1) << "found by its metadata: " << fault;
    EXPECT_EQ(error.next().find("metadata session="), std::string::npos) << "the twin: it was ended";
  }
  fake_->misbehave("create=lost ListSandboxes=500");
  EXPECT_NE(next_of(fake_->options(), "metadata session=").find("metadata session="), std::string::npos);
}

TEST_F(VolcengineService, WrongAndExpiredKeysAreSaid) {
  VolcengineOptions options = fake_->options();
  options.secret_access_key = "bm90LXRoZS1zZWNyZXQ=";
  EXPECT_EQ(refusal(options).code(), Code::kUnauthenticated);
  options = fake_->options();
  options.access_key_id = "AKTPEXAMPLE0123456789";
  options.secret_access_key = "dGVtcG9yYXJ5LXNlY3JldC1rZXk=";
  options.session_token = "STSEXPIREDEXAMPLE01234567";
  const Error expired = refusal(options);
  EXPECT_EQ(expired.code(), Code::kUnauthenticated);
  EXPECT_EQ(expired.line().find(options.session_token), std::string::npos) << expired.line();
  options.session_token = "STSTOKENEXAMPLE0123456789";
  EXPECT_NE(create(service(options)), nullptr);
  options = fake_->options();
  options.function_id = "fn-other";
  EXPECT_EQ(refusal(options).code(), Code::kNotFound);
  options = fake_->options();
  options.gateway_authorization = "Bearer wrong-key-for-it";
  const Error gateway = refusal(options);
  EXPECT_EQ(gateway.code(), Code::kUnauthenticated);
  EXPECT_NE(gateway.next().find("SANDBOX_AUTHORIZATION"), std::string::npos);
  EXPECT_EQ(gateway.line().find("wrong-key-for-it"), std::string::npos);
}

// --- commands

TEST_F(VolcengineService, ACommandSaysWhatItSays) {
  const auto machine = create(service());
  const auto said = machine->run("echo out; echo err >&2; exit 3", 60s, -1);
  ASSERT_TRUE(said) << said.error().line();
  EXPECT_EQ(said->exit_code, 3);
  EXPECT_EQ(said->out, "out\n");
  EXPECT_EQ(said->err, "err\n");
  EXPECT_EQ(machine->run("cat; echo end", 60s, -1)->out, "end\n") << "there is no input";
  EXPECT_EQ(machine->run("kill -9 $$", 60s, -1)->exit_code, 137);
  const std::size_t most = machine->limits().output;
  const auto large = machine->run("head -c " + std::to_string(most) + " /dev/zero | tr '\\0' x", 60s, -1);
  ASSERT_TRUE(large) << large.error().line();
  EXPECT_EQ(large->out.size(), most) << "whole, where the service cuts at 50000 unless told otherwise";
  const std::string script = "echo " + std::string(machine->limits().script - 10, 'y') + " | wc -c";
  EXPECT_EQ(machine->run(script, 60s, -1)->out, std::to_string(machine->limits().script - 9) + "\n");
}

TEST_F(VolcengineService, ALongCommandIsReadInParts) {
  const auto machine = create(service());
  // The first call returns before the command ends; what comes later is read by its offset.
  const auto run_slowly = [&](const std::string& go, const std::string& faults, const std::string& rest) {
    fake_->misbehave("soft=0.1" + faults);
    std::jthread later([&, before = count(fake_->log(), "/v1/bash/output")] {
      EXPECT_TRUE(test::eventually([&] { return count(fake_->log(), "/v1/bash/output") > before; }));
      EXPECT_TRUE(machine->run("touch ~/" + go, 60s, -1));
    });
    return machine->run("echo first; until [ -e ~/" + go + " ]; do sleep 0.05; done; " + rest, 60s, -1);
  };
  const auto said = run_slowly("go", "", "printf second; echo e >&2; exit 4");
  ASSERT_TRUE(said) << said.error().line();
  EXPECT_EQ(said->out, "first\nsecond");
  EXPECT_EQ(said->err, "e\n");
  EXPECT_EQ(said->exit_code, 4);
  EXPECT_NE(fake_->log().find("/v1/bash/output"), std::string::npos);
  EXPECT_EQ(run_slowly("again", " bash/output=503:0*2", "echo second")->out, "first\nsecond\n") << "reading again loses nothing";
}

TEST_F(VolcengineService, PatienceEndsACommandAndCancellingToo) {
  const auto machine = create(service());
  const Error late = test::with_time_enough(
      [&](std::chrono::milliseconds time) { return failure(*machine, "touch ~/began; sleep 300; touch ~/ended", time); },
      [&](const Error&) {
        return machine->run("ls ~", 60s, -1)->out == "began\n" && fake_->log().find("/v1/bash/kill") != std::string::npos;
      },
      600ms);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_NE(fake_->log().find("/v1/bash/kill"), std::string::npos);
  const UniqueFd cancel(::eventfd(0, EFD_CLOEXEC));
  std::thread later([&, before = count(fake_->log(), "/v1/bash/exec")] {
    EXPECT_TRUE(test::eventually([&] { return count(fake_->log(), "/v1/bash/exec") > before; }));
    ::eventfd_write(cancel.get(), 1);
  });
  const auto cancelled = machine->run("sleep 300", 60s, cancel.get());
  later.join();
  EXPECT_EQ(cancelled.error().code(), Code::kCanceled);
  EXPECT_EQ(machine->run("ls ~", 60s, -1)->out, "began\n") << "others run on";
}

TEST_F(VolcengineService, SessionsAreUsedAgainOneAtATime) {
  const auto machine = create(service());
  for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(machine->run("true", 60s, -1));
  EXPECT_EQ(count(fake_->log(), R"(\"session_id\":\")"), 2U);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto said = machine->run("sleep 0.2; echo " + std::to_string(i), 60s, -1);
      EXPECT_TRUE(said && said->out == std::to_string(i) + "\n");
    });
  }
  for (std::thread& thread : threads) thread.join();
  fake_->misbehave("session=dropped*1");
  EXPECT_EQ(machine->run("echo anew", 60s, -1)->out, "anew\n");
}

TEST_F(VolcengineService, ABrokenDataPlaneIsOneClearErrorAndNothingRunsTwice) {
  const auto machine = create(service());
  for (const auto& [fault, code] :
       {std::pair{"bash/exec=401", Code::kUnauthenticated}, std::pair{"bash/exec=404", Code::kNotFound},
        std::pair{"bash/exec=422", Code::kInvalidArgument}, std::pair{"bash/exec=500", Code::kUnavailable},
        std::pair{"bash/exec=503:0", Code::kUnavailable}, std::pair{"bash/exec=html", Code::kDataLoss},
        std::pair{"bash/exec=json", Code::kDataLoss}, std::pair{"bash/exec=huge", Code::kDataLoss},
        std::pair{"bash/exec=cut", Code::kUnavailable}, std::pair{"bash/exec=stall", Code::kDeadlineExceeded}}) {
    fake_->misbehave(fault);
    const Error error = test::with_time_enough(
        [&, fault = fault](std::chrono::milliseconds time) {
          const std::size_t before = count(fake_->log(), "/v1/bash/exec");
          Error failed = failure(*machine, "true", time);
          EXPECT_EQ(count(fake_->log(), "/v1/bash/exec"), before + 1) << fault;
          return failed;
        },
        [&, wanted = code](const Error& tried) { return tried.code() == wanted; }, 1500ms);
    EXPECT_EQ(error.code(), code) << fault << ": " << error.line();
    expect_clean(error);
  }
  fake_->misbehave("bash/exec=429:0*2");
  EXPECT_TRUE(machine->run("true", 60s, -1)) << "asked too often: nothing began";
  fake_->misbehave("");
  EXPECT_TRUE(machine->run("true", 60s, -1));
}

TEST_F(VolcengineService, AGatewayThatGivesUpIsSaid) {
  const auto machine = create(service());
  fake_->misbehave("gateway=0.3");
  const Error error = failure(*machine, "sleep 300");
  EXPECT_EQ(error.code(), Code::kUnavailable);
  EXPECT_NE(error.reason().find("takes too long"), std::string::npos) << error.line();
  fake_->misbehave("");
  EXPECT_TRUE(machine->run("true", 60s, -1));
}

TEST_F(VolcengineService, AnExpiredSandboxIsGone) {
  const auto from = service();
  const auto machine = create(from);
  EXPECT_TRUE(machine->run("true", 60s, -1)) << "the twin";
  fake_->misbehave("expired=1");  // whatever was asked for
  EXPECT_EQ(failure(*machine, "true").code(), Code::kNotFound);
  EXPECT_EQ(from.connect(machine->id(), {}).error().code(), Code::kNotFound);
  EXPECT_FALSE(from.kill(machine->id()).value());
  EXPECT_EQ(machine->health().error().code(), Code::kUnavailable);
}

// --- files

TEST_F(VolcengineService, FilesAreBytes) {
  const auto machine = create(service());
  std::string bytes(7'000'000, '\0');  // more than one piece
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  const auto written = machine->write("/home/gem/a file", bytes);
  ASSERT_TRUE(written && *written) << (*written).error().line();
  EXPECT_TRUE(machine->read("/home/gem/a file")->value() == bytes);
  EXPECT_TRUE(*machine->write("/home/gem/a file", "short"));
  EXPECT_EQ(machine->read("/home/gem/a file")->value(), "short");
  EXPECT_TRUE(*machine->write("/home/gem/empty", ""));
  EXPECT_EQ(machine->read("/home/gem/empty")->value(), "");
  EXPECT_FALSE(machine->write("/home/gem/\xff", "x")) << "JSON has no such name; shell text has";
  EXPECT_FALSE(machine->read("/home/gem/\xff"));
  const std::string complaint = R"({"success": false, "message": "not a complaint, a file", "data": null})";
  EXPECT_TRUE(*machine->write("/home/gem/file.json", complaint));
  EXPECT_EQ(machine->read("/home/gem/file.json")->value(), complaint);
}

TEST_F(VolcengineService, FileErrorsAreTold) {
  const auto machine = create(service());
  EXPECT_EQ(machine->read("/home/gem/missing")->error().code(), Code::kNotFound);
  EXPECT_EQ(machine->read("/home/gem")->error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(machine->write("/home/gem", "x")->error().code(), Code::kFailedPrecondition);
  for (const auto& [fault, code] :
       {std::pair{"file/download=401", Code::kUnauthenticated}, std::pair{"file/download=cut", Code::kUnavailable},
        std::pair{"file/download=409", Code::kAborted}}) {
    fake_->misbehave(fault);
    EXPECT_EQ(machine->read("/home/gem/missing")->error().code(), code) << fault;
  }
  fake_->misbehave("file/write=413");
  EXPECT_EQ(machine->write("/home/gem/x", "x")->error().code(), Code::kResourceExhausted);
}

// --- a container that runs already

TEST_F(VolcengineService, AContainerNeedsNoControlPlane) {
  const auto address = find_address(fake_->aio_options(), {});
  ASSERT_TRUE(address) << address.error().line();
  const AioService from(http_, *address, 60s);
  const auto machine = from.create({}, {});
  ASSERT_TRUE(machine) << machine.error().line();
  EXPECT_EQ((*machine)->run("echo here", 60s, -1)->out, "here\n");
  EXPECT_EQ(fake_->log().find("Action="), std::string::npos);
  EXPECT_EQ(from.holds({}, "network").enforced, Enforced::kNone);
  EXPECT_EQ(from.kill("x").error().code(), Code::kUnimplemented);
  EXPECT_EQ(from.pause("x").error().code(), Code::kUnimplemented);
  EXPECT_EQ(from.set_timeout("x", 10min).error().code(), Code::kUnimplemented);
  Address wrong = *address;
  wrong.aio_key = "wrong-key";
  const auto refused = AioService(http_, wrong, 60s).create({}, {});
  EXPECT_EQ(refused.error().code(), Code::kUnauthenticated);
  EXPECT_EQ(refused.error().line().find("wrong-key"), std::string::npos);
}

}  // namespace
}  // namespace belljar::remote::volcengine
