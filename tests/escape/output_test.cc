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

// The user names the file, a command before chose the directory.
TEST_F(Output, WhatWeWriteFollowsNoLinkThatACommandMade) {
  plant(beside("report.json"), "precious");
  plant(beside("learned.toml"), "precious");
  ASSERT_EQ(shell("ln -s ../beside build; ln -s ../beside/report.json direct; mkdir real").exit_code, 0);
  for (const std::string& path : {std::string("build/report.json"), workspace("build/report.json"), std::string("direct")}) {
    const Outcome report = run_in({"--report", path, "-c", "true"});
    EXPECT_EQ(report.exit_code, 125) << report;
    EXPECT_NE(report.err.find("a symbolic link is not followed here"), std::string::npos) << report;
  }
  EXPECT_EQ(read_file(beside("report.json")), "precious");
  // Where nobody inside had a say on the link it is the user's, and a directory is one.
  EXPECT_EQ(run_in({"--report", "real/r", "-c", "true"}).exit_code, 0);
  EXPECT_EQ(run_in({"--report", "../beside/mine", "-c", "true"}).exit_code, 0);
  EXPECT_TRUE(exists(beside("mine")));
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
