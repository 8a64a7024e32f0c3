// The flagship: Belljar is built inside Belljar, and the unit tests of that build pass there. A test of its own (label `flagship`),
// since it takes minutes where no compiler cache is at hand; for the same reason two rooms stand for all.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kInside = R"(set -e
./dev build release belljar test_base_unit test_kernel_unit test_launch_kernel
cd build/release/bin
for program in test_base_unit test_kernel_unit; do
  ./$program --gtest_brief=1 >$program.log || { cat $program.log; exit 1; }
  echo passed $program
done
./test_launch_kernel | grep -m1 'nested: no user namespaces'
./belljar run -- true || echo nested start: $?
)";

TEST(Flagship, BelljarIsBuiltInsideBelljarAndItsUnitTestsPassThere) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir workspace("/var/tmp");
  const Leftovers left;
  const std::string copy = "tar -C '" + std::string(kSourceDir) +
                           "' --exclude=./build --exclude=./.git --exclude=./.claude -cf - . | tar -xf - --no-same-owner";
  ASSERT_EQ(run({"sh", "-c", copy}, {.cwd = workspace.path()}).exit_code, 0);
  const Outcome outcome = belljar({"run", "--timeout", "20m", "--env", "BELLJAR_NO_SETUP=1", "-c", kInside},
                                  {.cwd = workspace.path(), .timeout = 20min});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* name : {"base", "kernel"})
    EXPECT_NE(outcome.out.find("passed test_" + std::string(name) + "_unit\n"), std::string::npos) << name;
  EXPECT_NE(outcome.out.find("nested: no user namespaces"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("nested start: 125"), std::string::npos) << outcome.out;
  EXPECT_EQ(left.report(), "");
}

}  // namespace
}  // namespace belljar::test
