// What the policy opens beyond the workspace is open to file calls as to commands, and nothing more than that.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "belljar/decorators.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

// Of what lies below /tmp nobody sees anything as it is.
std::string shown_to_all() {
  if (test::is_root()) return "/var/lib";
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  return home == nullptr ? "/tmp" : home;
}

class Roots : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (contained()) {
      BELLJAR_NEEDS(start_engine(engine_));
    } else {
      BELLJAR_NEEDS(user_namespaces());
    }
    for (const char* name : {"ws/own", "root/f", "root/sub/f", "root/hidden/f", "ro/f", "other/f", "single"})
      place_.write(name, std::string(name) + "\n");
    for (const auto& [name, target] : {std::pair<const char*, std::string>{"ws/into", place_ / "root"},
                                       {"ws/up", "../root"},
                                       {"ws/dangling", place_ / "root/made-by-link"},
                                       {"ws/read", place_ / "ro"},
                                       {"ws/away", place_ / "other"},
                                       {"ws/lone", place_ / "single"},
                                       {"root/out", place_ / "other"},
                                       {"root/outfile", "../other/f"},
                                       {"root/back", place_ / "ws"},
                                       {"named", place_ / "root"}})
      ASSERT_EQ(::symlink(target.c_str(), (place_ / name).c_str()), 0);
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
    config_.backend = in_transaction() ? "native" : GetParam();
    if (in_transaction()) {
      config_.transaction = "of-a-test";
      config_.state_dir = state_.path();
    }
    config_.workspace = place_ / "ws";
    config_.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", place_ / "ws"}};
    if (contained()) config_.container = {.engine = engine_->address(), .image = test::Engine::image(), .pull = PullPolicy::kNever};
    if (config_.backend == "landlock") {
      config_.policy.filesystem.protect = Protect::kNone;
      config_.policy.network.mode = NetMode::kHost;
      config_.policy.accept = {"filesystem.protect", "filesystem.tmp", "network.mode", "filesystem.secrets"};
    }
    open("root", Access::kWrite);
    open("single", Access::kWrite);
    open("ro", Access::kRead);
    open("root/hidden", Access::kNone);
  }
  void TearDown() override {
    if (engine_ == nullptr) return;
    EXPECT_TRUE(engine_->containers().empty());
  }
  static bool in_transaction() { return GetParam() == std::string("native_transaction"); }
  static bool contained() { return GetParam() == std::string("container"); }
  void open(const std::string& name, Access access) {
    config_.policy.filesystem.entries.push_back({.path = place_ / name, .access = access, .origin = {"test", "", 0}});
  }
  std::shared_ptr<Sandbox> start() const {
    auto made = make_sandbox(config_);
    EXPECT_TRUE(made) << made.error().line();
    if (!made) return nullptr;
    const auto started = (*made)->start();
    EXPECT_TRUE(started) << started.error().line();
    return started ? *std::move(made) : nullptr;
  }
  static std::string text_of(const Result<std::string>& text) { return text ? *text : text.error().line(); }

  std::unique_ptr<test::Engine> engine_;
  const test::TempDir place_{shown_to_all()}, state_{test::layers_base("/var/tmp")};
  SandboxConfig config_;
};

