// Calls end when their caller says so: during a wait for a service or an engine that does not answer, and for another call.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/aliyun.h"
#include "belljar/cancel.h"
#include "belljar/cloud.h"
#include "belljar/container.h"
#include "belljar/e2b.h"
#include "belljar/error.h"
#include "belljar/sandbox.h"
#include "belljar/volcengine.h"
#include "conformance/timed_calls.h"
#include "remote/shell/sandbox.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/fake_aliyun.h"
#include "support/fake_e2b.h"
#include "support/fake_volcengine.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/local_shell.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kLongest = 10min;  // of one answer: it is never what ends a call here

// --- the token of a call

TEST(CallOptions, OneTokenStandsForTokenAndDeadline) {
  const CancelToken cancel = CancelToken::create().value();
  const CancelToken late = CallOptions::within(10min, cancel).token().value();
  const CancelToken soon = CallOptions::within(20ms).token().value();
  const CancelToken never = CallOptions::within(std::chrono::milliseconds::max()).token().value();
  EXPECT_FALSE(late.cancelled()) << "neither of both";
  EXPECT_TRUE(test::eventually([&] { return soon.cancelled(); }));
  EXPECT_EQ(never.fd(), -1) << "nothing can end it";
  cancel.cancel();
  EXPECT_TRUE(late.cancelled());
  const CancelToken past = CallOptions{.deadline = std::chrono::steady_clock::time_point::min()}.token().value();
  EXPECT_TRUE(past.cancelled());
}

TEST(CallOptions, CancellingTheOneTokenLeavesTheOtherAlone) {
  const CancelToken cancel = CancelToken::create().value();
  const CancelToken both = CallOptions::within(10min, cancel).token().value();
  both.cancel();
  EXPECT_TRUE(both.cancelled());
  EXPECT_FALSE(cancel.cancelled());
}

TEST(CallOptions, OneTokenStandsForASecondOneToo) {
  const CancelToken one = CancelToken::create().value(), other = CancelToken::create().value();
  const CancelToken timed = CallOptions::within(10min, one).token(other).value(),
                    both = CallOptions{.cancel = one}.token(other).value();
  const CancelToken alone = CallOptions{}.token(other).value();
  for (const CancelToken& token : {timed, both, alone}) EXPECT_FALSE(token.cancelled());
  other.cancel();
  for (const CancelToken& token : {timed, both, alone}) EXPECT_TRUE(token.cancelled());
  EXPECT_FALSE(one.cancelled());
}

TEST(CallOptions, SaysWhichOfBothItWas) {
  const CancelToken cancel = CancelToken::create().value();
  EXPECT_TRUE(CallOptions::within(10min, cancel).check("cannot do it"));
  EXPECT_EQ(CallOptions::within(-1s, cancel).check("cannot do it").error().code(), Code::kDeadlineExceeded);
  cancel.cancel();
  const auto over = CallOptions::within(-1s, cancel).check("cannot do it");
  EXPECT_EQ(over.error().code(), Code::kCanceled);
  EXPECT_EQ(over.error().what(), "cannot do it");
}

// --- a service that does not answer

struct Stalling {
  std::function<void(bool)> stall;     // from now on nothing is answered, or everything
  std::function<std::size_t()> asked;  // how much has been asked of it
};

// The token is cancelled once the call has asked.
std::optional<Error> cancelled_during(const TimedCall& call, Sandbox& sandbox, const Stalling& service) {
  const CancelToken cancel = CancelToken::create().value();
  std::jthread canceller([&, before = service.asked()] {
    EXPECT_TRUE(test::eventually([&] { return service.asked() > before; })) << call.name << " asked nothing";
    cancel.cancel();
  });
  return call.act(sandbox, {.cancel = cancel});
}

void expect_over(const std::optional<Error>& error, Code code, const char* name) {
  ASSERT_TRUE(error) << name;
  EXPECT_EQ(error->code(), code) << name << ": " << error->line();
}

