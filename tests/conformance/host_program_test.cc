// What the program that the library is in may do, and what must not end it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstddef>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "belljar/sandbox.h"
#include "support/as_user.h"
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
  const ExecResult result = sandbox_->exec("exit 3", {.timeout = 5s}).value();
  const ExecResult late = sandbox_->exec("sleep 30", {.timeout = 200ms}).value();
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
  slot->handle = sandbox_->spawn(shell_command("echo here; sleep 30"), options).value();
  const int pid = slot->handle->pid();
  slot->filled.set_value();
  EXPECT_EQ(slot->emptied.get_future().wait_for(20s), std::future_status::ready);
  for (int i = 0; i < 500 && runs(pid); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(runs(pid)) << "the command was ended as well";
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
  auto lasting = sandbox_->spawn(shell_command("sleep 30")).value();
  const int pid = lasting->pid();
  EXPECT_TRUE(lasting->detach());
  lasting.reset();
  for (int i = 0; i < 20; ++i) detach("true");
  for (int i = 0; i < 500 && own_descriptors() > before + 10; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_LE(own_descriptors(), before + 10);
  EXPECT_TRUE(runs(pid)) << "what has not ended runs on";
  EXPECT_TRUE(sandbox_->stop());
}

INSTANTIATE_TEST_SUITE_P(Every, HostProgram, testing::Values("native", "local"),
                         [](const testing::TestParamInfo<const char*>& one) { return std::string(one.param); });

}  // namespace
}  // namespace belljar
