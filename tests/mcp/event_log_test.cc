// What a client that lost a stream may have of it.
#include "mcp/event_log.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace belljar::mcp {
namespace {

std::string lines_after(const EventLog& log, const std::string& id) {
  const auto rest = log.after(id);
  if (!rest) return "(gone)";
  std::string lines;
  for (const HttpEvent& event : rest->events) lines += event.line;
  return lines;
}

TEST(EventLog, GivesWhatOneStreamHasSaidSince) {
  EventLog log;
  EXPECT_FALSE(log.has_ids_of(7));
  const std::string begin = log.cursor(7).id;
  EXPECT_TRUE(log.has_ids_of(7));
  const std::string a = log.add(7, "a").id, x = log.add(8, "x").id, b = log.add(7, "b").id;
  EXPECT_EQ(lines_after(log, begin), "ab");
  EXPECT_EQ(lines_after(log, a), "b");
  EXPECT_EQ(lines_after(log, b), "") << "nothing came after it";
  EXPECT_EQ(lines_after(log, x), "") << "nothing of another stream";
  EXPECT_EQ(log.after(a)->stream, 7U);
  EXPECT_EQ(log.after(a)->events[0].id, b) << "the same id as the first time";
  EXPECT_EQ(log.cursor(7).id, b);
}

TEST(EventLog, AnIdThatIsNoneOfOursGivesNothing) {
  EventLog log;
  ASSERT_EQ(log.add(7, "a").id, "7-1");
  for (const char* id : {"", "7", "-", "7-", "-1", "7-2", "8-0", "8-1", "7-1 ", " 7-1", "7--1", "+7-1", "7-1-1", "07-x",
                         "99999999999999999999-1", "7-99999999999999999999"})
    EXPECT_EQ(lines_after(log, id), "(gone)") << id;
  EXPECT_EQ(lines_after(log, "7-0"), "a");
}

TEST(EventLog, IsBoundedAndPassesOverNoGap) {
  for (const EventLimits limits : {EventLimits{.events = 3}, EventLimits{.bytes = 3}}) {
    EventLog log(limits);
    for (const char* line : {"a", "b", "c", "d"}) (void)log.add(7, line);
    EXPECT_EQ(lines_after(log, "7-0"), "(gone)");
    EXPECT_EQ(lines_after(log, "7-1"), "bcd");
    (void)log.add(8, "e");
    EXPECT_EQ(lines_after(log, "7-1"), "(gone)");
    EXPECT_EQ(lines_after(log, "7-2"), "cd");
    (void)log.add(8, std::string(2, 'f'));
    EXPECT_EQ(lines_after(log, "8-1"), "ff");
  }
  EventLog small({.bytes = 10});
  EXPECT_EQ(small.add(1, std::string(11, 'x')).id, "1-1");
  EXPECT_EQ(lines_after(small, "1-0"), "(gone)") << "larger than all that is kept";
  EXPECT_FALSE(small.keeps(1));
  (void)small.add(1, "x");
  EXPECT_TRUE(small.keeps(1));
}

TEST(EventLog, AStreamIsForgotten) {
  EventLog log({.bytes = 10});
  (void)log.add(7, "aaaaa");
  (void)log.add(8, "b");
  log.forget(7);
  EXPECT_EQ(lines_after(log, "7-1"), "(gone)");
  (void)log.add(8, "ccccccccc");
  EXPECT_EQ(lines_after(log, "8-0"), "bccccccccc") << "its bytes count no more";
}

}  // namespace
}  // namespace belljar::mcp
