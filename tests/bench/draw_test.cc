#include <gtest/gtest.h>

#include "bench/compare.h"
#include "bench/report.h"
#include "support/has.h"

namespace belljar::bench {
namespace {

using test::has;

constexpr const char* kRows = R"({"where": "Linux 6.18, as root", "rows": [
  {"group": "process", "name": "belljar", "unit": "us", "p50": 5000.0, "p99": 6000.0, "runs": 60},
  {"group": "process", "name": "b<wrap", "unit": "us", "p50": 4000.0, "p99": 5000.0, "runs": 60},
  {"group": "trees", "name": "tar, 30 000 files, inside", "unit": "us", "p50": 1e6, "p99": 2e6, "runs": 5, "where": "Linux 6.19"},
  {"group": "burst", "name": "100 x bwrap at once", "unit": "ms", "p50": 800.0, "p99": 900.0, "runs": 5},
  {"group": "burst", "name": "memory of one of 300 idle", "unit": "MiB", "p50": 0.6, "runs": 1}]})";

TEST(BenchDrawing, EachPanelThatHasRowsIsDrawn) {
  const std::string svg = to_svg(*parse_report(kRows, "f"));
  for (const char* text : {">Start: ", ">belljar</text>", ">b&lt;wrap</text>", ">Files: ", ">unpack 30 000 files, inside</text>",
                           ">Burst: ", ">bwrap</text>", ">Density: ", ">0.6 MiB</text>", ">Files: Linux 6.19</text>",
                           ">Start, Burst, Density: Linux 6.18, as root</text>"})
    EXPECT_TRUE(has(svg, text)) << text << "\n" << svg;
}

TEST(BenchDrawing, APanelWithoutRowsIsLeftOut) {
  Report report;
  report.where = "Linux 6.18";
  EXPECT_EQ(to_svg(report), "");
  report.add("process", "belljar", {{1, 2, 3}});
  const std::string svg = to_svg(report);
  EXPECT_TRUE(has(svg, ">Start: ")) << svg;
  for (const char* text : {"Files: ", "Burst: ", "Density: "}) EXPECT_FALSE(has(svg, text)) << svg;
}

}  // namespace
}  // namespace belljar::bench
