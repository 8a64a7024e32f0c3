// Tests that need another kernel than this machine's: cases for a QEMU guest. docs/design/vm.md tells how it works.
//
//   struct Debian12 : vm::Suite {
//     static void SetUpTestSuite() { boot({.kernel = "6.1"}); }
//   };
//   VM_CASE(Debian12, AgentIsNotRoot, {.as = vm::As::kUser, .script = "id -u"}) { EXPECT_EQ(outcome.out, "1000\n"); }
//
// All cases of a suite run in one boot, in the order of the file, each in a directory and a cgroup of its own. Every case also
// asserts that it ended in time and left nothing behind: no process, mount, cgroup, or file in a shared directory.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace belljar::vm {

enum class As { kRoot, kUser };

enum class Cgroup {
  kSession,  // as in a login: for a user a scope below user@1000.service, delegated; for root a scope of system.slice
  kSystem,   // a scope that belongs to root, whoever runs in it: nothing is delegated
};

struct Case {
  As as = As::kRoot;
  std::string script{};                         // for bash -c, in an empty directory of the one who runs it
  std::map<std::string, std::string> sysctl{};  // set before and put back after the case
  Cgroup cgroup = Cgroup::kSession;
  std::string before{};  // what the machine's root does first; must exit 0
  std::string after{};   // and how that is undone
  std::chrono::seconds timeout =
      std::chrono::seconds(90);  // guest time, which under TCG runs like ours; a program start costs 30 ms, more on a busy machine
};

struct Outcome {
  int exit_code = -1;  // -n: killed by signal n
  bool timed_out = false;
  std::string out;
  std::string err;
  std::vector<std::string> left;  // a line for each thing that the case left behind
};
std::ostream& operator<<(std::ostream& stream, const Outcome& outcome);

struct Boot {
  std::string kernel = "6.1";                  // of tools/vm/make-guest
  std::string cgroup = "v2";                   // v2 | v1 | none: what is mounted at /sys/fs/cgroup
  std::vector<std::string> append{};           // words of the kernel's command line
  std::map<std::string, std::string> files{};  // host file -> guest path, besides belljar itself (/usr/local/bin/belljar)
};

class Suite : public testing::Test {
 protected:
  // Runs the cases of the current suite that the filter selects.
  static void boot(const Boot& options);
  static void TearDownTestSuite();
  // nullptr when there is nothing to look at; the test has failed or is skipped then, with the reason.
  static const Outcome* finished(const std::string& name);
};

// Announces a case before main(), which VM_CASE does. Always true.
bool add_case(const std::string& suite, const std::string& name, const Case& announced);

}  // namespace belljar::vm

// A test whose body sees `outcome`.
#define VM_CASE(suite, name, ...)                                                                                      \
  [[maybe_unused]] static const bool suite##_##name##_announced = ::belljar::vm::add_case(#suite, #name, __VA_ARGS__); \
  static void suite##_##name##_judge(const ::belljar::vm::Outcome& outcome);                                           \
  TEST_F(suite, name) {                                                                                                \
    if (const ::belljar::vm::Outcome* outcome = finished(#name)) suite##_##name##_judge(*outcome);                     \
  }                                                                                                                    \
  static void suite##_##name##_judge([[maybe_unused]] const ::belljar::vm::Outcome& outcome)
