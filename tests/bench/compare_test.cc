#include "bench/compare.h"

#include <gtest/gtest.h>

#include <string>

#include "bench/report.h"
#include "support/has.h"
#include "support/temp_dir.h"

namespace belljar::bench {
namespace {

using test::has;

constexpr const char* kHere = "Linux 6.18, 2 processors, load 0.7, normal scheduling, as root";

// Of a run here: rows as they stand in the file.
Report report_of(const std::string& rows, const std::string& where = kHere) {
  auto report = parse_report("{\"where\": \"" + where + "\", \"rows\": [" + rows + "]}", "f");
  EXPECT_TRUE(report) << (report ? "" : report.error().line());
  return report ? *std::move(report) : Report();
}

std::string part(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t start = text.find(from);
  return start == std::string::npos ? "" : text.substr(start, text.find(to, start) - start);
}
std::string slower_of(const std::string& text) { return part(text, "slower or larger", "faster or smaller"); }
std::string faster_of(const std::string& text) { return part(text, "faster or smaller", "within noise"); }

constexpr const char* kTrueThen =
    R"({"group": "end", "name": "kill", "unit": "us", "p50": 1000.0, "p99": 1500.0, "p10": 900.0, "p90": 1100.0, "runs": 60})";

TEST(BenchCompare, WhatGotSlowerIsTold) {
  const Report then = report_of(kTrueThen);
  const Report now = report_of(
      R"({"group": "end", "name": "kill", "unit": "us", "p50": 1300.0, "p99": 1500.0, "p10": 1250.0, "p90": 1400.0, "runs": 60})");
  const std::string text = to_comparison(now, then);
  EXPECT_TRUE(has(slower_of(text), "end: kill")) << text;
  EXPECT_TRUE(has(slower_of(text), "1.30 x")) << text;
  EXPECT_TRUE(has(slower_of(text), "1.00 ms -> 1.30 ms")) << text;
  EXPECT_TRUE(has(text, "within noise: 0 rows")) << text;
  const std::string back = to_comparison(then, now);
  EXPECT_TRUE(has(faster_of(back), "end: kill")) << back;
  EXPECT_TRUE(has(back, "slower or larger: nothing")) << back;
}

TEST(BenchCompare, WhatIsWithinNoiseIsCountedOnly) {
  const Report then = report_of(kTrueThen);
  // A twentieth; and a third, where single measurements lie further apart than that.
  for (const char* row :
       {R"({"group": "end", "name": "kill", "unit": "us", "p50": 1050.0, "p10": 1040.0, "p90": 1060.0, "runs": 60})",
        R"({"group": "end", "name": "kill", "unit": "us", "p50": 1300.0, "p10": 900.0, "p90": 1400.0, "runs": 60})"}) {
    const std::string text = to_comparison(report_of(row), then);
    EXPECT_FALSE(has(text, "end: kill")) << text;
    EXPECT_TRUE(has(text, "within noise: 1 rows")) << text;
  }
}

// All that ran on this machine took half as long again, and ours no more than the others.
TEST(BenchCompare, RatiosAreComparedWhereThereAreSome) {
  const Report then = report_of(R"(
    {"group": "process", "name": "belljar", "unit": "us", "p50": 5000.0, "runs": 9, "ratio": 1.25, "against": "bwrap"},
    {"group": "process", "name": "bwrap", "unit": "us", "p50": 4000.0, "runs": 9})");
  const Report as_good = report_of(R"(
    {"group": "process", "name": "belljar", "unit": "us", "p50": 7500.0, "runs": 9, "ratio": 1.25, "against": "bwrap"},
    {"group": "process", "name": "bwrap", "unit": "us", "p50": 6000.0, "runs": 9})");
  const std::string same = to_comparison(as_good, then);
  EXPECT_FALSE(has(slower_of(same), "process: belljar")) << same;
  EXPECT_TRUE(has(slower_of(same), "process: bwrap")) << same;
  EXPECT_TRUE(has(same, "what ratios are taken against: 1.50 x, in the middle of 1 rows")) << same;
  const Report worse = report_of(R"(
    {"group": "process", "name": "belljar", "unit": "us", "p50": 5000.0, "runs": 9, "ratio": 1.67, "against": "bwrap"},
    {"group": "process", "name": "bwrap", "unit": "us", "p50": 3000.0, "runs": 9})");
  const std::string text = to_comparison(worse, then);
  EXPECT_TRUE(has(slower_of(text), "1.25 -> 1.67 x bwrap")) << text;
}

TEST(BenchCompare, ARatioIsAsUnsureAsItsPeer) {
  const char* then = R"(
    {"group": "process", "name": "belljar", "unit": "us", "p50": 5000.0, "runs": 9, "ratio": 1.25, "against": "bwrap"},
    {"group": "process", "name": "bwrap", "unit": "us", "p50": 4000.0, "p10": 2000.0, "p90": 4100.0, "runs": 9})";
  const char* now = R"(
    {"group": "process", "name": "belljar", "unit": "us", "p50": 5000.0, "runs": 9, "ratio": 1.67, "against": "bwrap"},
    {"group": "process", "name": "bwrap", "unit": "us", "p50": 3000.0, "runs": 9})";
  const std::string text = to_comparison(report_of(now), report_of(then));
  EXPECT_TRUE(has(text, "within noise: 2 rows")) << text;
}

