// What commands try against the pid 1 of their sandbox, which runs as the same user: it goes on serving.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/sandbox.h"
#include "conformance/timed_out.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class NativePid1 : public testing::Test {
 protected:
  void SetUp() override {
    if (test::is_root()) work_.give_to(test::user_uid(), test::user_gid());
    config_.workspace = work_.path();
    config_.policy.limits.kill_grace = 100ms;
    auto made = make_sandbox(config_);
    ASSERT_TRUE(made) << made.error().line();
    sandbox_ = *made;
    const auto started = sandbox_->start();
    ASSERT_TRUE(started) << started.error().line();
  }
  void TearDown() override {
    if (slow_.valid()) ::sigaction(SIGIO, &sigio_, nullptr);
  }
  // `./slow` in the workspace, whose execve(2) waits until the lease on it is given back. Else why there is none.
  std::string make_slow() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return "there pid 1 has vfork(2) alone (launch/init.cc)";
#endif
    std::filesystem::copy_file("/bin/true", work_ / "slow");
    slow_ = UniqueFd(::open((work_ / "slow").c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(slow_.valid());
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    EXPECT_EQ(::sigaction(SIGIO, &ignored, &sigio_), 0);  // that somebody waits for it
    return lease(F_WRLCK) ? "" : "needs leases on this file system";
  }
  bool lease(int kind) const { return ::fcntl(slow_.get(), F_SETLEASE, kind) == 0; }
  std::string out(const std::string& text) {
    const auto result = sandbox_->exec(shell_command(text), {.timeout = 60s});
    return result ? result->out.bytes + result->err.bytes : result.error().line();
  }

  // Of all threads of this process: pid 1 of each sandbox.
  static std::vector<int> children() {
    std::vector<int> found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream list(task.path() / "children");
      for (int pid = 0; list >> pid;) found.push_back(pid);
    }
    return found;
  }

  // Threads of ours that wait in ppoll(2), proc(5).
  static int waiting_threads() {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      long call = -1;
      std::ifstream(task.path() / "syscall") >> call;
      count += call == SYS_ppoll ? 1 : 0;
    }
    return count;
  }

  test::TempDir work_;
  SandboxConfig config_;
  std::shared_ptr<Sandbox> sandbox_;
  UniqueFd slow_;
  struct sigaction sigio_{};
};

// Between its making and execve(2) a command's process is one that any other may stop.
TEST_F(NativePid1, GoesOnWhereACommandStopsAllOthersAsTheyStart) {
  EXPECT_EQ(out("echo before"), "before\n") << "the twin";
  ASSERT_NE(out("readlink /proc/self/ns/pid"), std::filesystem::read_symlink("/proc/self/ns/pid").string() + "\n")
      << "all means these";
  const std::string stopper = "(until [ -e go ]; do sleep 0.1; done; while [ ! -e over ]; do kill -STOP -1; done)";
  EXPECT_EQ(out("(" + stopper + " & " + stopper + " &) >/dev/null 2>&1; echo begun"), "begun\n");
  work_.write("go", "");
  for (int turn = 0; turn < 10; ++turn) {
    const auto began = std::chrono::steady_clock::now();
    const auto ended = sandbox_->exec(Command{.argv = {"sleep", "0.1"}, .cwd = {}, .env = {}}, {.timeout = 500ms});
    ASSERT_TRUE(ended) << ended.error().line();
    EXPECT_TRUE(ended->reason == Reason::kTimeout || ended->reason == Reason::kStartFailed || ended->exit_code == 0)
        << ended->message;
    EXPECT_LT(std::chrono::steady_clock::now() - began, 60s) << turn;
  }
  work_.write("over", "");
  EXPECT_TRUE(test::eventually([&] {  // the last stop may come late, and hold this command
    const auto after = sandbox_->exec("echo after", {.timeout = 3s});
    return after && after->out.bytes == "after\n";
  }));
}