// Asks a command and a file call for the same path.
TEST_P(Roots, CommandsAndFileCallsAgreeOnEveryPath) {
  const auto sandbox = start();
  ASSERT_NE(sandbox, nullptr);
  // Commands read the rest of the host, too, but in a container; file calls say that it is outside.
  enum class Place { kInside, kOutside };
  struct Row {
    std::string path;
    bool reads, writes;
    Place place = Place::kInside;
  };
  const std::string root = place_ / "root", ws = place_ / "ws";
  const std::vector<Row> rows = {
      {ws + "/own", true, true},
      {"own", true, true},
      {root + "/f", true, true},
      {root + "/sub/f", true, true},
      {root + "/./sub//f", true, true},
      {root + "/new", false, true},
      {root + "/none/../f", false, false},
      {root + "/f/../f", false, false},
      {root + "/sub/../f", true, true},
      {ws + "/../root/f", true, true},
      {"../root/sub/f", true, true},
      {"../root/new2", false, true},
      {root + "/../ws/own", true, true},
      {"../ws/own", true, true},
      {root + "/hidden/f", false, false},
      {root + "/hidden/new", false, false},
      {root + "/sub/../hidden/f", false, false},
      {"into/hidden/f", false, false},
      {"into/f", true, true},
      {"into/sub/../f", true, true},
      {"into/new3", false, true},
      {"up/f", true, true},
      {"up/new4", false, true},
      {"dangling", false, true},
      {root + "/back/own", true, true},
      {root + "/back/into/f", true, true},
      {place_ / "ro/f", true, false},
      {place_ / "ro/new", false, false},
      {"read/f", true, false},
      {place_ / "single", true, true},
      {"lone", true, true},
      {place_ / "other/f", true, false, Place::kOutside},
      {place_ / "other/new", false, false, Place::kOutside},
      {"../other/f", true, false, Place::kOutside},
      {root + "/../other/f", true, false, Place::kOutside},
      {root + "/out/f", true, false, Place::kOutside},
      {root + "/outfile", true, false, Place::kOutside},
      {"into/out/f", true, false, Place::kOutside},
      {"into/out/new", false, false, Place::kOutside},
      {"into/../other/f", true, false, Place::kOutside},
      {"away/f", true, false, Place::kOutside},
      {root + "-and/more", false, false, Place::kOutside},
      {place_.path(), false, false, Place::kOutside},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(GetParam()) + " " + row.path);
    const auto command = sandbox->exec(Command{.argv = {"cat", row.path}});
    const auto call = sandbox->read_file(row.path);
    ASSERT_TRUE(command);
    const bool outside = row.place == Place::kOutside;
    EXPECT_EQ(command->exit_code == 0, row.reads && !(outside && contained())) << command->err.bytes;
    EXPECT_EQ(call.has_value(), row.reads && !outside) << text_of(call);
    if (call) {
      EXPECT_EQ(*call, command->out.bytes);
    } else {
      EXPECT_EQ(call.error().what() == "path escapes workspace: " + row.path, outside) << call.error().line();
    }
    const bool writes = sandbox->exec(Command{.argv = {"sh", "-c", "echo command >>\"$1\"", "sh", row.path}})->exit_code == 0;
    const auto written = sandbox->write_file(row.path, "call\n", {.how = WriteMode::kAppend, .parents = Parents::kMustExist});
    EXPECT_EQ(writes, row.writes);
    EXPECT_EQ(written.has_value(), row.writes) << (written ? "" : written.error().line());
    if (!written) {
      EXPECT_EQ(written.error().what() == "path escapes workspace: " + row.path, outside) << written.error().line();
    }
    if (row.writes) {
      EXPECT_EQ(sandbox->exec(Command{.argv = {"tail", "-n2", row.path}})->out.bytes, "command\ncall\n");
    }
  }
  EXPECT_EQ(test::read_file(place_ / "other/f"), "other/f\n");
  EXPECT_EQ(test::read_file(place_ / "ro/f"), "ro/f\n");
  EXPECT_EQ(test::read_file(root + "/hidden/f"), "root/hidden/f\n");
  EXPECT_FALSE(test::exists(place_ / "other/new"));
}

