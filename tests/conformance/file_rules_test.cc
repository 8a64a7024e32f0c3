// What the broker refuses to a command inside, a file call of the library refuses as well; and what it lets a command do works.
// Each refusal has a twin beside it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/clock.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kEvil = "[core]\n\tfsmonitor = touch /tmp/owned\n";
constexpr const char* kGood = "[user]\n\tname = Somebody\n";

class FileRules : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    for (const char* dir : {"repo/.git/hooks", "repo/.git/objects", "repo/.git/refs", "repo/src", "tools/.vscode", "plain/.idea2"})
      fs::create_directories(host(dir));
    put("repo/.git/HEAD", "ref: refs/heads/main\n");
    put("repo/.git/config", "[core]\n\tbare = false\n");
    put("repo/.env", "SECRET=1\n");
    put("repo/.envx", "SECRET=2\n");
    put("repo/Cargo.lock", "locked\n");
    put(".vscode/tasks.json", "{}\n");
    put("box/.vscode/tasks.json", "{}\n");
    put("box/other", "x\n");
    fs::create_directories(host("box/.git"));
  }
  void TearDown() override {
    EXPECT_TRUE(sandbox_ == nullptr || sandbox_->stop());
    sandbox_ = nullptr;
    EXPECT_EQ(left_.report(), "");
  }

  std::string host(const std::string& path) const { return workspace_.path() + "/" + path; }
  void put(const std::string& path, std::string_view text) const {
    fs::create_directories(fs::path(host(path)).parent_path());
    std::ofstream(host(path)) << text;
  }
  std::string text(const std::string& path) const {
    std::ostringstream all;
    all << std::ifstream(host(path)).rdbuf();
    return all.str();
  }

  void start(SandboxConfig config = {}) {
    if (test::is_root()) {
      for (const auto& entry : fs::recursive_directory_iterator(workspace_.path()))
        ASSERT_EQ(::lchown(entry.path().c_str(), test::user_uid(), test::user_gid()), 0);
      workspace_.give_to(test::user_uid(), test::user_gid());
    }
    // A work tree counts as one of before the run by its birth time, which the clock of inodes tells to some milliseconds.
    test::let_the_clock_tick();
    config.workspace = workspace_.path();
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
    auto made = make_sandbox(config);
    ASSERT_TRUE(made) << made.error().line();
    sandbox_ = *made;
    const auto started = sandbox_->start();
    ASSERT_TRUE(started) << started.error().line();
  }
  // By a command.
  bool works(const std::string& text) { return sandbox_->exec(text).value().exit_code == 0; }

  static std::string said(const Result<void>& result) {
    if (result) return "allowed";
    EXPECT_EQ(result.error().code(), Code::kPermissionDenied) << result.error().line();
    EXPECT_FALSE(result.error().reason().empty()) << result.error().line();
    return "refused";
  }

  const test::TempDir workspace_;
  const test::Leftovers left_;
  std::shared_ptr<Sandbox> sandbox_;
};

TEST_F(FileRules, HooksAreNotWrittenByAnyWay) {
  start();
  EXPECT_FALSE(works("echo x >repo/.git/hooks/post-commit"));
  for (const WriteMode how : {WriteMode::kReplace, WriteMode::kAppend, WriteMode::kAtomic}) {
    EXPECT_EQ(said(sandbox_->write_file("repo/.git/hooks/post-commit", "x", {.how = how})), "refused");
    EXPECT_EQ(said(sandbox_->write_file("repo/.git/hooks/post-commit.sample", "x", {.how = how})), "allowed");
  }
  EXPECT_TRUE(sandbox_->write_file("repo/hook", "x"));
  EXPECT_EQ(said(sandbox_->rename("repo/hook", "repo/.git/hooks/post-commit")), "refused");
  EXPECT_EQ(said(sandbox_->rename("repo/hook", "repo/.git/hooks/y.sample")), "allowed");
  EXPECT_FALSE(fs::exists(host("repo/.git/hooks/post-commit")));
}

TEST_F(FileRules, ARefusedWriteLeavesNoDirectory) {
  start();
  EXPECT_FALSE(sandbox_->write_file("plain/.git/hooks/pre-commit", "touch /tmp/owned\n"));
  EXPECT_FALSE(fs::exists(host("plain/.git")));
  EXPECT_TRUE(sandbox_->write_file("plain/new/deep/file", "x\n"));
  EXPECT_EQ(text("plain/new/deep/file"), "x\n");
  EXPECT_FALSE(sandbox_->write_file("plain/new/.git/hooks/pre-commit", "touch /tmp/owned\n"));
  EXPECT_TRUE(fs::exists(host("plain/new/deep"))) << "was there before";
}

