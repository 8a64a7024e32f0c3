// What is said with pid 1.
#include "backend/container/records.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace belljar::backend::container {
namespace {

using Seen = std::vector<std::tuple<char, std::uint32_t, std::string>>;

TEST(Records, AreTheSameInPiecesOfAnySize) {
  const std::string bytes = make_record('s', 7, 42U) + make_record('o', 70'000, std::string("a\0b", 3)) + make_record('p', 1, "");
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    RecordParser parser;
    Seen seen;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      ASSERT_TRUE(parser.feed(std::string_view(bytes).substr(at, size), [&](char type, std::uint32_t id, std::string_view payload) {
        seen.emplace_back(type, id, payload);
      }));
    }
    EXPECT_EQ(seen, (Seen{{'s', 7, std::string("\0\0\0*", 4)}, {'o', 70'000, std::string("a\0b", 3)}, {'p', 1, ""}}));
  }
}

TEST(Records, OneThatIsTooLargeIsRefused) {
  RecordParser parser;
  const auto refused = parser.feed(std::string("Hello, world, this is no record"), [](char, std::uint32_t, std::string_view) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kDataLoss);
}

TEST(Records, ARequestHoldsWordsAndVariables) {
  EXPECT_EQ(make_request("/w", {"echo", "\xff"}, {{"A", "1 2"}}), std::string("\0\0\0\2\0\0\0\1/w\0echo\0\xff\0A=1 2\0", 24));
}

TEST(Records, AnEndThatIsTooShortIsRefused) {
  EXPECT_FALSE(parse_exit_record(std::string(37, '\0')));
  const auto ended =
      parse_exit_record(std::string("\0\0\1\0", 4) + std::string(24, '\0') + std::string("\1\0\0\0\0\0\0\0\0\x2a", 10));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->status, 256);
  EXPECT_TRUE(ended->out_of_memory);
  EXPECT_FALSE(ended->out_of_pids);
  EXPECT_EQ(ended->wall_us, 42U);
}

}  // namespace
}  // namespace belljar::backend::container
