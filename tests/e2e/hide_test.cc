// Names that a policy hides before anybody made them, and what a debugger and a shared repository need. Each refusal has a twin.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "support/run.h"
#include "support/temp_dir.h"
#include "support_run.h"

namespace belljar::test {
namespace {

using Hide = Run;

TEST_F(Hide, ANameThatIsNotThereIsNotMade) {
  const Outcome made =
      run_in({"--hide", "later", "-c", "mkdir later; echo x >later/x; mkdir box && mv box later; echo fine >other"});
  EXPECT_EQ(read_file(workspace_ / "other"), "fine\n") << made;
  EXPECT_FALSE(exists(workspace_ / "later")) << made;
  EXPECT_NE(made.err.find("Permission denied"), std::string::npos) << made;
  EXPECT_EQ(run_in({"-c", "mkdir later"}).exit_code, 0);
}

TEST_F(Hide, ANameThatTheHostMakesLaterIsNotRead) {
  Running running(command_line({"--hide", "later", "-c", "echo ready; while [ ! -e done ]; do sleep 0.05; done; cat later other"}),
                  {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  workspace_.write("later", "HOST\n");
  workspace_.write("other", "OTHER\n");
  workspace_.write("done", "");
  const Outcome read = running.wait();
  EXPECT_EQ(read.out, "ready\nOTHER\n") << read;
}

TEST_F(Hide, TheReportSaysWhatGoesAroundIt) {
  const Outcome told = run_in({"--hide", "later", "--json", "--", "true"});
  const std::size_t at = told.out.find("\"filesystem.hidden_absent\"");
  ASSERT_NE(at, std::string::npos) << told;
  EXPECT_NE(told.out.find("partial", at), std::string::npos) << told;
  EXPECT_EQ(run_in({"--json", "--", "true"}).out.find("filesystem.hidden_absent"), std::string::npos);
}

}  // namespace
}  // namespace belljar::test