// What is forked after TERM loses its parent with the command, and is nobody's child but pid 1's.
TEST_F(NativePid1, EndsWhatACommandForksWhileItIsEnded) {
  const auto count = [&](const char* name) { return out(std::string("ps -A -o args= | grep -c '^sleep ") + name + "$'"); };
  EXPECT_EQ(out("sleep 3331 >/dev/null 2>&1 & echo left"), "left\n") << "the twin: what a command leaves behind by itself stays";
  auto other = sandbox_->spawn(shell_command("sleep 3332"));
  ASSERT_TRUE(other) << other.error().line();
  for (const char* text : {"trap 'sleep 3333 & exit 0' TERM; : >ready; while :; do sleep 0.1; done",
                           "trap 'setsid sleep 3333 & exit 0' TERM; : >ready; while :; do sleep 0.1; done",
                           "(trap '' TERM; hop() { : >beat; hop & }; hop; hop); : >ready; while :; do sleep 0.1; done"}) {
    const auto ended = test::timed_out(*sandbox_, shell_command(text), [&] { return std::filesystem::exists(work_ / "ready"); });
    EXPECT_TRUE(std::filesystem::remove(work_ / "ready")) << "the twin: it ran";
    ASSERT_TRUE(ended) << ended.error().line();
    EXPECT_EQ(ended->reason, Reason::kTimeout) << text;
    EXPECT_EQ(count("3333"), "0\n") << text;
  }
  std::filesystem::remove(work_ / "beat");
  EXPECT_EQ(out("sleep 0.3; ls"), "") << "none hops on";  // for one that would
  EXPECT_EQ(count("3331"), "1\n");
  EXPECT_EQ(count("3332"), "1\n") << "another command goes on";
  EXPECT_TRUE((*other)->signal(SIGKILL));
  EXPECT_TRUE((*other)->wait());
}

// Whoever may signal it on the host can stop it: then no call waits for ever, and no command runs after its time.
TEST_F(NativePid1, WhereItIsStoppedFromOutsideCallsEndInTheirTime) {
  const std::vector<int> inits = children();
  ASSERT_FALSE(inits.empty());
  const auto signal_all = [&](int number) {
    for (const int pid : inits) ::kill(pid, number);
  };
  signal_all(SIGSTOP);
  std::thread goes_on([&] {
    std::this_thread::sleep_for(1s);  // a tenth of the silence that ends it (kSilentLooks); less proves less
    signal_all(SIGCONT);
  });
  const auto late = sandbox_->exec("echo late", {.timeout = 200ms});
  goes_on.join();
  ASSERT_TRUE(late) << late.error().line();
  EXPECT_EQ(out("echo after"), "after\n") << "the twin: one that goes on soon loses nothing";

  auto running = sandbox_->spawn(shell_command("echo runs; exec sleep 3336"), {.timeout = 10s});
  ASSERT_TRUE(running) << running.error().line();
  EXPECT_NE((*running)->pid(), 0);
  signal_all(SIGSTOP);
  const auto health = sandbox_->health();
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().code(), Code::kUnavailable);
  auto spawned = sandbox_->spawn(shell_command("touch ran"), {.timeout = 300ms});
  ASSERT_TRUE(spawned) << spawned.error().line();
  EXPECT_EQ((*spawned)->pid(), 0);
  const CancelToken cancel = CancelToken::create().value();
  std::thread cancels([&] {
    std::this_thread::sleep_for(300ms);  // it waits by then; one that comes later proves less
    cancel.cancel();
  });
  const auto cancelled = sandbox_->exec("touch ran", {.timeout = 200s, .cancel = cancel});
  cancels.join();
  const auto ended = (*spawned)->wait(60s);
  const auto started = (*running)->wait(60s);
  signal_all(SIGCONT);
  ASSERT_TRUE(cancelled) << cancelled.error().line();
  EXPECT_EQ(cancelled->reason, Reason::kCancelled);
  ASSERT_TRUE(ended && *ended);
  EXPECT_TRUE((*ended)->reason == Reason::kTimeout || (*ended)->reason == Reason::kCancelled) << (*ended)->message;
  ASSERT_TRUE(started && *started);
  EXPECT_TRUE((*started)->reason == Reason::kTimeout || (*started)->reason == Reason::kCancelled) << (*started)->message;
  EXPECT_NE((cancelled->message + (*ended)->message + (*started)->message).find("did not answer"), std::string::npos);
  EXPECT_EQ(out("true").find("the sandbox does not run"), 0U);
  EXPECT_TRUE(sandbox_->stop());
  EXPECT_TRUE(sandbox_->start());
  EXPECT_EQ(out("ls"), "") << "what was sent never ran";
}

