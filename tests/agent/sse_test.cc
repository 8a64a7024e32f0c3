#include "agent/sse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::agent {
namespace {

std::vector<SseEvent> events_of(std::string_view bytes, std::size_t piece = 1'000'000) {
  std::vector<SseEvent> events;
  SseReader reader(1000, [&](const SseEvent& event) {
    events.push_back(event);
    return true;
  });
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (!reader.feed(bytes.substr(0, piece))) events.push_back({"refused", ""});
  }
  return events;
}

TEST(Sse, ReadsEventsWithAllLineEnds) {
  const std::vector<SseEvent> expected{{"a", "1\n2"}, {"", "three"}};
  for (const char* bytes :
       {"event: a\ndata: 1\ndata: 2\n\ndata:three\n\n", "event: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata:three\r\n\r\n",
        "event: a\rdata: 1\rdata: 2\r\rdata:three\r\r",
        "\xEF\xBB\xBF"
        ": note\nevent: a\nid: 7\ndata: 1\ndata: 2\n\n\nretry: 1\ndata:three\n\n"}) {
    EXPECT_EQ(events_of(bytes), expected) << bytes;
    EXPECT_EQ(events_of(bytes, 1), expected) << bytes;
    EXPECT_EQ(events_of(bytes, 3), expected) << bytes;
  }
}

TEST(Sse, AnEventThatTheEndCutsIsNone) {
  EXPECT_TRUE(events_of("data: 1").empty());
  EXPECT_TRUE(events_of("data: 1\n").empty());
  EXPECT_EQ(events_of("data: 1\n\n").size(), 1U);
  EXPECT_TRUE(events_of("event: a\n\n").empty()) << "without data there is nothing to tell";
}

TEST(Sse, WhatIsTooLargeEndsTheReading) {
  EXPECT_EQ(events_of("data: " + std::string(900, 'x') + "\n\n").back().name, "");
  EXPECT_EQ(events_of("data: " + std::string(2000, 'x') + "\n\n"), (std::vector<SseEvent>{{"refused", ""}}));
  std::string many;
  for (int i = 0; i < 300; ++i) many += "data: xxxxxx\n";
  EXPECT_EQ(events_of(many + "\n"), (std::vector<SseEvent>{{"refused", ""}}));
}

}  // namespace
}  // namespace belljar::agent
