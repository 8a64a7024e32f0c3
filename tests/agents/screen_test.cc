// The agents' terminal interfaces in the jar: first questions, resize, paste, ^C, ^Z and `fg`, what a killed one leaves
// (screen.py).
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support_agents.h"

namespace belljar::test {
namespace {

constexpr char kPython[] = "/usr/bin/python3";  // Debian's, which has Debian's python3-pyte

class AgentsScreen : public AgentsOfNpm {
 protected:
  void SetUp() override {
    AgentsOfNpm::SetUp();
    if (IsSkipped()) return;
    if (run({kPython, "-c", "import pyte"}).exit_code != 0) GTEST_SKIP() << "needs pyte (Debian package python3-pyte)";
  }
};
INSTANTIATE_TEST_SUITE_P(Npm, AgentsScreen, testing::ValuesIn(kAgents), [](const auto& each) { return each.param.name; });

TEST_P(AgentsScreen, TheWholeScreenWorksInside) {
  const std::string place = place_of_agents();
  const Outcome outcome = run({kPython, "-B", std::string(kSourceDir) + "/tests/agents/screen.py", kBelljar,
                               place.substr(0, place.rfind("/node_modules")), "--inside", "--only", agent().name},
                              {.stdin_is = Input::kNull, .timeout = std::chrono::minutes(14)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(has(outcome.out, "ok ")) << outcome;
}

}  // namespace
}  // namespace belljar::test
