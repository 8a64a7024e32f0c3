// What commands try against the pid 1 of their container, which runs as the same user: it goes on serving, and ends what it is told
// to end.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "belljar/sandbox.h"
#include "conformance/timed_out.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::EngineKind;

class ContainerPid1 : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_, GetParam()));
    work_.give_to(test::user_uid(), test::user_gid());
    config_.backend = "container";
    config_.workspace = work_.path();
    config_.container = {.engine = engine_->address(), .image = test::Engine::image(), .pull = PullPolicy::kNever};
    config_.policy.limits.pids = 200;
    config_.policy.limits.kill_grace = 100ms;
  }
  void TearDown() override {
    if (engine_ != nullptr) {
      EXPECT_TRUE(engine_->containers().empty());
    }
  }
  std::shared_ptr<Sandbox> start() {
    auto made = make_sandbox(config_);
    if (!made) ADD_FAILURE() << made.error().line();
    const auto started = made ? (*made)->start() : Result<void>();
    EXPECT_TRUE(started) << started.error().line();
    return made ? *made : nullptr;
  }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    const auto result = sandbox.exec(shell_command(text), {.timeout = 60s});
    return result ? result->out.bytes + result->err.bytes : result.error().line();
  }

  std::unique_ptr<test::Engine> engine_;
  test::TempDir work_;
  SandboxConfig config_;
};

// Between fork(2) and execve(2) a command's process is one that any other may stop.
TEST_P(ContainerPid1, GoesOnWhereACommandStopsAllOthersAsTheyStart) {
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, "echo before"), "before\n") << "the twin";
  const std::string stopper = "(until [ -e go ]; do sleep 0.1; done; while [ ! -e over ]; do kill -STOP -1; done)";
  EXPECT_EQ(out(*sandbox, stopper + " >/dev/null 2>&1 & echo begun"), "begun\n");
  work_.write("go", "");
  for (int turn = 0; turn < 10; ++turn) {
    const auto ended = sandbox->exec(Command{.argv = {"sleep", "0.1"}}, {.timeout = 500ms});
    ASSERT_TRUE(ended) << ended.error().line();
    EXPECT_TRUE(ended->reason == Reason::kTimeout || ended->exit_code == 0) << ended->message;
    const auto healthy = sandbox->health();
    ASSERT_TRUE(healthy) << turn << ": " << healthy.error().line();
  }
  work_.write("over", "");
  EXPECT_TRUE(test::eventually([&] {  // the last stop may come late, and hold this command
    const auto after = sandbox->exec("echo after", {.timeout = 3s});
    return after && after->out.bytes == "after\n";
  }));
}

// Each process of it lives for a moment only: who kills what he has seen kills none of it.
TEST_P(ContainerPid1, EndsACommandThatForksAndExitsForever) {
  const auto sandbox = start();
  const fs::path beat = work_ / "beat";
  const std::string hop = "trap '' TERM; hop() { : > beat; hop & }; hop; hop; hop; hop; ";
  for (int turn = 0; turn < 5; ++turn) {
    const auto ended =
        test::timed_out(*sandbox, shell_command(hop + "while :; do sleep 1; done"), [&] { return fs::exists(beat); });
    ASSERT_TRUE(ended) << ended.error().line();
    EXPECT_EQ(ended->reason, Reason::kTimeout) << ended->message;
    EXPECT_TRUE(fs::remove(beat)) << "the twin: it ran";
    EXPECT_EQ(out(*sandbox, "sleep 0.2; echo after"), "after\n");  // time for one that still runs
    EXPECT_FALSE(fs::exists(beat)) << "it still runs";
  }
}

// Its parent is gone when it is met, and nobody knew it when the command was told to end.
TEST_P(ContainerPid1, EndsWhatACommandForksWhenItIsToldToEnd) {
  config_.policy.limits.kill_grace = 3s;
  const auto sandbox = start();
  const std::string hop = "hop() { : > other; sleep 0.05; [ -e over ] || hop & }; hop >/dev/null 2>&1; echo begun";
  EXPECT_EQ(out(*sandbox, hop), "begun\n") << "what another command left, which forks and exits, too";
  for (const char* how : {"", "setsid "}) {
    const std::string fork = "trap \"" + std::string(how) + "sleep 1000 & exit 0\" TERM; : > ready; while :; do sleep 0.1; done";
    const auto ended = test::timed_out(*sandbox, shell_command(fork), [&] { return fs::exists(work_ / "ready"); });
    ASSERT_TRUE(ended) << ended.error().line();
    EXPECT_EQ(ended->reason, Reason::kTimeout) << ended->message;
    EXPECT_TRUE(fs::remove(work_ / "ready")) << "the twin: it ran";
    EXPECT_EQ(out(*sandbox, "grep -sl 'sleep.100[0]' /proc/[0-9]*/cmdline"), "") << "it still runs: " << how;
    fs::remove(work_ / "other");
    EXPECT_EQ(out(*sandbox, "until [ -e other ]; do sleep 0.05; done; ls other"), "other\n") << "what is another command's goes on";
  }
  work_.write("over", "");
}