TEST_P(Roots, TakeEveryCall) {
  const auto sandbox = start();
  ASSERT_NE(sandbox, nullptr);
  const std::string root = place_ / "root", ro = place_ / "ro";
  EXPECT_TRUE(sandbox->write_file(root + "/a/b/c", "deep\n"));
  EXPECT_TRUE(sandbox->write_file("into/a/d/e", "by a link\n"));
  EXPECT_TRUE(sandbox->write_file("../root/a/g/h", "by dots\n"));
  EXPECT_TRUE(sandbox->make_dir(root + "/m/n"));
  EXPECT_EQ(sandbox->stat(root + "/m/n")->type, FileType::kDirectory);
  EXPECT_EQ(sandbox->stat(root + "/out")->type, FileType::kSymlink);
  EXPECT_TRUE(sandbox->write_file(root + "/a/b/c", "new\n", {.how = WriteMode::kAtomic}));
  EXPECT_EQ(test::read_file(root + "/a/b/c"), "new\n");
  EXPECT_EQ(test::read_file(root + "/a/d/e"), "by a link\n");
  EXPECT_EQ(test::read_file(root + "/a/g/h"), "by dots\n");
  EXPECT_TRUE(sandbox->rename(root + "/a/b/c", root + "/moved"));
  EXPECT_TRUE(sandbox->remove(root + "/a", {.depth = Depth::kTree}));
  EXPECT_FALSE(test::exists(root + "/a"));
  std::vector<std::string> names;
  const auto listed = sandbox->list(root);
  ASSERT_TRUE(listed) << listed.error().line();
  for (const FileInfo& info : *listed) names.push_back(info.path);
  EXPECT_EQ(names, (std::vector<std::string>{"back", "f", "hidden", "m", "moved", "out", "outfile", "sub"}));
  const auto found = sandbox->glob(root + "/**/f");
  ASSERT_TRUE(found) << found.error().line();
  names.clear();
  for (const FileInfo& info : found->files) names.push_back(info.path);
  EXPECT_EQ(names, (std::vector<std::string>{root + "/f", root + "/sub/f"})) << "and not what is hidden";
  const auto lines = sandbox->grep("f", {.files = root + "/**"});
  ASSERT_TRUE(lines) << lines.error().line();
  EXPECT_EQ(lines->matches.size(), 2U);
  EXPECT_EQ(lines->matches.at(0), (GrepMatch{root + "/f", 1, "root/f"}));
  EXPECT_EQ(sandbox->exec(Command{.argv = {"pwd"}, .cwd = root + "/sub"})->out.bytes, root + "/sub\n");
  // The other side: what is only readable, the root itself, a single file, and what lies outside.
  EXPECT_EQ(sandbox->list(ro)->size(), 1U);
  EXPECT_EQ(sandbox->make_dir(ro + "/m").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->remove(ro + "/f").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->rename(root + "/moved", ro + "/moved").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->remove(root, {.depth = Depth::kTree}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sandbox->rename(root, "here").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sandbox->remove(place_ / "single").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->rename(root + "/moved", place_ / "single").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->write_file(place_ / "single", "x", {.how = WriteMode::kAtomic}).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->remove(root + "/hidden", {.depth = Depth::kTree}).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->glob((place_ / "other") + "/*").error().what(), "path escapes workspace: " + (place_ / "other/*"));
  EXPECT_EQ(sandbox->list(place_ / "other").error().what(), "path escapes workspace: " + (place_ / "other"));
  EXPECT_FALSE(sandbox->exec(Command{.argv = {"pwd"}, .cwd = place_ / "other"}));
  EXPECT_EQ(test::read_file(root + "/hidden/f"), "root/hidden/f\n");
  EXPECT_EQ(test::read_file(root + "/moved"), "new\n");
}

// What the policy does not open is outside: the twin.
TEST_P(Roots, AreOnlyWhatThePolicyOpensByName) {
  config_.policy.filesystem.entries.clear();
  const auto sandbox = start();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_TRUE(sandbox->roots().empty());
  for (const std::string& path : {place_ / "root/f", place_ / "ro/f", place_ / "single", std::string("into/f"), std::string("up/f"),
                                  std::string("../root/f"), std::string("/etc/hostname"), std::string("/tmp/f")})
    EXPECT_EQ(sandbox->read_file(path).error().what(), "path escapes workspace: " + path);
}

// By the name that the policy gives it, and by the one that it has.
TEST_P(Roots, HaveBothTheirNames) {
  config_.policy.filesystem.entries.clear();
  open("named", Access::kWrite);
  const auto sandbox = start();
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(sandbox->read_file(place_ / "named/f").value(), "root/f\n");
  EXPECT_EQ(sandbox->read_file(place_ / "root/f").value(), "root/f\n");
  EXPECT_TRUE(sandbox->write_file(place_ / "named/new/f", "x"));
  EXPECT_EQ(test::read_file(place_ / "root/new/f"), "x");
}

// A rehearsal answers as what it rehearses.
TEST_P(Roots, AreRehearsed) {
  const auto sandbox = start();
  ASSERT_NE(sandbox, nullptr);
  const auto dry = with_dry_run(sandbox, {});
  const std::string root = place_ / "root";
  EXPECT_EQ(dry->read_file(root + "/f").value(), "root/f\n");
  EXPECT_EQ(dry->read_file("into/f").value(), "root/f\n");
  EXPECT_TRUE(dry->write_file(root + "/f", "dry\n"));
  EXPECT_TRUE(dry->write_file(root + "/a/b", "dry\n"));
  EXPECT_TRUE(dry->write_file("into/c/d", "dry\n"));
  EXPECT_TRUE(dry->write_file("f", "mine\n"));
  EXPECT_EQ(dry->read_file(root + "/f").value(), "dry\n");
  EXPECT_EQ(dry->read_file("into/a/b").value(), "dry\n");
  EXPECT_EQ(dry->read_file(root + "/c/d").value(), "dry\n");
  std::vector<std::string> names;
  const auto found = dry->glob(root + "/*/[bd]");
  ASSERT_TRUE(found) << found.error().line();
  for (const FileInfo& info : found->files) names.push_back(info.path);
  EXPECT_EQ(names, (std::vector<std::string>{root + "/a/b", root + "/c/d"}));
  EXPECT_EQ(dry->glob("**/[bd]")->files.size(), 0U);
  EXPECT_EQ(dry->remove(root, {.depth = Depth::kTree}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->write_file(root + "/out/f", "x").error().what(), "path escapes workspace: " + root + "/out/f");
  EXPECT_EQ(dry->read_file(place_ / "other/f").error().what(), "path escapes workspace: " + (place_ / "other/f"));
  EXPECT_EQ(test::read_file(root + "/f"), "root/f\n");
  EXPECT_FALSE(test::exists(root + "/a"));
}

INSTANTIATE_TEST_SUITE_P(, Roots, testing::Values("native", "native_transaction", "landlock"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Engine, Roots, testing::Values("container"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace belljar
