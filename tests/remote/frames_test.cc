#include "remote/frames.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::remote {
namespace {

using namespace std::string_literals;

std::string last(const std::string& json) {
  std::string frame = make_frame(json);
  frame[0] = 2;
  return frame;
}

// What came out, a line each; the last one "error" when it was refused.
std::vector<std::string> parsed(const std::string& bytes, std::size_t piece) {
  std::vector<std::string> seen;
  FrameParser parser;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto fed = parser.feed(bytes.substr(at, piece), [&](bool end, std::string_view json) {
      seen.push_back((end ? "last " : "") + std::string(json));
      return true;
    });
    if (!fed) {
      seen.emplace_back("error");
      break;
    }
  }
  return seen;
}

TEST(Frames, MayBeCutAnywhere) {
  const std::string stream = make_frame(R"({"a":1})") + make_frame("{}") + make_frame("") + last("{}");
  const std::vector<std::string> expected = {R"({"a":1})", "{}", "", "last {}"};
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) EXPECT_EQ(parsed(stream, piece), expected) << piece;
}

TEST(Frames, WhatIsNoneIsRefused) {
  EXPECT_EQ(parsed("\x01\0\0\0\2{}"s, 100), std::vector<std::string>{"error"}) << "compressed: nobody asked for that";
  EXPECT_EQ(parsed("\0\xff\xff\xff\xff"s, 1), std::vector<std::string>{"error"}) << "without waiting for 4 GiB";
  EXPECT_EQ(parsed("<html>", 6), std::vector<std::string>{"error"});
  EXPECT_EQ(parsed(last("{}") + make_frame("{}"), 100), (std::vector<std::string>{"last {}", "error"}));
  EXPECT_EQ(parsed(last("{}") + make_frame("{}"), 1), (std::vector<std::string>{"last {}", "error"}));
}

TEST(Frames, NothingIsTakenAfterAnError) {
  FrameParser parser;
  const auto sink = [](bool, std::string_view) { return true; };
  EXPECT_FALSE(parser.feed("\x04\0\0\0\0"s, sink));
  EXPECT_FALSE(parser.feed(make_frame("{}"), sink));
}

}  // namespace
}  // namespace belljar::remote
