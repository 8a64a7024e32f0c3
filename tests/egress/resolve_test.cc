#include "egress/resolve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace belljar::egress {
namespace {

TEST(Resolve, HostsFilesAreRead) {
  constexpr char kText[] =
      "# comment\n127.0.0.1 localhost\n::1\tlocalhost ip6-localhost # more\n 10.0.0.1  Build.Local build\nnonsense "
      "a.example\n10.0.0.2 x y z\n10.0.0.3 last.example";
  const auto text = [&](const char* name) {
    std::string all;
    for (const policy::Ip& ip : find_in_hosts(kText, name)) all += to_string(ip) + " ";
    return all;
  };
  EXPECT_EQ(text("localhost"), "127.0.0.1 ::1 ");
  EXPECT_EQ(text("build.local"), "10.0.0.1 ");
  EXPECT_EQ(text("z"), "10.0.0.2 ");
  EXPECT_EQ(text("last.example"), "10.0.0.3 ");
  EXPECT_EQ(text("a.example"), "");
  EXPECT_EQ(text("comment"), "");
}

// A name that is listed where it can be read; without a descriptor nothing can, and the name servers are not to blame.
TEST(Resolve, WithoutADescriptorThatIsTheReason) {
  EXPECT_FALSE(resolve_on_host("localhost").addresses.empty()) << "the twin";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Resolved resolved = resolve_on_host("localhost");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(resolved.addresses.empty());
  EXPECT_EQ(resolved.error, "no descriptor is free to ask for it");
  EXPECT_FALSE(resolved.missing);
}

}  // namespace
}  // namespace belljar::egress