TEST_F(FileRules, SettingsOfGitAreJudgedByTheirContent) {
  start();
  EXPECT_FALSE(works(std::string("printf '") + kEvil + "' >repo/c && mv repo/c repo/.git/config"));
  for (const WriteMode how : {WriteMode::kReplace, WriteMode::kAppend, WriteMode::kAtomic}) {
    EXPECT_EQ(said(sandbox_->write_file("repo/.git/config", kEvil, {.how = how})), "refused");
    EXPECT_EQ(said(sandbox_->write_file("repo/.git/config", kGood, {.how = how})), "allowed");
  }
  EXPECT_EQ(text("repo/.git/config"), kGood);
  EXPECT_TRUE(sandbox_->write_file("repo/.git/config", "[user]\n\temail = a@b\n", {.how = WriteMode::kAppend, .mode = 0600}));
  EXPECT_EQ(text("repo/.git/config"), std::string(kGood) + "[user]\n\temail = a@b\n");
  EXPECT_EQ(sandbox_->stat("repo/.git/config")->mode, 0600U);
  EXPECT_TRUE(sandbox_->write_file("evil", kEvil));
  EXPECT_TRUE(sandbox_->write_file("good", kGood));
  EXPECT_EQ(said(sandbox_->rename("evil", "repo/.git/config")), "refused");
  EXPECT_EQ(said(sandbox_->rename("good", "repo/.git/config")), "allowed");
  EXPECT_EQ(text("repo/.git/config"), kGood);
  EXPECT_FALSE(fs::exists(host("good")));
  EXPECT_EQ(sandbox_->exec("git -C repo config user.name").value().out.bytes, "Somebody\n");
}

TEST_F(FileRules, JudgedContentIsAFileOfItsOwn) {
  start();
  // A descriptor that a command keeps, of what it wrote under a harmless name, must not be the file that is put in place.
  EXPECT_TRUE(sandbox_->write_file("good", kGood));
  auto holder = sandbox_->spawn(shell_command("exec 3<>good; echo ready; read word; printf '[core]\\n\\tpager = x\\n' >&3"),
                                {.input = SpawnInput::kPipe});
  ASSERT_TRUE(holder);
  ASSERT_TRUE(
      test::eventually([&] { return sandbox_->exec("ls -l /proc/*/fd 2>/dev/null | grep -q good$").value().exit_code == 0; }));
  EXPECT_TRUE(sandbox_->rename("good", "repo/.git/config"));
  EXPECT_TRUE((*holder)->write_stdin("go\n"));
  EXPECT_EQ((*holder)->wait()->value().exit_code, 0);
  EXPECT_EQ(text("repo/.git/config"), kGood);
}

TEST_F(FileRules, NamesOfAgentsAndEditorsStayAsTheyAre) {
  start();
  EXPECT_FALSE(works("echo x >.vscode/tasks.json"));
  EXPECT_EQ(said(sandbox_->write_file(".vscode/tasks.json", "x")), "refused");
  EXPECT_EQ(said(sandbox_->write_file(".claude/settings.json", "x")), "refused");
  EXPECT_EQ(said(sandbox_->write_file("claude/settings.json", "x")), "allowed");
  EXPECT_EQ(said(sandbox_->make_dir(".cursor")), "refused");
  EXPECT_EQ(said(sandbox_->make_dir(".mcp.json", {.parents = Parents::kMustExist})), "refused");
  EXPECT_EQ(said(sandbox_->make_dir("cursor", {.parents = Parents::kMustExist})), "allowed");
  EXPECT_TRUE(sandbox_->write_file("envrc", "x"));
  EXPECT_EQ(said(sandbox_->rename("envrc", ".envrc")), "refused");
  EXPECT_EQ(said(sandbox_->remove(".vscode", {.depth = Depth::kTree})), "refused");
  EXPECT_EQ(said(sandbox_->remove("claude", {.depth = Depth::kTree})), "allowed");
  EXPECT_EQ(text(".vscode/tasks.json"), "{}\n");
}

TEST_F(FileRules, ATreeIsRemovedWhollyOrNotAtAll) {
  start();
  EXPECT_FALSE(works("rm -r box/.vscode"));
  EXPECT_EQ(said(sandbox_->remove("box", {.depth = Depth::kTree})), "refused");
  EXPECT_EQ(text("box/other"), "x\n");
  EXPECT_EQ(said(sandbox_->remove("plain", {.depth = Depth::kTree})), "allowed");
  EXPECT_FALSE(fs::exists(host("plain")));
}

