// A live sandbox whose network is our proxy: rules that change while it runs, hosts that are open for one command, and what is told
// of both. The servers are the test's own, on the host's loopback.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/decorators.h"
#include "belljar/mock.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/model_server.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class LiveNetwork : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    BELLJAR_NEEDS(program("curl"));
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
    config_.workspace = place_.path();
    config_.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
    config_.policy.network.mode = NetMode::kProxy;
  }
  void TearDown() override { EXPECT_EQ(left_.report(), ""); }

  std::shared_ptr<Sandbox> start() {
    auto made = make_sandbox(config_);
    EXPECT_TRUE(made && (*made)->start()) << (made ? "start" : made.error().line());
    return made ? *made : nullptr;
  }
  // "http://127.0.0.1:PORT" without the scheme.
  static std::string place_of(const test::ModelServer& server) { return server.url().substr(std::string_view("http://").size()); }
  static std::string ask(const test::ModelServer& server) {
    return "curl -s -d x -m 200 --noproxy '' -x 127.0.0.1:3128 http://" + place_of(server) + "/";
  }
  static bool reached(const Result<ExecResult>& result) { return result && result->out.bytes == "hello"; }

  const test::TempDir place_;
  const test::ModelServer one_{{{.pieces = {"hello"}, .type = "text/plain"}}}, two_{{{.pieces = {"hello"}, .type = "text/plain"}}};
  const test::Leftovers left_;
  SandboxConfig config_;
};

TEST_F(LiveNetwork, AResultTellsWhatWentThroughTheProxy) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  const auto sandbox = start();
  const ExecResult through = sandbox->exec(ask(one_)).value();
  EXPECT_EQ(through.out.bytes, "hello");
  ASSERT_EQ(through.egress.size(), 1U);
  EXPECT_EQ(through.egress[0].reason, "allowed");
  EXPECT_EQ(through.egress[0].host + format(":{}", through.egress[0].port), place_of(one_));
  const ExecResult refused = sandbox->exec(ask(two_)).value();
  ASSERT_EQ(refused.violations.size(), 1U);
  EXPECT_EQ(refused.violations[0].target, place_of(two_));
  EXPECT_EQ(refused.violations[0].program, "curl");
  EXPECT_EQ(refused.egress.size(), 1U);
  EXPECT_TRUE(sandbox->exec("true").value().egress.empty());
}

TEST_F(LiveNetwork, ARefusalSaysWhereItsRuleComesFrom) {
  const Origin file{"project", "/p/policy.toml", 3}, built_in{"built-in", "", 0};
  config_.policy.network.allowed_domains = {place_of(one_)};
  config_.origins = {{"network.allowed_domains", file}};
  const auto sandbox = start();
  const auto origin_of_refusal = [&](const test::ModelServer& server) {
    const ExecResult result = sandbox->exec(ask(server)).value();
    return result.violations.empty() ? Origin{} : result.violations[0].origin;
  };
  EXPECT_EQ(origin_of_refusal(two_), file);
  EXPECT_EQ(origin_of_refusal(one_), Origin{}) << "the twin";
  ASSERT_TRUE(sandbox->set_network_rules({.allowed_domains = {place_of(two_)}, .denied_domains = {}, .allowed_requests = {}}));
  EXPECT_EQ(origin_of_refusal(one_).layer, "rules set while the sandbox ran");
  ASSERT_TRUE(sandbox->set_network_rules({.allowed_domains = {place_of(one_)}, .denied_domains = {}, .allowed_requests = {}}));
  EXPECT_EQ(origin_of_refusal(two_), file) << "the policy's own again";
}

TEST_F(LiveNetwork, RulesChangeWhileItRuns) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  const auto sandbox = start();
  EXPECT_TRUE(reached(sandbox->exec(ask(one_))));
  EXPECT_TRUE(sandbox->set_network_rules({.allowed_domains = {place_of(two_)}, .denied_domains = {}, .allowed_requests = {}}));
  EXPECT_FALSE(reached(sandbox->exec(ask(one_))));
  EXPECT_TRUE(reached(sandbox->exec(ask(two_))));
  EXPECT_TRUE(
      sandbox->set_network_rules({.allowed_domains = {"127.0.0.1"}, .denied_domains = {place_of(two_)}, .allowed_requests = {}}));
  EXPECT_TRUE(reached(sandbox->exec(ask(one_))));
  EXPECT_FALSE(reached(sandbox->exec(ask(two_))));
  const EnforcementReport report = sandbox->enforcement();
  const auto clause = std::ranges::find(report, "network.domains", &EnforcementClause::clause);
  ASSERT_NE(clause, report.end());
  EXPECT_EQ(clause->asked, "1 rule allowed, 1 rule denied; public addresses only unless listed");

  // What makes no sense changes nothing.
  const auto wrong = sandbox->set_network_rules({.allowed_domains = {"a b"}, .denied_domains = {}, .allowed_requests = {}});
  EXPECT_EQ(wrong.error().code(), Code::kInvalidArgument);
  const auto requests =
      sandbox->set_network_rules({.allowed_domains = {}, .denied_domains = {}, .allowed_requests = {"GET a.example/"}});
  EXPECT_EQ(requests.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(reached(sandbox->exec(ask(one_))));

  // They end with the life of the sandbox.
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->set_network_rules({}).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(sandbox->start());
  EXPECT_TRUE(reached(sandbox->exec(ask(one_))));
  EXPECT_FALSE(reached(sandbox->exec(ask(two_))));
}

