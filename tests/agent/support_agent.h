// An agent with a scripted model on a sandbox where nothing is executed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/mock.h"
#include "support/has.h"

namespace belljar::test {

inline std::shared_ptr<ModelProvider> scripted(std::string_view script) {
  auto model = scripted_model(script);
  EXPECT_TRUE(model) << model.error().line();
  return model ? *model : nullptr;
}

inline AgentOpinion everything_runs(const ToolRequest& /*request*/) { return {.say = AgentSay::kRun}; }

class AgentTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sandbox_->start()); }
  // Everything that is told is kept.
  AgentOptions options(std::string_view script) {
    return {.model = scripted(script), .sandbox = sandbox_, .permit = everything_runs, .on_event = [this](const AgentEvent& event) {
              events_.push_back(event);
            }};
  }
  // The last result that the model was shown.
  static std::string last_result(const Agent& agent) {
    for (auto message = agent.messages().rbegin(); message != agent.messages().rend(); ++message) {
      if (message->role == ChatRole::kTool) return message->text;
    }
    return "none";
  }
  bool ran(std::string_view command) const {
    for (const MockCall& call : sandbox_->calls()) {
      if (call.method == "exec" && has(call.subject, command)) return true;
    }
    return false;
  }
  std::string told(AgentEvent::Kind kind) const {
    std::string text;
    for (const AgentEvent& event : events_) {
      if (event.kind == kind) text += event.text;
    }
    return text;
  }

  std::shared_ptr<MockSandbox> sandbox_ = MockSandbox::create("/w");
  std::vector<AgentEvent> events_;
};

}  // namespace belljar::test
