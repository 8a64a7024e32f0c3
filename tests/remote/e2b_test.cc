// The e2b backend against a small E2B of our own, which the official SDK drives as well (tests/remote/e2e/e2b_test.cc). That it is
// a Sandbox like every other is tests/conformance.
#include "belljar/e2b.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/policy.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "support/eventually.h"
#include "support/fake_e2b.h"
#include "support/identity.h"
#include "support/in_a_child.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"
#include "support/time_enough.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class E2b : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(program("python3"));
    left_ = std::make_unique<test::Leftovers>();
    fake_ = std::make_unique<test::FakeE2b>();
    // A real directory: what runs there is on this machine, and knows no /home/user.
    config_.workspace = work_.path();
    config_.caller_env = {{"PATH", "/nowhere"}, {"LANG", "C.UTF-8"}, {"TOLD", "named"}};
    config_.policy.limits.kill_grace = 200ms;
  }
  void TearDown() override {
    if (fake_ == nullptr) return;
    fake_.reset();
    EXPECT_EQ(left_->report(), "") << "of a sandbox that was ended";
  }

  std::shared_ptr<E2bSandbox> create(E2bOptions options) const {
    auto sandbox = E2bSandbox::create(10min, std::move(options), config_);
    EXPECT_TRUE(sandbox) << sandbox.error().line();
    return sandbox ? *sandbox : nullptr;
  }
  std::shared_ptr<E2bSandbox> create() const { return create(fake_->options()); }
  Error refusal(E2bOptions options) const {
    auto sandbox = E2bSandbox::create(10min, std::move(options), config_);
    return sandbox ? Error(Code::kUnknown, "it was created") : sandbox.error();
  }
  Error refusal() const { return refusal(fake_->options()); }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    auto result = sandbox.exec(text);
    EXPECT_TRUE(result) << result.error().line();
    return result ? result->out.bytes + result->err.bytes : "";
  }

  // What was killed is listed until it was waited for.
  static std::uint64_t processes_left(Sandbox& sandbox) {
    std::uint64_t left = 1;
    (void)test::eventually([&] {
      left = sandbox.stats()->processes;
      return left == 0;
    });
    return left;
  }

  test::TempDir work_;
  SandboxConfig config_;
  std::unique_ptr<test::Leftovers> left_;
  std::unique_ptr<test::FakeE2b> fake_;
};

// --- life

TEST_F(E2b, CreateRunsForTenMinutesAndStopKills) {
  const auto made = E2bSandbox::create(10min, fake_->options());
  ASSERT_TRUE(made) << made.error().line();
  const auto& sandbox = *made;
  EXPECT_EQ(sandbox->workspace(), "/home/user");
  EXPECT_NE(fake_->log().find(R"(\"timeout\":600)"), std::string::npos);
  EXPECT_EQ(sandbox->exec("exit 3")->exit_code, 3) << "a result, where the SDK throws";
  EXPECT_EQ(sandbox->exec("sleep 300", {.timeout = 200ms})->reason, Reason::kTimeout);
  const std::string id = sandbox->sandbox_id();
  EXPECT_TRUE(sandbox->set_timeout(1h));
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->exec("true").error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(sandbox->kill().value()) << "it is gone already";
  EXPECT_EQ(E2bSandbox::connect(id, fake_->options()).error().code(), Code::kNotFound);
}

TEST_F(E2b, ACommandHasThirtySecondsAndFiveMinutesAtMost) {
  const auto asked = [&] {
    const auto sandbox = create();
    const EnforcementReport report = sandbox ? sandbox->enforcement() : EnforcementReport();
    const auto clause = std::ranges::find(report, "limits.timeout", &EnforcementClause::clause);
    return clause == report.end() ? "no clause" : clause->asked;
  };
  EXPECT_EQ(asked(), "30s a command, at most 5m");
  config_.policy.limits.timeout = 200ms;
  config_.policy.limits.max_timeout = 300ms;
  EXPECT_EQ(asked(), "200ms a command, at most 300ms");
  const auto sandbox = create();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(sandbox->exec("sleep 1000")->message, "command timeout after 200ms");
  EXPECT_EQ(sandbox->exec("sleep 1000", {.timeout = 24h})->message, "command timeout after 300ms");
}

