// The coding agents that Belljar knows, as tables: their packages and programs, the variables that move their
// state, and the files that only serve a run.
//
// A program is recognised by the package that its real path lies in, and only then by its name. Names and
// places follow the agents' own documentation, which is named at each table.
#include "policy/agents.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/policy.h"
#include "policy/paths.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

// code.claude.com/docs/en/sandboxing and cli-reference; learn.chatgpt.com/docs/config, and Codex's advice for containers.
constexpr Agent kAgents[] = {
    {"claude", "agent-claude", "@anthropic-ai/claude-code", "@anthropic-ai/claude-code-linux-", "--settings",
     R"({"sandbox":{"enabled":false}})", "--settings "},
    {"codex", "agent-codex", "@openai/codex", "@openai/codex-linux-", "-c", R"(sandbox_mode="danger-full-access")",
     "--sandbox -s --full-auto --dangerously-bypass-approvals-and-sandbox "},
    {"gemini", "agent-gemini", "@google/gemini-cli", "", "", "", ""},
    {"opencode", "agent-opencode", "opencode-ai", "opencode-linux-", "", "", ""},
};

// Documented: code.claude.com/docs/en/settings (CLAUDE_CONFIG_DIR), learn.chatgpt.com/docs/config (CODEX_HOME); opencode follows
// the XDG Base Directory Specification.
struct Move {
  std::string_view profile;
  const char* variable;
  std::string_view place;  // as the profile writes it
  std::string_view below;  // of the variable's directory
};
constexpr Move kMoves[] = {
    {"agent-claude", "CLAUDE_CONFIG_DIR", "~/.claude", ""},
    {"agent-codex", "CODEX_HOME", "~/.codex", ""},
    {"agent-opencode", "XDG_CONFIG_HOME", "~/.config/opencode", "/opencode"},
    {"agent-opencode", "XDG_DATA_HOME", "~/.local/share/opencode", "/opencode"},
    {"agent-opencode", "XDG_STATE_HOME", "~/.local/state/opencode", "/opencode"},
    {"agent-opencode", "XDG_CACHE_HOME", "~/.cache/opencode", "/opencode"},
};

// Move log-ins alone: Claude Code's own text; docs/reference/configuration.md of Gemini CLI. The command does not get them.
constexpr Move kMovedLogIns[] = {
    {"agent-claude", "CLAUDE_SECURESTORAGE_CONFIG_DIR", "~/.claude", ""},
    {"agent-gemini", "GEMINI_CLI_HOME", "~/.gemini", "/.gemini"},
};

// As the programs name them: 2.1.332, 0.171, 0.61, 1.18.33. Copies of ~/.claude.json may hold an API key (primaryApiKey), as it may
// itself; opencode's database holds accounts.
struct LogInFile {
  std::string_view profile, place, name;
  bool opened;  // at its usual place by an entry of the profile, so that it is hidden there once the state is elsewhere
};
constexpr LogInFile kLogInFiles[] = {
    {"agent-claude", "~", "/.claude.json", true},
    {"agent-claude", "~", "/.claude.json.backup", false},
    {"agent-claude", "~/.claude", "/.credentials.json", true},
    {"agent-claude", "~/.claude", "/.config.json", false},
    {"agent-claude", "~/.claude", "/backups", false},
    {"agent-codex", "~/.codex", "/auth.json", true},
    {"agent-codex", "~/.codex", "/.credentials.json", false},
    {"agent-codex", "~/.codex", "/.env", false},
    {"agent-gemini", "~/.gemini", "/oauth_creds.json", true},
    {"agent-gemini", "~/.gemini", "/gemini-credentials.json", true},
    {"agent-gemini", "~/.gemini", "/google_accounts.json", true},
    {"agent-gemini", "~/.gemini", "/mcp-oauth-tokens.json", false},
    {"agent-gemini", "~/.gemini", "/a2a-oauth-tokens.json", false},
    {"agent-gemini", "~/.gemini", "/.env", false},
    {"agent-opencode", "~/.local/share/opencode", "/auth.json", true},
    {"agent-opencode", "~/.local/share/opencode", "/mcp-auth.json", false},
    {"agent-opencode", "~/.local/share/opencode", "/opencode.db", false},
    {"agent-opencode", "~/.local/share/opencode", "/opencode.db-wal", false},
};