TEST(BenchCompare, APeersRatioAgainstOursIsNotRead) {
  const char* row = R"({"group": "egress", "name": "connect, srt", "unit": "us", "p50": 2000.0, "against": "connect, belljar", )";
  const std::string text =
      to_comparison(report_of(std::string(row) + R"("ratio": 4.0})"), report_of(std::string(row) + R"("ratio": 8.0})"));
  EXPECT_TRUE(has(text, "within noise: 1 rows")) << text;
}

TEST(BenchCompare, OfARateMoreIsBetter) {
  const Report many = report_of(R"({"group": "session", "name": "rate", "unit": "/s", "p50": 900.0, "runs": 1})");
  const Report few = report_of(R"({"group": "session", "name": "rate", "unit": "/s", "p50": 600.0, "runs": 1})");
  EXPECT_TRUE(has(slower_of(to_comparison(few, many)), "session: rate")) << to_comparison(few, many);
  EXPECT_TRUE(has(faster_of(to_comparison(many, few)), "session: rate")) << to_comparison(many, few);
}

// There medians were in tenths, and nothing told how far single measurements lie apart.
TEST(BenchCompare, AnOlderFileIsRead) {
  const Report then =
      report_of(R"({"group": "step", "name": "rlimits", "unit": "us", "p50": 0.1, "p99": 0.2, "runs": 60}, )"
                R"({"group": "step", "name": "tree", "unit": "us", "p50": 200.0, "p99": 900.0, "runs": 60, "of tomorrow": [1]})");
  const Report now = report_of(
      R"({"group": "step", "name": "rlimits", "unit": "us", "p50": 0.14, "p99": 0.2, "p10": 0.13, "p90": 0.15, "runs": 60}, )"
      R"({"group": "step", "name": "tree", "unit": "us", "p50": 300.0, "p99": 900.0, "p10": 290.0, "p90": 310.0, "runs": 60})");
  const std::string text = to_comparison(now, then);
  EXPECT_FALSE(has(text, "step: rlimits")) << text;
  EXPECT_TRUE(has(slower_of(text), "step: tree")) << text;
}

TEST(BenchCompare, WhatOnlyOneHasIsCountedAndTheLostAreNamed) {
  const Report then = report_of(
      R"({"group": "end", "name": "kill", "unit": "us", "p50": 0.0}, {"group": "end", "name": "kill of many", "unit": "us", "p50": 1.0},)"
      R"({"group": "guard", "name": "scan", "unit": "us", "p50": 1.0}, {"group": "end", "name": "size", "unit": "KiB", "p50": 1.0})");
  const Report now = report_of(
      R"({"group": "end", "name": "kill", "unit": "us", "p50": 5.0}, {"group": "end", "name": "size", "unit": "MiB", "p50": 1.0})");
  const std::string text = to_comparison(now, then);
  EXPECT_TRUE(has(text,
                  "not compared, zero or less then or now: 1 rows\n"
                  "new: 1 rows\n"
                  "no longer there: 2 rows\n"
                  "  end: kill of many\n"
                  "  end: size\n"
                  "not measured now: 1 rows of guard\n"))
      << text;
}

