// A live sandbox in a real engine's container whose network is our proxy: what tests/conformance/network_test.cc says of the native
// one. The servers are the test's own, on the host's loopback; the client is the image's busybox.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/sandbox.h"
#include "belljar/state_dir.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/model_server.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class ContainerNetwork : public testing::TestWithParam<test::EngineKind> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_, GetParam()));
    place_.give_to(test::user_uid(), test::user_gid());
    config_.backend = "container";
    config_.workspace = place_.path();
    config_.policy.network.mode = NetMode::kProxy;
    config_.container = {.engine = engine_->address(), .image = test::Engine::image(), .pull = PullPolicy::kNever};
    left_ = std::make_unique<test::Leftovers>();
  }
  void TearDown() override {
    if (engine_ == nullptr) return;
    EXPECT_TRUE(engine_->containers().empty());
    EXPECT_EQ(shown(), 0) << "doors, and files that were shown";
  }

  std::shared_ptr<Sandbox> start() {
    auto made = make_sandbox(config_);
    if (!made) ADD_FAILURE() << made.error().line();
    const auto started = made ? (*made)->start() : Result<void>();
    EXPECT_TRUE(started) << started.error().line();
    return made ? *made : nullptr;
  }
  static std::string place_of(const test::ModelServer& server) { return server.url().substr(std::string_view("http://").size()); }
  static std::string ask(const test::ModelServer& server) {
    return "unset no_proxy NO_PROXY; wget -q -O - --post-data x http://" + place_of(server) + "/";
  }
  static bool reached(const Result<ExecResult>& result) { return result && result->out.bytes == "hello"; }
  static int shown() {
    int count = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(default_state_dir() + "/container", ignored))
      count += entry.path().filename().native().starts_with("shown-") ? 1 : 0;
    return count;
  }
  static EnforcementClause clause(Sandbox& sandbox, const std::string& name) {
    const EnforcementReport report = sandbox.enforcement();
    const auto found = std::ranges::find(report, name, &EnforcementClause::clause);
    return found == report.end() ? EnforcementClause{} : *found;
  }

  std::unique_ptr<test::Engine> engine_;
  const test::TempDir place_;
  const test::ModelServer one_{{{.pieces = {"hello"}, .type = "text/plain"}}}, two_{{{.pieces = {"hello"}, .type = "text/plain"}}};
  std::unique_ptr<test::Leftovers> left_;
  SandboxConfig config_;
};

TEST_P(ContainerNetwork, AResultTellsWhatWentThroughAndWhatWasRefused) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  config_.origins = {{"network.allowed_domains", Origin{"project", "/p/policy.toml", 3}}};
  const auto sandbox = start();
  const ExecResult through = sandbox->exec(ask(one_)).value();
  EXPECT_EQ(through.out.bytes, "hello") << through.err.bytes;
  ASSERT_EQ(through.egress.size(), 1U);
  EXPECT_EQ(through.egress[0].reason, "allowed");
  EXPECT_TRUE(through.violations.empty());
  const ExecResult refused = sandbox->exec(ask(two_)).value();
  EXPECT_FALSE(reached(refused));
  ASSERT_EQ(refused.violations.size(), 1U);
  EXPECT_EQ(refused.violations[0].rule, "network.allowed_domains");
  EXPECT_EQ(refused.violations[0].target, place_of(two_));
  EXPECT_EQ(refused.violations[0].program, "wget");
  EXPECT_EQ(refused.violations[0].origin, (Origin{"project", "/p/policy.toml", 3}));
  EXPECT_TRUE(sandbox->exec("true").value().egress.empty());
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(left_->report(), "");
}

TEST_P(ContainerNetwork, RulesChangeWhileItRuns) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  const auto sandbox = start();
  EXPECT_TRUE(reached(sandbox->exec(ask(one_))));
  EXPECT_TRUE(sandbox->set_network_rules({.allowed_domains = {place_of(two_)}, .denied_domains = {}, .allowed_requests = {}}));
  const ExecResult refused = sandbox->exec(ask(one_)).value();
  ASSERT_EQ(refused.violations.size(), 1U);
  EXPECT_EQ(refused.violations[0].origin.layer, "rules set while the sandbox ran");
  EXPECT_TRUE(reached(sandbox->exec(ask(two_))));
  EXPECT_EQ(clause(*sandbox, "network.domains").asked, "1 rule allowed, 0 rules denied; public addresses only unless listed");
  const auto wrong = sandbox->set_network_rules({.allowed_domains = {"a b"}, .denied_domains = {}, .allowed_requests = {}});
  EXPECT_EQ(wrong.error().code(), Code::kInvalidArgument);
  const auto requests =
      sandbox->set_network_rules({.allowed_domains = {}, .denied_domains = {}, .allowed_requests = {"GET a.example/"}});
  EXPECT_EQ(requests.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(reached(sandbox->exec(ask(two_))));
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ(sandbox->set_network_rules({}).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(sandbox->start());
  EXPECT_TRUE(reached(sandbox->exec(ask(one_)))) << "the policy's own again";
  EXPECT_FALSE(reached(sandbox->exec(ask(two_))));
}

TEST_P(ContainerNetwork, AHostIsOpenForOneCommand) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  const auto sandbox = start();
  const std::vector<std::string> more = {place_of(two_)};
  EXPECT_FALSE(reached(sandbox->exec(ask(two_))));
  EXPECT_TRUE(reached(sandbox->exec(shell_command(ask(two_)), {.allowed_domains = more})));
  EXPECT_FALSE(reached(sandbox->exec(ask(two_)))) << "it has ended";
  auto process = sandbox->spawn(shell_command(ask(two_)), {.allowed_domains = more});
  ASSERT_TRUE(process);
  EXPECT_EQ((*process)->wait()->value().out.bytes, "hello");
  EXPECT_FALSE(reached(sandbox->exec(ask(two_)))) << "with the handle still there";
  EXPECT_EQ(sandbox->exec(shell_command("true"), {.allowed_domains = {"a b"}}).error().code(), Code::kInvalidArgument);
}