// Patterns of paths in the state, each with all below it: what is sourced by later commands of the session, sockets, locks, process
// ids, databases that are filled again, telemetry, caches, what the program brings along. As the programs make them: 2.1.332,
// 0.171, 0.61, 1.18.33.
struct RunFiles {
  std::string_view agent, pattern;
};
constexpr RunFiles kRunFiles[] = {
    {"claude", "shell-snapshots"},
    {"claude", "session-env"},
    {"claude", "sessions"},
    {"claude", "statsig"},
    {"claude", "telemetry"},
    {"claude", "debug"},
    {"claude", "todos"},
    {"claude", "tasks"},
    {"claude", "ide"},
    {"claude", "cache"},
    {"claude", "backups"},
    {"claude", "file-history"},
    {"claude", "paste-cache"},
    {"claude", "*-cache*"},
    {"claude", ".last-*"},
    {"claude", "*.lock"},
    {"claude", "daemon*"},
    {"claude", "jobs"},
    {"claude", "plugins/store/cc-plugin-*_builtin-*"},
    {"codex", "log"},
    {"codex", "tmp"},
    {"codex", ".tmp"},
    {"codex", "cache"},
    {"codex", "shell_snapshots"},
    {"codex", "*.sqlite*"},
    {"codex", "*.lock"},
    {"codex", "*_id"},
    {"codex", "*_cache.json"},
    {"codex", "version.json"},
    {"codex", "thread-writer-locks"},
    {"codex", ".sandbox*"},
    {"codex", "tui-thread-*"},
    {"codex", "app-server*"},
    {"codex", "vendor_imports"},
    {"codex", "skills/.system"},
    {"gemini", "tmp"},
    {"gemini", "history"},
    {"gemini", "*_id"},
    {"gemini", "projects.json*"},
    {"gemini", "state.json*"},
    {"gemini", "*.lock"},
    {"opencode", "*.db*"},
    {"opencode", "log"},
    {"opencode", "storage"},
    {"opencode", "snapshot"},
    {"opencode", "bin"},
    {"opencode", "locks"},
    {"opencode", "repos"},
    {"opencode", "model*.json"},
    {"opencode", "prompt-history.jsonl"},
    {"opencode", "version"},
    {"opencode", "node_modules"},
    {"opencode", "package*.json"},
    {"opencode", "bun.lock*"},
    {"opencode", ".gitignore"},
    {"opencode", "tool-output"},
};

// The innermost package that a file lies in: "@scope/name" or "name"; empty: none.
std::string_view package_of(std::string_view file) noexcept {
  constexpr std::string_view kModules = "/node_modules/";
  const std::size_t at = file.rfind(kModules);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = file.substr(at + kModules.size());
  std::size_t end = rest.find('/');
  if (rest.starts_with('@') && end != std::string_view::npos) end = rest.find('/', end + 1);
  return rest.substr(0, end == std::string_view::npos ? rest.size() : end);
}

// A package holds other programs, too (Codex its own ripgrep).
bool is_main_program(std::string_view name, const Agent& agent) noexcept {
  const std::string_view stem = name.substr(0, name.find('.'));
  return stem == agent.name || stem == "cli" || stem == "index";
}

// Installed without npm: under its name; Claude Code's installer names the file after the version; a release of Codex is named
// after the machine.
bool is_native_program(std::string_view file, std::string_view name, const Agent& agent) noexcept {
  if (name == agent.name) return true;
  if (agent.name == "claude") return parent_of(std::string(file)).ends_with("/claude/versions");
  return agent.name == "codex" && name.starts_with("codex-") && name.find("-linux-") != std::string_view::npos;
}

// Where its variable says that the state lies; empty where it is not set, is "/", or is relative without `cwd`.
std::string moved_to(const Move& move, const std::function<std::string(const char*)>& variable, const std::string& cwd = {}) {
  std::string given = variable(move.variable);
  if (!given.empty() && !given.starts_with('/') && !cwd.empty()) given = cwd + "/" + given;
  std::string to = given.starts_with('/') ? normal(given) : std::string();
  return to == "/" ? std::string() : to;
}

void move_path(std::string& path, const Move& move, const std::string& to) {
  if (is_within(path, move.place)) path = to + std::string(move.below) + path.substr(move.place.size());
}

}  // namespace

std::span<const Agent> agents() noexcept { return kAgents; }

const Agent* find_agent_of_profile(std::string_view profile) noexcept {
  const auto* const found = std::ranges::find(kAgents, profile, &Agent::profile);
  return found == std::end(kAgents) ? nullptr : found;
}

