// From a configuration to a Sandbox. The only place of this room that knows backends by name.
#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/find.h"
#include "backend/paths/host.h"
#include "base/environment.h"
#include "base/format.h"
#include "base/paths.h"
#include "base/remove_tree.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/mock.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/state_dir.h"
#include "belljar/txn.h"
#include "belljar/units.h"
#include "policy/backends.h"
#include "policy/check_policy.h"
#include "runtime/embed.h"
#include "runtime/unsupported.h"
#include "runtime/violations.h"
#include "session/chosen.h"
#include "session/container_sandbox.h"
#include "session/lifecycle.h"
#include "session/live.h"

namespace belljar {
namespace {

constexpr std::string_view kNative = "native";
constexpr std::string_view kMock = "mock";

Error contradiction(std::string_view what, std::string_view why) {
  return Error(Code::kInvalidArgument, std::string(what)).reason(std::string(why)).next("set one of them");
}

// A NUL byte ends a path for the kernel: another directory than the one that was named.
Result<void> check_names(const SandboxConfig& config) {
  const std::pair<std::string_view, const std::string*> names[] = {{"backend", &config.backend},
                                                                   {"workspace", &config.workspace},
                                                                   {"workspaces", &config.workspaces},
                                                                   {"persistent_volume", &config.persistent_volume},
                                                                   {"transaction", &config.transaction},
                                                                   {"state_dir", &config.state_dir},
                                                                   {"container.engine", &config.container.engine},
                                                                   {"container.image", &config.container.image},
                                                                   {"container.workspace_at", &config.container.workspace_at}};
  for (const auto& [name, value] : names) {
    if (value->find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, format("cannot make a sandbox with the `{}` {}", name, quoted(*value)))
          .reason("it holds a NUL byte");
  }
  return {};
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
  if (!config.transaction.empty() && (!config.workspaces.empty() || config.on_start == OnStart::kEmpty))
    return contradiction("cannot begin a transaction",
                         "a transaction goes on from what the workspace holds, and this one is made anew");
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

Result<void> check_transaction(const SandboxConfig& config) {
  if (config.transaction.empty() || kNative == config.backend) return {};
  return Error(Code::kUnimplemented, format("the {} backend has no transactions", config.backend))
      .reason("they are overlays in mount namespaces of our own")
      .next("use backend native, or drop `transaction`");
}

Result<std::shared_ptr<Sandbox>> make_live(const SandboxConfig& config, const std::string& workspace) {
  runtime::Embedded embedded = BELLJAR_TRY(runtime::embed(config.policy, workspace, config.caller_env));
  if (!config.origins.empty()) embedded.origins = std::make_shared<const runtime::Origins>(config.origins);
  session::Lifecycle lifecycle{.idle_timeout = config.idle_timeout,
                               .remove_workspace = config.on_stop == OnStop::kClean,
                               .empty_workspace = config.on_start == OnStart::kEmpty,
                               .shared_volume = !config.persistent_volume.empty(),
                               .transaction = {},
                               .siblings = config.siblings,
                               .gathered = {}};
  if (!config.workspaces.empty()) lifecycle.gathered = parent_of(embedded.place.workspace);
  if (!config.transaction.empty())
    lifecycle.transaction =
        txn::Place{embedded.place.workspace, config.state_dir.empty() ? default_state_dir() : config.state_dir, config.transaction};
  if (policy::kContainer == config.backend) {
    ContainerOptions options = config.container;
    if (config.policy.container.image) options.image = *config.policy.container.image;
    if (config.policy.container.pull) options.pull = *config.policy.container.pull;
    return std::shared_ptr<Sandbox>(
        std::make_shared<session::ContainerSandbox>(std::move(embedded), std::move(options), std::move(lifecycle), config.cancel));
  }
  auto host = std::make_shared<backend::RealHost>();
  auto backend = BELLJAR_TRY(backend::find_backend(config.backend, *host));
  return std::shared_ptr<Sandbox>(std::make_shared<session::LiveSandbox>(std::move(backend), std::move(host), std::move(embedded),
                                                                         std::move(lifecycle), config.cancel));
}

Result<std::shared_ptr<Sandbox>> make_by(const SandboxFactory& factory, const SandboxConfig& config) {
  auto made = factory(config);
  if (made && *made == nullptr)
    return Error(Code::kInternal, "cannot make a sandbox").reason("the factory returned neither a sandbox nor an error");
  return made;
}

// One backend, by its name.
Result<std::shared_ptr<Sandbox>> make_one(const SandboxConfig& config) {
  if (config.factory) return make_by(config.factory, config);
  BELLJAR_CHECK(check_transaction(config));
  if (const auto own = config.factories.find(config.backend); own != config.factories.end()) return make_by(own->second, config);
  if (!policy::too_weak(config.backend, config.policy.isolation).empty())
    return policy::too_weak_error(config.backend, config.policy.isolation);
  if (const auto* const kind = policy::find_backend_kind(config.backend); kind != nullptr && kind->elsewhere)
    return Error(Code::kUnimplemented, format("the {} backend is a library of its own", config.backend))
        .reason("who asks no cloud links no HTTP client")
        .next(format("`belljar run --backend {0}`; from code link belljar::{0}, and set config.factory = {0}_backend() "
                     "(belljar/{0}.h), or config.factories",
                     config.backend));
  if (kMock != config.backend)
    return make_live(config, config.persistent_volume.empty() ? config.workspace : config.persistent_volume);
  if (!config.workspaces.empty() || !config.persistent_volume.empty())
    return Error(Code::kUnimplemented, "cannot put the files of the mock backend anywhere")
        .reason("they live in memory")
        .next("drop `workspaces` and `persistent_volume`, or use another backend");
  BELLJAR_CHECK(runtime::check_supported(config.policy));  // refused by name, as by every other backend
  return std::shared_ptr<Sandbox>(MockSandbox::create(config.workspace.empty() ? "/workspace" : config.workspace));
}

Result<std::shared_ptr<Sandbox>> make_first_of(const std::vector<std::string>& order, const SandboxConfig& config) {
  std::vector<session::ChosenSandbox::Candidate> candidates;
  std::vector<TriedBackend> unmade;
  for (const std::string& name : order) {
    SandboxConfig one = config;
    one.backend = name;
    one.fallback.clear();
    if (!candidates.empty()) one.factory = {};  // it stands for `backend`
    auto made = make_one(one);
    if (!made && !policy::is_worth_another(made.error())) return made.error();
    if (!made) unmade.push_back({name, made.error().line()});
    candidates.push_back({made ? std::string((*made)->backend()) : name, std::move(made)});
  }
  if (unmade.size() == candidates.size()) return policy::none_starts(unmade);
  return std::shared_ptr<Sandbox>(std::make_shared<session::ChosenSandbox>(std::move(candidates)));
}

Result<std::shared_ptr<Sandbox>> make_named(const SandboxConfig& config) {
  if (!config.factory && config.backend.empty())
    return Error(Code::kInvalidArgument, "cannot make a sandbox").reason("`backend` is empty").next("name one, such as native");
  // With a fallback a mistyped name would be one more backend that does not start.
  if (!config.factory && !policy::is_backend(config.backend) && !config.factories.contains(config.backend))
    return Error(Code::kUnimplemented, format("there is no backend {}", quoted(config.backend)))
        .next(policy::backend_hint(config.backend));
  const std::string first = config.factory ? "factory" : config.backend;
  const std::vector<std::string> order = BELLJAR_TRY(policy::backend_order(first, config.fallback, config.policy.isolation));
  if (!config.factory) BELLJAR_CHECK(policy::check_backend_keys(config.policy, order));
  if (order.size() > 1) return make_first_of(order, config);
  return make_one(config);
}

}  // namespace

Result<std::shared_ptr<Sandbox>> make_sandbox(const SandboxConfig& config) {
  BELLJAR_CHECK(check_names(config));
  BELLJAR_CHECK(policy::check_policy(config.policy));  // here for every backend: some read no more than a part of it
  if (config.factory && config.fallback.empty()) return make_by(config.factory, config);
  BELLJAR_CHECK(check_places(config));
  if (config.workspaces.empty() || kMock == config.backend) return make_named(config);
  SandboxConfig placed = config;
  placed.workspace = BELLJAR_TRY(make_workspace(config.workspaces));
  auto sandbox = make_named(placed);
  if (!sandbox) (void)remove_tree(placed.workspace);
  return sandbox;
}

Result<SandboxConfig> sandbox_config_from(const std::map<std::string, std::string>& environment) {
  SandboxConfig config;
  const auto variable = [&](const char* name) { return variable_of(environment, name); };
  policy::FromEnvironment said = BELLJAR_TRY(policy::backend_of_environment(variable));
  if (!said.backend.empty()) config.backend = std::move(said.backend);
  if (said.own_containers) config.container = sandbox_commands();
  if (std::string image = variable("BELLJAR_IMAGE"); !image.empty()) config.container.image = std::move(image);
  config.container.engine = variable("BELLJAR_ENGINE");
  config.workspace = variable("BELLJAR_WORKSPACE");
  if (const std::string timeout = variable("BELLJAR_TIMEOUT"); !timeout.empty())
    config.policy.limits.timeout = BELLJAR_TRY(parse_duration(timeout));
  if (config.policy.limits.timeout == std::chrono::milliseconds(0))
    return Error(Code::kInvalidArgument, "BELLJAR_TIMEOUT is 0").next("give a positive time, or leave it out");
  config.caller_env = environment;
  return config;
}

}  // namespace belljar