TEST_F(E2b, AForkedChildsCopyEndsNothing) {
  auto sandbox = create();
  ASSERT_NE(sandbox, nullptr);
  ASSERT_TRUE(sandbox->write_file("here", "1"));
  auto process = sandbox->spawn(shell_command("read line; exit 7"), {.input = SpawnInput::kPipe}).value();
  const int code = test::in_a_child([&] {
    using test::is_refused;
    if (!is_refused(sandbox->exec("true", {.timeout = 1s})) || !is_refused(sandbox->read_file("here"))) return 1;
    if (!is_refused(sandbox->stop()) || !is_refused(sandbox->start()) || !is_refused(sandbox->health())) return 2;
    if (!is_refused(process->wait(1s)) || !is_refused(process->signal(SIGKILL)) || !is_refused(process->close_stdin())) return 3;
    process.reset();
    sandbox.reset();
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(sandbox->exec("cat here")->out.bytes, "1") << "the child ended it";
  const auto wrote = process->write_stdin("x\n");
  EXPECT_TRUE(wrote) << wrote.error().line();
  const auto ended = process->wait(60s);
  ASSERT_TRUE(ended && *ended);
  EXPECT_EQ((*ended)->exit_code, 7) << "the child ended it";
  process.reset();
  EXPECT_TRUE(sandbox->stop()) << "the twin: the parent may";
}

TEST_F(E2b, OneLineChangesTheBackend) {
  config_.factory = e2b_backend(fake_->options());
  const auto sandbox = make_sandbox(config_);
  ASSERT_TRUE(sandbox);
  EXPECT_EQ((*sandbox)->exec("true").error().code(), Code::kFailedPrecondition) << "not started";
  ASSERT_TRUE((*sandbox)->start());
  EXPECT_EQ(out(**sandbox, "echo here"), "here\n");
  config_.factory = {};
  config_.backend = "e2b";
  EXPECT_NE(make_sandbox(config_).error().next().find("set config.factory = e2b_backend() (belljar/e2b.h)"), std::string::npos);
}

TEST_F(E2b, AStartThatWasCancelledMakesNothing) {
  config_.factory = e2b_backend(fake_->options());
  config_.cancel = CancelToken::create().value();
  const std::size_t nothing = fake_->log().size();
  EXPECT_TRUE((*make_sandbox(config_))->start()) << "nobody cancelled";
  const std::size_t asked = fake_->log().size();
  EXPECT_GT(asked, nothing);
  config_.cancel.cancel();
  EXPECT_EQ((*make_sandbox(config_))->start().error().code(), Code::kCanceled);
  EXPECT_EQ(fake_->log().find("\"timeout\"", asked), std::string::npos) << fake_->log().substr(asked);
}

TEST_F(E2b, AStartThatIsCancelledWhileItWaitsToAskAgainMakesNothing) {
  fake_->misbehave("control=429:240");
  E2bOptions options = fake_->options();
  options.request_timeout = 10min;
  config_.factory = e2b_backend(options);
  config_.cancel = CancelToken::create().value();
  std::jthread impatient([cancel = config_.cancel, this, before = fake_->log().size()] {
    EXPECT_TRUE(test::eventually([&] { return fake_->log().size() > before; }));
    cancel.cancel();
  });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ((*make_sandbox(config_))->start().error().code(), Code::kCanceled);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 200s) << "it waited for the service's 240 seconds";
  fake_->misbehave("control=429:1*1");
  config_.cancel = CancelToken::create().value();
  EXPECT_TRUE((*make_sandbox(config_))->start()) << "nobody cancelled this one";
}

TEST_F(E2b, ConnectLeavesWhatItFound) {
  const auto first = create();
  ASSERT_TRUE(first->write_file("file", "x"));
  {
    const auto second = E2bSandbox::connect(first->sandbox_id(), fake_->options(), config_);
    ASSERT_TRUE(second) << second.error().line();
    EXPECT_EQ((*second)->read_file("file").value(), "x");
    auto sleeper = (*second)->spawn(shell_command("sleep 300"));
    ASSERT_TRUE(sleeper);
    EXPECT_TRUE((*second)->stop());
    EXPECT_EQ((*sleeper)->wait()->value().reason, Reason::kCancelled);
  }
  EXPECT_EQ(processes_left(*first), 0U) << "its commands ended";
  EXPECT_EQ(out(*first, "cat file"), "x");
}

TEST_F(E2b, PauseKeepsFilesAndConnectResumes) {
  E2bOptions options = fake_->options();
  options.on_stop = E2bOnStop::kPause;
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

TEST_F(E2b, ItsTimeIsALifetime) {
  const auto sandbox = create();
  std::atomic<bool> came{false};
  auto sleeper = sandbox->spawn(shell_command("echo begun; sleep 300"), {.on_stdout = [&](std::string_view) { came = true; }});
  ASSERT_TRUE(sleeper);
  EXPECT_TRUE(test::eventually([&] {
    EXPECT_FALSE((*sleeper)->wait(20ms)->has_value());
    return came.load();
  }));
  ASSERT_TRUE(sandbox->health());
  ASSERT_TRUE(sandbox->set_timeout(1s));
  EXPECT_TRUE(test::eventually([&] { return !sandbox->health(); }));
  EXPECT_EQ(sandbox->health().error().code(), Code::kUnavailable);
  const Error gone = sandbox->exec("true").error();
  EXPECT_EQ(gone.code(), Code::kUnavailable);
  EXPECT_NE(gone.reason().find("its time is over"), std::string::npos) << gone.line();
  const ExecResult cut = (*sleeper)->wait()->value();
  EXPECT_EQ(cut.reason, Reason::kCancelled);
  EXPECT_EQ(cut.out.bytes, "begun\n") << "what came before is kept";
}

TEST_F(E2b, AStopThatFailedIsTriedAgain) {
  for (const E2bOnStop on_stop : {E2bOnStop::kKill, E2bOnStop::kPause}) {
    E2bOptions options = fake_->options();
    options.on_stop = on_stop;
    const auto sandbox = create(options);
    fake_->misbehave("control=500*2");
    EXPECT_EQ(sandbox->stop().error().code(), Code::kUnavailable);
    EXPECT_EQ(sandbox->stop().error().code(), Code::kUnavailable);
    EXPECT_TRUE(sandbox->stop());
    const std::string id = sandbox->sandbox_id();
    EXPECT_EQ(id.empty(), on_stop == E2bOnStop::kKill);
    if (!id.empty()) {
      EXPECT_NE(fake_->log().find(id + "/pause"), std::string::npos);
      EXPECT_TRUE(sandbox->kill().value());
    }
    fake_->misbehave("control=500");
    EXPECT_TRUE(sandbox->stop()) << "nothing is left to be ended";
    fake_->misbehave("");
  }
}

TEST_F(E2b, WhatWasMadeAndCannotBeUsedIsEnded) {
  const auto ended = [&] { return fake_->log().find(R"(["DELETE", "/sandboxes/)") != std::string::npos; };
  config_.workspace = "/home/\xff";
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  EXPECT_EQ(fake_->log(), "") << "before one is made";
  config_.workspace = work_.path();
  fake_->misbehave("grant=wrong*1");
  EXPECT_EQ(refusal().code(), Code::kDataLoss);
  EXPECT_TRUE(ended()) << fake_->log();
  fake_->misbehave("mkdir=403*1\nkill=500*1");
  const Error unended = refusal();
  EXPECT_EQ(unended.code(), Code::kPermissionDenied);
  EXPECT_NE(unended.next().find("end the sandbox `i"), std::string::npos) << unended.line();
  fake_->misbehave("");
  EXPECT_EQ(refusal().what(), "it was created");
}

// --- policy

TEST_F(E2b, WhatCannotBeHeldIsSaidAndRefused) {
  const auto clause = [&](const std::string& name) {
    const auto sandbox = create();
    for (const EnforcementClause& found : sandbox->enforcement()) {
      if (found.clause == name) return std::string(to_string(found.enforced));
    }
    return std::string("absent");
  };
  EXPECT_EQ(clause("filesystem.root"), "full");
  EXPECT_EQ(clause("filesystem.write"), "none");
  EXPECT_EQ(clause("network"), "partial");
  config_.policy.require = {"filesystem.write"};
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
  config_.policy.require = {"filesystem.root"};
  EXPECT_EQ(refusal().what(), "it was created");
  config_.policy.require = {};
  config_.policy.limits.memory = 512_MiB;
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
  config_.policy.accept = {"limits.memory"};
  EXPECT_EQ(refusal().what(), "it was created");
  config_.policy.filesystem.entries = {{.path = "/etc", .access = Access::kNone}};
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
  config_.policy.filesystem.entries = {};
  config_.policy.filesystem.volumes = {{.source = "/etc", .target = "/data"}};
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.filesystem.volumes = {};
  config_.policy.network.mode = NetMode::kProxy;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.network.mode = NetMode::kNone;
  config_.policy.network.allow_local_binding = false;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.network.allow_local_binding = true;
  EXPECT_EQ(refusal().what(), "it was created");
  config_.policy.network.allow_local_binding = {};
  config_.idle_timeout = 1s;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
}

TEST_F(E2b, OnlyWhatIsNamedLeavesThisMachine) {
  const auto env = [&] { return out(*create(), "env"); };
  EXPECT_EQ(env().find("C.UTF-8"), std::string::npos);
  EXPECT_EQ(env().find("named"), std::string::npos);
  config_.policy.environment.pass = {"TOLD"};
  config_.policy.environment.set = {{"OWN", "value"}};
  const std::string more = env();
  EXPECT_NE(more.find("TOLD=named\n"), std::string::npos);
  EXPECT_NE(more.find("OWN=value\n"), std::string::npos);
  EXPECT_EQ(more.find("/nowhere"), std::string::npos);
  EXPECT_NE(fake_->log().find(R"(\"allow_internet_access\":false)"), std::string::npos);
  EXPECT_NE(fake_->log().find(R"(\"network\":{\"allowPublicTraffic\":false})"), std::string::npos) << "nor in from outside";
}

// --- commands

TEST_F(E2b, ATimeoutFindsTheDaemonsOfTheCommandAndNoOthers) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->exec("sleep 300 >/dev/null 2>&1 & echo $! >other"));
  const std::string daemon =
      "(setsid sh -c 'trap \"\" TERM; echo $$ >daemon; sleep 300 & wait; sleep 300' >/dev/null 2>&1 &); sleep 300";
  const auto pid = [&] { return std::atoi(out(*sandbox, "cat daemon 2>/dev/null").c_str()); };
  std::string timeout;
  const ExecResult result = test::with_time_enough(
      [&](std::chrono::milliseconds time) {
        timeout = std::to_string(time.count());
        return sandbox->exec(daemon, {.timeout = time}).value();
      },
      [&](const ExecResult&) { return pid() != 0; }, 1s);
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_EQ(result.message, "command timeout after " + timeout + "ms");
  ASSERT_NE(pid(), 0);
  EXPECT_TRUE(test::eventually([&, daemons = pid()] { return !test::is_running(daemons); }));
  EXPECT_EQ(out(*sandbox, "grep -cs '^State:.[RSDT]' /proc/$(cat other)/status"), "1\n");
  EXPECT_EQ(out(*sandbox, "kill -0 $(cat other) && echo runs"), "runs\n");
}

TEST_F(E2b, TheDaemonHasTheTimeoutToo) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->exec("true", {.timeout = 5s}));
  EXPECT_NE(fake_->log().find(R"("Connect-Timeout-Ms": "35200")"), std::string::npos);
}

