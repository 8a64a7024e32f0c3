// Who runs the tests and what this kernel has. Each need that is not met is a skip that names the feature; CI lists the skips that
// it accepts (.ci/accepted-skips).
//
//   TEST(Landlock, TcpBindIsRefused) {
//     BELLJAR_NEEDS(landlock_abi_at_least(4));
#pragma once

#include <string>
#include <string_view>

namespace belljar::test {

bool is_root() noexcept;
// 0 when the kernel has none. Tried with landlock_create_ruleset(2), not read from a version.
int landlock_abi() noexcept;
// A child could make a user namespace (with a pid and a mount namespace) just now.
bool user_namespaces_work();
// A cgroup v2 hierarchy that offers `controller` is mounted, and we may make a group there.
bool cgroup_v2_offers(std::string_view controller);
// Absolute path of a program in PATH; empty when there is none.
std::string find_program(std::string_view name);

// Each returns why the test cannot run here, or nothing.
std::string as_root();
std::string as_ordinary_user();
std::string landlock_abi_at_least(int abi);
std::string user_namespaces();
std::string cgroup_v2(std::string_view controller);
std::string program(std::string_view name);

}  // namespace belljar::test

// Skips the test unless the need is met.
#define BELLJAR_NEEDS(need)                                                                              \
  do {                                                                                                   \
    using namespace ::belljar::test;                                                                     \
    if (const std::string belljar_unmet = (need); !belljar_unmet.empty()) GTEST_SKIP() << belljar_unmet; \
  } while (false)