// Without a timeout nothing is due: the start alone tells that nobody serves.
TEST_F(NativePid1, WhereItIsStoppedASpawnWithoutATimeoutEnds) {
  auto twin = sandbox_->spawn(shell_command("echo twin"));
  ASSERT_TRUE(twin) << twin.error().line();
  EXPECT_NE((*twin)->pid(), 0);
  const std::vector<int> inits = children();
  for (const int pid : inits) ::kill(pid, SIGSTOP);
  auto spawned = sandbox_->spawn(shell_command("touch ran"));
  ASSERT_TRUE(spawned) << spawned.error().line();
  EXPECT_EQ((*spawned)->pid(), 0);
  const auto ended = (*spawned)->wait(60s);
  ASSERT_TRUE(ended && *ended);
  EXPECT_NE((*ended)->message.find("did not answer"), std::string::npos) << (*ended)->message;
  EXPECT_TRUE(sandbox_->stop());
  EXPECT_FALSE(std::filesystem::exists(work_ / "ran"));
}

// What pid 1 has no room for waits by itself, and no longer than its own time.
TEST_F(NativePid1, WhereItTakesNoMoreEachCallKeepsItsOwnTime) {
  const std::vector<int> inits = children();
  for (const int pid : inits) ::kill(pid, SIGSTOP);
  const Command large{.argv = {"true"}, .cwd = {}, .env = {{"LARGE", std::string(30'000, 'x')}}};
  std::vector<std::thread> others;
  std::atomic<int> good = 0;
  const int waited_before = waiting_threads();
  for (int i = 0; i < 24; ++i) {
    others.emplace_back([&] {
      const auto ended = sandbox_->exec(large, {.timeout = 200s});
      if (ended && ended->exit_code == 0) ++good;
    });
  }
  EXPECT_TRUE(test::eventually([&] { return waiting_threads() >= waited_before + 24; }))
      << "some for room, and some for their start";
  const auto began = std::chrono::steady_clock::now();
  const auto late = sandbox_->exec(Command{.argv = {"touch", "ran"}, .cwd = {}, .env = large.env}, {.timeout = 500ms});
  const CancelToken cancel = CancelToken::create().value();
  std::thread cancels([&] {
    std::this_thread::sleep_for(300ms);  // it waits by then; one that comes later proves less
    cancel.cancel();
  });
  const auto cancelled = sandbox_->exec(large, {.timeout = 200s, .cancel = cancel});
  cancels.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 100s) << "not as long as the others";
  for (const int pid : inits) ::kill(pid, SIGCONT);
  for (std::thread& other : others) other.join();
  ASSERT_TRUE(late) << late.error().line();
  EXPECT_EQ(late->reason, Reason::kTimeout);
  EXPECT_NE(late->message.find("did not take"), std::string::npos) << late->message;
  ASSERT_TRUE(cancelled) << cancelled.error().line();
  EXPECT_EQ(cancelled->reason, Reason::kCancelled);
  EXPECT_EQ(good, 24) << "the twin: those that had the time ran";
  EXPECT_EQ(out("ls"), "") << "what had ended never ran";
}

// What an ended command left behind is ended with it; one that waits for its execve is another command.
TEST_F(NativePid1, TheEndOfACommandSparesOneThatIsStarting) {
  if (const std::string why = make_slow(); !why.empty()) GTEST_SKIP() << why;
  SandboxConfig patient = config_;
  patient.policy.limits.kill_grace = 2s;
  const auto sandbox = *make_sandbox(patient);
  ASSERT_TRUE(sandbox->start());
  const CancelToken cancel = CancelToken::create().value();
  std::thread ends([&] {
    const auto ended = sandbox->exec("trap '' TERM; sleep 300 & echo $! > left; while :; do sleep 1; done", {.cancel = cancel});
    EXPECT_EQ(ended->reason, Reason::kCancelled);
  });
  EXPECT_TRUE(test::eventually([&] { return std::filesystem::exists(work_ / "left"); }));
  cancel.cancel();  // it is asked to end, and is not gone
  int exit_code = -1;
  std::thread starts([&] {
    if (const auto ended = sandbox->exec(Command{.argv = {"./slow"}, .cwd = {}, .env = {}}, {.timeout = 200s}))
      exit_code = ended->exit_code;
  });
  ends.join();
  EXPECT_TRUE(lease(F_UNLCK));
  starts.join();
  EXPECT_EQ(exit_code, 0);
  const auto left = sandbox->exec("kill -0 $(cat left) 2>/dev/null || echo gone");
  EXPECT_EQ(left->out.bytes, "gone\n") << "the twin: what it left is ended";
}

// Another's lease on a program holds its execve(2) for up to 45 s, proc_sys_fs(5): its own command, and nobody else.
TEST_F(NativePid1, OthersDoNotWaitForASlowExecve) {
  if (const std::string why = make_slow(); !why.empty()) GTEST_SKIP() << why;
  const Command slow{.argv = {"./slow"}, .cwd = {}, .env = {{"LARGE", std::string(60'000, 'x')}}};
  std::atomic<bool> over = false;
  int exit_code = -1;
  std::thread waits([&] {
    if (const auto ended = sandbox_->exec(slow, {.timeout = 200s})) exit_code = ended->exit_code;
    over = true;
  });
  std::this_thread::sleep_for(500ms);  // it is held by then; one that comes later proves less
  for (int turn = 0; turn < 20; ++turn) EXPECT_EQ(out("echo quick"), "quick\n");
  EXPECT_FALSE(over) << "the lease held nobody";
  const auto late = sandbox_->exec(slow, {.timeout = 500ms});
  auto spawned = sandbox_->spawn(Command{.argv = {"./slow"}, .cwd = {}, .env = {}}, {.timeout = 500ms});
  EXPECT_FALSE(over) << "nobody waited for the end of the lease";
  EXPECT_TRUE(lease(F_UNLCK));
  waits.join();
  EXPECT_EQ(exit_code, 0) << "the twin: it runs when it may";
  ASSERT_TRUE(late) << late.error().line();
  EXPECT_EQ(late->reason, Reason::kTimeout);
  EXPECT_EQ(late->exit_code, 124);
  ASSERT_TRUE(spawned) << spawned.error().line();
  EXPECT_TRUE((*spawned)->wait(60s));
  EXPECT_EQ(sandbox_->exec(Command{.argv = {"./none"}, .cwd = {}, .env = {}})->exit_code, 127);
  EXPECT_EQ(out("./slow && echo after; ls"), "after\nslow\n");
}

// A process whose first thread has ended looks dead, and is not.
TEST_F(NativePid1, EndsAProcessWhoseFirstThreadHasEnded) {
  BELLJAR_NEEDS(test::program("python3"));
  const std::string live =
      "import ctypes, os, threading, time\n"
      "def beat():\n"
      "  while True: open('beat', 'w').close(); time.sleep(0.02)\n"
      "if os.fork() == 0:\n"
      "  threading.Thread(target=beat).start()\n"
      "  ctypes.CDLL(None).syscall(60, 0)\n"
      "time.sleep(1000)\n";
  const auto ended = test::timed_out(*sandbox_, Command{.argv = {"python3", "-c", live}, .cwd = {}, .env = {}},
                                     [&] { return std::filesystem::exists(work_ / "beat"); });
  ASSERT_TRUE(ended) << ended.error().line();
  EXPECT_EQ(ended->reason, Reason::kTimeout);
  EXPECT_TRUE(std::filesystem::remove(work_ / "beat")) << "the twin: it ran";
  EXPECT_EQ(out("sleep 0.3; ls"), "") << "it still runs";  // for one that would
}

}  // namespace
}  // namespace belljar