// Every call is ended by both, and succeeds once the service answers.
void check_stalled(Sandbox& sandbox, const Stalling& service, bool with_stop) {
  ASSERT_TRUE(sandbox.write_file("t/f", "old"));
  std::vector<TimedCall> calls = timed_calls();
  service.stall(true);
  for (const TimedCall& call : calls) {
    expect_over(cancelled_during(call, sandbox, service), Code::kCanceled, call.name);
    expect_over(call.act(sandbox, CallOptions::within(100ms)), Code::kDeadlineExceeded, call.name);
  }
  service.stall(false);
  ASSERT_EQ(sandbox.list("t").value().size(), 1U) << "nothing of it was done later";
  for (const TimedCall& call : calls) {
    const auto failed = call.act(sandbox, CallOptions::within(kLongest));
    EXPECT_FALSE(failed) << call.name << ": " << failed->line();
  }
  if (!with_stop) return;
  const TimedCall stop{"stop", [](Sandbox& one, const CallOptions& options) { return error_of(one.stop(options)); }};
  service.stall(true);
  const auto ended = cancelled_during(stop, sandbox, service);
  expect_over(ended, Code::kCanceled, stop.name);
  EXPECT_NE(ended->line().find("may run on"), std::string::npos) << ended->line();
  expect_over(stop.act(sandbox, CallOptions::within(100ms)), Code::kDeadlineExceeded, stop.name);
  service.stall(false);
  EXPECT_FALSE(stop.act(sandbox, CallOptions::within(kLongest)));
}

// The services of these tests run commands on this machine: they work in a directory of the test's own.
std::shared_ptr<Sandbox> started(const test::TempDir& workspace, const SandboxFactory& factory) {
  SandboxConfig config;
  config.factory = factory;
  config.workspace = workspace.path();
  auto sandbox = make_sandbox(config).value();
  const auto begun = sandbox->start();
  EXPECT_TRUE(begun) << begun.error().line();
  return sandbox;
}

// A service, the sandboxes of it, and how it stops answering.
struct Service {
  std::shared_ptr<const void> held;  // ends with it
  SandboxFactory factory;
  Stalling stalling;
};

Service local_shell() {
  const auto cloud = std::make_shared<test::LocalCloud>();
  const auto stalls = std::make_shared<std::atomic<bool>>(false);
  cloud->fault = [stalls](const std::string&) { return *stalls ? test::Fault::kStalled : test::Fault::kNone; };
  const auto factory = [cloud](const SandboxConfig& config) -> Result<std::shared_ptr<Sandbox>> {
    auto made = BELLJAR_TRY(remote::shell::ShellSandbox::make(
        cloud, config,
        {.type = "ShellOptions", .sandbox_id = {}, .lifetime = {}, .on_stop = CloudOnStop::kKill, .request_timeout = kLongest}));
    return std::shared_ptr<Sandbox>(std::move(made));
  };
  return {cloud, factory, {[stalls](bool on) { *stalls = on; }, [cloud] { return static_cast<std::size_t>(cloud->calls()); }}};
}

// A program that plays one: `silent` keeps it from answering.
template <class Fake, class Options>
Service played(SandboxFactory (*backend)(Options), void (Fake::*misbehave)(const std::string&) const, const char* silent) {
  const auto fake = std::make_shared<Fake>();
  Options options = fake->options();
  if constexpr (requires { options.policy_id; }) options.policy_id = "closed";
  options.request_timeout = kLongest;
  const auto stall = [=](bool on) { (*fake.*misbehave)(on ? silent : ""); };
  return {fake, backend(std::move(options)), {stall, [fake] { return fake->log().size(); }}};
}

Service e2b() { return played(e2b_backend, &test::FakeE2b::misbehave, "envd=silent\nstream=silent\ncontrol=silent"); }
Service aliyun() {
  return played(aliyun_backend, &test::FakeAliyun::set, "callTool=silent\nGetSessionDetail=silent\nDeleteSessionAsync=silent");
}
Service volcengine() { return played(volcengine_backend, &test::FakeVolcengine::misbehave, "aio=stall\ncontrol=stall"); }

struct Cloud {
  const char* name;
  Service (*serve)();
  bool is_program;  // it needs python3, and stop() asks it
};

void PrintTo(const Cloud& cloud, std::ostream* out) { *out << cloud.name; }  // not its addresses, which change

class CloudInTime : public testing::TestWithParam<Cloud> {};

TEST_P(CloudInTime, EveryCallEndsWhenItsCallerSaysSo) {
  const Cloud& cloud = GetParam();
  BELLJAR_NEEDS(cloud.is_program ? program("python3") : "");
  const test::TempDir workspace;
  const test::Leftovers left;
  {
    const Service service = cloud.serve();
    const auto sandbox = started(workspace, service.factory);
    check_stalled(*sandbox, service.stalling, cloud.is_program);
    if (!cloud.is_program) {
      EXPECT_TRUE(sandbox->stop());
    }
  }
  EXPECT_EQ(left.report(), "");
}

