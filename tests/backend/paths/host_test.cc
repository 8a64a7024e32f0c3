// The host as it is.
#include "backend/paths/host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/temp_dir.h"

namespace belljar::backend {
namespace {

// One start sees one host; a sandbox that is started again sees what has come meanwhile.
TEST(RealHost, AsksAnewWhenItHasForgotten) {
  const belljar::test::TempDir dir;
  const std::string path = dir.path() + "/later";
  const RealHost host;
  EXPECT_EQ(host.facts(path).kind, PathKind::kAbsent);
  EXPECT_FALSE(host.canonical(path));
  std::filesystem::create_directory(path);
  EXPECT_FALSE(host.canonical(path)) << "as it was read";
  host.forget();
  EXPECT_EQ(host.facts(path).kind, PathKind::kDirectory);
  EXPECT_TRUE(host.canonical(path));
}

}  // namespace
}  // namespace belljar::backend
