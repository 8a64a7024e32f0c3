// What no backend can hold is refused by name before anything starts.
#include "runtime/unsupported.h"

#include <gtest/gtest.h>

#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/units.h"

namespace belljar::runtime {
namespace {

TEST(Unserved, SizesThatNoTmpfsCanHold) {
  Policy policy;
  EXPECT_TRUE(check_supported(policy));
  for (const auto& [size, text] : {std::pair(0, "0"), {5, "5"}, {4096, "4KiB"}, {(1 << 20) - 1, "1048575"}}) {
    policy = {};
    policy.filesystem.tmp_size = Bytes{static_cast<std::uint64_t>(size)};
    EXPECT_EQ(check_supported(policy).error().what(), std::string("filesystem.tmp_size is ") + text);
    policy = {};
    policy.limits.disk = Bytes{static_cast<std::uint64_t>(size)};
    EXPECT_EQ(check_supported(policy).error().what(), std::string("limits.disk is ") + text);
  }
  policy.limits.disk = policy.filesystem.tmp_size = Bytes{1U << 20};
  EXPECT_TRUE(check_supported(policy)) << "the twin";
}

// A policy that no file was merged into says both by default.
TEST(Unserved, ACredentialOfTheProxyGuardsNothingBesideTransparency) {
  Policy policy;
  policy.network.mode = NetMode::kProxy;
  EXPECT_TRUE(check_supported(policy)) << "the twin";
  policy.network.proxy_auth = true;
  EXPECT_EQ(check_supported(policy).error().what(), "cannot enforce network.proxy_auth");
  policy.network.transparent = false;
  EXPECT_TRUE(check_supported(policy));
}

TEST(Unserved, APortInsideIsNotPublishedWhereNothingMayListen) {
  Policy policy;
  policy.network.publish = {{13999, 13999}};
  policy.network.allow_local_binding = false;
  EXPECT_EQ(check_supported(policy).error().what(), "cannot enforce network.publish");
  EXPECT_EQ(check_supported(policy).error().reason(), "network.allow_local_binding is false: nothing inside may listen");
  policy.network.allow_local_binding = true;
  EXPECT_TRUE(check_supported(policy)) << "the twin";
  policy.network.allow_local_binding.reset();
  EXPECT_TRUE(check_supported(policy));
}

}  // namespace
}  // namespace belljar::runtime
