// What one sandbox sees of the directories that others of the same user work in (filesystem.siblings).
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "belljar/pool.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

// Of what lies below /tmp nobody sees anything as it is.
std::string seen_by_all() {
  if (test::is_root()) return "/var/lib";
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  return home == nullptr ? "/tmp" : home;
}

class SiblingSandboxes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    const char* const state = std::getenv("XDG_STATE_HOME");  // NOLINT(concurrency-mt-unsafe)
    if (state != nullptr) before_ = state;
    ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    for (const char* name : {"a", "b", "home", "around/inner", "many"}) place_.make_dir(name);
    place_.write("a/own", "OWN\n");
    place_.write("b/secret", "SECRET\n");
    place_.write("b/deep/er", "DEEP\n");
    place_.write("around/outer", "OUTER\n");
    place_.write("around/inner/own", "INNER\n");
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
  }
  void TearDown() override {
    if (before_.empty()) ::unsetenv("XDG_STATE_HOME");    // NOLINT(concurrency-mt-unsafe)
    else ::setenv("XDG_STATE_HOME", before_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }

  SandboxConfig config(const std::string& workspace, Siblings siblings) const {
    SandboxConfig config;
    config.backend = GetParam();
    config.workspace = workspace.empty() ? "" : place_ / workspace;
    config.policy.filesystem.siblings = siblings;
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", place_ / "home"}};
    return config;
  }
  static std::shared_ptr<Sandbox> start(const SandboxConfig& config) {
    auto made = make_sandbox(config);
    EXPECT_TRUE(made) << made.error().line();
    if (!made) return nullptr;
    // One that it made itself: as root without mounts it would be nobody's that the command may be.
    const auto own = [](const std::string& path) {
      return !test::is_root() || ::chown(path.c_str(), test::user_uid(), test::user_gid()) == 0;
    };
    EXPECT_TRUE(own((*made)->workspace()));
    const auto started = (*made)->start();
    EXPECT_TRUE(started) << started.error().line();
    return *std::move(made);
  }
  std::shared_ptr<Sandbox> start_in(const std::string& workspace, Siblings siblings = Siblings::kHidden) const {
    return start(config(workspace, siblings));
  }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    auto result = sandbox.exec(text);
    return result ? result->out.bytes : result.error().line();
  }
  static EnforcementClause clause(const Sandbox& sandbox) {
    const EnforcementReport report = sandbox.enforcement();
    const auto found = std::ranges::find(report, "filesystem.siblings", &EnforcementClause::clause);
    return found == report.end() ? EnforcementClause{} : *found;
  }

  const test::TempDir state_;
  const test::TempDir place_{seen_by_all()};
  std::string before_;
};

TEST_P(SiblingSandboxes, AreNeitherReadNorListedNorWritten) {
  const auto other = start_in("b");
  const std::string b = place_ / "b";
  const std::string acts = "cat " + b + "/secret; ls " + b + "; cat " + b + "/deep/er; cp " + b + "/secret here; ln " + b +
                           "/secret linked; cd " + b + " && cat secret; echo x >" + b + "/planted; mkdir " + b + "/made; mv " + b +
                           "/secret moved; rm -rf " + b + "/deep; cat " + (place_ / "a/own");
  const auto mine = start_in("a");
  EXPECT_EQ(
      out(*mine,
          "(" + acts + ") 2>&1 | grep -v -e denied -e 'Read-only' -e 'Permission' -e 'cross-device' -e 'not permitted' -e 'cd to'"),
      "OWN\n");
  for (const char* name : {"b/planted", "b/made", "a/here", "a/linked", "a/moved"})
    EXPECT_FALSE(test::exists(place_ / name)) << name;
  EXPECT_EQ(test::read_file(place_ / "b/secret"), "SECRET\n");
  EXPECT_EQ(test::read_file(place_ / "b/deep/er"), "DEEP\n");
  EXPECT_EQ(out(*other, "cat secret"), "SECRET\n");
  const auto shown = start_in("a", Siblings::kShown);
  EXPECT_EQ(out(*shown, "cat " + b + "/secret " + b + "/deep/er; cp " + b + "/secret here; cat here"), "SECRET\nDEEP\nSECRET\n")
      << "the twin";
}

TEST_P(SiblingSandboxes, AreNotReachedThroughALink) {
  const auto other = start_in("b");
  std::filesystem::create_directory_symlink(place_ / "b", place_ / "a/link");
  std::filesystem::create_directory_symlink(place_.path(), place_ / "home/all");
  const auto mine = start_in("a");
  const std::string reads = "cat link/secret ~/all/b/secret /proc/self/cwd/../b/secret /proc/self/root" + (place_ / "b/secret");
  EXPECT_EQ(out(*mine, reads), "");
  EXPECT_EQ(out(*start_in("a", Siblings::kShown), reads), "SECRET\nSECRET\nSECRET\nSECRET\n") << "the twin";
}

TEST_P(SiblingSandboxes, OnesSocketsAreNotConnectedTo) {
  BELLJAR_NEEDS(program("python3"));
  const auto other = start_in("b");
  auto server =
      other->spawn(shell_command("exec python3 -c 'import os, socket\n"
                                 "s = socket.socket(socket.AF_UNIX); s.bind(\"served\"); os.chmod(\"served\", 0o777)\n"
                                 "s.listen(); open(\"ready\", \"w\")\n"
                                 "while True: s.accept()[0].sendall(b\"SERVED\\n\")'"));
  ASSERT_TRUE(server) << server.error().line();
  ASSERT_TRUE(test::eventually([&] { return test::exists(place_ / "b/ready"); }));
  const std::string connects = "python3 -c 'import socket\ns = socket.socket(socket.AF_UNIX); s.connect(\"" +
                               (place_ / "b/served") + "\"); print(s.recv(9).decode(), end=\"\")'";
  SandboxConfig open = config("a", Siblings::kHidden);
  open.policy.network.allow_all_unix_sockets = true;
  EXPECT_EQ(out(*start(open), connects), "");
  open.policy.filesystem.siblings = Siblings::kShown;
  EXPECT_EQ(out(*start(open), connects), "SERVED\n") << "the twin";
}

