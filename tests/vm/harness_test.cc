// vm-run itself: what the other tests here take on trust.
#include <dirent.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::vm {
namespace {

const std::string kVmRun = std::string(test::kSourceDir) + "/tools/vm/vm-run";

struct VmRun : testing::Test {
  // Its words on the first run on a machine are not a run's.
  static void SetUpTestSuite() {
    test::run({std::string(test::kSourceDir) + "/tools/vm/make-guest"}, {.timeout = std::chrono::seconds(280)});
  }
  void SetUp() override {
    const char* ci = std::getenv("CI");
    if (ci == nullptr || std::string(ci) != "true") BELLJAR_NEEDS(test::program("qemu-system-x86_64"));
  }
  // Runs vm-run with a TMPDIR of its own.
  test::Outcome vm_run(std::vector<std::string> args) {
    args.insert(args.begin(), kVmRun);
    return test::run(args, {.env = {{"TMPDIR", scratch.path()}}, .timeout = std::chrono::seconds(280)});
  }
  bool scratch_is_empty() const { return test::describe_tree(scratch.path()).size() <= 1; }

  test::TempDir scratch;
};

TEST_F(VmRun, BringsBackBothOutputsAndTheExitCode) {
  const test::Leftovers left;
  const test::Outcome outcome = vm_run({"--user", "--", "sh", "-c", "id -u; echo 'to stderr' >&2; exit 7"});
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  EXPECT_EQ(outcome.out, "1000\n");
  EXPECT_EQ(outcome.err, "to stderr\n");
  EXPECT_TRUE(scratch_is_empty());
  EXPECT_EQ(left.report(), "");
}

TEST_F(VmRun, TheDeadlineEndsQemuAndLeavesNothing) {
  const test::Leftovers left;
  const test::Outcome outcome = vm_run({"--deadline", "2", "--", "true"});  // no guest boots in two seconds
  EXPECT_EQ(outcome.exit_code, 124) << outcome;
  EXPECT_NE(outcome.err.find("killed at the deadline"), std::string::npos) << outcome;
  EXPECT_TRUE(scratch_is_empty());
  EXPECT_EQ(left.report(), "");
}

TEST_F(VmRun, QemuDiesWithAKilledRun) {
  const test::Leftovers left;
  {
    test::Running run({kVmRun, "--", "true"}, {.env = {{"TMPDIR", scratch.path()}}});
    run.wait_for_output("never said", std::chrono::seconds(2));
    run.send(SIGKILL);
  }
  EXPECT_EQ(left.report(), "");
}

// A case that is broken in a known way, and what the runner must say of it. One boot for all.
TEST_F(VmRun, SeesWhatACaseLeavesBehindAndGoesOn) {
  const test::TempDir files;
  const std::string cases = files.path() + "/cases", results = files.path() + "/results";
  std::ofstream(cases) << R"([
    {"name": "process", "as": "user", "script": "setsid sleep 100 & sleep 0.3"},
    {"name": "mount", "script": "mount -t tmpfs kept /mnt"},
    {"name": "cgroup", "script": "mkdir /sys/fs/cgroup$(sed s/^0:://g /proc/self/cgroup)/kept"},
    {"name": "file", "as": "user", "script": "touch /tmp/kept"},
    {"name": "hang", "as": "user", "script": "echo so far; sleep 100", "timeout": 2},
    {"name": "sysctl", "script": "true", "sysctl": {"kernel.no_such_name": "1"}},
    {"name": "signal", "script": "kill -TERM $$"},
    {"name": "clean", "as": "user", "script": "pwd; ls -A; ls /tmp; umount /mnt 2>&1; echo x >made; true"}
  ])";
  const test::Outcome outcome = vm_run({"--cases", cases, "--results", results});
  ASSERT_EQ(outcome.exit_code, 0) << outcome;
  std::ifstream file(results);
  std::map<std::string, nlohmann::json> by_name;
  const nlohmann::json whole = nlohmann::json::parse(file);
  for (const nlohmann::json& value : whole["cases"]) by_name[value["name"]] = value;
  const auto left = [&](const std::string& name) { return by_name[name]["left"].dump(); };
  EXPECT_NE(left("process").find("(sleep)"), std::string::npos) << left("process");
  EXPECT_EQ(left("mount"), R"(["mount /mnt"])");
  EXPECT_NE(left("cgroup").find("case.scope/kept"), std::string::npos) << left("cgroup");
  EXPECT_EQ(left("file"), R"(["file /tmp/kept"])");
  EXPECT_EQ(by_name["hang"]["timed_out"], true);
  EXPECT_EQ(by_name["hang"]["out"], "so far\n");
  EXPECT_EQ(left("hang"), "[]");
  EXPECT_EQ(by_name["sysctl"]["missing"].dump(), R"(["sysctl kernel.no_such_name: No such file or directory"])");
  EXPECT_EQ(by_name["signal"]["exit_code"], -15);
  EXPECT_EQ(by_name["clean"]["left"].dump(), "[]") << by_name["clean"];
  EXPECT_EQ(by_name["clean"]["out"].get<std::string>().substr(0, 17), "/home/agent/work\n") << by_name["clean"];
  EXPECT_NE(by_name["clean"]["out"].get<std::string>().find("not mounted"), std::string::npos) << by_name["clean"];
}

}  // namespace
}  // namespace belljar::vm
