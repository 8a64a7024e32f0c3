#include "belljar/state_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace belljar {
namespace {

std::string with(const char* home, const char* xdg_state_home) {
  const auto set = [](const char* name, const char* value) {
    if (value == nullptr) ::unsetenv(name);
    else ::setenv(name, value, 1);
  };
  set("HOME", home);
  set("XDG_STATE_HOME", xdg_state_home);
  return default_state_dir();
}

TEST(StateDir, FollowsTheEnvironmentAndRootHasOneOfTheSystem) {
  const bool root = ::geteuid() == 0;
  EXPECT_EQ(with("/home/u", "/s"), "/s/belljar");
  EXPECT_EQ(with("/home/u", "relative"), root ? "/var/lib/belljar" : "/home/u/.local/state/belljar");
  EXPECT_EQ(with("/home/u", ""), root ? "/var/lib/belljar" : "/home/u/.local/state/belljar");
  EXPECT_EQ(with("/home/u", nullptr), root ? "/var/lib/belljar" : "/home/u/.local/state/belljar");
  EXPECT_EQ(with("relative", nullptr), root ? "/var/lib/belljar" : "");
  EXPECT_EQ(with(nullptr, nullptr), root ? "/var/lib/belljar" : "");
}

}  // namespace
}  // namespace belljar
