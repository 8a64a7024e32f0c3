// From a configuration to a Sandbox. The only place of this room that knows backends by name.
#include <stdlib.h>

#include <cerrno>
#include <functional>
#include <string_view>

#include "backend/find.h"
#include "base/format.h"
#include "base/remove_tree.h"
#include "belljar/mock.h"
#include "belljar/sandbox.h"
#include "session/contained.h"
#include "session/live.h"

namespace belljar {
namespace {

constexpr std::string_view kContainer = "container";
constexpr std::string_view kE2b = "e2b";

Error contradiction(std::string_view what, std::string_view why) {
  return Error(Code::kInvalidArgument, std::string(what)).reason(std::string(why)).next("set one of them");
}

// Of `workspace`, `workspaces` and `persistent_volume` at most one says where.
Result<void> check_places(const SandboxConfig& config) {
  const int named =
      (config.workspace.empty() ? 0 : 1) + (config.workspaces.empty() ? 0 : 1) + (config.persistent_volume.empty() ? 0 : 1);
  if (named > 1)
    return contradiction("cannot choose a workspace",
                         "`workspace`, `workspaces` and `persistent_volume` are three answers to one question");
  if (config.on_stop == OnStop::kClean && config.workspaces.empty())
    return contradiction("cannot clean the workspace on stop",
                         "only one that the sandbox made itself is removed: see `workspaces`");
  if (config.on_start == OnStart::kEmpty && config.persistent_volume.empty())
    return contradiction("cannot empty the workspace on start", "only a `persistent_volume` is emptied");
  return {};
}

Result<std::string> make_workspace(const std::string& parent) {
  std::string path = parent + "/sandbox-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return Error(Code::kFailedPrecondition, format("cannot make a workspace in {}", quoted(parent)))
        .sys(errno, "mkdtemp")
        .next("name an existing directory that you may write to");
  return path;
}

Result<std::shared_ptr<Sandbox>> make_live(const SandboxConfig& config, const std::string& workspace) {
  runtime::Embedded embedded = BELLJAR_TRY(runtime::embed(config.policy, workspace, config.caller_env));
  const session::Lifecycle lifecycle{.idle_timeout = config.idle_timeout,
                                     .remove_workspace = config.on_stop == OnStop::kClean,
                                     .empty_workspace = config.on_start == OnStart::kEmpty};
  if (kContainer == config.backend)
    return std::shared_ptr<Sandbox>(std::make_shared<session::ContainedSandbox>(std::move(embedded), config.container, lifecycle));
  auto host = std::make_shared<backend::RealHost>();
  auto backend = BELLJAR_TRY(backend::find_backend(config.backend, *host));
  return std::shared_ptr<Sandbox>(
      std::make_shared<session::LiveSandbox>(std::move(backend), std::move(host), std::move(embedded), lifecycle));
}

struct Stage {
  std::string_view name, backend;
};
constexpr Stage kStages[] = {{"development", "local"}, {"test", "mock"}, {"production", "native"}};

Result<std::shared_ptr<Sandbox>> make_in_new_workspace(const SandboxConfig& config) {
  const std::string workspace = BELLJAR_TRY(make_workspace(config.workspaces));
  auto sandbox = make_live(config, workspace);
  if (!sandbox) (void)remove_tree(workspace);
  return sandbox;
}

}  // namespace

Result<std::shared_ptr<Sandbox>> make_sandbox(const SandboxConfig& config) {
  if (config.factory) return config.factory(config);
  constexpr std::string_view kMock = "mock";
  BELLJAR_CHECK(check_places(config));
  if (kE2b == config.backend)
    return Error(Code::kUnimplemented, "the e2b backend is a library of its own")
        .reason("who asks no cloud links no HTTP client")
        .next("link belljar::e2b, and set config.factory = e2b_backend() (belljar/e2b.h)");
  if (kMock != config.backend) {
    if (!config.workspaces.empty()) return make_in_new_workspace(config);
    return make_live(config, config.persistent_volume.empty() ? config.workspace : config.persistent_volume);
  }
  if (!config.workspaces.empty() || !config.persistent_volume.empty())
    return Error(Code::kUnimplemented, "cannot put the files of the mock backend anywhere")
        .reason("they live in memory")
        .next("drop `workspaces` and `persistent_volume`, or use another backend");
  return std::shared_ptr<Sandbox>(MockSandbox::create(config.workspace.empty() ? "/workspace" : config.workspace));
}

Result<SandboxConfig> sandbox_config_from(const std::map<std::string, std::string>& environment) {
  SandboxConfig config;
  const auto variable = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string stage = variable("BELLJAR_ENV"); !stage.empty()) {
    config.backend.clear();
    for (const Stage& known : kStages) {
      if (known.name == stage) config.backend = known.backend;
    }
    if (config.backend.empty())
      return Error(Code::kInvalidArgument, format("BELLJAR_ENV is {}", quoted(stage))).next("use development, test or production");
  }
  if (variable("SANDBOX_COMMANDS") == "true") {
    config.backend = kContainer;
    config.container = sandbox_commands();
  }
  if (std::string backend = variable("BELLJAR_BACKEND"); !backend.empty()) config.backend = std::move(backend);
  if (std::string image = variable("BELLJAR_IMAGE"); !image.empty()) config.container.image = std::move(image);
  config.container.engine = variable("BELLJAR_ENGINE");
  config.workspace = variable("BELLJAR_WORKSPACE");
  if (const std::string timeout = variable("BELLJAR_TIMEOUT"); !timeout.empty())
    config.policy.limits.timeout = BELLJAR_TRY(parse_duration(timeout));
  config.caller_env = environment;
  return config;
}

}  // namespace belljar
