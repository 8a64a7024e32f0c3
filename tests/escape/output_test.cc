// Names and words that would steer the reader's terminal through our own messages.
#include <string>

#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Output : Attack {};

TEST_F(Output, OurMessagesEscapeWhatOthersWrote) {
  const std::string evil =
      "\x1b]0;owned\x07\x1b[2J\n"
      "belljar: all is well";
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--", evil},
                                                    {"--workspace", "/" + evil, "--", "true"},
                                                    {"--policy", "/" + evil, "--", "true"},
                                                    {"--" + evil, "--", "true"},
                                                    {"--cwd", evil, "--", "true"},
                                                    {"--timeout", evil, "--", "true"},
                                                    {"--env", evil, "--", "true"},
                                                    {"--read", "/" + evil, "--", "true"}}) {
    const Outcome outcome = run_in(arguments);
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome;
    EXPECT_EQ(outcome.err.find('\x07'), std::string::npos) << outcome;
    EXPECT_EQ(outcome.err.find("\nbelljar: all is well"), std::string::npos) << outcome;
  }
}

TEST_F(Output, APolicyOfTheWorkspaceIsQuoted) {
  plant(workspace(".belljar/policy.toml"), "\"\\u001b[2J\" = 1\n\x1b[31m = 2\n");
  EXPECT_EQ(run_in({"--", "true"}).err.find('\x1b'), std::string::npos);
}

// The program's own bytes are its own.
TEST_F(Output, TheProgramsOutputIsUntouched) { EXPECT_EQ(shell("printf '\\033[2J'").out, "\x1b[2J"); }

TEST_F(Output, JsonEscapesControlCharacters) {
  const Outcome outcome = shell("printf '\\033[2J\\377'", {"--json"});
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find("\\u001b[2J"), std::string::npos) << outcome;
}

}  // namespace
}  // namespace belljar::test
