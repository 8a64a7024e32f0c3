// The loop of who waits for a command, on a transport that records what it is asked for.
#include "command/running_command.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar::command {
namespace {

// Over after `turns` waits.
class Recorded final : public RunningCommand {
 public:
  Recorded(Request request, int turns) : RunningCommand(std::move(request), std::chrono::seconds(1)), turns_(turns) {}

  std::vector<EndAction> actions;
  std::vector<bool> hears_token;  // in each wait

  int await_start() override { return 1; }
  Result<void> write(std::string_view, std::chrono::milliseconds) override { return {}; }
  Result<void> close_input() override { return {}; }
  Result<void> resize(unsigned short, unsigned short) override { return {}; }
  Result<void> signal(int) override { return {}; }

 private:
  bool over() const override { return turns_ == 0; }
  void wait(std::optional<Time>) override {
    hears_token.push_back(control_fds()[1] >= 0);
    --turns_;
  }
  void advance_end(EndAction act) override { actions.push_back(act); }
  Result<ExecResult> result() override { return ExecResult(); }

  int turns_;
};

Request with_token(const CancelToken& token) {
  Request request;
  request.limits.kill_grace = std::chrono::hours(1);
  request.cancel = token;
  return request;
}

// A token that is readable and asks for nothing more would keep the waiter from waiting.
TEST(RunningCommand, ATokenThatComesAfterTheKillIsNotWaitedFor) {
  const CancelToken token = *CancelToken::create();
  Recorded command(with_token(token), 3);
  command.request_end(RunningCommand::EndRequest::kKill);
  token.cancel();
  ASSERT_TRUE(command.finish());
  EXPECT_EQ(command.actions, std::vector{EndAction::kKill});
  EXPECT_EQ(command.hears_token, (std::vector{true, false, false}));
}

TEST(RunningCommand, ATokenThatComesAfterTermIsTheTwin) {
  const CancelToken token = *CancelToken::create();
  Recorded command(with_token(token), 3);
  command.request_end(RunningCommand::EndRequest::kTerminate);
  token.cancel();
  ASSERT_TRUE(command.finish());
  EXPECT_EQ(command.actions, std::vector{EndAction::kTerm}) << "cancelled in one turn: the stricter of both";
}

TEST(RunningCommand, WhatIsAskedForLaterIsStricterOrNothing) {
  Recorded command(with_token({}), 3);
  command.request_end(RunningCommand::EndRequest::kKill);
  command.request_end(RunningCommand::EndRequest::kTerminate);
  ASSERT_TRUE(command.finish());
  EXPECT_EQ(command.actions, std::vector{EndAction::kKill});
}

}  // namespace
}  // namespace belljar::command