TEST_P(SiblingSandboxes, TwoInOneWorkspaceSeeIt) {
  const auto other = start_in("a"), mine = start_in("a");
  EXPECT_EQ(out(*mine, "echo MORE >>own; cat own"), "OWN\nMORE\n");
  EXPECT_EQ(out(*other, "cat own"), "OWN\nMORE\n");
}

TEST_P(SiblingSandboxes, OneAroundIsHiddenAndOneWithinIsAPart) {
  const auto outer = start_in("around"), inner = start_in("around/inner");
  EXPECT_EQ(out(*inner, "cat own; cat ../outer; ls ..; echo x >../planted"),
            std::string(GetParam()) == "native" ? "INNER\ninner\n" : "INNER\n");
  EXPECT_FALSE(test::exists(place_ / "around/planted"));
  const auto again = start_in("around");
  EXPECT_EQ(out(*again, "cat outer inner/own"), "OUTER\nINNER\n");
  EXPECT_NE(clause(*again).detail.find("(it lies in this workspace) stays visible"), std::string::npos) << clause(*again).detail;
  EXPECT_EQ(out(*start_in("around/inner", Siblings::kShown), "cat own ../outer"), "INNER\nOUTER\n") << "the twin";
}

TEST_P(SiblingSandboxes, OneThatHasEndedIsNone) {
  const auto other = start_in("b"), mine = start_in("a");
  const std::string reads = "cat " + (place_ / "b/secret");
  EXPECT_EQ(out(*mine, reads), "");
  EXPECT_TRUE(other->stop());
  EXPECT_EQ(out(*start_in("a"), reads), "SECRET\n");
  EXPECT_TRUE(mine->stop());
  EXPECT_TRUE(mine->start());
  EXPECT_EQ(out(*mine, reads), "SECRET\n") << "each start asks anew";
}

TEST_P(SiblingSandboxes, OneThatARuleNamesIsSeenAndTold) {
  const auto other = start_in("b");
  SandboxConfig named = config("a", Siblings::kHidden);
  named.policy.filesystem.entries.push_back({.path = place_ / "b", .access = Access::kRead});
  const auto mine = start(named);
  EXPECT_EQ(out(*mine, "cat " + (place_ / "b/secret")), "SECRET\n");
  EXPECT_NE(clause(*mine).detail.find("(a rule names it, or a part of it) stays visible"), std::string::npos)
      << clause(*mine).detail;
}

TEST_P(SiblingSandboxes, BelowADirectoryThatIsWrittenToTheyStayHidden) {
  const auto other = start_in("b");
  SandboxConfig wide = config("a", Siblings::kHidden);
  wide.policy.filesystem.entries.push_back({.path = place_.path(), .access = Access::kWrite});
  const auto mine = start(wide);
  const std::string acts = "cat b/secret; echo x >b/planted; mv b c; rmdir b; cat b/secret c/secret; echo fine >free; cat free";
  EXPECT_EQ(out(*mine, "cd " + place_.path() + "; " + acts), "fine\n");
  EXPECT_FALSE(test::exists(place_ / "b/planted"));
  EXPECT_EQ(test::read_file(place_ / "b/secret"), "SECRET\n");
  wide.policy.filesystem.siblings = Siblings::kShown;
  EXPECT_EQ(out(*start(wide), "cd " + place_.path() + "; " + acts), "SECRET\nSECRET\nfine\n") << "the twin";
  EXPECT_TRUE(test::exists(place_ / "c/planted"));
}

// Also what is made in it later.
TEST_P(SiblingSandboxes, OfADirectoryOfWorkspacesOnlyTheOwnIsSeen) {
  SandboxConfig many = config("", Siblings::kHidden);
  many.workspaces = place_ / "many";
  const auto first = start(many), second = start(many);
  std::filesystem::permissions(second->workspace(), std::filesystem::perms(0755));  // else that is what keeps root's commands out
  ASSERT_TRUE(second->write_file("secret", "SECRET\n"));
  const std::string reads = "cat " + second->workspace() + "/secret; echo x >" + second->workspace() + "/planted; cat own";
  ASSERT_TRUE(first->write_file("own", "OWN\n"));
  EXPECT_EQ(out(*first, reads), "OWN\n");
  EXPECT_FALSE(test::exists(second->workspace() + "/planted"));
  EXPECT_EQ(out(*start_in("a"), reads), "OWN\n") << "nor by another one";
  many.policy.filesystem.siblings = Siblings::kShown;
  EXPECT_EQ(out(*start(many), reads), "SECRET\n") << "the twin";
}

TEST_P(SiblingSandboxes, WhatStartsLaterElsewhereIsTold) {
  const auto mine = start_in("a");
  const EnforcementClause told = clause(*mine);
  EXPECT_EQ(told.enforced, Enforced::kPartial);
  EXPECT_NE(told.detail.find("starts to work in later"), std::string::npos) << told.detail;
  SandboxConfig required = config("a", Siblings::kHidden);
  required.policy.require = {"filesystem.siblings"};
  EXPECT_FALSE(make_sandbox(required).value()->start());
  EXPECT_EQ(clause(*start_in("a", Siblings::kShown)).clause, "") << "nobody asked";
}

INSTANTIATE_TEST_SUITE_P(On, SiblingSandboxes, testing::Values("native", "landlock"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace belljar
