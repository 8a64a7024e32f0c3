// belljar exec: one command in a sandbox that stays, with the caller's streams.
//
// We make the pipes and serve them ourselves; only their other ends travel to the keeper, with the request.
// So output never passes through the keeper, a slow reader holds up nobody but its own command, and the JSON
// of --json has streams that the keeper never saw: they are added here, where `run` has them (with_streams).
//
// What goes into the sandbox's log is the command line without the values of variables that look like secrets
// (shown).
//
// Output that was lost is no success, whatever the program's exit code.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/command_words.h"
#include "cli/errors.h"
#include "cli/run_notes.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"
#include "cli/sandbox/front.h"
#include "front/stdio.h"
#include "keeper/directory.h"
#include "keeper/wire.h"
#include "policy/permit.h"
#include "runtime/json.h"
#include "runtime/run.h"

namespace belljar::cli {
namespace {

using Ordered = nlohmann::ordered_json;

struct ExecFlags : CommandWords {
  std::string id, cwd;
  std::optional<std::string> timeout;
  std::vector<std::string> env, hosts;
  bool login = false;
};

Result<Command> find_command(const ExecFlags& flags) {
  Command command =
      BELLJAR_TRY(command_from(flags, flags.login, "belljar exec ID -- PROGRAM ARGUMENTS, or belljar exec ID -c 'shell text'"));
  for (const std::string& pair : flags.env) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error(Code::kInvalidArgument, format("--env {} sets nothing", belljar::quoted(pair))).next("--env NAME=VALUE");
    command.env[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  command.cwd = flags.cwd;
  return command;
}

// The words, without the values of variables that look like secrets: they go into the sandbox's log.
std::string shown(const ExecFlags& flags, const Command& command) {
  std::map<std::string, std::string> variables = command.env;
  variables.merge(by_name(own_environment()));
  std::string text = flags.shell_text.value_or("");
  for (const std::string& word : flags.program) text += (text.empty() ? "" : " ") + word;
  return Redactor::from_environment(variables)(text);
}

Result<keeper::Json> make_call(const ExecFlags& flags) {
  const Command command = BELLJAR_TRY(find_command(flags));
  keeper::Json call = request("exec");
  call["argv"] = command.argv;
  call["env"] = command.env;
  call["cwd"] = command.cwd;
  call["shown"] = shown(flags, command);
  call["allowed_domains"] = flags.hosts;
  call["timeout_ms"] = nullptr;
  if (flags.timeout) {
    const auto timeout = parse_duration(*flags.timeout);
    if (!timeout)
      return Error(timeout.error().code(), format("--timeout: {}", timeout.error().what())).next(timeout.error().next());
    call["timeout_ms"] = timeout->count();
  }
  return call;
}

front::StdioOptions capped_streams_of(const ExecFlags& flags, const keeper::About& about) {
  front::StdioOptions options = streams_of(flags);
  options.watch = true;  // what goes on in the background has no claim on the caller's own pipes
  if (about.output_bytes) options.cap = static_cast<std::uint64_t>(*about.output_bytes);
  return options;
}

void add_stream(Ordered& object, const std::string& name, const Output& output) {
  runtime::Utf8Text text = runtime::to_utf8(output.bytes);
  object[name] = std::move(text.text);
  object[name + "_bytes"] = output.total;
  object[name + "_omitted"] = output.omitted;
  object[name + "_replaced"] = text.replaced;
}

// The object of `run --json`: the keeper's result and the streams, which it never saw.
std::string with_streams(const Ordered& result, const FrontResult& end) {
  Ordered object;
  for (const auto& [name, value] : result.items()) {
    if (name == "duration_ms") {
      add_stream(object, "stdout", end.out);
      add_stream(object, "stderr", end.err);
    }
    object[name] = value;
    if (name == "limits_hit" && !end.over_limit.empty() && std::ranges::find(value, "output") == value.end())
      object[name].push_back("output");
  }
  return object.dump() + "\n";
}

bool is_intended(const Ordered& told) {
  Violation violation;
  violation.rule = told.value("rule", "");
  if (const auto origin = told.find("origin"); origin != told.end())
    violation.origin = {origin->value("layer", ""), origin->value("file", ""), 0};
  return policy::is_intended(violation);
}

void tell_people(const Ordered& result, const std::string& id) {
  const std::string reason = result.value("reason", ""), message = result.value("message", "");
  if (is_worth_a_note(reason, message)) print_note(escaped(message));
  std::uint64_t acts = result.value("violations_dropped", std::uint64_t{0});
  for (const Ordered& violation : result.at("violations")) {
    const std::string operation = violation.value("operation", "");
    if (operation != "limit" && !is_intended(violation)) acts += violation.value("count", std::uint64_t{1});
    if (operation == "write" && violation.value("errno", 0) == 0)
      print_note(
          format("{} is as it was: what was written there was refused when it was closed", quoted(violation.value("target", ""))));
  }
  if (acts == 0 || result.value("exit_code", 0) == 0) return;
  print_note(format("{} {} refused; {}", acts, acts == 1 ? "act was" : "acts were",
                    result.at("id").is_string() ? "belljar explain " + result.at("id").get<std::string>()
                                                : "belljar logs " + id + " tells which"));
}

Result<int> exec(const ExecFlags& flags) {
  keeper::Json call = BELLJAR_TRY(make_call(flags));
  const keeper::Entry entry = BELLJAR_TRY(find_running(flags.id));
  keeper::Channel channel(BELLJAR_TRY(keeper::connect_to(entry)));
  const FrontResult end =
      BELLJAR_TRY(run_front(channel, std::move(call), capped_streams_of(flags, entry.about),
                            entry.about.output_bytes && entry.about.output_kills ? OverCap::kKill : OverCap::kDrop));
  const Ordered result = Ordered::parse(end.result);
  tell_people(result, entry.about.id);
  for (const std::string& note : end.notes) print_note(note);
  int exit_code = result.value("exit_code", 125);
  // Lost output is no success, whatever the program said.
  if (exit_code == 0 && !end.notes.empty()) exit_code = 125;
  if (flags.json) {
    const int failed = print_result(with_streams(result, end));
    if (exit_code == 0) exit_code = failed;
  }
  return exit_code;
}

int exec_or_tell(const ExecFlags& flags) {
  const auto done = exec(flags);
  if (done) return *done;
  const int exit_code = print_error(done.error());
  if (flags.json) (void)print_result(runtime::to_json(runtime::failed_start(done.error()), runtime::JsonStreams::kInclude) + "\n");
  return exit_code;
}

}  // namespace

void add_exec(const OptionParser& command, const KeeperCommandWords& words, int& exit_code) {
  const auto flags = std::make_shared<ExecFlags>();
  flags->program = words.program;
  command.add_option("ID", flags->id, "Its id or name").required();
  command.add_option("-c", flags->shell_text, "Run this shell text with /bin/sh (with --login: in your shell)").type_name("TEXT");
  command.add_flag("--login", flags->login, "Run the shell text in the user's login shell; without one, the shell itself");
  command.add_option("--cwd", flags->cwd, "Where it starts, from the workspace on (default: the workspace)")
      .not_empty()
      .type_name("DIR");
  command.add_option("--env", flags->env, "Set a variable for this command").repeatable().type_name("NAME=VALUE");
  command
      .add_option("--allow-domain", flags->hosts,
                  "A host that may be reached until this command ends, by everything inside (repeatable)")
      .repeatable()
      .type_name("RULE");
  command.add_option("--timeout", flags->timeout, "Wall time (default: the policy's, else none)").type_name("TIME");
  command.add_flag("--json", flags->json, "Capture both streams and print one JSON object at the end");
  add_pty_options(command, *flags);
  command.callback([flags, &exit_code] { exit_code = exec_or_tell(*flags); });
}

}  // namespace belljar::cli
