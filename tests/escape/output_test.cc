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

// A report where the command can write: it says what came of the command, so the command must not be the one who says it.
TEST_F(Output, ReportIsNotForged) {
  const Outcome replaced = run_in({"--report", "r", "-c", "rm -f r && echo forged >r"});
  EXPECT_EQ(replaced.exit_code == 125, read_file(workspace("r")).find("forged") == 0) << replaced;
  const Outcome written = run_in({"--report", "w", "-c", "{ cat w; printf '%100000s' forged; } >>w || true"});
  EXPECT_EQ(written.exit_code, 0) << written;
  EXPECT_EQ(read_file(workspace("w")).find("forged"), std::string::npos);
  const Outcome fine = run_in({"--report", beside("r"), "-c", "true"});
  EXPECT_EQ(fine.exit_code, 0) << fine;
  EXPECT_EQ(read_file(beside("r")).front(), '{');
}

}  // namespace
}  // namespace belljar::test