// What the command itself made is its own; in a sandbox that stays the next one finds it as it found the user's.
TEST_F(FileRules, ARepositoryThatAnEarlierCommandMadeStays) {
  start();
  EXPECT_TRUE(works("git init -q . && rm -rf .git")) << "within one command";
  EXPECT_TRUE(works("git init -q . && ln -s . w"));
  EXPECT_TRUE(fs::exists(host(".git/HEAD")));
  for (const char* slip : {"rm -rf .git", "rm -rf w/.git", "mv .git away", "rm .git/HEAD"}) EXPECT_FALSE(works(slip)) << slip;
  EXPECT_EQ(said(sandbox_->remove("w/.git", {.depth = Depth::kTree})), "refused");
  EXPECT_EQ(said(sandbox_->rename("w/.git", "away")), "refused");
  EXPECT_TRUE(works("test -s .git/HEAD && git status"));
  EXPECT_TRUE(works("git init -q other && rm -rf other/.git"));
  EXPECT_TRUE(works("git init -q other"));
  EXPECT_EQ(said(sandbox_->remove("other/.git", {.depth = Depth::kTree})), "allowed");
}

TEST_F(FileRules, ARepositoryIsRemovedByWhoMayDoSo) {
  SandboxConfig config;
  config.policy.filesystem.allow_git_removal = true;
  start(config);
  EXPECT_TRUE(works("git init -q . && mv .git away && mv away .git"));
  EXPECT_FALSE(works("mv .git away")) << "what an earlier command made is not moved, for this is about its loss alone";
  EXPECT_EQ(said(sandbox_->remove(".git", {.depth = Depth::kTree})), "allowed");
}

TEST_F(FileRules, LinksLeadToWhatIsJudged) {
  start();
  EXPECT_TRUE(works("ln -s repo/.git/hooks h; ln -s repo/.git/hooks/post-commit hook; ln -s repo/src s; ln -s repo/src/new new"));
  EXPECT_EQ(said(sandbox_->write_file("h/post-commit", "x")), "refused");
  EXPECT_EQ(said(sandbox_->write_file("hook", "x")), "refused");
  EXPECT_EQ(said(sandbox_->write_file("s/x", "x")), "allowed");
  EXPECT_EQ(said(sandbox_->write_file("new", "through the link")), "allowed");
  EXPECT_EQ(text("repo/src/new"), "through the link");
}

TEST_F(FileRules, ADirectoryDoesNotBecomeARepositoryByALibraryCall) {
  start();
  EXPECT_EQ(said(sandbox_->make_dir("bare/objects")), "allowed");
  EXPECT_EQ(said(sandbox_->make_dir("bare/refs")), "refused");
  EXPECT_EQ(said(sandbox_->make_dir("bare/reefs")), "allowed");
  EXPECT_TRUE(works("git init -q made")) << "a command's steps are judged one by one";
  EXPECT_EQ(said(sandbox_->write_file("fake/hooks/post-commit", "x")), "allowed");
  EXPECT_EQ(said(sandbox_->rename("fake", "plain/.git")), "refused");
  EXPECT_EQ(said(sandbox_->rename("fake", "plain/git")), "allowed");
  EXPECT_FALSE(fs::exists(host("plain/.git")));
}

// Moved to where its path is longer than any path may be, a hidden file has no name that a rule could be asked for.
TEST_F(FileRules, WhatLiesTooDeepToBeNamedIsNotRead) {
  SandboxConfig config;
  config.policy.filesystem.entries = {{.path = "**/.env", .glob = true, .access = Access::kNone}};
  start(std::move(config));
  const std::string level(250, 'A'), last(60, 'B');
  std::string deep = level;
  for (int i = 1; i < 16; ++i) deep += "/" + level;
  ASSERT_TRUE(works("mkdir -p " + deep + " && mv repo " + deep + "/" + last));
  ASSERT_GT(host(deep + "/" + last + "/.env").size(), 4096U);
  EXPECT_FALSE(sandbox_->read_file(deep + "/" + last + "/.env"));
  EXPECT_FALSE(works("cd " + deep + "/" + last + " && cat .env"));
  ASSERT_TRUE(works("mv " + deep + "/" + last + " repo"));
  EXPECT_FALSE(sandbox_->read_file("repo/.env"));
  EXPECT_EQ(sandbox_->read_file("repo/.envx").value(), "SECRET=2\n");
}

