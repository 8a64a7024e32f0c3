#include "backend/probe.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace belljar::backend {
namespace {

constexpr std::string_view kProgram = "/usr/bin/belljar";

std::string text(const Advice& advice) {
  std::string all;
  for (const std::string& step : advice.steps) all += step + "\n";
  return all;
}

TEST(AdviseUserns, UbuntusRuleGetsTheExactProfile) {
  const Advice advice = advise_userns({"1", "15000", "1"}, EPERM, "/opt/bell jar/belljar");
  EXPECT_EQ(advice.cause,
            "kernel.apparmor_restrict_unprivileged_userns is 1: AppArmor lets only named programs make user namespaces");
  EXPECT_EQ(text(advice), R"(sudo belljar setup
or write this to /etc/apparmor.d/belljar:
  abi <abi/4.0>,
  include <tunables/global>
  profile belljar "/opt/bell jar/belljar{,-*}" flags=(unconfined) {
    userns,
    include if exists <local/belljar>
  }
then: sudo apparmor_parser -r /etc/apparmor.d/belljar
)");
  ASSERT_TRUE(advice.remedy);
  EXPECT_EQ(advice.remedy->file, "/etc/apparmor.d/belljar");
  EXPECT_TRUE(advice.remedy->text.ends_with("{\n  userns,\n  include if exists <local/belljar>\n}\n")) << advice.remedy->text;
  EXPECT_EQ(advice.remedy->command, (std::vector<std::string>{"apparmor_parser", "-r", "/etc/apparmor.d/belljar"}));
}

TEST(AdviseUserns, ASettingIsNamedWithTheCommandThatChangesIt) {
  const Advice none_left = advise_userns({"1", "0", "1"}, ENOSPC, kProgram);
  EXPECT_EQ(none_left.cause, "user.max_user_namespaces is 0");
  EXPECT_EQ(none_left.steps.at(1), "or by hand: sudo sysctl user.max_user_namespaces=15000");
  ASSERT_TRUE(none_left.remedy);
  EXPECT_EQ(none_left.remedy->setting, "/proc/sys/user/max_user_namespaces");
  EXPECT_EQ(none_left.remedy->text, "user.max_user_namespaces=15000\n");
  const Advice off = advise_userns({"0", "15000", ""}, EPERM, kProgram);
  EXPECT_EQ(off.cause, "kernel.unprivileged_userns_clone is 0");
  EXPECT_EQ(off.steps.at(1), "or by hand: sudo sysctl kernel.unprivileged_userns_clone=1");
}

TEST(AdviseUserns, AProfileThatConfinesUsIsNamed) {
  EXPECT_EQ(advise_userns({"1", "15000", "", "agents (enforce)"}, EPERM, kProgram).cause,
            "the AppArmor profile agents (enforce) confines this program");
}

TEST(AdviseUserns, TheRestDependsOnTheError) {
  EXPECT_FALSE(advise_userns({"", "15000", ""}, EPERM, kProgram).remedy);
  EXPECT_NE(advise_userns({"", "15000", ""}, ENOSPC, kProgram).cause.find("nested too deep"), std::string::npos);
  EXPECT_NE(text(advise_userns({"", "15000", ""}, EPERM, kProgram)).find("--security-opt seccomp"), std::string::npos);
}

}  // namespace
}  // namespace belljar::backend