const Agent* find_agent_of_program(std::string_view file) noexcept {
  const std::string_view name = file_name(file);
  const std::string_view package = package_of(file);
  for (const Agent& agent : kAgents) {
    const bool of_package =
        package == agent.package || (!agent.native_packages.empty() && package.starts_with(agent.native_packages));
    if (package.empty() ? is_native_program(file, name, agent) : of_package && is_main_program(name, agent)) return &agent;
  }
  return nullptr;
}

bool is_private_to_run(const Agent& agent, std::string_view path) noexcept {
  return std::ranges::any_of(kRunFiles,
                             [&](const RunFiles& files) { return files.agent == agent.name && glob_covers(files.pattern, path); });
}

std::vector<std::string> without_own_sandbox(const Agent& agent, std::vector<std::string> arguments) {
  const auto says_else = [&](std::string_view argument) {
    const std::string_view name = argument.substr(0, argument.find('='));
    return name == "sandbox_mode" ||
           (name.starts_with('-') && agent.others.find(std::string(name) + " ") != std::string_view::npos);
  };
  // What is answered before anything starts. Claude Code answers it in a third of the time where it stands alone.
  const auto only_asks = [](const std::string& argument) {
    return argument == "--version" || argument == "-v" || argument == "--help" || argument == "-h";
  };
  if (arguments.size() == 1 && only_asks(arguments.front())) return arguments;
  if (agent.option.empty() || std::ranges::any_of(arguments, says_else)) return arguments;
  arguments.insert(arguments.begin(), {std::string(agent.option), std::string(agent.value)});
  return arguments;
}

void move_state(Layer& profile, const std::function<std::string(const char*)>& variable) {
  for (const Move& move : kMoves) {
    if (move.profile != profile.name) continue;
    const std::string to = moved_to(move, variable);
    if (to.empty()) continue;
    for (Setting& setting : profile.settings) {
      if (auto* const entries = std::get_if<std::vector<FsEntry>>(&setting.value)) {
        for (FsEntry& entry : *entries) move_path(entry.path, move, entry.glob ? literal_glob(to) : to);
      } else if (setting.key->type == Type::kPaths) {
        // What is kept from being planted at the usual place stays so: a later start may be without the variable.
        auto& paths = std::get<std::vector<std::string>>(setting.value);
        for (std::size_t i = 0, count = paths.size(); i < count; ++i) {
          std::string moved = paths[i];
          move_path(moved, move, to);
          if (moved != paths[i]) paths.push_back(std::move(moved));
        }
      }
    }
  }
}

const char* relative_variable(std::string_view profile, const std::function<std::string(const char*)>& variable) {
  for (const Move& move : kMoves) {
    const std::string given = move.profile == profile ? variable(move.variable) : std::string();
    if (!given.empty() && !given.starts_with('/')) return move.variable;
  }
  return nullptr;
}

void append_log_ins(std::vector<std::string>& paths, std::string_view home, std::string_view profile) {
  for (const LogInFile& file : kLogInFiles) {
    if (file.opened || file.profile != profile) paths.push_back(format("{}{}{}", home, file.place.substr(1), file.name));
  }
}

std::vector<LogIn> moved_log_ins(const std::string& cwd, const std::function<std::string(const char*)>& variable) {
  std::vector<LogIn> found;
  const auto add = [&](const Move& move) {
    const std::string to = moved_to(move, variable, cwd);
    if (to.empty()) return;
    for (const LogInFile& file : kLogInFiles) {
      // ~/.claude.json lies in CLAUDE_CONFIG_DIR where that is set.
      const bool moves = file.place == move.place || (file.profile == move.profile && file.place == "~");
      if (moves) found.push_back({file.profile, format("{}{}{}", to, move.below, file.name)});
    }
  };
  std::ranges::for_each(kMoves, add);
  std::ranges::for_each(kMovedLogIns, add);
  return found;
}

std::string state_directory(const Agent& agent, const std::string& home, const std::function<std::string(const char*)>& variable) {
  for (const Move& move : kMoves) {
    const std::string to = move.profile == agent.profile ? moved_to(move, variable) : std::string();
    if (!to.empty()) return to + std::string(move.below);
  }
  return format("{}/.{}", home, agent.name);
}

std::vector<std::string> persistent_state(const Layer& profile) {
  std::vector<std::string> paths;
  for (const Setting& setting : profile.settings) {
    const auto* const entries = std::get_if<std::vector<FsEntry>>(&setting.value);
    if (entries == nullptr) continue;
    for (const FsEntry& entry : *entries) {
      if (!entry.glob && entry.access == Access::kWrite) paths.push_back(entry.path);
    }
  }
  return paths;
}

}  // namespace belljar::policy
