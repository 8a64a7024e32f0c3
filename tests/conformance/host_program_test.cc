// What the program that the library is in may do, and what must not end it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class HostProgram : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
    SandboxConfig config;
    config.backend = GetParam();
    config.workspace = place_.path();
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
    sandbox_ = make_sandbox(config).value();
  }
  void start() const { ASSERT_TRUE(sandbox_->start()); }
  bool runs(int pid) const { return sandbox_->exec("test -d /proc/" + std::to_string(pid))->exit_code == 0; }

  const test::TempDir place_;
  std::shared_ptr<Sandbox> sandbox_;
};

TEST_P(HostProgram, ThatIgnoresItsChildrenGetsEveryResult) {
  auto* const before = ::signal(SIGCHLD, SIG_IGN);
  start();
  const ExecResult result = sandbox_->exec("exit 3", {.timeout = 60s}).value();
  const ExecResult late = sandbox_->exec("sleep 300", {.timeout = 200ms}).value();
  EXPECT_TRUE(sandbox_->stop());
  ::signal(SIGCHLD, before);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.reason, Reason::kExited);
  EXPECT_EQ(late.reason, Reason::kTimeout);
}

TEST_P(HostProgram, SmallFilesAreALimitAndNoEnd) {
  start();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto large = sandbox_->write_file("large", std::string(100'000, 'x'));
  const auto replaced = sandbox_->write_file("large", std::string(100'000, 'x'), {.how = WriteMode::kAtomic});
  const auto input = sandbox_->exec("wc -c", {.stdin_bytes = std::string(100'000, 'x')});
  const auto fits = sandbox_->write_file("small", std::string(4096, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), Code::kResourceExhausted) << large.error().line();
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code(), Code::kResourceExhausted);
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(fits);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
}

TEST_P(HostProgram, MayDropAHandleInItsOwnCallback) {
  struct Slot {
    std::unique_ptr<Process> handle;
    std::promise<void> filled, emptied;
  };
  start();
  const auto slot = std::make_shared<Slot>();
  SpawnOptions options;
  options.on_stdout = [slot](std::string_view) {
    slot->filled.get_future().wait();
    slot->handle.reset();
    slot->emptied.set_value();
  };
  slot->handle = sandbox_->spawn(shell_command("echo here; sleep 300"), options).value();
  const int pid = slot->handle->pid();
  slot->filled.set_value();
  EXPECT_EQ(slot->emptied.get_future().wait_for(60s), std::future_status::ready);
  EXPECT_TRUE(test::eventually([&] { return !runs(pid); })) << "the command was ended as well";
  EXPECT_TRUE(sandbox_->stop());
}

std::ptrdiff_t own_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST_P(HostProgram, KeepsNoDescriptorsOfDetachedCommandsThatEnded) {
  start();
  const auto detach = [&](const char* text) { EXPECT_TRUE(sandbox_->spawn(shell_command(text)).value()->detach()); };
  detach("true");
  const auto before = own_descriptors();
  auto lasting = sandbox_->spawn(shell_command("sleep 300")).value();
  const int pid = lasting->pid();
  EXPECT_TRUE(lasting->detach());
  lasting.reset();
  for (int i = 0; i < 20; ++i) detach("true");
  EXPECT_TRUE(test::eventually([&] { return own_descriptors() <= before + 10; })) << own_descriptors();
  EXPECT_TRUE(runs(pid)) << "what has not ended runs on";
  EXPECT_TRUE(sandbox_->stop());
}

// A user's pipes together have so many pages (pipe-user-pages-soft); what is made beyond that holds one or two.
TEST_P(HostProgram, WithManyPipesItsInputArrivesWhole) {
  BELLJAR_NEEDS(as_ordinary_user());
  start();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit many{std::max<rlim_t>(before.rlim_cur, std::min<rlim_t>(before.rlim_max, 4096)), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &many), 0);
  std::vector<UniqueFd> pipes;
  for (int i = 0; i < 1100; ++i) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) < 0) break;
    pipes.emplace_back(ends[0]);
    pipes.emplace_back(ends[1]);
  }
  for (const std::size_t size : {100U, 9000U, 65'536U, 70'000U}) {
    const auto counted = sandbox_->exec("wc -c", {.stdin_bytes = std::string(size, 'x')});
    ASSERT_TRUE(counted) << counted.error().line();
    EXPECT_EQ(counted->out.bytes, std::to_string(size) + "\n");
  }
  pipes.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// Nobody would read the command, nor end it in its time.
TEST_P(HostProgram, WithoutAThreadASpawnIsAnErrorAndItsCommandEnds) {
  BELLJAR_NEEDS(as_ordinary_user());
  start();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &before), 0);
  const rlimit none{1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &none), 0);
  const std::string sleep = "sleep 3335." + std::to_string(::getpid());
  const auto refused = sandbox_->spawn(shell_command(sleep));
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted) << refused.error().line();
  const auto left = [&] { return sandbox_->exec("ps -A -o args= | grep -c '^" + sleep + "'")->out.bytes; };
  EXPECT_TRUE(test::eventually([&] { return left() == "0\n"; })) << left();
  const auto spawned = sandbox_->spawn(shell_command("exit 6"));
  ASSERT_TRUE(spawned) << "the twin: " << spawned.error().line();
  EXPECT_EQ((*(*spawned)->wait())->exit_code, 6);
}

// A start that fails for want of descriptors leaves the threads that it made for the next one, not for nobody.
TEST_P(HostProgram, StartsThatFailMakeNoFurtherThreads) {
  const pid_t child = ::fork();  // which has none of the threads that sandboxes share
  if (child == 0) {
    ::alarm(60);
    const auto threads = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
    };
    std::vector<UniqueFd> all;
    const rlimit few{64, 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.emplace_back(fd);
    int failed = 0;
    for (int free = 0; free < 20; ++free) {
      for (int again = 0; again < 3; ++again) {
        if (sandbox_->start()) (void)sandbox_->stop();
        else ++failed;
      }
      if (!all.empty()) all.pop_back();
    }
    if (failed < 20) ::_exit(1);
    if (threads() > 9) ::_exit(2);  // at most four loops, four starters and this one
    all.clear();
    ::_exit(sandbox_->start() && sandbox_->exec("exit 3")->exit_code == 3 && sandbox_->stop() ? 0 : 3);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

INSTANTIATE_TEST_SUITE_P(Every, HostProgram, testing::Values("native", "local"),
                         [](const testing::TestParamInfo<const char*>& one) { return std::string(one.param); });

}  // namespace
}  // namespace belljar
