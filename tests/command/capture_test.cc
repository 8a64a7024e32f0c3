#include "command/capture.h"

#include <gtest/gtest.h>

namespace belljar::command {
namespace {

Output capture(std::uint64_t cap, std::initializer_list<std::string_view> pieces) {
  Capture capture(cap);
  for (const std::string_view piece : pieces) capture.append(piece);
  return std::move(capture).finish();
}

TEST(Capture, KeepsEverythingUpToTheCap) {
  EXPECT_EQ(capture(5, {"ab", "cde"}), (Output{"abcde", 5, 0}));
  EXPECT_EQ(capture(0, {}), (Output{"", 0, 0}));
}

TEST(Capture, CountsWhatIsBeyondTheCap) {
  EXPECT_EQ(capture(5, {"abc", "defg", "h"}), (Output{"abcde", 8, 3}));
  EXPECT_EQ(capture(0, {"abc"}), (Output{"", 3, 3}));
}

TEST(Capture, DoesNotFillAHoleWithLaterBytes) {
  // 'é' does not fit into the last byte; the 'x' after it must not take its place.
  EXPECT_EQ(capture(2, {"a\xC3\xA9", "x"}), (Output{"a", 4, 3}));
}

TEST(Capture, NeverCutsInsideAUtf8Sequence) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\x94z";  // 1, 2, 3, 4 and 1 bytes
  const std::size_t boundary[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
  for (std::size_t cap = 0; cap <= text.size(); ++cap) {
    const Output output = capture(cap, {text});
    EXPECT_EQ(output.bytes, text.substr(0, boundary[cap])) << cap;
    EXPECT_EQ(output.omitted, text.size() - boundary[cap]) << cap;
  }
}

TEST(Capture, LeavesBytesThatAreNoUtf8Alone) {
  EXPECT_EQ(capture(3, {"a\xFF\xFE\xFD"}).bytes, "a\xFF\xFE");
  EXPECT_EQ(capture(4, {"\x80\x80\x80\x80\x80"}).bytes, "\x80\x80\x80\x80");
}

TEST(Capture, AnUnfinishedSequenceThatTheProgramWroteStays) { EXPECT_EQ(capture(10, {"a\xC3"}).bytes, "a\xC3"); }

// Whatever pieces it comes in: the same head as one that is kept.
TEST(Head, PassesWhatACaptureKeepsInPiecesOfAnySize) {
  for (const std::string text :
       {"a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\x94z", "\xC3\xA9\xC3\xA9\xC3", "ab\xE2\x82", "\xFF\xFE\xE2(\x80"}) {
    for (std::uint64_t cap = 0; cap <= text.size() + 1; ++cap) {
      for (std::size_t size = 1; size <= text.size(); ++size) {
        Head head(cap);
        std::string passed, held;
        for (std::size_t at = 0; at < text.size(); at += size) {
          const std::string shown = held + text.substr(at, size);
          const std::size_t count = head.pass(shown);
          passed += shown.substr(0, count);
          held = shown.substr(count, head.held());
        }
        const Output kept = capture(cap, {text});
        EXPECT_EQ(passed + held, kept.bytes) << cap << " in pieces of " << size;
        EXPECT_EQ(head.dropped(), kept.omitted) << cap << " in pieces of " << size;
      }
    }
  }
  Head open({});
  EXPECT_EQ(open.pass("a\xC3"), 2U) << "without a cap nothing waits";
}

TEST(IncompleteTail, KnowsEachLength) {
  EXPECT_EQ(incomplete_tail(""), 0U);
  EXPECT_EQ(incomplete_tail("abc"), 0U);
  EXPECT_EQ(incomplete_tail("a\xC3"), 1U);
  EXPECT_EQ(incomplete_tail("a\xE2\x82"), 2U);
  EXPECT_EQ(incomplete_tail("a\xF0\x9F\x94"), 3U);
  EXPECT_EQ(incomplete_tail("a\xF0\x9F\x94\x94"), 0U);
  EXPECT_EQ(incomplete_tail("a\xC0"), 0U);  // never a lead byte, RFC 3629
}

}  // namespace
}  // namespace belljar::command
