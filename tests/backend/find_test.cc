#include "backend/find.h"

#include <gtest/gtest.h>

#include "backend/paths/host.h"
#include "belljar/error.h"

namespace belljar::backend {
namespace {

TEST(FindBackend, GivesTheOneThatIsNamed) {
  const RealHost host;
  for (const char* name : {"native", "auto", ""}) EXPECT_EQ((*find_backend(name, host))->name(), "native") << name;
  EXPECT_EQ((*find_backend("landlock", host))->name(), "landlock");
}

TEST(FindBackend, RefusesAnyOtherName) {
  const RealHost host;
  const auto none = find_backend("docker", host);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kUnimplemented);
  EXPECT_NE(none.error().line().find("docker"), std::string::npos);
}

}  // namespace
}  // namespace belljar::backend
