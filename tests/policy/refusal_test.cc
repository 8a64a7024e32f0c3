#include "policy/refusal.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "support_policy.h"

namespace belljar::policy {
namespace {

std::string rule(FileUse use, std::string_view path, int errnum, const char* user = "") {
  const auto effective = merged({layer("user", user)});
  const auto found = find_refusal(effective->complete, {"user", "p", 9}, use, path, errnum);
  return found ? found->rule + " " + to_string(found->origin) : "none";
}

TEST(Refusal, AReadOnlyPlaceIsTheRuleThatSaysSo) {
  EXPECT_EQ(rule(FileUse::kWrite, "/etc/hosts", EROFS), "filesystem.writable_roots built-in");
  EXPECT_EQ(rule(FileUse::kWrite, "/w/doc/x", EROFS, "readonly_paths = [\"doc\"]"), "filesystem.entries user user.toml:1");
  EXPECT_EQ(rule(FileUse::kWrite, "/w/.git/config", EROFS), "filesystem.protect user p:9");
}

TEST(Refusal, AHiddenPathIsItsRule) {
  EXPECT_EQ(rule(FileUse::kRead, "/home/u/.ssh/id", EACCES), "filesystem.secrets default secrets");
  EXPECT_EQ(rule(FileUse::kWrite, "/home/u/.ssh/id", EACCES), "filesystem.secrets default secrets");
  EXPECT_EQ(rule(FileUse::kRead, "/srv/x", EACCES, "blocked_paths = [\"/srv\"]"), "filesystem.entries user user.toml:1");
}

TEST(Refusal, ANameThatThePolicyMountedSomethingOnIsItsRule) {
  EXPECT_EQ(rule(FileUse::kWrite, "/w/ro", EBUSY, "readonly_paths = [\"ro\"]"), "filesystem.entries user user.toml:1");
  EXPECT_EQ(rule(FileUse::kWrite, "/w/hid", EBUSY, "blocked_paths = [\"hid\"]"), "filesystem.entries user user.toml:1");
  EXPECT_EQ(rule(FileUse::kWrite, "/w/a", EBUSY, "readonly_paths = [\"a/b/ro\"]"), "filesystem.entries user user.toml:1");
  EXPECT_EQ(rule(FileUse::kWrite, "/w/.vscode", EBUSY), "filesystem.protect user p:9");
  // The twins: the host's own mounts.
  EXPECT_EQ(rule(FileUse::kWrite, "/w/other", EBUSY, "readonly_paths = [\"ro\"]"), "none");
  EXPECT_EQ(rule(FileUse::kWrite, "/w/ro/below", EBUSY, "readonly_paths = [\"ro\"]"), "none");
  EXPECT_EQ(rule(FileUse::kWrite, "/srv/disk", EBUSY), "none");
  EXPECT_EQ(rule(FileUse::kRead, "/w/ro", EBUSY, "readonly_paths = [\"ro\"]"), "none");
}

TEST(Refusal, OrdinaryFailuresAreNobodys) {
  EXPECT_EQ(rule(FileUse::kWrite, "/etc/hosts", EACCES), "none");  // its mode
  EXPECT_EQ(rule(FileUse::kRead, "/etc/shadow.old", EACCES), "none");
  EXPECT_EQ(rule(FileUse::kWrite, "/w/x", EROFS), "none");  // the host's own read-only mount
  EXPECT_EQ(rule(FileUse::kWrite, "/w/x", EACCES), "none");
  EXPECT_EQ(rule(FileUse::kRead, "/etc/hosts", EROFS), "none");
  EXPECT_EQ(rule(FileUse::kRead, "/home/u/.ssh/id", ENOENT), "none");
  EXPECT_EQ(rule(FileUse::kWrite, "/proc/sys/kernel/x", EROFS), "none");
}

}  // namespace
}  // namespace belljar::policy
