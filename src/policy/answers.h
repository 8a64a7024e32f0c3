// What a person answered to an agent inside: trust in a folder, a theme, how to log in. The agent writes it between settings, hooks
// and MCP servers, in files that are dropped at the end. These answers alone, each of a known form, are kept and are in the files
// of the next start inside. The agent's own files on the host never get them: a command inside can forge each of them, and trust
// that was given in a sandbox is none outside.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "belljar/result.h"
#include "policy/agents.h"

namespace belljar::policy {

struct Answers {
  bool onboarded = false;  // the first screens of an agent were seen
  std::string theme;       // empty: not chosen; so is `auth`, how to log in
  std::string auth;
  std::map<std::string, bool> trusted;  // folders
  std::map<std::string, bool> keys;     // the last characters of an API key, as Claude Code has them: it may be used
  bool operator==(const Answers&) const = default;
};

// Our own file of them. Errors: kInvalidArgument, it is none.
Result<Answers> parse_answers(std::string_view text);
std::string to_json(const Answers& answers);

struct AnswerFile {
  std::string_view agent;
  std::string_view name;  // in the agent's state directory
  bool whole;             // in a layer it stands for another file, and is dropped without a word
};
// Those of the agent.
std::span<const AnswerFile> answer_files(std::string_view agent) noexcept;

// Claude Code reads `.config.json` of its state directory instead of ~/.claude.json where there is one, and can write it in a
// layer.
inline constexpr std::string_view kClaudeConfig = ".config.json";

struct AnswerContext {
  std::string workspace;  // folders elsewhere are passed over
  std::string key;        // ANTHROPIC_API_KEY as the command has it
};

// Adds what `text`, such a file as a run left it, holds of answers. What is no answer, or not of a known form, is passed over.
void read_answers(const AnswerFile& file, std::string_view text, const AnswerContext& context, Answers& answers);

// `text`, the file as the host has it (empty: it does not), with the answers that it lacks. nullopt: it lacks none, or cannot be
// read as what it should be.
std::optional<std::string> with_answers(const AnswerFile& file, std::string_view text, const AnswerContext& context,
                                        const Answers& answers);

// Whether two such files name other MCP servers, for all folders or for one.
bool differs_in_servers(const AnswerFile& file, std::string_view one, std::string_view other);

// Whether two such files differ in answers alone.
bool same_but_answers(const AnswerFile& file, std::string_view one, std::string_view other, const AnswerContext& context);

}  // namespace belljar::policy
