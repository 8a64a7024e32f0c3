// How a command ends, as a table: what happened to it, and what its result says.
#include "command/ending.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "belljar/exec_result.h"

namespace belljar::command {

std::ostream& operator<<(std::ostream& out, EndAction act) { return out << static_cast<int>(act); }

namespace {

using namespace std::chrono_literals;

constexpr int exited(int code) { return code << 8; }
constexpr Clock::Time at(Clock::Span time) { return Clock::Time(1h + time); }

Ending begun(const Clock::Terms& terms) {
  Ending ending(terms);
  ending.clock().begin(at(0ms));
  return ending;
}

struct Row {
  const char* what;
  std::optional<Cause> cause;
  std::optional<int> status;  // none: nobody told its end
  int exit_code;
  Reason reason;
  std::string message;
};

TEST(Ending, WhatItsResultSays) {
  const Cause timeout{Reason::kTimeout, "late"}, idle{Reason::kIdle, "idle"}, output{Reason::kOutput, "much"};
  const std::vector<Row> rows = {
      {"its own success", {}, exited(0), 0, Reason::kExited, ""},
      {"its own failure", {}, exited(7), 7, Reason::kExited, ""},
      {"a signal of others", {}, SIGSEGV, 139, Reason::kSignalled, "killed by SIGSEGV"},
      {"a timeout, by TERM", timeout, SIGTERM, 124, Reason::kTimeout, "late"},
      {"a timeout that it takes with 0", timeout, exited(0), 124, Reason::kTimeout, "late"},
      {"a timeout, and nobody tells", timeout, {}, 124, Reason::kTimeout, "late"},
      {"idle", idle, SIGTERM, 124, Reason::kIdle, "idle"},
      {"idle, and nobody tells", idle, {}, 124, Reason::kIdle, "idle"},
      {"cancelled, by TERM", cancelled(), SIGTERM, 143, Reason::kCancelled, "cancelled by the caller"},
      {"cancelled, by KILL", cancelled(), SIGKILL, 137, Reason::kCancelled, "cancelled by the caller"},
      {"cancelled is never a success", cancelled(), exited(0), 143, Reason::kCancelled, "cancelled by the caller"},
      {"cancelled, and its shell says how", cancelled(), exited(130), 130, Reason::kCancelled, "cancelled by the caller"},
      {"cancelled, and nobody tells", cancelled(), {}, 137, Reason::kCancelled, "cancelled by the caller"},
      {"too much output", output, SIGKILL, 137, Reason::kOutput, "much"},
      {"too much output, and it had ended", output, exited(0), 137, Reason::kOutput, "much"},
      {"lost", {}, {}, 137, Reason::kCancelled, "why"},
  };
  for (const Row& row : rows) {
    Ending ending = begun({.timeout = 10s, .idle = {}, .grace = 5s, .patience = 1s, .slack = {}});
    if (row.cause) ending.stop(*row.cause, EndMode::kGently, at(1s));
    ExecResult result;
    if (row.status) ending.tell_exit(result, *row.status);
    else ending.tell_lost(result, "why");
    EXPECT_EQ(result.exit_code, row.exit_code) << row.what;
    EXPECT_EQ(result.reason, row.reason) << row.what;
    EXPECT_EQ(result.message, row.message) << row.what;
    EXPECT_EQ(result.signal.has_value(), !row.status || (*row.status & 0x7F) != 0) << row.what;
  }
}

TEST(Ending, TermThenKillThenNoHope) {
  Ending ending = begun({.timeout = 10s, .idle = {}, .grace = 5s, .patience = 1s, .slack = {}});
  EXPECT_EQ(ending.due(at(9s)), EndAction::kNone);
  EXPECT_EQ(ending.next(), at(10s));
  EXPECT_EQ(ending.due(at(10s)), EndAction::kTerm);
  EXPECT_EQ(ending.reason(), Reason::kTimeout);
  EXPECT_TRUE(ending.clock().in_grace());
  EXPECT_EQ(ending.next(), at(15s));
  EXPECT_EQ(ending.due(at(14s)), EndAction::kNone);
  EXPECT_EQ(ending.due(at(15s)), EndAction::kKill);
  EXPECT_FALSE(ending.clock().in_grace());
  ending.clock().told(at(17s));  // it took its time
  EXPECT_EQ(ending.due(at(17s)), EndAction::kNone);
  EXPECT_EQ(ending.due(at(18s)), EndAction::kGiveUp);
  EXPECT_EQ(ending.due(at(19s)), EndAction::kGiveUp) << "until somebody is told again";
}

TEST(Ending, TimeCountsFromExecve) {
  Ending ending = begun({.timeout = 10s, .idle = {}, .grace = 5s, .patience = 1s, .slack = {}});
  ending.clock().begin(at(3s));
  EXPECT_EQ(ending.due(at(12s)), EndAction::kNone);
  EXPECT_EQ(ending.due(at(13s)), EndAction::kTerm);
}

TEST(Ending, WithoutAGraceItIsKilled) {
  EXPECT_EQ(begun({}).stop(cancelled(), EndMode::kGently, at(1s)), EndAction::kKill);
  EXPECT_EQ(
      begun({.timeout = {}, .idle = {}, .grace = 5s, .patience = {}, .slack = {}}).stop(cancelled(), EndMode::kAtOnce, at(1s)),
      EndAction::kKill);
}

TEST(Ending, TheFirstCauseIsTold) {
  Ending ending = begun({.timeout = 10s, .idle = {}, .grace = 5s, .patience = 1s, .slack = {}});
  EXPECT_EQ(ending.stop(cancelled(), EndMode::kGently, at(1s)), EndAction::kTerm);
  EXPECT_EQ(ending.stop(ended_with_sandbox(), EndMode::kAtOnce, at(2s)), EndAction::kNone);
  EXPECT_EQ(ending.due(at(20s)), EndAction::kKill) << "no timeout any more";
  EXPECT_EQ(ending.reason(), Reason::kCancelled);
}

TEST(Ending, SomebodyInsideKeepsTheGrace) {
  Ending ending = begun({.timeout = 10s, .idle = {}, .grace = 5s, .patience = 1s, .slack = 2s});
  EXPECT_EQ(ending.next(), at(12s)) << "they are first";
  EXPECT_EQ(ending.stop(cancelled(), EndMode::kInside, at(1s)), EndAction::kTerm);
  EXPECT_FALSE(ending.clock().in_grace());
  EXPECT_EQ(ending.due(at(6s)), EndAction::kNone);
  EXPECT_EQ(ending.due(at(7s)), EndAction::kGiveUp);
}

TEST(Ending, WhatIsDetachedHasNoTimeout) {
  Ending ending = begun({.timeout = 10s, .idle = {}, .grace = 5s, .patience = 1s, .slack = {}});
  ending.clock().let_run();
  ending.clock().begin(at(1s));
  EXPECT_EQ(ending.next(), std::nullopt);
  EXPECT_EQ(ending.due(at(20s)), EndAction::kNone);
}

TEST(Ending, ForEverIsNoTimeout) {
  EXPECT_EQ(begun({.timeout = kForever, .idle = {}, .grace = 5s, .patience = {}, .slack = {}}).next(), std::nullopt);
}

TEST(Ending, IdlenessIsNeitherOutputNorWork) {
  Ending ending = begun({.timeout = {}, .idle = 8s, .grace = 5s, .patience = 1s, .slack = {}});
  EXPECT_EQ(ending.next(), at(2s));
  ending.clock().moved(at(1s));
  EXPECT_EQ(ending.check_idle(at(2s), 0us), EndAction::kNone);
  EXPECT_EQ(ending.check_idle(at(4s), 1s), EndAction::kNone) << "it works";
  EXPECT_EQ(ending.check_idle(at(11s), 1s + 10us), EndAction::kNone) << "a timer is no work";
  EXPECT_EQ(ending.next(), at(12s));
  EXPECT_TRUE(ending.idle_check_due(at(12s)));
  EXPECT_EQ(ending.check_idle(at(12s), 1s + 20us), EndAction::kTerm);
  EXPECT_EQ(ending.reason(), Reason::kIdle);
}

TEST(Ending, ALimitIsToldUnlessWeEndedIt) {
  ExecResult result;
  Ending ending = begun({});
  ending.tell_exit(result, SIGKILL);
  ending.tell_limit(result, Reason::kMemory, "memory");
  EXPECT_EQ(result.reason, Reason::kMemory);
  ending.stop(cancelled(), EndMode::kAtOnce, at(1s));
  ending.tell_exit(result, SIGKILL);
  ending.tell_limit(result, Reason::kMemory, "memory");
  EXPECT_EQ(result.reason, Reason::kCancelled);
}

}  // namespace
}  // namespace belljar::command
