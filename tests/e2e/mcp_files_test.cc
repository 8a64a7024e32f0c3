// belljar mcp and files that are made in a session and run: the real program, real files.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "e2e/support_run.h"
#include "support/built.h"
#include "support/leftovers.h"

namespace belljar::test {
namespace {

class McpFiles : public Run {};

TEST_F(McpFiles, AFileThatIsRunIsJudgedByWhatStandsInIt) {
  BELLJAR_NEEDS(program("python3"));
  BELLJAR_NEEDS(program("git"));
  BELLJAR_NEEDS(program("make"));
  const Leftovers left;
  const std::string script = std::string(kSourceDir) + "/tests/e2e/mcp_files.py";
  const Outcome outcome =
      run({"python3", "-B", script, kBelljar, workspace_.path()}, {.stdin_is = Input::kNull, .timeout = std::chrono::minutes(4)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* way :
       {"a_generator", "another_name", "a_copy", "an_archive", "an_old_time", "base64", "in_parts", "a_patch", "a_sourced_file",
        "an_import", "an_include", "a_script_of_npm", "another_directory", "a_link", "a_place_of_the_sandbox", "in_a_transaction"})
    EXPECT_NE(outcome.out.find(std::string("ok ") + way + "\n"), std::string::npos) << way << outcome;
  EXPECT_EQ(left.report(), "");
}

}  // namespace
}  // namespace belljar::test