// It reads as a zombie.
TEST_P(ContainerPid1, EndsAProcessWhoseFirstThreadHasEnded) {
  const auto sandbox = start();
  fs::copy_file(test::kProbe, work_ / "probe");
  const fs::path beat = work_ / "beat";
  for (const char* text : {"exec ./probe first_thread_ends beat", "exec ./probe first_thread_ends beat deaf",
                           "setsid ./probe first_thread_ends beat deaf & sleep 0.2; while :; do sleep 1; done"}) {
    const auto begun = std::chrono::steady_clock::now();
    const auto ended = test::timed_out(*sandbox, shell_command(text), [&] { return fs::exists(beat); });
    ASSERT_TRUE(ended) << ended.error().line();
    EXPECT_EQ(ended->reason, Reason::kTimeout) << ended->message;
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 200s) << "ended, not waited for: " << text;
    EXPECT_TRUE(fs::remove(beat)) << "the twin: it ran";
    EXPECT_EQ(out(*sandbox, "sleep 0.2; echo after"), "after\n");  // time for one that still runs
    EXPECT_FALSE(fs::exists(beat)) << "it still runs: " << text;
  }
}

// Its execve(2) waits for another command, which has a lease on the file and keeps it.
TEST_P(ContainerPid1, EndsWhatIsHeldBeforeItBecomesItsProgram) {
  const auto sandbox = start();
  for (const char* name : {"probe", "held"}) fs::copy_file(test::kProbe, work_ / name);
  work_.give_to(test::user_uid(), test::user_gid());
  const Command held = {.argv = {"./held", "nothing"}};
  EXPECT_EQ(sandbox->exec(held, {.timeout = 60s})->exit_code, 64) << "the twin";
  const auto reader = sandbox->spawn(Command{.argv = {"cat"}}, {.input = SpawnInput::kPipe});
  ASSERT_TRUE(reader) << reader.error().line();
  EXPECT_EQ(out(*sandbox, "./probe lease held > told 2>&1 & echo $! > holder; while [ ! -s told ]; do sleep 0.02; done; cat told"),
            "leased\n");

  const auto spawned = sandbox->spawn(held, {.timeout = 2s});
  ASSERT_TRUE(spawned) << spawned.error().line();
  const auto timed_out = (*spawned)->wait(60s);
  ASSERT_TRUE(timed_out && *timed_out);
  EXPECT_EQ((*timed_out)->reason, Reason::kTimeout) << (*timed_out)->message;
  EXPECT_EQ((*timed_out)->exit_code, 124);

  const auto token = CancelToken::create();
  std::thread canceller([&] {
    std::this_thread::sleep_for(500ms);  // it is held by then; one that comes later proves less
    EXPECT_TRUE((*reader)->close_stdin());
    const auto read = (*reader)->wait(60s);
    EXPECT_TRUE(read && *read && (*read)->exit_code == 0) << "its stdin ends, though another command is held";
    token->cancel();
  });
  const auto stopped = sandbox->spawn(held, {.timeout = 200s, .cancel = *token});
  canceller.join();
  ASSERT_TRUE(stopped) << stopped.error().line();
  const auto cancelled = (*stopped)->wait(60s);
  ASSERT_TRUE(cancelled && *cancelled);
  EXPECT_EQ((*cancelled)->reason, Reason::kCancelled) << (*cancelled)->message;
  EXPECT_EQ(out(*sandbox, "kill $(cat holder); ./held nothing; echo $?"), "64\n") << "the twin: nobody holds it";
}

// Root in there owns /dev.
TEST_P(ContainerPid1, DoesNotWaitForWhatRootPutsInThePlaceOfADevice) {
  const std::string swap = "rm -f /dev/null && mkfifo /dev/null && echo swapped";
  EXPECT_EQ(out(*start(), swap).find("swapped"), std::string::npos) << "an ordinary user cannot";
  config_.policy.allow_root_uid = true;
  config_.container.user = "0:0";
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, swap), "swapped\n");
  EXPECT_EQ(out(*sandbox, "cat; echo after"), "after\n") << "its stdin is the device still";
  EXPECT_TRUE(sandbox->health());
}

// The engine keeps what it is told of a container on its disk, and shows it to whoever may ask.
TEST_P(ContainerPid1, AloneIsToldTheVariables) {
  config_.policy.environment.set["TOKEN"] = "hush-2741";
  config_.policy.environment.set["ODD"] = "\xff\xfe";
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, "echo $TOKEN; printf %s \"$ODD\" | od -An -tx1; echo $PATH"),
            "hush-2741\n ff fe\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
  const auto overridden = sandbox->exec(Command{.argv = {"sh", "-c", "echo $TOKEN"}, .env = {{"TOKEN", "another"}}});
  EXPECT_EQ(overridden->out.bytes, "another\n");
  const auto containers = engine_->containers();
  ASSERT_EQ(containers.size(), 1U);
  const auto shown = engine_->client({"inspect", containers[0]});
  EXPECT_NE(shown.out.find(work_.path()), std::string::npos) << "the twin: " << shown;
  EXPECT_EQ(shown.out.find("hush-2741"), std::string::npos) << shown;
}

INSTANTIATE_TEST_SUITE_P(Engines, ContainerPid1, testing::Values(EngineKind::kDocker, EngineKind::kPodman),
                         [](const auto& kind) { return kind.param == EngineKind::kDocker ? "Docker" : "Podman"; });

}  // namespace
}  // namespace belljar
