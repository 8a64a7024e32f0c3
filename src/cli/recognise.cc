// Which coding agent a command line starts, so that it gets the profile that is made for it.
//
// The program is looked for as execvp(3) would, with two differences: a relative name, or a relative entry of
// PATH, is looked for where the command starts, which it can write to, so neither counts. An agent that is a
// script is known by the file that node or bun is given. `npx` is no agent: it runs what the workspace has
// under that name.
//
// A profile gives rights, so it must not be had by a name alone. The program, the link that led to it and its
// interpreter all have to lie where no command under this policy, now or in an earlier run, could have put
// them (may_be_planted). If one of them does not, the run goes on under the ordinary profile, and a note says
// how to choose the other one.
//
// Whoever names a profile decides; recognition is for those who did not.
#include "cli/recognise.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/paths.h"
#include "base/real_path.h"
#include "belljar/command.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/policy_flags.h"
#include "cli/tls_program.h"
#include "policy/agents.h"
#include "policy/defaults.h"
#include "policy/explain.h"
#include "policy/host.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/permit.h"

namespace belljar::cli {
namespace {

bool is_program(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<StartedAgent> agent_of_file(const std::string& path) {
  StartedAgent started;
  started.file = real_path(path);
  if (started.file.empty()) return std::nullopt;
  started.agent = policy::find_agent_of_program(started.file);
  if (started.agent == nullptr) return std::nullopt;
  const std::size_t slash = path.rfind('/');
  started.named = real_path(slash == 0 ? "/" : path.substr(0, slash)) + path.substr(slash);
  return started;
}

bool is_interpreter(std::string_view file) {
  const std::string_view name = file_name(file);
  return name == "node" || name == "nodejs" || name == "bun";
}

// A model that an agent is told to ask, and that it would wait for without end: on this machine's own loopback, or nowhere in the
// rules. `NAME_BASE_URL`: what the agents' variables have in common.
void tell_of_models(const LoadedPolicy& loaded) {
  const Network& network = loaded.effective.policy.network;
  if (network.mode == NetMode::kHost) return;
  for (const std::string& entry : policy::build_environment(loaded.effective.policy.environment, own_environment())) {
    const std::string name = entry.substr(0, entry.find('='));
    const std::string url = entry.substr(std::min(name.size() + 1, entry.size()));
    if (!name.ends_with("_BASE_URL") || url.find("://") == std::string::npos) continue;
    const std::string_view rest = policy::place_in_url(url);
    const auto place = policy::parse_destination(rest.substr(0, rest.find('/')),
                                                 url.starts_with("http://") ? policy::kHttpPort : policy::kHttpsPort);
    if (!place) continue;
    if (policy::is_localhost(place->host)) {
      if (std::ranges::find(network.host_ports, place->port, &PortPair::inside) == network.host_ports.end())
        print_note(format("{} leads to port {} of this machine, which the sandbox does not reach; --host-port {} lets it", name,
                          place->port, place->port));
      continue;
    }
    const auto answer = policy::explain_host(loaded.effective, to_string(*place));
    if (answer && !answer->allowed)
      print_note(format("{} leads to {}, which the policy refuses; --allow-domain {} lets it", name,
                        belljar::quoted(to_string(*place)), policy::shell_word(to_string(place->host))));
  }
}

}  // namespace

std::string path_inside(const Environment& environment) {
  std::vector<std::string> own = own_environment();
  std::erase_if(own, [](const std::string& entry) { return !entry.starts_with("PATH="); });
  for (const std::string& entry : policy::build_environment(environment, own)) {
    if (entry.starts_with("PATH=")) return entry.substr(5);
  }
  return {};
}

std::string find_program(const std::string& name, const std::string& path) {
  if (name.starts_with('/')) return is_program(name) ? name : std::string();
  if (name.empty() || name.find('/') != std::string::npos) return {};
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t end = std::min(path.find(':', from), path.size());
    if (path[from] != '/') return {};
    if (std::string full = path.substr(from, end - from) + "/" + name; is_program(full)) return full;
    from = end + 1;
  }
  return {};
}

std::optional<StartedAgent> find_started_agent(const Command& command, const std::string& path) {
  const std::string program = find_program(command.argv.front(), path);
  if (program.empty()) return std::nullopt;
  if (command.argv.size() > 1 && command.argv[1].starts_with('/') && is_interpreter(program)) {
    auto started = agent_of_file(command.argv[1]);
    if (started) started->interpreter = program;
    return started;
  }
  return agent_of_file(program);
}

bool may_be_planted(const StartedAgent& started, const LoadedPolicy& loaded) {
  const Policy& policy = loaded.effective.policy;
  const auto planted = [&](const std::string& path) {
    const FsEntry* const rule = find_rule(loaded.effective.complete, path);
    if (rule == nullptr || rule->access != Access::kRead) return true;
    // Not there inside, so that the next one of that name would be the one that runs.
    for (const std::string_view place : {"/tmp", "/var/tmp", "/dev/shm", "/run/user"}) {
      if (policy::is_within(path, place)) return true;
    }
    // Kept layers show what an earlier command put over the host's file.
    const auto covers = [&path](const std::string& place) { return policy::is_within(path, place); };
    if (policy.filesystem.caches == Caches::kWorkspace && std::ranges::any_of(policy.filesystem.cache_dirs, covers)) return true;
    return std::ranges::any_of(policy.filesystem.volumes, [&](const Volume& volume) { return covers(volume.target); });
  };
  return planted(started.named) || planted(started.file) ||
         (!started.interpreter.empty() && (planted(started.interpreter) || planted(real_path(started.interpreter))));
}

namespace {

// True: `command` is another one now. Where namespaces may be made, or nothing of ours holds, the agent's own sandbox is left to
// it.
bool switch_off_own_sandbox(Command& command, const StartedAgent& started, const Policy& policy) {
  const bool holds = policy.mode == Mode::kWorkspaceWrite || policy.mode == Mode::kReadOnly;
  if (!holds || policy.allow_nested_userns) return false;
  const auto first = command.argv.begin() + (started.interpreter.empty() ? 1 : 2);
  std::vector<std::string> arguments = policy::without_own_sandbox(*started.agent, {first, command.argv.end()});
  const bool changed = arguments.size() != static_cast<std::size_t>(command.argv.end() - first);
  command.argv.erase(first, command.argv.end());
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return changed;
}

}  // namespace

Result<LoadedPolicy> load_policy_for(Command& command, const PolicyFlags& flags) {
  LoadedPolicy loaded = BELLJAR_TRY(load_policy(flags));
  const Policy& policy = loaded.effective.policy;
  const bool chosen = !flags.policy.empty() || loaded.effective.origins.at("profile").layer != "built-in";
  if (chosen && !policy.profile.starts_with("agent-")) return loaded;
  const auto started = find_started_agent(command, path_inside(policy.environment));
  // The other program says all that follows.
  if (chosen && policy.network.mode == NetMode::kProxy) BELLJAR_CHECK(exec_tls_program(policy));
  if (chosen) {
    if (started && started->agent->profile == policy.profile && switch_off_own_sandbox(command, *started, policy))
      print_note(format("{}'s own sandbox is off: this one holds for all that it starts", started->agent->name));
    tell_of_models(loaded);
    return loaded;
  }
  if (!started) return loaded;
  const policy::Agent& agent = *started->agent;
  PolicyFlags with = flags;
  with.recognised = agent.profile;
  LoadedPolicy theirs = BELLJAR_TRY(load_policy(with));
  if (may_be_planted(*started, theirs)) {
    print_note(format("{} lies where commands write, so it does not get the profile {}; --policy {} gives it",
                      belljar::quoted(started->file), agent.profile, agent.profile));
    return loaded;
  }
  if (theirs.effective.policy.network.mode == NetMode::kProxy) BELLJAR_CHECK(exec_tls_program(theirs.effective.policy));
  const bool switched = switch_off_own_sandbox(command, *started, theirs.effective.policy);
  print_note(format("{} runs under its profile (belljar policy show {}){}; without it: --policy {}", agent.name, agent.profile,
                    switched ? ", its own sandbox off" : "", policy.profile));
  tell_of_models(theirs);
  return theirs;
}

}  // namespace belljar::cli