TEST_F(E2b, AppendKeepsWhatOthersAppend) {
  const auto sandbox = create();
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([&] {
      for (int turn = 0; turn < 5; ++turn) EXPECT_TRUE(sandbox->write_file("log/lines", "one line\n", {.how = WriteMode::kAppend}));
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(out(*sandbox, "grep -cx 'one line' log/lines"), "40\n");
}

TEST_F(E2b, AppendGoesWhereTheNameSays) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->write_file("odd\n/file", "x", {.how = WriteMode::kAppend}));
  EXPECT_EQ(sandbox->read_file("odd\n/file").value(), "x");
}

TEST_F(E2b, AGrepThatFailsIsNoEmptyResult) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->write_file("file", "content"));
  EXPECT_EQ(sandbox->grep("content")->matches.size(), 1U);
  EXPECT_TRUE(sandbox->grep("other")->matches.empty());
  fake_->misbehave("stream=usage*1");
  const auto failed = sandbox->grep("content");
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().reason().find("unknown option"), std::string::npos) << failed.error().line();
}

TEST_F(E2b, AFailedReadBeforeAnAppendLosesNothing) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->write_file("file", "old"));
  fake_->misbehave("envd=500");
  EXPECT_FALSE(sandbox->write_file("file", " new", {.how = WriteMode::kAppend}));
  EXPECT_FALSE(sandbox->write_file("file", "other", {.how = WriteMode::kAtomic}));
  fake_->misbehave("");
  EXPECT_EQ(sandbox->read_file("file").value(), "old");
  EXPECT_EQ(sandbox->list()->size(), 1U) << "nor is anything left behind";
  fake_->misbehave("files=507");
  EXPECT_EQ(sandbox->write_file("other", "x").error().code(), Code::kResourceExhausted);
}

