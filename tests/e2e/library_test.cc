// The library as somebody else's program has it: the examples, run as built here, and built once more against an installed Belljar.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

const std::string kSource = BELLJAR_SOURCE_DIR;
const std::string kBuild = std::string(BELLJAR_PROGRAM).substr(0, std::string(BELLJAR_PROGRAM).rfind("/bin/"));

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
}

}  // namespace
}  // namespace belljar::test
