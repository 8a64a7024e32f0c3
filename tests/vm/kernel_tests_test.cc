// The repository's own kernel tests, on Debian 12's kernel: cgroup v2, Landlock ABI 2, overlayfs and mounts of 6.1.
#include <iostream>
#include <sstream>

#include "support/built.h"
#include "support_guest.h"

namespace belljar::vm {
namespace {

struct KernelTests : Suite {
  static void SetUpTestSuite() {
    Boot options;
    std::istringstream programs(BELLJAR_KERNEL_TESTS);
    for (std::string program; std::getline(programs, program, ':');) {
      options.files[program] = "/opt/tests/" + program.substr(program.rfind('/') + 1);
    }
    options.files[test::kBelljar] = test::kBelljar;  // where the tests look for it
    boot(options);
  }
};

// Not the tests that measure shares of time, race for seconds or start thousands: an emulated processor is too slow for them, and
// limits_test.cc and run_test.cc try the same mechanisms here through the program itself. Nor those that keep a transaction's
// layers on tmpfs, which has user.* attributes since Linux 6.6. Nor the differential test of the broker, which takes minutes here
// (what it once found, a link on the way in a sticky directory, Sticky tries).
//
// What failed and what was skipped, a line each; all other lines only when a program fails.
constexpr const char* kRunAll = R"(
  status=0
  for program in /opt/tests/*; do
    [ ! -w /dev/console ] || echo "at $program" >/dev/console # where a guest that hangs was
    "$program" --gtest_brief=1 --gtest_filter="-Limits.*:As/Attack.*:As/Pending.*:As/Rules.*:As/Waiting.*:As/Differential.*:As/Held.Swapping*:Faults.AClientThat*:Faults.TenThousand*:AuditTrail.Kill*:Crash.*:Layers.*:FullDisk.*" >log 2>&1 || { status=1; echo "FAILED $program"; cat log; }
    grep -B1 -F '[  SKIPPED ]' log
    grep -F '[  PASSED  ]' log
  done
  rm -f log
  exit $status)";

void judge(const Outcome& outcome) {
  std::cout << outcome.out;
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.out.find("[  PASSED  ]"), std::string::npos) << outcome;
  // The guest is where these are not accepted.
  EXPECT_EQ(outcome.out.find("needs user namespaces"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.out.find("needs AppArmor"), std::string::npos) << outcome;
}

VM_CASE(KernelTests, PassAsRoot, {.script = kRunAll, .timeout = std::chrono::seconds(400)}) {
  judge(outcome);
  EXPECT_EQ(outcome.out.find("needs cgroup v2"), std::string::npos) << outcome;
}

VM_CASE(KernelTests, PassAsUser, {.as = As::kUser, .script = kRunAll, .timeout = std::chrono::seconds(400)}) { judge(outcome); }

}  // namespace
}  // namespace belljar::vm