TEST_F(LiveNetwork, AConnectionThatNewRulesRefuseIsCut) {
  const test::ModelServer endless({{.pieces = {"hello"}, .type = "text/plain", .hang = true}});
  config_.policy.network.allowed_domains = {"127.0.0.1"};
  const auto sandbox = start();
  std::atomic<bool> answered{false};
  auto process = sandbox->spawn(shell_command(ask(endless) + " -N; echo $?"),
                                {.on_stdout = [&](std::string_view bytes) { answered = answered || bytes.starts_with("hello"); }});
  ASSERT_TRUE(process);
  ASSERT_TRUE(test::eventually([&] { return answered.load(); }));
  EXPECT_TRUE(sandbox->set_network_rules({.allowed_domains = {place_of(one_)}, .denied_domains = {}, .allowed_requests = {}}));
  const ExecResult cut = (*process)->wait()->value();
  EXPECT_FALSE(cut.out.bytes.ends_with("28\n")) << "curl's own timeout";
  ASSERT_EQ(cut.egress.size(), 1U);
  EXPECT_EQ(cut.egress[0].reason, "rules");
  EXPECT_FALSE(cut.egress[0].allowed);
  EXPECT_EQ(cut.violations.size(), 1U);
}

TEST_F(LiveNetwork, AHostIsOpenForOneCommand) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  config_.policy.network.denied_domains = {"denied.example"};
  const auto sandbox = start();
  const std::vector<std::string> more = {place_of(two_)};
  EXPECT_FALSE(reached(sandbox->exec(ask(two_))));
  EXPECT_TRUE(reached(sandbox->exec(shell_command(ask(two_)), {.allowed_domains = more})));
  EXPECT_FALSE(reached(sandbox->exec(ask(two_)))) << "it has ended";
  EXPECT_TRUE(reached(sandbox->exec(ask(one_))));

  auto process = sandbox->spawn(shell_command("read -r go; " + ask(two_)), {.input = SpawnInput::kPipe, .allowed_domains = more});
  ASSERT_TRUE(process);
  EXPECT_TRUE(reached(sandbox->exec(ask(two_)))) << "the proxy does not tell commands apart";
  EXPECT_TRUE(sandbox->set_network_rules({}));
  EXPECT_FALSE(reached(sandbox->exec(ask(one_))));
  EXPECT_TRUE((*process)->write_stdin("go\n"));
  EXPECT_EQ((*process)->wait()->value().out.bytes, "hello") << "beside whatever rules hold";
  EXPECT_FALSE(reached(sandbox->exec(ask(two_))));

  const auto wrong = sandbox->exec(shell_command("true"), {.allowed_domains = {"a b"}});
  EXPECT_EQ(wrong.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(sandbox->set_network_rules({.allowed_domains = {}, .denied_domains = {place_of(two_)}, .allowed_requests = {}}));
  EXPECT_FALSE(reached(sandbox->exec(shell_command(ask(two_)), {.allowed_domains = more}))) << "deny wins";
}

// What nobody reads in a result is in the next one.
TEST_F(LiveNetwork, NothingIsLostWithAResultThatNobodyReads) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  const auto sandbox = start();
  EXPECT_FALSE(reached(sandbox->exec(ask(two_))));
  {
    auto dropped = sandbox->spawn(shell_command(ask(one_) + "; " + ask(two_) + "; echo done >done"));
    ASSERT_TRUE(dropped);
    EXPECT_TRUE(test::eventually([&] { return bool(sandbox->stat("done")); }));
  }
  EXPECT_TRUE(sandbox->health());
  const ExecResult next = sandbox->exec("true").value();
  ASSERT_EQ(next.egress.size(), 2U);
  EXPECT_EQ(next.egress[0].reason, "allowed");
  EXPECT_EQ(next.violations.size(), 1U);
  EXPECT_EQ(next.violations[0].sequence, 0U);
}

// A host that is closed with its command was not refused to anybody.
TEST_F(LiveNetwork, TheEndOfACommandIsNoViolation) {
  const auto sandbox = start();
  for (int turn = 0; turn < 20; ++turn) {
    const ExecResult result = sandbox->exec(shell_command(ask(one_)), {.allowed_domains = {place_of(one_)}}).value();
    EXPECT_EQ(result.out.bytes, "hello");
    EXPECT_TRUE(result.violations.empty());
  }
  const ExecResult last = sandbox->exec("true").value();
  EXPECT_TRUE(last.violations.empty());
}

TEST_F(LiveNetwork, WhereNoProxyServesItIsRefusedByName) {
  config_.policy.network.mode = NetMode::kNone;
  const auto sandbox = start();
  EXPECT_EQ(sandbox->set_network_rules({}).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(sandbox->exec(shell_command("true"), {.allowed_domains = {"a.example"}}).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(sandbox->exec("true").value().exit_code, 0);
  const auto mock = MockSandbox::create();
  EXPECT_TRUE(mock->start());
  EXPECT_TRUE(mock->set_network_rules({.allowed_domains = {"a.example"}, .denied_domains = {}, .allowed_requests = {}}));
  EXPECT_EQ(mock->calls().back().subject, "a.example");
}

}  // namespace
}  // namespace belljar
