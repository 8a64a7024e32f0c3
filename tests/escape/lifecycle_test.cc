// A command that wants to outlive its run (codex #4337).
#include <signal.h>

#include <chrono>
#include <string>

#include "escape/support_attack.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

struct Lifecycle : Attack {};

// setsid, a double fork, deaf to TERM, stdout held open.
TEST_F(Lifecycle, NothingLingers) {
  const Leftovers left({beside()});
  const Outcome outcome = run_in({"--", probe(), "linger"}, {.held_after = 60s});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_FALSE(outcome.output_held);
  EXPECT_EQ(left.report(), "");
}

TEST_F(Lifecycle, WithoutUsItLingers) {
  const Leftovers left({beside()});
  // In a pid namespace of nobody's: the twin shows that the probe does outlive its front.
  const Outcome outcome = run({probe(), "linger"}, {.held_after = 1s});
  EXPECT_TRUE(outcome.output_held);
  for (const auto& [pid, line] : descendants())
    if (line.find("linger") != std::string::npos) ::kill(pid, SIGKILL);
  EXPECT_EQ(left.report(), "");
}

TEST_F(Lifecycle, TimeoutEndsTheDeaf) {
  const Leftovers left({beside()});
  // A busy machine needs its time to get as far as `before`.
  Outcome outcome;
  for (int timeout = 300; timeout < 60'000 && !outcome.out.ends_with("before\n"); timeout *= 2)
    outcome = shell("trap '' TERM; ./probe linger; echo before; while :; do sleep 1; done",
                    {"--timeout", std::to_string(timeout) + "ms", "--kill-grace", "100ms"});
  EXPECT_EQ(outcome.exit_code, 124) << outcome;
  EXPECT_EQ(outcome.out, "ok\nbefore\n");
  EXPECT_EQ(left.report(), "");
}

TEST_F(Lifecycle, TheTreeDiesWithItsFront) {
  const Leftovers left({beside()});
  Running running(program({"-c", "./probe linger; sleep 1000 & echo ready; wait"}), in_workspace({.held_after = 60s}));
  ASSERT_TRUE(running.wait_for_output("ready"));
  running.send(SIGKILL);
  EXPECT_FALSE(running.wait().output_held);  // whoever lives holds stdout; how soon they end, the bench measures
  EXPECT_EQ(left.report(), "");
}

}  // namespace
}  // namespace belljar::test
