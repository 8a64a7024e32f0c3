// The engine's multiplexed stream, taken apart whatever pieces it comes in.
#include "backend/container/frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support_frame.h"

namespace belljar::backend::container {
namespace {

struct Taken {
  std::string out, err, system;
};

Result<void> feed(FrameParser& parser, std::string_view bytes, Taken& taken) {
  return parser.feed(bytes, [&](FrameStream stream, std::string_view part) {
    (stream == FrameStream::kStdout ? taken.out : stream == FrameStream::kStderr ? taken.err : taken.system) += part;
  });
}

const std::string kBytes =
    frame(1, "out one ") + frame(2, "error") + frame(1, "") + frame(3, "no such file") + frame(1, std::string(300, 'x'));

TEST(Frames, AreTheSameInPiecesOfAnySize) {
  for (std::size_t size = 1; size <= kBytes.size(); ++size) {
    FrameParser parser;
    Taken taken;
    for (std::size_t at = 0; at < kBytes.size(); at += size)
      ASSERT_TRUE(feed(parser, std::string_view(kBytes).substr(at, size), taken));
    EXPECT_EQ(taken.out, "out one " + std::string(300, 'x'));
    EXPECT_EQ(taken.err, "error");
    EXPECT_EQ(taken.system, "no such file");
    EXPECT_TRUE(parser.check_end());
  }
}

TEST(Frames, AnEndInsideOneIsTold) {
  for (std::size_t cut = 1; cut < frame(1, "abc").size(); ++cut) {
    FrameParser parser;
    Taken taken;
    ASSERT_TRUE(feed(parser, frame(1, "abc").substr(0, cut), taken));
    EXPECT_EQ(parser.check_end().error().code(), Code::kDataLoss) << cut;
  }
}

TEST(Frames, PlainTextIsNoStreamOfFrames) {
  FrameParser parser;
  Taken taken;
  const auto refused = feed(parser, "OCI runtime exec failed", taken);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kDataLoss);
  EXPECT_FALSE(feed(parser, frame(1, "later"), taken)) << "nothing after it can be trusted";
  EXPECT_EQ(taken.out, "");
}

TEST(Frames, AnAbsurdLengthIsRefused) {
  FrameParser parser;
  Taken taken;
  EXPECT_FALSE(feed(parser, std::string("\x01\0\0\0\xff\xff\xff\xff", 8), taken));
}

}  // namespace
}  // namespace belljar::backend::container
