// What the caller's environment must not tell, and what it must not make the command do.
#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Environment : Attack {
  std::string value_inside(const std::string& name, std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"-c", "printenv " + name});
    return run_in(options, {.env = {{name, "told"}}}).out;
  }
};

TEST_F(Environment, SecretsAreNotPassed) {
  for (const char* name :
       {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "DB_PASSWORD", "SSH_AUTH_SOCK", "DOCKER_HOST"}) {
    EXPECT_EQ(value_inside(name), "") << name;
    EXPECT_EQ(value_inside(name, {"--pass-env", name}), "told\n") << name;
  }
}

TEST_F(Environment, LoadersVariablesAreNotPassed) {
  for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "PYTHONSTARTUP", "NODE_OPTIONS"}) {
    EXPECT_EQ(value_inside(name), "") << name;
    EXPECT_EQ(value_inside(name, {"--pass-env", name}), "told\n") << name;
  }
  EXPECT_EQ(run_in({"--env", "PLAIN=told", "-c", "printenv PLAIN"}).out, "told\n");
}

// PR-05: `--clearenv` of another tool cleans the command and not its pid 1.
TEST_F(Environment, NoProcessInsideHoldsIt) {
  const RunOptions told{.env = {{"AWS_SECRET_ACCESS_KEY", "t0p-secret"}}};
  const std::string count = "cat /proc/*/environ 2>/dev/null | grep -ac t0p-secret";
  const Outcome hidden = run_in({"-c", count}, told);
  EXPECT_EQ(hidden.out, "0\n") << hidden;
  const Outcome passed = run_in({"--pass-env", "AWS_SECRET_ACCESS_KEY", "-c", count}, told);
  EXPECT_NE(passed.out, "0\n") << passed;
}

}  // namespace
}  // namespace belljar::test
