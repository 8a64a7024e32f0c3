#include "kernel/account.h"

#include <gtest/gtest.h>

#include <string_view>

namespace belljar::kernel {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "# a comment\n"
    "broken:x:1000\n"
    "alice:x:1000:1001:Alice,,,:/home/alice:/bin/zsh\n"
    "second:x:1000:1002::/home/second:/bin/sh";

TEST(Account, IsTheFirstOfItsUid) {
  const auto alice = find_account(kPasswd, 1000);
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->home, "/home/alice");
  EXPECT_EQ(alice->gid, 1001U);
  EXPECT_EQ(find_account(kPasswd, 0)->home, "/root");
}

TEST(Account, OfAnUnknownUidIsNone) {
  EXPECT_FALSE(find_account(kPasswd, 7));
  EXPECT_FALSE(find_account("", 0));
}

}  // namespace
}  // namespace belljar::kernel
