// One call of a tool: found in the table, arguments checked, asked about, made.
//
// The order matters. Arguments are checked before anybody is asked, so that nobody has to decide about a call
// that cannot be made. A cancelled call and a deadline are looked at after the question, which may have taken
// minutes. The deadline becomes a token that the sandbox knows too, so that it ends a command and not only
// our waiting.
//
// A result says where our own words begin in it (own_from). Everything before that came from the sandbox and
// may be shown as data. Errors are our words, but they quote names between backticks; foreign_text() takes
// those out again for whoever wants to know what entered.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/text.h"
#include "tools/tool.h"

namespace belljar {

using tools::Tool;

namespace {

std::span<const Tool> table_of(ToolTexts texts) noexcept {
  return texts == ToolTexts::kBelljar ? tools::own_tools() : tools::document_tools(texts);
}

}  // namespace

std::vector<ToolSpec> tool_specs(ToolTexts texts) {
  std::vector<ToolSpec> specs;
  for (const Tool& tool : table_of(texts)) {
    specs.push_back({std::string(tool.name), std::string(tool.title), std::string(tool.description), tool.kind,
                     tools::schema_of(tool.parameters), std::string(tool.output_schema)});
  }
  return specs;
}

struct Toolbox::State {
  State(std::shared_ptr<Sandbox> given, ToolOptions wanted)
      : sandbox(std::move(given)), options(std::move(wanted)), commands(options.max_background) {
    options.text_bytes = std::max<std::size_t>(options.text_bytes, 2000);
    table = table_of(options.texts);
  }

  const Tool* find(std::string_view name) const {
    for (const Tool& tool : table) {
      if (tool.name == name) return &tool;
    }
    return nullptr;
  }
  Error unknown(std::string_view name) const {
    std::string all;
    for (const Tool& tool : table) all += (all.empty() ? "" : ", ") + std::string(tool.name);
    return Error(Code::kNotFound, format("there is no tool {}", belljar::quoted(name.substr(0, 80)))).next("tools are " + all);
  }
  ToolVerdict ask(const Tool& tool, const tools::Arguments& arguments, std::string_view json, const ToolContext& context) const;
  Result<tools::ToolAnswer> call(std::string_view name, std::string_view json, const ToolContext& context);

  const std::shared_ptr<Sandbox> sandbox;
  ToolOptions options;
  tools::Commands commands;
  std::span<const Tool> table;
};

ToolVerdict Toolbox::State::ask(const Tool& tool, const tools::Arguments& arguments, std::string_view json,
                                const ToolContext& context) const {
  const ToolHook& hook = context.hook ? context.hook : options.hook;
  if (!hook) return {};
  ToolRequest request{.tool = std::string(tool.name), .kind = tool.kind, .arguments = std::string(json), .cancel = context.cancel};
  if (tool.kind == ToolKind::kExecute) request.command = arguments.text("command"), request.input = arguments.text("stdin");
  if (tool.paths != nullptr) request.paths = tool.paths(arguments);
  else if (arguments.has("path")) request.paths.push_back(arguments.text("path"));
  request.removes = tool.removes;
  return hook(request);
}

// Writing tools answer in our own words alone.
Result<tools::ToolAnswer> Toolbox::State::call(std::string_view name, std::string_view json, const ToolContext& context) {
  const Tool* tool = find(name);
  if (tool == nullptr) return unknown(name);
  const tools::Arguments arguments = BELLJAR_TRY(tools::Arguments::parse(name, tool->parameters, json));
  const CallOptions in_time{.deadline = context.deadline, .cancel = context.cancel};
  const ToolContext inside{
      .cancel = BELLJAR_TRY(in_time.token()), .on_output = context.on_output, .hook = context.hook, .deadline = context.deadline};
  tools::Call request{*sandbox, commands, options, arguments, inside, in_time};
  if (tool->first != nullptr) {
    if (auto answer = tool->first(request)) return *std::move(answer);
  }
  if (ToolVerdict verdict = ask(*tool, arguments, json, inside); !verdict.allowed) {
    if (tool->blocked != nullptr) return tool->blocked(verdict);
    return Error(Code::kPermissionDenied, format("{} was not allowed", name))
        .reason(std::move(verdict.reason))
        .next(std::move(verdict.next));
  }
  if (context.cancel.cancelled()) return Error(Code::kCanceled, format("{} was cancelled", name));
  BELLJAR_CHECK(in_time.check(format("{} was not done", name)));
  auto answer = tool->act(request);
  if (answer && tool->kind == ToolKind::kWrite) answer->own_from = 0;
  return answer;
}

Toolbox::Toolbox(std::shared_ptr<Sandbox> sandbox, ToolOptions options)
    : state_(std::make_unique<State>(std::move(sandbox), std::move(options))) {}

Toolbox::~Toolbox() = default;

ToolResult Toolbox::call(std::string_view name, std::string_view arguments, const ToolContext& context) {
  auto answer = state_->call(name, arguments, context);
  if (!answer) return {.text = tools::words_of(answer.error()), .failed = true, .own_from = 0};
  return {.text = std::move(answer->text),
          .structured = answer->failed ? "" : tools::dump(answer->structured),
          .failed = answer->failed,
          .violations = std::move(answer->violations),
          .own_from = answer->own_from};
}

// Errors quote between backticks; the advice at their end is ours alone. Of a refusal of the sandbox its violation tells.
std::string foreign_text(const ToolResult& result, std::string_view arguments) {
  if (result.own_from >= result.text.size()) return result.text;
  std::string text = result.text.substr(0, result.own_from);
  const auto add = [&](const std::string& met) {
    if (!met.empty() && arguments.find(met) == std::string_view::npos) text += (text.empty() ? "" : "\n\n") + met;
  };
  for (const Violation& violation : result.violations) add(violation.target), add(violation.program);
  std::string_view own = std::string_view(result.text).substr(result.own_from);
  own = own.substr(0, own.rfind("\nnext: "));
  for (std::size_t begin = own.find('`'); begin != std::string_view::npos; begin = own.find('`')) {
    const std::size_t end = own.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    add(std::string(own.substr(begin + 1, end - begin - 1)));
    own.remove_prefix(end + 1);
  }
  return text;
}

std::string act_text(const ToolRequest& request) {
  const tools::Json given = tools::Json::parse(request.arguments, nullptr, false);
  if (request.arguments.empty() || (!request.command.empty() && given.is_object() && given.size() <= 1)) return request.command;
  if (given.is_discarded()) return request.command + "\n" + request.arguments;
  return given.dump(2, ' ', false, tools::Json::error_handler_t::replace);
}

}  // namespace belljar

namespace belljar::tools {

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace belljar::tools