// --- a service that misbehaves

TEST_F(E2b, ABrokenControlPlaneIsAnErrorWithAReason) {
  const std::vector<std::pair<const char*, Code>> cases = {
      {"control=500", Code::kUnavailable}, {"control=401", Code::kUnauthenticated},   {"control=403", Code::kPermissionDenied},
      {"control=html", Code::kDataLoss},   {"control=429", Code::kResourceExhausted}, {"control=503", Code::kUnavailable}};
  for (const auto& [fault, code] : cases) {
    fake_->misbehave(fault);
    const Error error = refusal();
    EXPECT_EQ(error.code(), code) << fault << error.line();
    EXPECT_FALSE(error.reason().empty()) << fault;
  }
  fake_->misbehave("control=429*2");
  EXPECT_EQ(refusal().what(), "it was created") << "asked to try again, it does";
  fake_->misbehave("control=503*1");
  EXPECT_EQ(refusal().code(), Code::kUnavailable) << "one may have been made";
  for (const char* after : {"3600", "9223372036854775807", "9223372036", "99999999999999999999999"}) {
    fake_->misbehave(std::string("control=429:") + after);
    EXPECT_EQ(refusal().code(), Code::kResourceExhausted) << after;
  }
  fake_->misbehave("");
  E2bOptions options = fake_->options();
  options.api_key = "e2b_wrong";
  EXPECT_EQ(refusal(options).code(), Code::kUnauthenticated);
  EXPECT_EQ(refusal(options).line().find("e2b_wrong"), std::string::npos);
  options = fake_->options();
  options.template_id = "missing";
  EXPECT_EQ(refusal(options).code(), Code::kNotFound);
  options.api_url = "http://127.0.0.1:1";
  EXPECT_EQ(refusal(options).code(), Code::kUnavailable);
}