TEST_F(FileRules, PatternsHideAndProtect) {
  SandboxConfig config;
  config.policy.filesystem.entries = {{.path = "/**/.env", .glob = true, .access = Access::kNone},
                                      {.path = "/**/*.lock", .glob = true, .access = Access::kRead},
                                      {.path = "/**/vault", .glob = true, .access = Access::kNone}};
  put("vault/inner/key", "SECRET=3\n");
  start(std::move(config));
  EXPECT_FALSE(works("cat repo/.env"));
  EXPECT_EQ(sandbox_->read_file("repo/.env").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox_->read_file("repo/.envx").value(), "SECRET=2\n");
  EXPECT_EQ(said(sandbox_->write_file("repo/.env", "x")), "refused");
  EXPECT_EQ(said(sandbox_->write_file("new/.env", "x")), "refused");
  EXPECT_EQ(said(sandbox_->rename("repo/.env", "repo/seen")), "refused");
  EXPECT_EQ(said(sandbox_->write_file("repo/Cargo.lock", "x")), "refused");
  EXPECT_EQ(said(sandbox_->remove("repo/Cargo.lock")), "refused");
  EXPECT_EQ(sandbox_->read_file("repo/Cargo.lock").value(), "locked\n");
  EXPECT_EQ(sandbox_->list("vault").error().code(), Code::kPermissionDenied);
  const auto found = sandbox_->grep("SECRET");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->matches, (std::vector<GrepMatch>{{"repo/.envx", 1, "SECRET=2"}}));
  EXPECT_TRUE(sandbox_->glob("vault/**/key")->files.empty());
}

// More than the search holds at a time, on one line.
TEST_F(FileRules, ALineOfMegabytesIsSearchedAsAWhole) {
  put("long", "early" + std::string(1'300'000, 'x') + "amid" + std::string(1'300'000, 'x') + "\nlate\n");
  start({});
  for (const char* text : {"early", "amid", "late"}) EXPECT_EQ(sandbox_->grep(text)->matches.size(), 1U) << text;
  EXPECT_EQ(sandbox_->grep("late")->matches[0].line, 2U);
}

TEST_F(FileRules, MountsOfTheSandboxStay) {
  SandboxConfig config;
  config.policy.filesystem.entries = {{.path = host("repo/src"), .access = Access::kRead}};
  put("repo/src/kept", "x");
  start(std::move(config));
  EXPECT_EQ(said(sandbox_->rename("repo/src", "repo/src2")), "refused");
  EXPECT_EQ(said(sandbox_->remove("repo/src", {.depth = Depth::kTree})), "refused");
  EXPECT_EQ(said(sandbox_->remove("repo", {.depth = Depth::kTree})), "refused");
  EXPECT_FALSE(works("echo x >repo/src/new")) << "the mount is still there";
  EXPECT_EQ(said(sandbox_->write_file("repo/other", "x")), "allowed");
  EXPECT_EQ(text("repo/src/kept"), "x");
}

// A command that moves a directory to a name of git's and back, while a call writes into it.
TEST_F(FileRules, NothingIsCarriedToAnotherNameWhileItIsJudged) {
  start();
  std::atomic<bool> stop{false};
  auto mover = sandbox_->spawn(
      shell_command("mkdir -p top/x; while :; do mv top/x top/.git; rm -rf top/.git/hooks; mv top/.git top/x; rm -rf top/x/hooks; "
                    "done 2>/dev/null"));
  ASSERT_TRUE(mover);
  std::atomic<int> planted{0}, written{0};
  std::thread watcher([&] {
    while (!stop) planted += ::access(host("top/.git/hooks/post-commit").c_str(), F_OK) == 0 ? 1 : 0;
  });
  const auto begun = std::chrono::steady_clock::now();
  const auto goes_on = [&](auto time) { return std::chrono::steady_clock::now() - begun < time; };
  while (goes_on(1500ms) || (written == 0 && goes_on(60s))) written += sandbox_->write_file("top/x/hooks/post-commit", "x") ? 1 : 0;
  stop = true;
  watcher.join();
  EXPECT_GT(written.load(), 0);
  EXPECT_EQ(planted.load(), 0);
}

// What mounts refuse is told as well, as after a single run.
TEST_F(FileRules, RefusalsOfCommandsAreViolations) {
  SandboxConfig config;
  config.policy.filesystem.entries = {{.path = host("repo/src"), .access = Access::kRead}};
  start(std::move(config));
  const ExecResult hook = sandbox_->exec("echo x >repo/.git/hooks/post-commit").value();
  ASSERT_EQ(hook.violations.size(), 1U);
  EXPECT_EQ(hook.violations[0].target, host("repo/.git/hooks/post-commit"));
  const ExecResult mounted = sandbox_->exec("echo x >repo/src/new").value();
  ASSERT_EQ(mounted.violations.size(), 1U);
  EXPECT_EQ(mounted.violations[0].target, host("repo/src/new"));
  EXPECT_TRUE(sandbox_->exec("echo x >repo/new").value().violations.empty());
}

}  // namespace
}  // namespace belljar
