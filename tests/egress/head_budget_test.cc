#include "egress/head_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"

namespace belljar::egress {
namespace {

using std::chrono::milliseconds;
using Time = HeadBudget::Clock::time_point;

constexpr std::uint64_t kDefault = 64U << 10;

HttpHead get(std::string target, std::vector<HttpField> more = {}) {
  HttpHead head;
  head.method = "GET";
  head.target = std::move(target);
  head.fields = {{"Host", "registry.test"},
                 {"User-Agent", "npm/11.19.1 node/v20.20.2 linux x64 workspaces/false"},
                 {"Accept", "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"},
                 {"npm-command", "install"}};
  head.fields.insert(head.fields.end(), more.begin(), more.end());
  return head;
}

TEST(HeadBudget, WhatIsSaidAgainCostsNextToNothing) {
  HeadBudget budget(1000);
  const Time now{};
  EXPECT_EQ(budget.take("registry.test", get("/left-pad"), now), milliseconds(0));
  for (int i = 0; i < 60; ++i) EXPECT_EQ(budget.take("registry.test", get("/left-pad"), now), milliseconds(0)) << i;
  // The same length, never said before.
  int passed = 0;
  while (budget.take("registry.test", get(format("/{:08}", passed)), now)) ++passed;
  EXPECT_GT(passed, 5);
  EXPECT_LT(passed, 100);
}

// Bits in the choice and in the order of what is known cost as well: 2 bytes for each piece.
TEST(HeadBudget, ChoosingAmongKnownPiecesIsPaidFor) {
  HeadBudget budget(4096);
  const Time now{};
  std::string path;
  for (int i = 0; i < 16; ++i) path += format("/{}", i % 2);
  int passed = 0;
  while (passed < 100'000 && budget.take("h.test", get(path), now)) ++passed;
  EXPECT_LE(passed * 16 / 8, 4096 + 4096 / 4 + 64) << "bytes that one of two known steps, 16 times, can carry";
}

TEST(HeadBudget, AnUploadThroughPathsAndFieldsWaitsAndEnds) {
  for (const bool in_field : {false, true}) {
    HeadBudget budget(kDefault);
    const Time now{};
    std::uint64_t sent = 0, number = 0;
    for (; number < 1000; ++number) {
      const std::string data = format("{:08}", number) + std::string(8000, 'x');
      if (!budget.take("h.test", in_field ? get("/", {{"X", data}}) : get("/" + data), now)) break;
      sent += data.size();
    }
    EXPECT_LE(sent, kDefault + kDefault / 4 + 8192) << "what is there, and what comes within the patience";
    EXPECT_FALSE(budget.take("h.test", get("/" + format("{:08}", number) + std::string(8000, 'y')), now));
    EXPECT_EQ(budget.take("h.test", get("/later"), now + std::chrono::minutes(1)), milliseconds(0)) << "the twin: it comes back";
  }
}

// npm of a lock file with 1500 packages, 40 requests a second: each package's description and its archive.
TEST(HeadBudget, AnInstallOfManyPackagesFits) {
  HeadBudget budget(kDefault);
  Time now{};
  milliseconds longest{0};
  for (int i = 0; i < 1500; ++i) {
    const std::string name = format("{}-{}", i % 3 == 0 ? "lodash" : i % 3 == 1 ? "babel-plugin" : "is", i);
    const std::string id = format("registry:{}", name);
    for (const std::string& path : {"/" + name, format("/{0}/-/{0}-4.17.{1}.tgz", name, i % 30)}) {
      const auto wait =
          budget.take("registry.test", get(path, {{"pacote-pkg-id", id}, {"pacote-integrity", format("sha512-{:090}", i)}}), now);
      ASSERT_TRUE(wait) << i;
      longest = std::max(longest, *wait);
      now += milliseconds(25);
    }
  }
  EXPECT_LT(longest, std::chrono::seconds(1));
}

TEST(HeadBudget, WhatNpmSaysTwiceIsKnown) {
  EXPECT_TRUE(repeats_request({"Pacote-Integrity", "sha512-x"}));
  EXPECT_TRUE(repeats_request({"pacote-pkg-id", "x"}));
  EXPECT_FALSE(repeats_request({"npm-session", "x"}));
}

}  // namespace
}  // namespace belljar::egress
