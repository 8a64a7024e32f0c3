// `belljar` alone on a terminal: what to try here, in ten lines.
#include <unistd.h>

#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/native/native.h"
#include "backend/paths/host.h"
#include "backend/probe.h"
#include "base/environment.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/recognise.h"
#include "policy/agents.h"

namespace belljar::cli {
namespace {

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string row(std::string_view command, std::string_view text) { return format("  {:<42} {}\n", command, text); }

// Why no sandbox starts here, and what to do; empty: one does.
std::string find_trouble(const Result<LoadedPolicy>& loaded) {
  const auto told = [](const std::string& why, const std::string& next) {
    return "No sandbox starts here: " + escaped(why) + "\n" + next + "\n";
  };
  const backend::RealHost host;
  const backend::Probe probe = backend::probe_user_namespaces(host);
  if (!probe.works) {
    const backend::Advice advice = backend::advise_userns(backend::read_userns_settings(), 0, own_path());
    if (advice.remedy) return told(advice.cause, row("sudo belljar setup", "allows it; --dry-run shows how"));
    return told(advice.cause.empty() ? probe.detail : advice.cause,
                row("belljar run --backend landlock -- AGENT", "holds less, and needs none"));
  }
  const auto told_of = [&](const Error& error) {
    return told(error.reason().empty() ? error.what() : error.reason(),
                error.next().empty() ? "" : "  " + escaped(error.next()) + "\n");
  };
  if (!loaded) return told_of(loaded.error());
  backend::NativeBackend native(host);
  backend::Workplace place;
  place.workspace = place.cwd = loaded->context.workspace;
  place.home = loaded->context.home;
  const auto prepared = native.prepare(loaded->effective.policy, place);
  if (!prepared) return told_of(prepared.error());
  for (const std::string& path : prepared->remove_after) ::rmdir(path.c_str());
  return {};
}

// What somebody would have run here anyway.
std::string likely_command(const std::string& directory) {
  constexpr struct {
    std::string_view file, command;
  } kKinds[] = {{"package.json", "npm test"},
                {"Cargo.toml", "cargo test"},
                {"go.mod", "go test ./..."},
                {"pyproject.toml", "python3 -m pytest"},
                {"CMakeLists.txt", "cmake --build build"},
                {"Makefile", "make"}};
  for (const auto& [file, command] : kKinds) {
    if (is_there(format("{}/{}", directory, file))) return std::string(command);
  }
  return "date > now.txt";
}

bool is_in_repository(std::string directory) {
  while (!directory.empty() && !is_there(directory + "/.git")) directory.resize(directory.rfind('/'));
  return !directory.empty();
}

std::string agents() {
  std::string text;
  for (const policy::Agent& agent : policy::agents()) {
    if (!find_program(std::string(agent.name), own_variable("PATH")).empty())
      text += row(format("belljar run -- {}", agent.name), text.empty() ? "your agent, in a sandbox" : "");
  }
  return text.empty() ? row("belljar run -- AGENT", "no claude, codex ... found here") : text;
}

}  // namespace

int welcome() {
  const auto loaded = load_policy(PolicyFlags());
  const std::string here = loaded ? loaded->context.workspace : std::string();
  std::string text = "Belljar runs what a language model proposed: it can work here and do no harm.\n\n";
  const std::string trouble = find_trouble(loaded);
  text += trouble;
  if (here.empty()) {
    text += "Then:\n" + row("mkdir try && cd try && belljar", "what to try there");
  } else {
    text += format("{}, in {}{}:\n", trouble.empty() ? "Try here" : "Then", escaped(here),
                   is_in_repository(here) ? " (a git repository)" : "");
    text += agents();
    text += row(format("belljar run --txn -c '{}'", likely_command(here)), "its changes stay apart");
    text += row("belljar diff", "then belljar commit, or rollback");
    text += row("belljar run -c 'echo x >> ~/.bashrc'", "refused; belljar explain last");
  }
  text += row("belljar doctor", "what holds a command on this machine");
  text += row("belljar --help", "all commands");
  return print_result(text);
}

}  // namespace belljar::cli
