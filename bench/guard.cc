// What asking costs: a proposed command judged, a tool's result scanned.
#include <algorithm>
#include <string>

#include "belljar/turn.h"
#include "bench/rows.h"
#include "detect/detect.h"
#include "guard/judge.h"

namespace belljar::bench {
namespace {

// 200 characters as a model writes them: a list, a pipeline, a substitution, a wrapper, a redirection.
constexpr const char* kCommand =
    "cd src && grep -rn \"TODO\" --include='*.cc' . | head -n 20; env CI=1 timeout 60 npm test -- --grep \"$(git rev-parse "
    "--abbrev-ref HEAD)\" 2>&1 | tee build/test.log | tail -n 5 && git diff --stat HEAD~1 -- src/guard";

// Plain documentation of this project's own, a paragraph over and over with a number that changes.
std::string megabyte_of_text() {
  std::string text;
  for (int i = 0; text.size() < 1'000'000; ++i) {
    text += "## Section " + std::to_string(i) +
            "\n\nThe build reads the configuration from the file that is named on the command line, then from the user's "
            "directory. When a\n"
            "key stands in both, the first one wins; an unknown key is an error with its line. To install the package, run the "
            "script and\n"
            "wait until it prints the version. Tests are started with `make check`, logs go to the directory `build/logs`.\n\n";
  }
  return text;
}

template <class Act>
Samples time_each(int runs, Act act) {
  Samples samples;
  for (int i = 0; i < 3; ++i) act();
  for (int i = 0; i < runs; ++i) {
    const double start = now_us();
    act();
    samples.us.push_back(now_us() - start);
  }
  return samples;
}

void add(Report& report, const char* name, const Samples& samples, double target) {
  report.add("guard", name, samples);
  if (Row* row = report.find("guard", name)) row->target = target;
}

// Ten texts of 10 KB as an agent reads them, and a call whose every string is looked for in all of them.
void bench_turn(const Setting& setting, Report& report, const std::string& text) {
  Turn turn({.workspace = "/work/project"});
  turn.entered({.source = TextSource::kUser, .name = "user", .text = "Run the tests and repair what fails in src/parse.cc."});
  for (int i = 0; i < 10; ++i)
    turn.entered({.source = TextSource::kWorkspace,
                  .name = "doc" + std::to_string(i) + ".md",
                  .text = text.substr(static_cast<std::size_t>(i) * 50'000, 10'000)});
  add(report, "judge a command by provenance, 100 KB entered",
      time_each(setting.runs, [&] { (void)turn.judge({.tool = "bash", .command = kCommand}); }), 1'000);
}

}  // namespace

void bench_guard(const Setting& setting, Report& report) {
  guard::Judge judge({});
  add(report, "parse and judge a command of 200 characters", time_each(setting.runs, [&] { (void)judge.judge(kCommand); }), 100);
  const std::string text = megabyte_of_text();
  add(report, "scan 1 MB of documentation", time_each(std::max(setting.runs / 10, 5), [&] { (void)detect::scan(text); }), 10'000);
  bench_turn(setting, report, text);
}

}  // namespace belljar::bench
