// Sandbox::watch on every backend that has it, and by name on those that do not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "belljar/decorators.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

std::string text_of(const FileChange& change) {
  constexpr const char* kWords[] = {"+", "~", "-", "lost"};
  return kWords[static_cast<int>(change.kind)] + change.path + (change.type == FileType::kDirectory ? "/" : "");
}

class WatchTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (test::is_root()) workspace_.give_to(test::user_uid(), test::user_gid());
    SandboxConfig config;
    config.backend = GetParam();
    config.workspace = workspace_.path();
    auto made = make_sandbox(config);
    ASSERT_TRUE(made) << made.error().line();
    sandbox_ = *std::move(made);
    const auto started = sandbox_->start();
    ASSERT_TRUE(started) << started.error().line();
  }

  std::unique_ptr<FileWatch> watch(const std::string& path = ".", const WatchOptions& options = {}) {
    auto opened = sandbox_->watch(path, options);
    EXPECT_TRUE(opened) << opened.error().line();
    return opened ? *std::move(opened) : nullptr;
  }
  // Until `last` was told; "timeout" at the end when it never was.
  static std::string told_until(FileWatch& watch, const std::string& last) {
    std::string all;
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < end) {
      const auto changes = watch.next(100ms);
      if (!changes) return all + changes.error().line();
      for (const FileChange& change : *changes) {
        all += (all.empty() ? "" : " ") + text_of(change);
        if (text_of(change) == last) return all;
      }
    }
    return all + " timeout";
  }
  void run(const std::string& text) {
    const auto result = sandbox_->exec(text);
    ASSERT_TRUE(result) << result.error().line();
    EXPECT_EQ(result->exit_code, 0) << result->err.bytes;
  }

  test::TempDir workspace_;
  std::shared_ptr<Sandbox> sandbox_;
};
INSTANTIATE_TEST_SUITE_P(On, WatchTest, testing::Values("native", "landlock", "local"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(WatchTest, TellsWhatCommandsFileCallsAndTheHostDo) {
  const auto watch = this->watch();
  run("echo x > a; mkdir d");
  EXPECT_EQ(told_until(*watch, "+d/"), "+a ~a +d/");
  run("mv a d/b; rm d/b; rmdir d");
  EXPECT_EQ(told_until(*watch, "-d/"), "-a +d/b -d/b -d/");
  EXPECT_TRUE(sandbox_->write_file("by-call", "x"));
  EXPECT_EQ(told_until(*watch, "~by-call"), "+by-call ~by-call");
  workspace_.write("by-host", "x");
  EXPECT_EQ(told_until(*watch, "~by-host"), "+by-host ~by-host");
  EXPECT_TRUE(watch->next(0ms)->empty());
}

TEST_P(WatchTest, FollowsDirectoriesThatAppearAndMove) {
  run("mkdir -p old/deep");
  const auto watch = this->watch();
  run("mkdir -p new/x/y; echo 1 > new/x/y/f");
  EXPECT_NE(told_until(*watch, "+new/x/y/f").find("+new/"), std::string::npos);
  run("echo 1 > last");  // what is told of `new` comes before it
  told_until(*watch, "~last");
  run("mv old moved");
  EXPECT_EQ(told_until(*watch, "+moved/deep/"), "-old/ +moved/ +moved/deep/");
  run("echo 1 > moved/deep/f");
  EXPECT_EQ(told_until(*watch, "~moved/deep/f"), "+moved/deep/f ~moved/deep/f");
}

TEST_P(WatchTest, TellsOfOneDirectoryAndOfAPatternOnly) {
  run("mkdir -p src other");
  const auto watch = this->watch("./src/", {.files = "**/*.cc"});
  run("echo x > other/a.cc; echo x > src/a.txt; echo x > src/a.cc; echo x > src/end.cc");
  EXPECT_EQ(told_until(*watch, "~src/end.cc"), "+src/a.cc ~src/a.cc +src/end.cc ~src/end.cc");
  const auto moved = this->watch("other");
  run("rm -r src; mv other another");
  for (FileWatch* const each : {watch.get(), moved.get()}) {
    const std::string all = told_until(*each, "never");
    EXPECT_NE(all.find("the directory is gone"), std::string::npos) << all;
  }
}

TEST_P(WatchTest, LargeBatchesComeInParts) {
  const auto watch = this->watch(".", {.max_changes = 8});
  run("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do : > f$i; done");
  EXPECT_NE(told_until(*watch, "+f20").find("+f1 "), std::string::npos);
}

TEST_P(WatchTest, EndsWithTheSandboxAndByCancelling) {
  const auto token = CancelToken::create();
  ASSERT_TRUE(token);
  const auto cancelled = this->watch(".", {.cancel = *token}), stopped = this->watch();
  EXPECT_TRUE(cancelled->next(0ms)->empty());
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);  // next() waits by then; one that comes later proves less
    token->cancel();
  });
  EXPECT_EQ(cancelled->next(60s).error().code(), Code::kCanceled);
  later.join();
  EXPECT_TRUE(sandbox_->stop());
  EXPECT_EQ(stopped->next(60s).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(sandbox_->watch().error().code(), Code::kFailedPrecondition);
}

TEST_P(WatchTest, WhatLeadsOutOrMakesNoSenseIsRefused) {
  std::filesystem::create_directory_symlink("/etc", workspace_ / "link");
  workspace_.write("file", "x");
  EXPECT_EQ(sandbox_->watch("link").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sandbox_->watch("..").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sandbox_->watch("missing").error().code(), Code::kNotFound);
  EXPECT_EQ(sandbox_->watch("file").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(sandbox_->watch(".", {.files = "[z"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sandbox_->watch(".", {.files = "../*"}).error().what(), "path escapes workspace: ../*");
  EXPECT_EQ(sandbox_->watch(".", {.files = "/etc/*"}).error().what(), "path escapes workspace: /etc/*");
  EXPECT_EQ(sandbox_->watch(".", {.files = "[^a]*"}).error().code(), Code::kInvalidArgument);
  const auto dotted = watch(".", {.files = sandbox_->workspace() + "/./*.txt"});
  EXPECT_TRUE(sandbox_->write_file("seen.txt", "x"));
  EXPECT_EQ(told_until(*dotted, "~seen.txt"), "+seen.txt ~seen.txt");
  EXPECT_EQ(sandbox_->watch(".", {.max_changes = 0}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(sandbox_->watch("."));
  // What appears behind a link is not followed either.
  const auto watch = this->watch();
  run("ln -s /tmp out; echo x > /tmp/outside; echo x > end");
  EXPECT_EQ(told_until(*watch, "~end"), "+out +end ~end");
}

TEST(WatchRefused, ByNameWhereNobodyTells) {
  const test::TempDir workspace;
  SandboxConfig config;
  config.backend = "mock";
  config.workspace = workspace.path();
  const auto sandbox = make_sandbox(config);
  ASSERT_TRUE(sandbox);
  ASSERT_TRUE((*sandbox)->start());
  const auto refused = (*sandbox)->watch();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnimplemented);
}

}  // namespace
}  // namespace belljar
