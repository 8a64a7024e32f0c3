// The policy's system call filter on commands in containers, on top of the engine's own profile. What is refused here the engines'
// profiles allow: `AProgramThatTheKernelDoesNotTake` shows that of a container without the filter.
#include <gtest/gtest.h>
#include <linux/filter.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/container/container.h"
#include "backend/container/engine.h"
#include "backend/container/inside.h"
#include "backend/container/spec.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/engine.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::EngineKind;

class ContainerFilter : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_, GetParam()));
    fs::copy_file(test::kProbe, work_ / "probe");
    work_.write("file", "");
    work_.give_to(test::user_uid(), test::user_gid());
    config_.backend = "container";
    config_.workspace = work_.path();
    config_.container = {.engine = engine_->address(), .image = test::Engine::image(), .pull = PullPolicy::kNever};
  }
  void TearDown() override {
    if (engine_ != nullptr) {
      EXPECT_TRUE(engine_->containers().empty());
    }
  }
  std::shared_ptr<Sandbox> start() {
    auto made = make_sandbox(config_);
    if (!made) ADD_FAILURE() << made.error().line();
    const auto started = made ? (*made)->start() : Result<void>();
    EXPECT_TRUE(started) << started.error().line();
    return made ? *made : nullptr;
  }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    const auto result = sandbox.exec(text);
    return result ? result->out.bytes + result->err.bytes : result.error().line();
  }
  static std::string clause(const Sandbox& sandbox, const std::string& name) {
    for (const EnforcementClause& found : sandbox.enforcement()) {
      if (found.clause == name) return std::string(to_string(found.enforced)) + ": " + found.mechanism + found.detail;
    }
    return "absent";
  }

  std::unique_ptr<test::Engine> engine_;
  test::TempDir work_;
  SandboxConfig config_;
};

constexpr char kActs[] =
    "./probe socket 1 2; ./probe socket 1 1; ./probe chmod file 4755; ./probe chmod file 755; ./probe own_unix s; rm s";

TEST_P(ContainerFilter, RefusesWhatThePolicyDoesAndTheEngineDoesNot) {
  for (const ContainerMode mode : {ContainerMode::kSession, ContainerMode::kPerCommand}) {
    config_.container.mode = mode;
    config_.policy.network.allow_all_unix_sockets = false;
    config_.policy.require = {"seccomp"};
    const auto held = start();
    EXPECT_EQ(out(*held, kActs), "EACCES\nok\nEPERM\nok\nok\n");
    EXPECT_TRUE(clause(*held, "seccomp").starts_with("full: filter of ")) << clause(*held, "seccomp");
    config_.policy.network.allow_all_unix_sockets = true;
    const auto open = start();
    EXPECT_EQ(out(*open, kActs), "ok\nok\nEPERM\nok\nok\n") << "the twin: another policy, another filter";
    EXPECT_TRUE(clause(*open, "network.unix_sockets").starts_with("full: no restriction")) << clause(*open, "network.unix_sockets");
  }
}

// A terminal's command as well; and one that is not there is told as before.
TEST_P(ContainerFilter, ChangesNothingOfHowCommandsStart) {
  const auto sandbox = start();
  const auto terminal = sandbox->spawn(shell_command("test -t 0 && ./probe socket 1 2"), {.terminal = TerminalSize{}});
  ASSERT_TRUE(terminal) << terminal.error().line();
  EXPECT_EQ((*(*terminal)->wait())->out.bytes, "EACCES\r\n");
  const auto missing = sandbox->exec(Command{.argv = {"no-such-program"}});
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->exit_code, 127);
  EXPECT_EQ(sandbox->exec("exit 7")->exit_code, 7);
}

// Capabilities are for what the filter refuses: then it is off, and the report says so.
TEST_P(ContainerFilter, IsOffWhereCapabilitiesAreGivenBack) {
  config_.policy.allow_root_uid = true;
  config_.container.user = "0:0";
  config_.container.capabilities = {"CHOWN"};
  const auto sandbox = start();
  EXPECT_TRUE(clause(*sandbox, "seccomp").starts_with("partial: the engine's default profile")) << clause(*sandbox, "seccomp");
  EXPECT_EQ(out(*sandbox, "./probe socket 1 2"), "ok\n");
  config_.policy.require = {"seccomp"};
  auto refused = make_sandbox(config_);
  ASSERT_TRUE(refused) << refused.error().line();
  EXPECT_EQ((*refused)->start().error().code(), Code::kFailedPrecondition);
}

TEST_P(ContainerFilter, AProgramThatTheKernelDoesNotTakeIsAnErrorUnlessAccepted) {
  using namespace backend::container;
  const InstalledFiles installed = install_inside(work_ / "state").value();
  Engine engine = Engine::connect(parse_address(engine_->address()).value(), 60s).value();
  Spec spec;
  spec.image = test::Engine::image();
  spec.entrypoint = {"/.belljar/inside"};
  spec.user = std::to_string(test::user_uid()) + ":" + std::to_string(test::user_gid());
  spec.workdir = "/";
  spec.network = "none";
  spec.binds = {{installed.program, "/.belljar/inside", true}};
  spec.state = installed.state;
  spec.filter = {{BPF_LD | BPF_IMM, 0, 0, 0}};  // ends without an answer
  const auto refused = Container::start(engine, spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what(), "cannot install the policy's system call filter in the container");
  EXPECT_EQ(refused.error().errnum(), EINVAL);
  EXPECT_TRUE(engine_->containers().empty());
  spec.filter_may_be_missing = true;
  const auto accepted = Container::start(engine, spec);
  ASSERT_TRUE(accepted) << accepted.error().line();
  EXPECT_FALSE((*accepted)->filtered());
  spec.filter_may_be_missing = false;
  spec.filter = {{BPF_RET | BPF_K, 0, 0, 0x7fff0000U}};  // allows everything
  const auto taken = Container::start(engine, spec);
  ASSERT_TRUE(taken) << "the twin: " << taken.error().line();
  EXPECT_TRUE((*taken)->filtered());
}

INSTANTIATE_TEST_SUITE_P(Engines, ContainerFilter, testing::Values(EngineKind::kDocker, EngineKind::kPodman),
                         [](const auto& kind) { return kind.param == EngineKind::kDocker ? "Docker" : "Podman"; });

}  // namespace
}  // namespace belljar
