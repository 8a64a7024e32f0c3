// Sizes and times as people write them.
#include "belljar/units.h"

#include <gtest/gtest.h>

#include <chrono>

#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {
namespace {

using namespace literals;
using namespace std::chrono_literals;

TEST(ParseBytes, ReadsEveryForm) {
  EXPECT_EQ(*parse_bytes("512MiB"), 512_MiB);
  EXPECT_EQ(*parse_bytes("1.5GiB"), 1536_MiB);
  EXPECT_EQ(*parse_bytes("200000"), 200000_B);
  EXPECT_EQ(*parse_bytes("64k"), 64_KiB);
  EXPECT_EQ(*parse_bytes("2GB"), Bytes{2000000000});
  EXPECT_EQ(*parse_bytes("0"), 0_B);
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "MiB", "-1", "1 MiB", "12parsecs", "1e3", "nan", "inf", "0x10", "99999999TiB", "512MiB "}) {
    const Result<Bytes> result = parse_bytes(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument) << text;
    EXPECT_FALSE(result.error().reason().empty()) << text;
    EXPECT_FALSE(result.error().next().empty()) << text;
  }
}

TEST(ParseBytes, WhatIsNoNumberIsNotCalledNegative) {
  for (const char* text : {"nan", "inf", "-inf", "infinity", "nans"}) {
    EXPECT_EQ(parse_bytes(text).error().reason(), "it is not a finite number") << text;
    EXPECT_EQ(parse_duration(text).error().reason(), "it is not a finite number") << text;
  }
  EXPECT_EQ(parse_duration("-5s").error().reason(), "it must not be negative");
  EXPECT_EQ(*parse_duration("0.5s"), 500ms);
}

TEST(ParseBytes, MessageEscapesWhatTheUserWrote) {
  const Result<Bytes> result = parse_bytes("\x1b[31m9");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what(), "`\\x1b[31m9` is not a size");
}

TEST(ParseDuration, ReadsEveryForm) {
  EXPECT_EQ(*parse_duration("30s"), 30s);
  EXPECT_EQ(*parse_duration("1.5m"), 90s);
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("2h"), 2h);
  EXPECT_EQ(*parse_duration("30"), 30s);
  EXPECT_EQ(*parse_duration("0.001s"), 1ms);
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "s", "-5s", "5 s", "5y", "99999999999d"}) {
    const auto result = parse_duration(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument) << text;
  }
}

TEST(UnitsToString, ReadsBackToTheSameValue) {
  for (const Bytes size : {0_B, 1_B, 1023_B, 1_KiB, 1025_B, 1536_MiB, 1024_GiB}) EXPECT_EQ(*parse_bytes(to_string(size)), size);
  for (const std::chrono::milliseconds time : {0ms, 1ms, 999ms, 1000ms, 1500ms, 90000ms, 3600000ms, 90000000ms}) {
    EXPECT_EQ(*parse_duration(to_string(time)), time);
  }
}

TEST(UnitsToString, TakesTheShortestForm) {
  EXPECT_EQ(to_string(512_MiB), "512MiB");
  EXPECT_EQ(to_string(1000_B), "1000");
  EXPECT_EQ(to_string(std::chrono::milliseconds(30s)), "30s");
  EXPECT_EQ(to_string(std::chrono::milliseconds(90s)), "90s");
  EXPECT_EQ(to_string(std::chrono::milliseconds(2h)), "2h");
}

}  // namespace
}  // namespace belljar
