// The attacks are tried with a spare for each run and in transactions, too (docs/TESTING.md): those runs are what they are said to
// be.
#include <string>

#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Mode : Attack {};

// With the options that the attacks have. A run may miss its spare on a busy machine, but not each time.
TEST_F(Mode, IsTheOneThatTheTestsAskFor) {
  plant(beside("file"));
  plant(beside("policy.toml"), "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  for (const Words& options : {Words{},
                               {"--hide", beside("file")},
                               {"--hide", "*.key"},
                               {"--write", beside()},
                               {"--policy", beside("policy.toml")},
                               {"--net", "proxy", "--allow-domain", "a.test"},
                               {"--allow-unix-socket", beside("sock")},
                               {"--pids", "32", "--timeout", "600s"}}) {
    Outcome made;
    for (int tries = 0; tries < 5 && (tries == 0 || made.warm != runs_are_warm()); ++tries)
      made = shell("echo made >made", options);
    EXPECT_EQ(made.exit_code, 0) << made;
    EXPECT_EQ(made.warm, runs_are_warm()) << testing::PrintToString(options);
    EXPECT_EQ(made.transaction, runs_are_transactions()) << testing::PrintToString(options);
    EXPECT_EQ(read_file(workspace("made")), "made\n");
  }
}

// What the commit refuses is no success, and nothing of it is on the host; what it has no rule for is there.
TEST_F(Mode, SaysWhatACommitRefuses) {
  const Outcome refused = shell("echo x >beside; echo x >.mcp.json");
  EXPECT_NE(refused.exit_code, 0) << refused;
  EXPECT_EQ(!refused.refused_at_commit.empty(), runs_are_transactions()) << refused;
  EXPECT_EQ(exists(workspace("beside")), !runs_are_transactions());
  EXPECT_FALSE(exists(workspace(".mcp.json")));
  EXPECT_EQ(inside({"create", workspace(".mcp.json")}), runs_are_transactions() ? "refused at the commit" : "EACCES");
  EXPECT_EQ(inside({"create", workspace("beside")}), "ok");
}

}  // namespace
}  // namespace belljar::test
