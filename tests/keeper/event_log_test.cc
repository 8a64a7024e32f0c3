#include "keeper/event_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>

#include "support/temp_dir.h"

namespace belljar::keeper {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<EventLog> open_in(const test::TempDir& directory) {
  auto log = EventLog::open(UniqueFd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), "sb-test",
                            Redactor::from_environment({{"DEPLOY_TOKEN", "t0ps3cret"}}));
  EXPECT_TRUE(log);
  return *log;
}

Event execution(std::string command) { return {.body = ExecutionEvent{.command = std::move(command)}}; }

TEST(EventLog, TellsWhatHappenedAndWaitsForMore) {
  const test::TempDir directory;
  const auto log = open_in(directory);
  log->publish(execution("first"));
  EventLog::Lines lines = log->read(0, 0ms);
  ASSERT_EQ(lines.lines.size(), 1U);
  EXPECT_NE(lines.lines[0].find(R"("sandbox":"sb-test","kind":"execution")"), std::string::npos) << lines.lines[0];
  EXPECT_TRUE(log->read(lines.next, 0ms).lines.empty());
  std::thread later([&] { log->publish(execution("second")); });
  lines = log->read(lines.next, 60s);
  later.join();
  ASSERT_EQ(lines.lines.size(), 1U);
  EXPECT_EQ(test::read_file(directory / kLog), log->read(0, 0ms).lines[0] + "\n" + lines.lines[0] + "\n");
}

TEST(EventLog, HasNoSecretValues) {
  const test::TempDir directory;
  const auto log = open_in(directory);
  log->publish({.body = ExecutionEvent{.command = "echo t0ps3cret word", .error = "no t0ps3cret here"}});
  log->publish({.body = ViolationEvent{{.target = "/etc/t0ps3cret"}}});
  log->publish({.body = EgressEvent{{.host = "t0ps3cret.example"}}});
  const EventLog::Lines lines = log->read(0, 0ms);
  ASSERT_EQ(lines.lines.size(), 3U);
  for (const std::string& line : lines.lines) {
    EXPECT_EQ(line.find("t0ps3cret"), std::string::npos) << line;
    EXPECT_NE(line.find("[redacted:DEPLOY_TOKEN]"), std::string::npos) << line;
  }
  EXPECT_NE(lines.lines[0].find("] word"), std::string::npos) << lines.lines[0];
  EXPECT_EQ(test::read_file(directory / kLog).find("t0ps3cret"), std::string::npos);
}

TEST(EventLog, KeepsTheLastPartAndCountsTheRest) {
  const test::TempDir directory;
  const auto log = open_in(directory);
  constexpr int kEvents = 1000;
  for (int i = 0; i < kEvents; ++i) log->publish(execution(std::to_string(i) + std::string(1500, 'x')));
  const EventLog::Lines lines = log->read(0, 0ms);
  EXPECT_EQ(lines.lost + lines.lines.size(), static_cast<std::uint64_t>(kEvents));
  EXPECT_GT(lines.lost, 0U);
  EXPECT_NE(lines.lines.back().find("999xxx"), std::string::npos);
  for (const char* name : {kLog, kOlderLog}) {
    struct stat status{};
    ASSERT_EQ(::stat((directory / name).c_str(), &status), 0);
    EXPECT_LE(status.st_size, static_cast<off_t>(kLogBytes + 4096));
  }
}

TEST(EventLog, ALongCommandIsCut) {
  const test::TempDir directory;
  const auto log = open_in(directory);
  log->publish(execution(std::string(1'000'000, 'x')));
  EXPECT_LT(log->read(0, 0ms).lines[0].size(), 2 * kCommandBytes);
}

TEST(EventLog, AClosedOneLetsItsReadersGo) {
  const test::TempDir directory;
  const auto log = open_in(directory);
  std::thread closer([&] { log->close(); });
  EXPECT_TRUE(log->read(0, 60s).lines.empty());
  closer.join();
}

}  // namespace
}  // namespace belljar::keeper
