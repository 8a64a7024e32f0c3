#include "cli/agent/flags.h"

#include <stdlib.h>

#include <climits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/real_path.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/audited.h"
#include "cli/command_line.h"
#include "cli/guardian_flags.h"
#include "cli/load.h"
#include "cli/mcp/make_client_sandbox.h"
#include "cli/policy_flags.h"

namespace belljar::cli {
namespace {

struct Service {
  ModelWire wire;
  const char* url;
  const char* key_variable;
};

const std::map<std::string, Service>& services() {
  static const std::map<std::string, Service> kAll{
      {"anthropic", {ModelWire::kAnthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"}},
      {"openai", {ModelWire::kOpenAiChat, "https://api.openai.com", "OPENAI_API_KEY"}},
      {"openai-responses", {ModelWire::kOpenAiResponses, "https://api.openai.com", "OPENAI_API_KEY"}}};
  return kAll;
}

}  // namespace

void add_agent_options(const OptionParser& command, AgentFlags& flags) {
  add_policy_options(command, flags.sandbox.policy);
  const auto text = [&](const char* name, std::string& to, const char* type, const char* help) {
    command.add_option(name, to, help).not_empty().type_name(type);
  };
  text("--provider", flags.provider, "NAME",
       "anthropic (default), openai, openai-responses, or scripted: a model that says what --script says");
  text("--model", flags.model, "NAME", "The model, as the provider calls it");
  text("--base-url", flags.base_url, "URL", "Another endpoint of the same kind, up to and without /v1");
  text("--api-key-env", flags.key_variable, "NAME",
       "The variable that holds the key. Default: ANTHROPIC_API_KEY or OPENAI_API_KEY. It is taken out of the environment");
  text("--script", flags.script, "FILE", "What the scripted provider says: a JSON list of answers");
  text("--mode", flags.sandbox.permission, "MODE",
       "default: ask before each change and command (the default here); auto-edit: as the rules say; plan: only read; yolo: only "
       "ask about calls that "
       "follow what a file or a page says. Without a "
       "terminal to ask on, asking means no");
  command.add_option("--rules", flags.sandbox.rules, "Command rules (TOML), beside the user's")
      .not_empty()
      .repeatable()
      .type_name("FILE");
  text("--content", flags.content, "FILE",
       "What the model is shown of results (TOML): pass, strip, datamark, describe or refuse, by source");
  add_guardian_options(command, flags.guardian);
  text("--review-wait", flags.review_wait, "TIME",
       "Without a terminal: what is to be asked waits so long for `belljar review answer`. Default: it is refused at once");
  add_txn_options(command, flags.sandbox);
  add_audit_options(command, flags.sandbox.audit);
  text("--conversation", flags.conversation, "FILE",
       "Goes on with this conversation, and keeps it there. Not inside the workspace");
  text("--skills", flags.skills_directory, "DIR", "Where skills are. Default: ~/.agents/skills");
  command.add_flag("--no-skills", flags.no_skills, "The model is told of no skills");
  command.add_option("--max-turns", flags.max_turns, "Answers of the model, at most (100)").at_least_one();
  command.add_option("--token-budget", flags.token_budget, "Tokens in and out together, at most. Default: no limit").at_least_one();
  command.add_option("--max-output", flags.max_output, "Tokens of one answer, at most (8192)").at_least_one();
  command.add_option("--attempts", flags.attempts, "How often a provider that fails is asked (5)").between(1, 20);
  text("--log", flags.log, "FILE", "Appends a JSON line for each step: sizes and names, not what was said");
  command.add_flag("--json", flags.json, "Each event as a JSON object on a line of stdout");
  command.add_option("task", flags.task, "What is to be done; several words are one text").not_empty().required();
}

Result<std::shared_ptr<ModelProvider>> make_model(const AgentFlags& flags) {
  if (flags.provider == "scripted") {
    if (flags.script.empty()) return Error(Code::kInvalidArgument, "the scripted provider has no script").next("--script FILE");
    return scripted_model(BELLJAR_TRY(read_text_file(flags.script, "the script")));
  }
  if (!flags.script.empty())
    return Error(Code::kInvalidArgument,
                 format("--script is for the scripted provider, and this is {}", belljar::quoted(flags.provider)))
        .next("add --provider scripted");
  const auto service = services().find(flags.provider);
  if (service == services().end())
    return Error(Code::kInvalidArgument, format("there is no provider {}", belljar::quoted(flags.provider)))
        .next("one of anthropic, openai, openai-responses, scripted");
  if (flags.model.empty()) return Error(Code::kInvalidArgument, "the model is not named").next("--model NAME");
  const std::string name = flags.key_variable.empty() ? service->second.key_variable : flags.key_variable;
  std::string key = take_variable(name.c_str());
  const bool needs_key = flags.base_url.empty() || !flags.key_variable.empty();
  if (key.empty() && needs_key)
    return Error(Code::kUnauthenticated, format("there is no key for {}", flags.provider))
        .reason(format("the variable {} is not set", belljar::quoted(name)))
        .next("set it, or name another: --api-key-env NAME");
  return http_model({.wire = service->second.wire,
                     .url = flags.base_url.empty() ? service->second.url : flags.base_url,
                     .model = flags.model,
                     .key = std::move(key),
                     .attempts = flags.attempts});
}

Result<std::string> conversation_path(const std::string& given, const std::string& workspace) {
  const std::size_t slash = given.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : given.substr(0, slash + 1);
  const std::string real = real_path(parent);
  if (real.empty())
    return Error(Code::kNotFound, format("cannot keep the conversation in {}", belljar::quoted(given)))
        .reason("there is no such directory");
  std::string path = real + "/" + given.substr(slash == std::string::npos ? 0 : slash + 1);
  if (path.ends_with('/'))
    return Error(Code::kInvalidArgument, format("cannot keep the conversation in {}", belljar::quoted(given)))
        .reason("it is a directory");
  if (path.starts_with(workspace + "/"))
    return Error(Code::kInvalidArgument, format("cannot keep the conversation in {}", belljar::quoted(given)))
        .reason("it lies in the workspace, where the agent's commands could write what you are said to have said")
        .next("name a file elsewhere");
  return path;
}

}  // namespace belljar::cli
