#include "keeper/directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "keeper/about.h"
#include "support/temp_dir.h"

namespace belljar::keeper {
namespace {

// A runtime directory of the test's own. A process never sees its own locks, fcntl(2): what this test claims looks gone to it.
class InOwnDirectory : public testing::Test {
 protected:
  InOwnDirectory() { ::setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1); }  // NOLINT(concurrency-mt-unsafe): one thread
  ~InOwnDirectory() override { ::unsetenv("XDG_RUNTIME_DIR"); }                  // NOLINT(concurrency-mt-unsafe): one thread
  test::TempDir runtime_;
};

TEST_F(InOwnDirectory, WhatIsClaimedIsListedAndPutAway) {
  const auto directory = Directory::open();
  ASSERT_TRUE(directory);
  const auto claim = directory->claim({.name = "one", .workspace = "/w", .created_ms = 5});
  ASSERT_TRUE(claim) << claim.error().line();
  const auto found = directory->find("one");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->about.id, claim->about.id);
  EXPECT_EQ(found->about.workspace, "/w");
  directory->retire(claim->about.id, "it was killed", true);
  const auto ended = directory->find(claim->about.id);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->state, State::kEnded);
  EXPECT_EQ(ended->about.ended, "it was killed");
  EXPECT_FALSE(test::exists(claim->path));
}

TEST_F(InOwnDirectory, OfTheEndedTheLastAreKept) {
  const auto directory = Directory::open();
  ASSERT_TRUE(directory);
  std::string last;
  for (std::size_t i = 0; i < kMostEnded + 3; ++i) {
    const auto claim = directory->claim({});
    ASSERT_TRUE(claim);
    directory->retire(last = claim->about.id, "it expired", true);
  }
  const auto all = directory->list();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), kMostEnded);
  EXPECT_TRUE(directory->find(last));
}

TEST_F(InOwnDirectory, UnknownOnesAreToldWithTheNearest) {
  const auto directory = Directory::open();
  ASSERT_TRUE(directory);
  const auto claim = directory->claim({.name = "builder"});
  const auto wrong = directory->find("bulider");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::kNotFound);
  EXPECT_EQ(wrong.error().next(), "did you mean `builder`?");
  directory->discard(claim->about.id);
  EXPECT_TRUE(directory->list()->empty());
}

TEST(SandboxNames, ArePlainWords) {
  for (const char* name : {"a", "0", "work-2.x_y"}) EXPECT_TRUE(check_name(name)) << name;
  for (const char* name : {"", ".", "..", "-a", "a/b", "a b", "../x", "\xc3\xa4", "a\n"}) EXPECT_FALSE(check_name(name)) << name;
  EXPECT_TRUE(check_name(std::string(64, 'x')));
  EXPECT_FALSE(check_name(std::string(65, 'x')));
}

TEST(AboutJson, ComesBackAsItWas) {
  const About about{.id = "sb-1",
                    .name = "n",
                    .workspace = "/w \"q\"",
                    .policy = "p",
                    .backend = "native",
                    .created_ms = 1,
                    .expires_ms = 2,
                    .ended_ms = 3,
                    .ended = "why"};
  const auto back = parse_about(to_json(about));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(about));
  EXPECT_FALSE(back->idle_timeout_ms);
  for (const char* damaged : {"", "{", "[]", "7", "\xff"}) EXPECT_FALSE(parse_about(damaged)) << damaged;
  EXPECT_TRUE(parse_about(R"({"created_ms": "soon", "name": 7})")) << "what is of another type counts as not there";
}

}  // namespace
}  // namespace belljar::keeper
