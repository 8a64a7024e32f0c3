#include "support_guest.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "support/built.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::vm {
namespace {

using Json = nlohmann::json;

// In the order of the file. A function, since cases announce themselves while other files' objects are still being made.
std::vector<std::pair<std::string, std::pair<std::string, Case>>>& announced() {
  static std::vector<std::pair<std::string, std::pair<std::string, Case>>> cases;
  return cases;
}

// What the boot of the current suite brought.
struct Guest {
  std::string problem;   // why there are no results; empty when there are
  bool missing = false;  // the problem is this machine's: a program or the guest's disk is not there
  std::map<std::string, Outcome> outcomes;
};
Guest& guest() {
  static Guest value;
  return value;
}

Json to_json(const std::string& name, const Case& value) {
  return {{"name", name},
          {"as", value.as == As::kUser ? "user" : "root"},
          {"script", value.script},
          {"sysctl", value.sysctl},
          {"cgroup", value.cgroup == Cgroup::kSession ? "session" : "system"},
          {"before", value.before},
          {"after", value.after},
          {"timeout", value.timeout.count()}};
}

Outcome from_json(const Json& value) {
  Outcome outcome;
  if (value.contains("broken")) {
    outcome.err = value["broken"];
    return outcome;
  }
  outcome.exit_code = value["exit_code"];
  outcome.timed_out = value["timed_out"];
  outcome.out = value["out"];
  outcome.err = value["err"];
  for (const char* key : {"left", "missing"}) {
    for (const Json& line : value[key]) outcome.left.push_back(line);
  }
  return outcome;
}

Json selected_cases(std::chrono::seconds& deadline) {
  const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->current_test_suite();
  Json cases = Json::array();
  for (const auto& [suite_name, entry] : announced()) {
    if (suite_name != suite.name()) continue;
    for (int i = 0; i < suite.total_test_count(); ++i) {
      const testing::TestInfo& test = *suite.GetTestInfo(i);
      if (entry.first != test.name() || !test.should_run()) continue;
      cases.push_back(to_json(entry.first, entry.second));
      deadline += entry.second.timeout;
    }
  }
  return cases;
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  stream << "exit code " << outcome.exit_code << "\n--- stdout\n" << outcome.out << "\n--- stderr\n" << outcome.err << "\n";
  for (const std::string& line : outcome.left) stream << "left behind: " << line << "\n";
  return stream;
}

bool add_case(const std::string& suite, const std::string& name, const Case& value) {
  announced().push_back({suite, {name, value}});
  return true;
}

void Suite::boot(const Boot& options) {
  guest() = {};
  const test::TempDir scratch;
  const std::string results = scratch.path() + "/results.json";
  const std::string cases = scratch.path() + "/cases.json";
  std::chrono::seconds deadline(60);
  std::ofstream(cases) << selected_cases(deadline);
  deadline = std::min(deadline, std::chrono::seconds(1100));  // below ctest's limit, so that the results so far are shown

  std::vector<std::string> argv = {std::string(test::kSourceDir) + "/tools/vm/vm-run",
                                   "--kernel",
                                   options.kernel,
                                   "--cgroup",
                                   options.cgroup,
                                   "--deadline",
                                   std::to_string(deadline.count()),
                                   "--cases",
                                   cases,
                                   "--results",
                                   results,
                                   "--put",
                                   std::string(test::kBelljar) + ":/usr/local/bin/belljar"};
  for (const std::string& word : options.append) argv.insert(argv.end(), {"--append", word});
  for (const auto& [from, to] : options.files) argv.insert(argv.end(), {"--put", from + ":" + to});
  // The first run on a machine makes the guest's disk, which needs the network and may take a while.
  const test::Outcome run = test::run(argv, {.stdin_is = test::Input::kNull, .timeout = deadline + std::chrono::seconds(240)});

  std::ifstream file(results);
  if (!file) {
    guest().problem = run.err.empty() ? "vm-run ended without results" : run.err;
    guest().missing = true;
    return;
  }
  const Json whole = Json::parse(file);
  for (const Json& value : whole["cases"]) guest().outcomes[value["name"]] = from_json(value);
  if (!whole["complete"]) guest().problem = run.err;
}

void Suite::TearDownTestSuite() { guest() = {}; }

const Outcome* Suite::finished(const std::string& name) {
  const auto found = guest().outcomes.find(name);
  if (found == guest().outcomes.end()) {
    const char* ci = std::getenv("CI");
    if (guest().missing && (ci == nullptr || std::string(ci) != "true")) {
      [&] { GTEST_SKIP() << "needs the test guest: " << guest().problem; }();
    } else {
      ADD_FAILURE() << "the guest brought no result: " << guest().problem;
    }
    return nullptr;
  }
  const Outcome& outcome = found->second;
  EXPECT_FALSE(outcome.timed_out) << outcome;
  EXPECT_TRUE(outcome.left.empty()) << outcome;
  return &outcome;
}

}  // namespace belljar::vm
