// From a configuration to a Sandbox. The only place of this room that knows backends by name.
#include <functional>
#include <string_view>

#include "backend/find.h"
#include "base/format.h"
#include "belljar/mock.h"
#include "belljar/sandbox.h"
#include "session/live.h"

namespace belljar {
namespace {

Result<std::shared_ptr<Sandbox>> make_live(const SandboxConfig& config) {
  runtime::Embedded embedded = BELLJAR_TRY(runtime::embed(config.policy, config.workspace, config.caller_env));
  auto host = std::make_shared<backend::RealHost>();
  auto backend = BELLJAR_TRY(backend::find_backend(config.backend, *host));
  return std::shared_ptr<Sandbox>(
      std::make_shared<session::LiveSandbox>(std::move(backend), std::move(host), std::move(embedded), config.idle_timeout));
}

struct Stage {
  std::string_view name, backend;
};
constexpr Stage kStages[] = {{"development", "local"}, {"test", "mock"}, {"production", "native"}};

}  // namespace

Result<std::shared_ptr<Sandbox>> make_sandbox(const SandboxConfig& config) {
  if (config.factory) return config.factory(config);
  constexpr std::string_view kMock = "mock";
  if (kMock != config.backend) return make_live(config);
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
  if (std::string backend = variable("BELLJAR_BACKEND"); !backend.empty()) config.backend = std::move(backend);
  config.workspace = variable("BELLJAR_WORKSPACE");
  if (const std::string timeout = variable("BELLJAR_TIMEOUT"); !timeout.empty())
    config.policy.limits.timeout = BELLJAR_TRY(parse_duration(timeout));
  config.caller_env = environment;
  return config;
}

}  // namespace belljar