TEST_P(ContainerNetwork, EachCommandsOwnContainerHasAWayOutOfItsOwn) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  config_.container.mode = ContainerMode::kPerCommand;
  const auto sandbox = start();
  EXPECT_EQ(clause(*sandbox, "network").asked, "no route out but the proxy");
  const ExecResult through = sandbox->exec(ask(one_)).value();
  EXPECT_EQ(through.out.bytes, "hello") << through.err.bytes;
  EXPECT_EQ(through.egress.size(), 1U);
  EXPECT_EQ(sandbox->exec(ask(two_)).value().violations.size(), 1U);
  EXPECT_TRUE(reached(sandbox->exec(shell_command(ask(two_)), {.allowed_domains = {place_of(two_)}})));
  EXPECT_TRUE(sandbox->set_network_rules({.allowed_domains = {place_of(two_)}, .denied_domains = {}, .allowed_requests = {}}));
  EXPECT_TRUE(reached(sandbox->exec(ask(two_)))) << "of containers that begin later, too";
  EXPECT_FALSE(reached(sandbox->exec(ask(one_))));
  EXPECT_EQ(shown(), 0);
}

// What nobody reads in a result is in the next one.
TEST_P(ContainerNetwork, NothingIsLostWithAResultThatNobodyReads) {
  config_.policy.network.allowed_domains = {place_of(one_)};
  const auto sandbox = start();
  {
    auto dropped = sandbox->spawn(shell_command(ask(one_) + "; " + ask(two_) + "; echo done >done"));
    ASSERT_TRUE(dropped);
    EXPECT_TRUE(test::eventually([&] { return bool(sandbox->stat("done")); }));
  }
  const ExecResult next = sandbox->exec("true").value();
  EXPECT_EQ(next.egress.size(), 2U);
  EXPECT_EQ(next.violations.size(), 1U);
}

TEST_P(ContainerNetwork, APortInsideIsPublished) {
  config_.policy.network.mode = NetMode::kNone;
  UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  config_.policy.network.publish = {{.host = ntohs(address.sin_port), .inside = 8080}};
  auto refused = make_sandbox(config_);
  ASSERT_TRUE(refused);
  EXPECT_NE((*refused)->start().error().what().find("cannot publish on port"), std::string::npos);
  taken.reset();
  const auto sandbox = start();
  auto server = sandbox->spawn(shell_command("nc -l -p 8080 -e echo served"));
  ASSERT_TRUE(server);
  std::string got;
  EXPECT_TRUE(test::eventually([&] {
    const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size), 0) << "the front listens";
    char bytes[16];
    if (const ssize_t read = ::read(client.get(), bytes, sizeof bytes); read > 0) got.assign(bytes, static_cast<std::size_t>(read));
    return !got.empty();
  }));
  EXPECT_EQ(got, "served\n");
  EXPECT_TRUE(sandbox->stop());
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size), 0) << "it went with the sandbox";
}

TEST_P(ContainerNetwork, WhereNoProxyServesItIsRefusedByName) {
  config_.policy.network.mode = NetMode::kNone;
  const auto sandbox = start();
  EXPECT_EQ(sandbox->set_network_rules({}).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(sandbox->exec(shell_command("true"), {.allowed_domains = {"a.example"}}).error().reason(),
            "no proxy of ours serves this sandbox");
  EXPECT_EQ(sandbox->exec("true").value().exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, ContainerNetwork, testing::Values(test::EngineKind::kDocker, test::EngineKind::kPodman),
                         [](const auto& each) { return each.param == test::EngineKind::kDocker ? "Docker" : "Podman"; });

}  // namespace
}  // namespace belljar