TEST_F(E2b, ASandboxWhoseMakingWasNotAnsweredIsFoundAndEnded) {
  fake_->misbehave("create=lost*1");
  EXPECT_EQ(refusal().code(), Code::kUnavailable);
  const std::string log = fake_->log();
  EXPECT_NE(log.find(R"(["GET", "/sandboxes?metadata=belljar%3D)"), std::string::npos) << log;
  EXPECT_NE(log.find(R"(["DELETE", "/sandboxes/i)"), std::string::npos) << log;
  for (const char* status : {"202", "204", "408"}) {  // of a proxy on the way: made, and its id is not told
    const auto ended = [&] {
      const std::string told = fake_->log();
      std::size_t deletes = 0;
      for (std::size_t at = 0; (at = told.find(R"(["DELETE", "/sandboxes/i)", at)) != std::string::npos; ++at) ++deletes;
      return deletes;
    };
    const std::size_t before = ended();
    fake_->misbehave(std::string("create=") + status);
    const Error error = refusal();
    EXPECT_EQ(ended(), before + 1) << status << error.line();
  }
  fake_->misbehave("");
  E2bOptions options = fake_->options();
  options.metadata = {{"belljar", "mine"}};
  EXPECT_EQ(refusal(options).what(), "the metadata `belljar` is ours");
  options.metadata = {{"owner", "me"}};
  EXPECT_EQ(refusal(options).what(), "it was created") << "the twin";
}

TEST_F(E2b, CompatibleServicesAreServed) {
  for (const char* paths : {"paths=v2", "paths=v1"}) {
    SCOPED_TRACE(paths);
    fake_->misbehave(paths);
    EXPECT_EQ(refusal().what(), "it was created");
    const auto first = create();
    const auto second = E2bSandbox::connect(first->sandbox_id(), fake_->options(), config_);
    EXPECT_TRUE(second) << second.error().line();
    const auto gone = E2bSandbox::connect("i0123456789", fake_->options(), config_);
    EXPECT_EQ(gone.error().code(), Code::kNotFound) << "the twin";
  }
  fake_->misbehave("auth=bearer");
  EXPECT_EQ(refusal().code(), Code::kUnauthenticated);
  E2bOptions options = fake_->options();
  options.auth = E2bAuth::kBearer;
  options.headers = {{"X-Workspace", "team 7"}};
  options.least_lifetime = 300min;
  EXPECT_EQ(refusal(options).what(), "it was created");
  EXPECT_NE(fake_->log().find(R"("X-Workspace": "team 7")"), std::string::npos) << fake_->log();
  EXPECT_NE(fake_->log().find(R"(\"timeout\":18000)"), std::string::npos) << fake_->log();
  options.headers = {{"X-Bad", "a\r\nX-API-KEY: b"}};
  EXPECT_EQ(refusal(options).what(), "cannot send the header `X-Bad`");
}

TEST_F(E2b, DaemonsOfOtherVersionsAreServedOrRefused) {
  fake_->misbehave("version=0.3.5");
  EXPECT_EQ(out(*create(), "echo ran"), "ran\n") << "as user, which such a daemon has to be told";
  fake_->misbehave("version=0.0.9");
  const Error old = refusal();
  EXPECT_EQ(old.reason(), "its daemon is of version 0.0.9, and 0.1.0 is the oldest that is served");
  EXPECT_NE(fake_->log().rfind(R"(["DELETE", "/sandboxes/i)"), std::string::npos);
}

TEST_F(E2b, WhatAStreamSaysOfTheEndIsTakenAsItIs) {
  const auto sandbox = create();
  const auto told = [&](const char* fault) {
    fake_->misbehave(std::string("stream=") + fault + "*1");
    return sandbox->exec("true").value();
  };
  EXPECT_EQ(told("later").exit_code, 3) << "what is new is passed over";
  EXPECT_NE(told("exit_256").exit_code, 0);
  fake_->misbehave("stream=deadline*1");
  const auto spawned = sandbox->spawn(Command{.argv = {"true"}});  // no timeout of its own
  ASSERT_TRUE(spawned) << spawned.error().line();
  EXPECT_EQ((*spawned)->wait()->value().message, "the service ended the command at a deadline of its own");
}

TEST_F(E2b, AnAnswerThatDoesNotComeIsNotWaitedForForEver) {
  const auto attempt = [&](std::chrono::milliseconds time) -> std::string {
    E2bOptions options = fake_->options();
    options.request_timeout = time;  // also for what is to be answered
    fake_->misbehave("control=silent");
    EXPECT_EQ(refusal(options).code(), Code::kDeadlineExceeded);
    fake_->misbehave("");
    const auto made = E2bSandbox::create(10min, options, config_);
    if (!made) return made.error().line();
    const auto& sandbox = *made;
    fake_->misbehave("envd=silent");
    EXPECT_EQ(sandbox->read_file("x").error().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(sandbox->exec("true").error().code(), Code::kUnavailable);
    EXPECT_EQ(sandbox->exec("true", {.timeout = 200ms})->reason, Reason::kTimeout);
    fake_->misbehave("");
    const auto again = sandbox->exec("echo again");
    return again ? again->out.bytes : again.error().line();
  };
  EXPECT_EQ(test::with_time_enough(attempt, [](const std::string& said) { return said == "again\n"; }, 1s), "again\n");
}

TEST_F(E2b, AStreamThatStallsEndsByTheDeadline) {
  const auto sandbox = create();
  const ExecResult result = test::with_time_enough(
      [&](std::chrono::milliseconds time) {
        fake_->misbehave("stream=stall*1");
        return sandbox->exec("sleep 300", {.timeout = time}).value();
      },
      [](const ExecResult& tried) { return !tried.out.bytes.empty(); });
  EXPECT_EQ(result.reason, Reason::kTimeout);
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_EQ(result.out.bytes, "before\n");
  EXPECT_EQ(processes_left(*sandbox), 0U) << "and so does the command";
  fake_->misbehave("stream=stall*1");
  const CancelToken cancel = *CancelToken::create();
  const ExecResult cancelled =
      sandbox->exec("sleep 300", {.cancel = cancel, .on_stdout = [&](std::string_view) { cancel.cancel(); }}).value();
  EXPECT_EQ(cancelled.reason, Reason::kCancelled);
  EXPECT_EQ(processes_left(*sandbox), 0U);
}

TEST_F(E2b, ABrokenStreamEndsTheCommandAndKeepsWhatCame) {
  const auto sandbox = create();
  for (const char* fault :
       {"cut", "cut_in_frame", "flag", "huge", "not_json", "not_base64", "wrong_types", "no_end_event", "error"}) {
    fake_->misbehave(std::string("stream=") + fault + "*1");
    const auto result = sandbox->exec("sleep 300");
    ASSERT_TRUE(result) << fault << result.error().line();
    EXPECT_EQ(result->reason, Reason::kCancelled) << fault;
    EXPECT_NE(result->exit_code, 0) << fault;
    EXPECT_NE(result->message.find("the command was lost and ended: "), std::string::npos) << fault << result->message;
    EXPECT_EQ(result->message.find('\x1b'), std::string::npos);
    if (std::string(fault).starts_with("cut")) {
      EXPECT_EQ(result->out.bytes, "before\n");
    }
    EXPECT_EQ(processes_left(*sandbox), 0U) << fault;
  }
  EXPECT_EQ(out(*sandbox, "echo still here"), "still here\n");
}

TEST_F(E2b, InputThatDoesNotGetThereIsNoEndOfIt) {
  const auto sandbox = create();
  for (const char* fault : {"SendInput", "CloseStdin"}) {
    fake_->misbehave(std::string("input=") + fault);
    const ExecResult result = sandbox->exec("cat; sleep 300", {.stdin_bytes = "given"}).value();
    EXPECT_EQ(result.reason, Reason::kCancelled) << fault;
    EXPECT_NE(result.message.find("its stdin broke off: "), std::string::npos) << fault << result.message;
    EXPECT_EQ(processes_left(*sandbox), 0U) << fault;
  }
  fake_->misbehave("");
  EXPECT_EQ(sandbox->exec("cat", {.stdin_bytes = "given"})->out.bytes, "given");
}

TEST_F(E2b, AWriteEndsWithTheCommand) {
  const auto sandbox = create();
  auto process = sandbox->spawn(shell_command("read line; exit 3"), {.input = SpawnInput::kPipe});
  ASSERT_TRUE(process);
  ASSERT_TRUE((*process)->write_stdin("", 60s));
  fake_->misbehave("input=silent*1");
  std::thread ender([&] {
    EXPECT_TRUE(test::eventually([&] { return fake_->log().find("SendInput") != std::string::npos; }));
    EXPECT_TRUE((*process)->signal(SIGKILL));
  });
  EXPECT_EQ((*process)->write_stdin("given\n", std::chrono::milliseconds::max()).error().code(), Code::kFailedPrecondition);
  ender.join();
  EXPECT_EQ((*process)->wait()->value().exit_code, 137);
}

TEST_F(E2b, InputIsNotSentTwice) {
  const auto sandbox = create();
  auto process = sandbox->spawn(shell_command("cat"), {.input = SpawnInput::kPipe});
  ASSERT_TRUE(process);
  ASSERT_TRUE((*process)->write_stdin("one\n", 60s));  // leaves connections for the next
  fake_->misbehave("input=cut*1");
  EXPECT_EQ((*process)->write_stdin("two\n", 60s).error().code(), Code::kUnavailable);
  EXPECT_EQ((*process)->wait()->value().out.bytes.find("two\ntwo\n"), std::string::npos);
}

TEST_F(E2b, WhatNeverBeganIsAnError) {
  const auto sandbox = create();
  for (const char* fault : {"500", "503", "html", "nostart"}) {
    fake_->misbehave(std::string("stream=") + fault + "*1");
    const auto result = sandbox->exec("sleep 300");
    ASSERT_FALSE(result) << fault;
    EXPECT_EQ(result.error().code(), Code::kUnavailable) << fault << result.error().line();
  }
  fake_->misbehave("envd=401");
  EXPECT_EQ(sandbox->exec("true").error().code(), Code::kUnauthenticated);
  EXPECT_EQ(sandbox->read_file("x").error().code(), Code::kUnauthenticated);
  EXPECT_NE(sandbox->exec("true").error().next().find("start() it again"), std::string::npos);
  fake_->misbehave("envd=502");
  EXPECT_EQ(sandbox->exec("true").error().code(), Code::kUnavailable);
  EXPECT_EQ(sandbox->health().error().code(), Code::kUnavailable);
  fake_->misbehave("");
  EXPECT_TRUE(sandbox->health());
}

TEST_F(E2b, FramesInPiecesAndAMissingLastOneAreFine) {
  const auto sandbox = create();
  fake_->misbehave("stream=slow*1");
  EXPECT_EQ(sandbox->exec("true")->out.bytes, "slow");
  fake_->misbehave("stream=no_end_frame*1");
  EXPECT_EQ(sandbox->exec("true")->exit_code, 0) << "its end was told";
}

TEST_F(E2b, AFileThatIsCutOffIsNotTakenForTheWhole) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->write_file("file", "content"));
  fake_->misbehave("files=cut");
  EXPECT_EQ(sandbox->read_file("file").error().code(), Code::kUnavailable);
  fake_->misbehave("");
  EXPECT_EQ(sandbox->read_file("file").value(), "content");
}

TEST_F(E2b, TheKeyIsNotInTheSandbox) {
  const std::string seen = out(*create(), "env; cat /proc/$PPID/cmdline");
  EXPECT_EQ(seen.find(test::FakeE2b::key()), std::string::npos);
}

TEST_F(E2b, WatchingIsRefusedByName) { EXPECT_EQ(create()->watch().error().code(), Code::kUnimplemented); }

}  // namespace
}  // namespace belljar
