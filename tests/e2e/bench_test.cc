// `belljar bench` and the reports it left earlier; what it makes of their rows: tests/bench.
#include <gtest/gtest.h>

#include <string>

#include "support/has.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

TEST(Bench, AFileOfSomethingElseIsRefusedBeforeAnythingIsMeasured) {
  const TempDir dir;
  const std::string foreign = dir.write("foreign.json", "{\"name\": \"x\"}");
  for (const char* option : {"--compare", "--json"}) {
    const Outcome outcome = belljar({"bench", "--only", "guard", "--runs", "1", option, foreign});
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_EQ(outcome.out, "") << outcome;
    EXPECT_TRUE(
        has(outcome.err, "belljar: cannot take `" + foreign + "` for an earlier report\n  reason: it is JSON of something else"))
        << outcome;
    EXPECT_TRUE(has(outcome.err, "\n  next:   name a file that `belljar bench --json FILE` wrote")) << outcome;
  }
  EXPECT_EQ(read_file(foreign), "{\"name\": \"x\"}");
}

TEST(Bench, AReportOfBeforeIsComparedAndKept) {
  const TempDir dir;
  const std::string ours = dir.write("ours.json", R"({"where": "Linux 1.0", "rows": [
    {"group": "guard", "name": "scan 1 MB of documentation", "unit": "us", "p50": 1000000000.0, "p99": 1000000001.0, "runs": 5},
    {"group": "process", "name": "belljar", "unit": "us", "p50": 5000.0, "p99": 6000.0, "runs": 60}]})");
  const Outcome outcome =
      belljar({"bench", "--only", "guard", "--runs", "1", "--compare", ours, "--json", ours, "--svg", dir / "picture.svg"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(has(outcome.out, "\ncompared with `" + ours + "`\n  then: Linux 1.0\n  now:  Linux ")) << outcome;
  EXPECT_TRUE(has(outcome.out, "\nwarning: circumstances differ: then Linux 1.0; now Linux ")) << outcome;
  EXPECT_TRUE(has(outcome.out, "\nfaster or smaller\n  guard: scan 1 MB of documentation")) << outcome;
  EXPECT_TRUE(has(outcome.out, "\nnot measured now: 1 rows of process\n")) << outcome;
  const std::string kept = read_file(ours);
  EXPECT_TRUE(has(kept, "\"scan 1 MB of documentation\"")) << kept;
  EXPECT_FALSE(has(kept, "1000000000")) << kept;
  EXPECT_TRUE(has(kept, "\"name\": \"belljar\"")) << kept;
  EXPECT_TRUE(has(read_file(dir / "picture.svg"), ">belljar</text>"));
}

}  // namespace
}  // namespace belljar::test
