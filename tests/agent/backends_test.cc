// The same tools, agent and middleware on backends that differ in all else: nothing runs, this machine, a machine of E2B's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/support_agent.h"
#include "belljar/agent.h"
#include "belljar/mock.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "support/as_user.h"
#include "support/fake_e2b.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

class AgentOnABackend : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string_view backend = GetParam();
    if (is_root()) place_.give_to(user_uid(), user_gid());
    SandboxConfig config;
    config.workspace = place_.path();
    config.caller_env = {{"PATH", "/usr/bin:/bin"}};
    config.backend = "local";
    if (backend == "e2b") {
      BELLJAR_NEEDS(program("python3"));
      fake_ = std::make_unique<FakeE2b>();
      config.factory = e2b_backend(fake_->options());
    }
    if (backend == "mock") config.factory = mock();
    auto made = make_sandbox(config);
    ASSERT_TRUE(made) << made.error().line();
    sandbox_ = *std::move(made);
    const auto started = sandbox_->start();
    ASSERT_TRUE(started) << started.error().line();
  }
  void TearDown() override {
    if (sandbox_ != nullptr) {
      EXPECT_TRUE(sandbox_->stop());
    }
  }

  // What the commands of these tests would print where they run.
  static SandboxFactory mock() {
    return [](const SandboxConfig& config) -> Result<std::shared_ptr<Sandbox>> {
      auto made = MockSandbox::create(config.workspace);
      made->set_output("cat notes/a", "new\n");
      made->set_output("echo no >&2; exit 3", "", 3, "no\n");
      return std::shared_ptr<Sandbox>(std::move(made));
    };
  }

  const TempDir place_;
  std::unique_ptr<FakeE2b> fake_;
  std::shared_ptr<Sandbox> sandbox_;
};

TEST_P(AgentOnABackend, ToolsAnswerAlike) {
  Toolbox tools(sandbox_);
  const auto answer = [&](std::string_view tool, std::string_view arguments) { return tools.call(tool, arguments).text; };
  EXPECT_EQ(answer("write_file", R"({"path": "notes/a", "content": "old\n"})"), "wrote 4 bytes to notes/a");
  EXPECT_EQ(answer("str_replace", R"({"path": "notes/a", "old": "old", "new": "new"})"), "replaced 1 place in notes/a, line 1");
  EXPECT_EQ(answer("read_file", R"({"path": "notes/a"})"), "new\n");
  EXPECT_EQ(answer("bash", R"({"command": "cat notes/a"})"), "new\n[exit code 0]");
  EXPECT_EQ(answer("bash", R"({"command": "echo no >&2; exit 3"})"), "no\n[exit code 3]");
  EXPECT_EQ(answer("glob", R"({"pattern": "notes/*"})"), "notes/a\n");
  EXPECT_EQ(answer("grep", R"({"text": "new"})"), "notes/a:1:new\n");
  EXPECT_EQ(answer("apply_patch", R"({"patch": "--- a/notes/a\n+++ b/notes/a\n@@ -1 +1 @@\n-new\n+newer\n"})"),
            "M notes/a (+1 -1)\n");
  EXPECT_EQ(answer("delete", R"({"path": "notes/a"})"), "deleted the file notes/a");
  EXPECT_TRUE(has(answer("read_file", R"({"path": "../a"})"), "path escapes workspace: ../a"));
}

TEST_P(AgentOnABackend, AnAgentWorksAlike) {
  std::vector<std::string> results, lines;
  Agent agent({.model = scripted(R"([
    {"calls": [{"name": "write_file", "arguments": {"path": "notes/a", "content": "new\n"}}]},
    {"calls": [{"name": "bash", "arguments": {"command": "cat notes/a"}}]},
    {"expect": "new\n", "calls": [{"name": "read_file", "arguments": {"path": "../outside"}}]},
    {"expect": "path escapes workspace: ../outside", "text": "done"}])"),
               .sandbox = sandbox_,
               .permit = everything_runs,
               .middleware = {run_log([&](std::string line) { lines.push_back(std::move(line)); })},
               .on_event = [&](const AgentEvent& event) {
                 if (event.kind == AgentEvent::Kind::kToolEnds) results.push_back(event.text);
               }});
  const AgentResult result = agent.run("note it");
  EXPECT_EQ(result.text, "done") << result.reason;
  EXPECT_EQ(result.turns, 4U);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[1], "new\n[exit code 0]");
  EXPECT_FALSE(lines.empty()) << "middleware is the same, too";
  EXPECT_EQ(sandbox_->read_file("notes/a").value(), "new\n");
}

INSTANTIATE_TEST_SUITE_P(On, AgentOnABackend, testing::Values("mock", "local", "e2b"),
                         [](const testing::TestParamInfo<const char*>& each) { return std::string(each.param); });

}  // namespace
}  // namespace belljar::test
