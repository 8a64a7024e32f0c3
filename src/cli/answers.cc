// Answers that a person gave to an agent inside, kept for the next run: whether a directory is trusted, for
// instance.
//
// The state in the sandbox is a copy that is dropped at the end, so without this each start would ask again.
// The opposite, letting the whole file persist, would let a command change settings of the next start. So
// only the answers themselves are taken out of the file at the end (policy/answers.h knows which members
// those are), kept in a file of ours, and put into the copy at the next start.
//
// The host's file is read only if the command may see it anyway: a copy must not show what the policy hides.
// The kept answers are written by rename, because runs may end at the same time.
#include "cli/answers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/environment.h"
#include "base/format.h"
#include "base/made_directories.h"
#include "base/paths.h"
#include "base/real_path.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "cli/dropped.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "policy/agents.h"
#include "policy/answers.h"
#include "policy/defaults.h"
#include "policy/paths.h"
#include "runtime/run.h"

namespace belljar::cli {
namespace {

constexpr std::uint64_t kMostOfAnswers = 4ULL << 20;

// An agent that a policy starts, and where it keeps its state.
struct AgentStateLocation {
  const policy::Agent* agent = nullptr;
  std::string state;
  policy::AnswerContext context;
};

std::optional<AgentStateLocation> agent_place(const LoadedPolicy& loaded) {
  AgentStateLocation place;
  place.agent = policy::find_agent_of_profile(loaded.effective.policy.profile);
  if (place.agent == nullptr || loaded.context.home.empty()) return std::nullopt;
  place.state = policy::state_directory(*place.agent, loaded.context.home, own_variable);
  place.context.workspace = loaded.context.workspace;
  constexpr std::string_view kKey = "ANTHROPIC_API_KEY=";
  for (const std::string& entry : policy::build_environment(loaded.effective.policy.environment, own_environment())) {
    if (entry.starts_with(kKey)) place.context.key = entry.substr(kKey.size());
  }
  return place;
}

std::string file_of_answers(std::string_view agent) {
  const std::string state = default_state_dir();
  return state.empty() ? state : format("{}/agents/{}.answers", state, agent);
}

policy::Answers known_answers(std::string_view agent) {
  const auto text = read_plain(file_of_answers(agent), kMostOfAnswers);
  return text ? policy::parse_answers(*text).value_or(policy::Answers{}) : policy::Answers{};
}

bool is_visible(const LoadedPolicy& loaded, const std::string& path) {
  const FsEntry* const rule = find_rule(loaded.effective.complete, path);
  return rule != nullptr && rule->access != Access::kNone;
}

// The host's text of a file; nullopt: there is something else, or the command may not see it. "": nothing is there.
std::optional<std::string> text_on_host(const LoadedPolicy& loaded, const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT ? std::optional<std::string>("") : std::nullopt;
  const std::string real = real_path(path);
  if (real.empty() || !is_visible(loaded, path) || !is_visible(loaded, real)) return std::nullopt;
  return read_plain(real, kMostOfAnswers);
}

// Where Claude Code would look without a layer.
std::string claude_config(const AgentStateLocation& place, const std::string& home) {
  struct stat status{};
  std::string legacy = format("{}/{}", place.state, policy::kClaudeConfig);
  if (::lstat(legacy.c_str(), &status) == 0) return legacy;
  return (own_variable("CLAUDE_CONFIG_DIR").starts_with('/') ? place.state : home) + "/.claude.json";
}

// By rename, so that a run that ends beside this one finds a whole file.
bool write_answers(const std::string& path, const policy::Answers& answers) {
  MadeDirectories made;
  if (made.make(parent_of(path)).errnum != 0) return false;
  made.keep();
  const std::string temporary = format("{}.{}", path, ::getpid());
  ::unlink(temporary.c_str());
  const UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.valid() && write_all(file.get(), policy::to_json(answers)) && ::rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  ::unlink(temporary.c_str());
  return false;
}

// Nothing else tells: the copy is dropped without a word, and `claude mcp add` has said that it was added.
void tell_of_servers(const LoadedPolicy& loaded, const AgentStateLocation& place, const policy::AnswerFile& file,
                     std::string_view after) {
  const auto before = file.whole ? text_on_host(loaded, claude_config(place, loaded.context.home)) : std::nullopt;
  if (before && policy::differs_in_servers(file, *before, after))
    print_note(format("MCP servers that {0} was given or lost inside stay as they were: use `{0} mcp` outside", place.agent->name));
}

}  // namespace

void lay_answers(const LoadedPolicy& loaded, backend::Workplace& workplace) {
  const auto place = agent_place(loaded);
  if (!place) return;
  const policy::Answers answers = known_answers(place->agent->name);
  for (const policy::AnswerFile& file : policy::answer_files(place->agent->name)) {
    const std::string path = format("{}/{}", place->state, file.name);
    const std::string usual = file.whole ? claude_config(*place, loaded.context.home) : path;
    const auto host = text_on_host(loaded, usual);
    if (!host) continue;
    auto text = policy::with_answers(file, *host, place->context, answers);
    if (!text) continue;
    workplace.laid.emplace_back(path, *std::move(text));
    // Of two files with content the agent says at each start which one it takes, and that the other be moved away.
    if (usual != path && !host->empty()) workplace.replaced.push_back(usual);
  }
}

void keep_answers(const runtime::RunOutcome& ran, const LoadedPolicy& loaded) {
  const auto place = agent_place(loaded);
  const std::string kept = place ? file_of_answers(place->agent->name) : std::string();
  if (kept.empty()) return;
  const policy::Answers before = known_answers(place->agent->name);
  policy::Answers answers = before;
  const std::string real = real_path(place->state);
  for (const runtime::ScratchLayer& layer : ran.scratch) {
    if (layer.path != place->state && layer.path != real) continue;
    for (const policy::AnswerFile& file : policy::answer_files(place->agent->name)) {
      if (const auto text = read_plain_at(layer.content.get(), std::string(file.name), kMostOfAnswers))
        tell_of_servers(loaded, *place, file, *text), policy::read_answers(file, *text, place->context, answers);
    }
  }
  if (answers == before || !write_answers(kept, answers)) return;
  print_note(format("what you answered to {} holds for its next starts inside: belljar agents forget {} asks anew",
                    place->agent->name, place->agent->name));
}

bool differs_in_answers_alone(const LoadedPolicy& loaded, std::string_view name, const std::string* before,
                              std::string_view after) {
  const policy::Agent* const agent = policy::find_agent_of_profile(loaded.effective.policy.profile);
  if (agent == nullptr) return false;
  const auto files = policy::answer_files(agent->name);
  const auto file = std::ranges::find(files, name, &policy::AnswerFile::name);
  if (file == files.end()) return false;
  const auto place = agent_place(loaded);
  if (!place) return false;
  if (file->whole && before == nullptr) return true;
  return policy::same_but_answers(*file, before == nullptr ? std::string_view() : std::string_view(*before), after, place->context);
}

Result<void> forget_answers(std::string_view agent) {
  BELLJAR_TRY(dropped_files(agent));
  const std::string path = file_of_answers(agent);
  if (!path.empty() && ::unlink(path.c_str()) != 0 && errno != ENOENT)
    return Error(Code::kPermissionDenied, format("cannot remove {}", quoted(path))).sys(errno, "unlink");
  return {};
}

}  // namespace belljar::cli
