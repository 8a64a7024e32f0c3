// A command that wants all of the machine.
#include <sys/stat.h>

#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Resource : Attack {
  static bool has(const Outcome& outcome, const std::string& text) { return outcome.out.find(text) != std::string::npos; }
};

TEST_F(Resource, ForksAreBounded) {
  const Outcome bounded = run_in({"--pids", "32", "--", probe(), "forks", "200"});
  EXPECT_LE(std::stoi(bounded.out.empty() ? "999" : bounded.out), 32) << bounded;
  EXPECT_EQ(run_in({"--pids", "400", "--", probe(), "forks", "200"}).out.substr(0, 4), "200\n");
}

TEST_F(Resource, MemoryIsBoundedAndNamed) {
  const Outcome outcome = run_in({"--memory", "64MiB", "--accept", "limits.memory", "--json", "--", probe(), "memory", "512"});
  // Without a cgroup the kernel refuses the pages (an rlimit), so that no limit ends the command; the report says partial.
  if (has(outcome, "ENOMEM")) {
    EXPECT_NE(outcome.err.find("limits.memory is partial"), std::string::npos) << outcome;
  } else {
    EXPECT_TRUE(has(outcome, "\"reason\":\"memory\"")) << outcome;
  }
  EXPECT_EQ(inside({"memory", "128"}, {"--memory", "1GiB", "--accept", "limits.memory"}), "ok");
}

TEST_F(Resource, OpenFilesAreBounded) {
  EXPECT_TRUE(has(run_in({"--open-files", "32", "--", probe(), "open_files", "100"}), "EMFILE"));
  EXPECT_TRUE(has(run_in({"--open-files", "200", "--", probe(), "open_files", "100"}), "ok"));
  // The least that is taken: what the start itself has open does not count.
  EXPECT_EQ(run_in({"--open-files", "20", "--", "true"}).exit_code, 0);
}

TEST_F(Resource, FileSizeIsBounded) {
  const std::string act = "head -c 2000000 /dev/zero > big";
  EXPECT_NE(shell(act, {"--file-size", "1MiB"}).exit_code, 0);
  struct stat big{};
  ASSERT_EQ(::stat(workspace("big").c_str(), &big), 0);
  EXPECT_EQ(big.st_size, 1 << 20);
  EXPECT_EQ(shell(act, {"--file-size", "4MiB"}).exit_code, 0);
}

TEST_F(Resource, TmpIsBounded) {
  const std::string act = "head -c 8000000 /dev/zero > /tmp/big";
  EXPECT_NE(shell(act, {"--disk", "4MiB", "--accept", "limits.disk"}).exit_code, 0);
  EXPECT_EQ(shell(act).exit_code, 0);
}

TEST_F(Resource, DiskGrowthEndsTheCommand) {
  const std::string act = "head -c 30000000 /dev/zero > big; sleep 1000";
  const Outcome outcome = shell(act, {"--disk", "4MiB", "--accept", "limits.disk", "--json"});
  EXPECT_TRUE(has(outcome, "\"reason\":\"disk\"")) << outcome;
}

TEST_F(Resource, OutputIsCappedAndCounted) {
  const std::string act = "head -c 1000000 /dev/zero | tr '\\0' x";
  const Outcome capped = shell(act, {"--json", "--output-bytes", "1000"});
  EXPECT_EQ(capped.exit_code, 0);
  EXPECT_LT(capped.out.size(), 10000U);
  EXPECT_TRUE(
      has(shell(act + "; sleep 1000", {"--json", "--output-bytes", "1000", "--output-action", "kill"}), "\"reason\":\"output\""));
  EXPECT_EQ(shell(act).out.size(), 1000000U);
}

}  // namespace
}  // namespace belljar::test