TEST(BenchCompare, CircumstancesThatDifferAreWarnedOf) {
  const Report then = report_of(kTrueThen, "Linux 6.18, 4 processors, load 0.1, SCHED_FIFO (chrt), as root");
  const std::string text = to_comparison(report_of(kTrueThen), then);
  EXPECT_TRUE(
      has(text, "warning: circumstances differ: then 4 processors, SCHED_FIFO (chrt); now 2 processors, normal scheduling."))
      << text;
  // The load of the moment is none of them.
  const Report before = report_of(kTrueThen, "Linux 6.18, 2 processors, load 9.1, normal scheduling, as root");
  const std::string same = to_comparison(report_of(kTrueThen), before);
  EXPECT_FALSE(has(same, "warning")) << same;
  EXPECT_TRUE(has(same, "then: Linux 6.18, 2 processors, load 9.1, normal scheduling, as root\n  now:  Linux 6.18")) << same;
}

TEST(BenchReport, AFileThatIsNotOursIsRefused) {
  for (const char* text :
       {"", "{\"where\": \"x\", \"rows\": [", "[]", "{\"rows\": 5}", "{}", "{\"rows\": [5]}",
        "{\"rows\": [{\"group\": \"a\", \"name\": \"b\"}]}", "{\"rows\": [{\"group\": \"a\", \"name\": \"b\", \"p50\": \"1\"}]}",
        "{\"rows\": [{\"name\": \"b\", \"p50\": 1}]}"}) {
    const auto report = parse_report(text, "some.json");
    ASSERT_FALSE(report) << text;
    EXPECT_EQ(report.error().what(), "cannot take `some.json` for an earlier report");
    EXPECT_NE(report.error().reason(), "");
    EXPECT_TRUE(has(report.error().next(), "belljar bench --json FILE"));
    EXPECT_EQ(report.error().exit_code(), 125);
  }
}

TEST(BenchReport, OursIsTakenAndSaysTheSameAgain) {
  Report report;
  report.where = kHere;
  report.add("end", "a \"name\"", {{1, 2, 3}});
  report.add("end", "b", {{4, 5, 6}});
  report.compare_rows("end", "b", "a \"name\"", 1.5);
  report.left_out = {"crun: not installed"};
  const auto again = parse_report(to_json(report), "f");
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_EQ(again->where, kHere);
  ASSERT_EQ(again->rows.size(), 2U);
  EXPECT_EQ(again->rows[0].name, "a \"name\"");
  EXPECT_EQ(again->rows[0].p10, 1);
  EXPECT_EQ(again->rows[0].p90, 3);
  EXPECT_EQ(again->rows[1].ratio, 2.5);
  EXPECT_EQ(again->rows[1].target, 1.5);
  EXPECT_EQ(again->rows[1].runs, 3);
}

TEST(BenchReport, AFileThatCannotBeReadIsNamed) {
  const test::TempDir dir;
  const auto missing = read_report(dir.path() + "/none");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(has(missing.error().line(), "No such file or directory (open)")) << missing.error().line();
  const auto folder = read_report(dir.path());
  ASSERT_FALSE(folder);
  EXPECT_TRUE(has(folder.error().line(), "Is a directory (read)")) << folder.error().line();
  dir.write("ours", "{\"where\": \"x\", \"rows\": []}");
  EXPECT_TRUE(read_report(dir.path() + "/ours"));
}

TEST(BenchReport, GroupsThatAreNotMeasuredStay) {
  const Report before = report_of(
      R"({"group": "end", "name": "old", "unit": "us", "p50": 1.0}, {"group": "files", "name": "x", "unit": "us", "p50": 2.0})",
      "Linux 6.18, 2 processors, load 1.7, SCHED_FIFO (chrt), as root");
  const Report all = merged(before, report_of(R"({"group": "end", "name": "new", "unit": "us", "p50": 3.0})"));
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].name, "x");
  EXPECT_EQ(all.rows[0].where, before.where);
  EXPECT_EQ(all.rows[1].name, "new");
  EXPECT_EQ(all.rows[1].where, "");
  EXPECT_EQ(all.where, kHere);
  // And the next time, too.
  const Report third =
      merged(*parse_report(to_json(all), "f"), report_of(R"({"group": "guard", "name": "scan", "unit": "us", "p50": 3.0})"));
  EXPECT_EQ(third.rows.size(), 3U);
  EXPECT_EQ(third.rows[0].where, before.where);
  EXPECT_EQ(third.rows[1].where, "");
}

}  // namespace
}  // namespace belljar::bench
