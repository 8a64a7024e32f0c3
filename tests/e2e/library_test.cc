// The library as somebody else's program has it: the examples, run as built here, and built once more against an installed Belljar.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

const std::string kSource = kSourceDir;
const std::string kBuild = std::string(kBelljar).substr(0, std::string(kBelljar).rfind("/bin/"));

TEST(Example, RunsACommandAndTellsWhatCameOfIt) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir workspace;
  const Leftovers left;
  const Outcome outcome =
      run({kBuild + "/bin/run_command", "echo out; echo in >file; echo no >/etc/belljar-no; exit 3"}, {.cwd = workspace.path()});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_EQ(outcome.out, "out\n") << outcome;
  EXPECT_NE(outcome.err.find("exited, exit code 3"), std::string::npos) << outcome;
  EXPECT_EQ(read_file(workspace / "file"), "in\n");
  EXPECT_FALSE(exists("/etc/belljar-no"));
  EXPECT_EQ(left.report(), "");
}

TEST(Example, KeepsASandbox) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir workspace;
  const Leftovers left;
  const Outcome outcome = run({kBuild + "/bin/keep_sandbox", workspace.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "exited, exit code 0: 3\napple\npear\nplum\ngot a line\n") << outcome;
  EXPECT_EQ(read_file(workspace / "sorted"), "apple\npear\nplum\n");
  const Outcome unknown = run({"/usr/bin/env", "BELLJAR_ENV=staging", kBuild + "/bin/keep_sandbox", workspace.path()});
  EXPECT_NE(unknown.err.find("use development, test or production"), std::string::npos) << unknown;
  EXPECT_EQ(left.report(), "");
}

TEST(Example, KeepsASandboxFromC) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir workspace;
  const Leftovers left;
  const Outcome outcome = run({kBuild + "/bin/keep_sandbox_c", workspace.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "exited, exit code 0: 3\napple\npear\nplum\ntouch: exit code 1, refused\n") << outcome;
  const Outcome nowhere = run({kBuild + "/bin/keep_sandbox_c", "/no/such"});
  EXPECT_EQ(nowhere.exit_code, 125) << nowhere;
  EXPECT_NE(nowhere.err.find("cannot use workspace"), std::string::npos) << nowhere;
  EXPECT_EQ(left.report(), "");
}

// A program of somebody who decorates a sandbox, judges commands and posts alerts: all three archives, installed.
constexpr const char* kProject = R"(
cmake_minimum_required(VERSION 3.25)
project(decorated CXX)
find_package(belljar REQUIRED)
add_executable(decorated decorated.cc)
target_link_libraries(decorated PRIVATE belljar::guard belljar::webhook belljar::belljar)
)";
constexpr const char* kProgram = R"(
#include <cstdio>

#include "belljar/command_rules.h"
#include "belljar/events.h"
#include "belljar/mock.h"
#include "belljar/webhook.h"

int main() {
  using namespace belljar;
  auto mock = MockSandbox::create();
  mock->set_output("ls", "a\n");
  auto judge = command_judge({.allow = {"ls"}});
  auto webhook = Webhook::create({.url = "http://127.0.0.1:1/", .attempts = 1});
  if (!judge || !webhook) return 1;
  SandboxPtr sandbox = with_events(with_command_rules(mock, *judge), std::make_shared<EventBus>());
  if (!sandbox->start()) return 1;
  const auto listed = sandbox->exec("ls");
  const auto refused = sandbox->exec("rm x");
  std::printf("%s%s\n", listed ? listed->out.bytes.c_str() : "-", refused ? "ran" : "refused");
}
)";

TEST(Example, TheArchivesOfTheirOwnAreFoundAndLinked) {
  BELLJAR_NEEDS(program("cmake"));
  const TempDir place;
  const auto must = [](const std::vector<std::string>& argv) {
    const Outcome outcome = run(argv, {.timeout = std::chrono::seconds(120)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
  };
  for (const char* component : {"library", "library-webhook", "library-guard"})
    must({"cmake", "-DCMAKE_INSTALL_PREFIX=" + place / "prefix", std::string("-DCMAKE_INSTALL_COMPONENT=") + component, "-P",
          kBuild + "/src/cmake_install.cmake"});
  place.write("project/CMakeLists.txt", kProject);
  place.write("project/decorated.cc", kProgram);
  must({"cmake", "-S", place / "project", "-B", place / "build", "-DCMAKE_PREFIX_PATH=" + place / "prefix"});
  must({"cmake", "--build", place / "build"});
  EXPECT_EQ(run({place / "build/decorated"}).out, "a\nrefused\n");
}

TEST(Example, BuildsAgainstAnInstalledBelljar) {
  BELLJAR_NEEDS(user_namespaces());
  BELLJAR_NEEDS(program("cmake"));
  const TempDir place;
  const auto must = [](const std::vector<std::string>& argv) {
    const Outcome outcome = run(argv, {.timeout = std::chrono::seconds(120)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
  };
  // The script of src/ alone: the one of the whole tree writes a list of what it installed into the build directory, which may be
  // another user's.
  must({"cmake", "-DCMAKE_INSTALL_PREFIX=" + place / "prefix", "-DCMAKE_INSTALL_COMPONENT=library", "-P",
        kBuild + "/src/cmake_install.cmake"});
  must({"cmake", "-S", kSource + "/examples", "-B", place / "build", "-DCMAKE_PREFIX_PATH=" + place / "prefix"});
  must({"cmake", "--build", place / "build"});
  const Outcome outcome = run({place / "build/run_command", "echo installed"}, {.cwd = place.make_dir("workspace")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "installed\n");
  const Outcome kept = run({place / "build/keep_sandbox", place.make_dir("kept")});
  EXPECT_EQ(kept.exit_code, 0) << kept;
  const Outcome from_c = run({place / "build/keep_sandbox_c", place.make_dir("from-c")});
  EXPECT_EQ(from_c.exit_code, 0) << from_c;
}

}  // namespace
}  // namespace belljar::test