INSTANTIATE_TEST_SUITE_P(Clouds, CloudInTime,
                         testing::Values(Cloud{"shell", local_shell, false}, Cloud{"e2b", e2b, true}, Cloud{"aliyun", aliyun, true},
                                         Cloud{"volcengine", volcengine, true}),
                         [](const auto& each) { return std::string(each.param.name); });

// --- another call that holds the sandbox

// An engine that takes connections and says nothing: start() waits for it, and whoever comes meanwhile waits for start().
TEST(InTime, AStartThatHangsHoldsNoCallLongerThanItAllows) {
  const test::TempDir workspace, place;
  const std::string path = place / "engine";
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);

  SandboxConfig config;
  config.backend = "container";
  config.workspace = workspace.path();
  config.container.engine = "unix://" + path;
  config.cancel = CancelToken::create().value();
  const auto sandbox = make_sandbox(config).value();
  Result<void> start;
  std::thread starter([&] { start = sandbox->start(); });
  const UniqueFd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));  // now it waits
  EXPECT_EQ(sandbox->stat("f", CallOptions::within(50ms)).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(sandbox->write_file("f", "x", {.call = CallOptions::within(50ms)}).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(sandbox->health(CallOptions::within(50ms)).error().code(), Code::kDeadlineExceeded);
  const CancelToken cancel = CancelToken::create().value();
  std::jthread canceller([&] {
    std::this_thread::sleep_for(20ms);  // it waits by then; a call that comes later proves less
    cancel.cancel();
  });
  EXPECT_EQ(sandbox->stop({.cancel = cancel}).error().code(), Code::kCanceled);
  config.cancel.cancel();
  starter.join();
  EXPECT_EQ(start.error().code(), Code::kCanceled) << start.error().line();
  EXPECT_EQ(sandbox->stat("f", CallOptions::within(10min)).error().code(), Code::kFailedPrecondition) << "nobody holds it";
  EXPECT_TRUE(sandbox->stop(CallOptions::within(10min)));
  // A start's own options end it as well, long before an engine's ten seconds to answer.
  config.cancel = {};
  const auto another = make_sandbox(config).value();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(another->start(CallOptions::within(50ms)).error().code(), Code::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 9s);
}

// --- an engine that does not answer

// The daemon, and what it has in namespaces of its own, by the place that only this test has.
void signal_engine(const test::Engine& engine, int number) {
  const std::string place = fs::path(engine.socket()).parent_path();
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = test::read_file(entry.path() / "cmdline");
    if (words.find(place) != std::string::npos && words.find("dockerd") != std::string::npos) ::kill(std::stoi(name), number);
  }
}

TEST(ContainerInTime, AnEngineThatDoesNotAnswerHoldsNoCallLongerThanItAllows) {
  std::unique_ptr<test::Engine> engine;
  BELLJAR_NEEDS(start_engine(engine));
  const test::TempDir workspace;
  workspace.give_to(test::user_uid(), test::user_gid());
  SandboxConfig config;
  config.backend = "container";
  config.workspace = workspace.path();
  config.container = {.engine = engine->address(), .image = engine->image(), .pull = PullPolicy::kNever};
  const auto sandbox = make_sandbox(config).value();
  ASSERT_TRUE(sandbox->start());
  const CallOptions soon = CallOptions::within(10min);
  EXPECT_TRUE(sandbox->health(soon)) << "the twin";
  EXPECT_TRUE(sandbox->stats(soon)) << "the twin";
  signal_engine(*engine, SIGSTOP);
  EXPECT_EQ(sandbox->health(CallOptions::within(100ms)).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(sandbox->stats(CallOptions::within(100ms)).error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(sandbox->write_file("f", "x", {.call = CallOptions::within(10min)})) << "files are reached without the engine";
  const CancelToken cancel = CancelToken::create().value();
  std::jthread canceller([&] {
    std::this_thread::sleep_for(100ms);  // it waits by then; a call that comes later proves less
    cancel.cancel();
  });
  const auto stopped = sandbox->stop({.cancel = cancel});
  signal_engine(*engine, SIGCONT);
  EXPECT_EQ(stopped.error().code(), Code::kCanceled) << stopped.error().line();
  EXPECT_TRUE(sandbox->stop(CallOptions::within(10min))) << "the twin";
  EXPECT_TRUE(engine->containers().empty());
}

}  // namespace
}  // namespace belljar
