// What no backend can hold is refused by name before anything starts.
#include "runtime/unserved.h"

#include <gtest/gtest.h>

#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/units.h"

namespace belljar::runtime {
namespace {

TEST(Unserved, SizesOf0ThatWouldMeanNoLimit) {
  Policy policy;
  EXPECT_TRUE(check_served(policy));
  policy.filesystem.tmp_size = Bytes{0};
  EXPECT_EQ(check_served(policy).error().what(), "filesystem.tmp_size is 0");
  policy.filesystem.tmp_size = Bytes{4096};
  EXPECT_TRUE(check_served(policy)) << "the twin";
  policy.limits.disk = Bytes{0};
  EXPECT_EQ(check_served(policy).error().what(), "limits.disk is 0");
  policy.limits.disk = Bytes{4096};
  EXPECT_TRUE(check_served(policy));
}

// A policy that no file was merged into says both by default.
TEST(Unserved, ACredentialOfTheProxyGuardsNothingBesideTransparency) {
  Policy policy;
  policy.network.mode = NetMode::kProxy;
  EXPECT_TRUE(check_served(policy)) << "the twin";
  policy.network.proxy_auth = true;
  EXPECT_EQ(check_served(policy).error().what(), "cannot enforce network.proxy_auth");
  policy.network.transparent = false;
  EXPECT_TRUE(check_served(policy));
}

TEST(Unserved, APortInsideIsNotPublishedWhereNothingMayListen) {
  Policy policy;
  policy.network.publish = {{13999, 13999}};
  policy.network.allow_local_binding = false;
  EXPECT_EQ(check_served(policy).error().what(), "cannot enforce network.publish");
  EXPECT_EQ(check_served(policy).error().reason(), "network.allow_local_binding is false: nothing inside may listen");
  policy.network.allow_local_binding = true;
  EXPECT_TRUE(check_served(policy)) << "the twin";
  policy.network.allow_local_binding.reset();
  EXPECT_TRUE(check_served(policy));
}

}  // namespace
}  // namespace belljar::runtime
