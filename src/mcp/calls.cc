// Session: tools/list, tools/call, progress and resources.
//
// A call of a tool runs in one of the session's sandboxes, chosen by the argument `sandbox`, which is ours
// and taken out before the tool sees its arguments. The sandbox is made or started anew on the way if it has
// to be. Before the tool acts its hook is asked (Session::decide), and behind it the result passes the
// defence before the client gets it.
//
// Three kinds of results are shown differently. What a tool says in our own words needs no delimiters. A
// refusal is in our own words as well, so it is returned as it is. Everything else may quote what it met, and
// is shown as data (defence.h).
//
// Tools of the session itself (kOwnTools) make, list and end sandboxes and work on their transactions. Those
// that need a transaction are offered only where there is one, and a call of one that is not offered says how
// the server would have to be started.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/rfc3339.h"
#include "belljar/call_record.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "belljar/txn.h"
#include "mcp/client_sandboxes.h"
#include "mcp/defence.h"
#include "mcp/rpc.h"
#include "mcp/session.h"

namespace belljar::mcp {
namespace {

using std::chrono::milliseconds;

struct OwnTool {
  std::string_view name, title, description, schema;
  bool reads = false;
  bool layers = false;  // needs SessionOptions::transactions
};
constexpr OwnTool kOwnTools[] = {
    {"sandbox_create", "Make a sandbox",
     "Makes a further sandbox: processes, /tmp and caches of its own. Its id goes into the argument `sandbox` of the other tools. "
     "It has the policy of the default one, or less.",
     R"({"type":"object","properties":{"workspace":{"type":"string","description":"One of the client's roots. Default: the workspace of the default sandbox, which the two then share"},"read_only":{"type":"boolean","description":"Its commands change nothing in the workspace"}},"additionalProperties":false})"},
    {"sandbox_list", "List sandboxes", "Lists the sandboxes with their workspaces, processes and memory.",
     R"({"type":"object","properties":{},"additionalProperties":false})", true},
    {"sandbox_kill", "End a sandbox", "Ends a sandbox with everything that runs in it. What it wrote to the workspace stays.",
     R"({"type":"object","properties":{"sandbox":{"type":"string","description":"Its id"}},"required":["sandbox"],"additionalProperties":false})"},
    {"sandbox_snapshot", "Keep the workspace's state",
     "Keeps the workspace as it is now under a name, to which sandbox_rollback returns. Nothing may run meanwhile; /tmp is "
     "emptied.",
     R"({"type":"object","properties":{"name":{"type":"string","description":"1 to 64 letters, digits, '.', '_' or '-'"},"sandbox":{"type":"string","description":"Default: the default sandbox"}},"required":["name"],"additionalProperties":false})",
     false, true},
    {"sandbox_rollback", "Return to a state",
     "Drops what was changed in the workspace since a snapshot, or all of it. Nothing may run meanwhile; /tmp is emptied.",
     R"({"type":"object","properties":{"snapshot":{"type":"string","description":"Default: where this sandbox began"},"sandbox":{"type":"string","description":"Default: the default sandbox"}},"additionalProperties":false})",
     false, true},
    {"sandbox_diff", "What was changed", "Lists what was changed in the workspace and is not committed.",
     R"({"type":"object","properties":{"sandbox":{"type":"string","description":"Default: the default sandbox"}},"additionalProperties":false})",
     true, true},
};

bool is_offered(const OwnTool& tool, bool transactions) noexcept { return transactions || !tool.layers; }

constexpr std::size_t kMostChanges = 1000;

Json list_of(const std::vector<txn::Change>& changes) {
  constexpr std::string_view kKinds[] = {"added", "modified", "deleted", "renamed"};
  Json list = Json::array();
  for (const txn::Change& change : changes) {
    if (list.size() == kMostChanges) break;
    Json row{{"change", kKinds[static_cast<std::size_t>(change.kind)]}, {"path", escaped(change.path)}};
    if (!change.from.empty()) row["from"] = escaped(change.from);
    const txn::FileState& shown = change.kind == txn::ChangeKind::kDeleted ? change.before : change.after;
    if (shown.kind == txn::FileKind::kFile) row["bytes"] = shown.size;
    list.push_back(std::move(row));
  }
  return {{"changes", std::move(list)}, {"count", changes.size()}};
}

Json text_result(std::string_view text, bool failed) {
  return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", failed}};
}

std::string words_of(const Error& error) {
  std::string text = "Error: " + error.what();
  if (error.errnum() != 0) text += format(": {} ({})", std::strerror(error.errnum()), error.call());
  if (!error.reason().empty()) text += "\nreason: " + error.reason();
  if (!error.next().empty()) text += "\nnext: " + error.next();
  return text;
}

Json spec_of(const ToolSpec& spec, bool with_sandbox, bool with_reveal) {
  Json schema = Json::parse(spec.input_schema);
  if (with_reveal)
    schema["properties"]["reveal"] = {
        {"type", "string"},
        {"description",
         "The id of a passage that was withheld from a result: shows that passage, and nothing of the "
         "file. A person may be asked. Only where the user's task needs it"}};
  if (with_sandbox)
    schema["properties"]["sandbox"] = {
        {"type", "string"}, {"description", "The id of a sandbox that sandbox_create made. Default: the default sandbox"}};
  const bool reads = spec.kind == ToolKind::kRead;
  Json tool{{"name", spec.name}, {"title", spec.title}, {"description", spec.description}, {"inputSchema", std::move(schema)}};
  if (!spec.output_schema.empty()) tool["outputSchema"] = Json::parse(spec.output_schema);
  tool["annotations"] = {{"title", spec.title},
                         {"readOnlyHint", reads},
                         {"destructiveHint", !reads && spec.name != "bash_output"},
                         {"openWorldHint", false}};
  return tool;
}

// Tells the client that a command goes on: how many bytes it has written, and its last line where that may be told. At most four
// times a second.
class Progress {
 public:
  Progress(Json token, bool with_text, std::function<void(const Json&)> send)
      : token_(std::move(token)), with_text_(with_text), send_(std::move(send)) {}
  void operator()(std::string_view piece) {
    const std::lock_guard lock(mutex_);
    bytes_ += piece.size();
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + milliseconds(250);
    while (piece.ends_with('\n')) piece.remove_suffix(1);
    const std::size_t begin = piece.rfind('\n') == std::string_view::npos ? 0 : piece.rfind('\n') + 1;
    Json params{{"progressToken", token_}, {"progress", bytes_}};
    if (with_text_) params["message"] = escaped(piece.substr(begin, 200));
    send_(make_notification("notifications/progress", std::move(params)));
  }

 private:
  const Json token_;
  const bool with_text_;  // what no policy has seen is told only where it would change nothing
  const std::function<void(const Json&)> send_;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;                     // guarded by mutex_
  std::chrono::steady_clock::time_point next_;  // guarded by mutex_
};

std::string json_of(const EnforcementReport& report) {
  Json clauses = Json::array();
  for (const EnforcementClause& clause : report) {
    clauses.push_back({{"clause", clause.clause},
                       {"asked", clause.asked},
                       {"mechanism", clause.mechanism},
                       {"enforced", to_string(clause.enforced)},
                       {"detail", clause.detail}});
  }
  return to_line(clauses);
}

Error wrong_type(std::string_view tool, std::string_view argument, std::string_view type) {
  return Error(Code::kInvalidArgument, format("cannot call {}: the argument `{}` does not fit", tool, argument))
      .reason(format("it must be of type {}", type));
}

}  // namespace

bool Session::is_own_tool(std::string_view name) const {
  return offers_sandboxes() && std::ranges::any_of(kOwnTools, [&](const OwnTool& tool) {
           return tool.name == name && is_offered(tool, options_.transactions);
         });
}

Json Session::list_tools() const {
  Json tools = Json::array();
  for (const ToolSpec& spec : tool_specs(options_.tools.texts))
    tools.push_back(spec_of(spec, offers_sandboxes(), defence_.reveals() && spec.name == options_.defence.revealer));
  for (const OwnTool& tool : kOwnTools) {
    if (!offers_sandboxes()) break;
    if (!is_offered(tool, options_.transactions)) continue;
    tools.push_back({{"name", tool.name},
                     {"title", tool.title},
                     {"description", tool.description},
                     {"inputSchema", Json::parse(tool.schema)},
                     {"annotations",
                      {{"title", tool.title},
                       {"readOnlyHint", tool.reads},
                       {"destructiveHint", tool.name == "sandbox_kill" || tool.name == "sandbox_rollback"},
                       {"openWorldHint", false}}}});
  }
  return {{"tools", std::move(tools)}};
}

void Session::call_tool(const Message& request, const Reply& reply) {
  const auto refused = [&](std::string why) {
    reply(make_error({kInvalidParams, "Invalid params: " + std::move(why), request.id}));
  };
  const auto name = request.params.find("name");
  if (name == request.params.end() || !name->is_string()) return refused("`name` must be a string");
  const auto given = request.params.find("arguments");
  if (given != request.params.end() && !given->is_object() && !given->is_null()) return refused("`arguments` must be an object");
  const std::string tool = name->get<std::string>();
  const std::vector<ToolSpec> specs = tool_specs(options_.tools.texts);
  if (!is_own_tool(tool) && std::ranges::none_of(specs, [&](const ToolSpec& spec) { return spec.name == tool; })) {
    const bool known = std::ranges::any_of(kOwnTools, [&](const OwnTool& own) { return own.layers && own.name == tool; });
    return refused(format("Unknown tool: {}{}", escaped(tool.substr(0, 100)),
                          known ? "; it is there when the server is started with `belljar mcp --txn`" : ""));
  }
  Json arguments = given == request.params.end() || given->is_null() ? Json::object() : *given;
  in_background(request, reply,
                [this, tool, arguments = std::move(arguments), params = request.params, id = request.id,
                 conversation = note_meta(request.params)](const CancelToken& cancel) {
                  return make_result(id, run_tool(tool, arguments, params, cancel, conversation));
                });
}

Json Session::run_tool(const std::string& name, Json arguments, const Json& params, const CancelToken& cancel,
                       const std::string& conversation) {
  if (is_own_tool(name)) {
    auto done = run_own_tool(name, arguments, cancel);
    if (!done) return text_result(words_of(done.error()), true);
    Json result = text_result(to_line(*done), false);
    result["structuredContent"] = *std::move(done);
    return result;
  }
  const auto entry = sandbox_for(arguments, cancel);
  if (!entry) return text_result(words_of(entry.error()), true);
  if (offers_sandboxes()) arguments.erase("sandbox");
  if (defence_.reveals() && name == options_.defence.revealer) {
    const Json id = arguments.value("reveal", Json());
    arguments.erase("reveal");
    if (!id.is_null()) return show_withheld(**entry, id, cancel, conversation);
  }
  Call call{.conversation = conversation, .verdict = {}};
  ToolContext context{.cancel = cancel};
  context.hook = [&](const ToolRequest& request) { return (*entry)->hook(request, call); };
  const auto meta = params.find("_meta");
  if (meta != params.end() && meta->is_object()) {
    const auto token = meta->find("progressToken");
    if (token != meta->end() && (token->is_string() || token->is_number_integer()))
      context.on_output =
          [progress = std::make_shared<Progress>(*token, defence_.passes_all(), [this, stream = stream_here()](const Json& json) {
             send(json, stream);
           })](std::string_view piece) { (*progress)(piece); };
  }
  ToolResult done = (*entry)->toolbox->call(name, to_line(arguments), context);
  remember(done.violations, (*entry)->id);
  // Nothing was done, so what cannot be recorded takes nothing back.
  if (done.failed && !call.verdict && (*entry)->record)
    (void)(*entry)->record(
        {.tool = name, .call = to_line(arguments), .verdict = CallOutcome::kInvalid, .by = "tools", .reason = done.text});
  const bool failed = done.failed;
  // A refusal is in our own words; what failed otherwise may quote what it met.
  if (done.failed && call.verdict && !call.verdict->allowed) return text_result(done.text, true);
  const std::vector<ToolSpec> specs = tool_specs(options_.tools.texts);
  const auto spec = std::ranges::find(specs, name, &ToolSpec::name);
  ResultForModel shown = defence_.show(*spec, arguments, std::move(done), conversation);
  for (const std::string& note : shown.notes) log("warning", format("{}: {}", name, note));
  Json result = text_result(shown.text, failed);
  if (offers_sandboxes() && !failed) result["structuredContent"] = std::move(shown.structured);
  return result;
}

// An act of its own: whether it may be seen is asked before, and what is shown is data as it was.
Json Session::show_withheld(ClientSandbox& entry, const Json& id, const CancelToken& cancel, const std::string& conversation) {
  const std::string& tool = options_.defence.revealer;
  if (!id.is_string()) return text_result(words_of(wrong_type(tool, "reveal", "string")), true);
  const auto passage = defence_.withheld(id.get_ref<const std::string&>());
  if (!passage) return text_result(words_of(passage.error()), true);
  Call call{.conversation = conversation, .verdict = {}, .reveals = &*passage};
  const Json act{{"reveal", id},
                 {"of", passage->name},
                 {"source", to_string(passage->source)},
                 {"bytes", passage->text.size() + passage->left_out}};
  if (const ToolVerdict verdict =
          entry.hook({.tool = tool, .kind = ToolKind::kRead, .arguments = to_line(act), .cancel = cancel}, call);
      !verdict.allowed)
    return text_result(
        words_of(Error(Code::kPermissionDenied, "the passage is not shown").reason(verdict.reason).next(verdict.next)), true);
  ResultForModel shown = defence_.reveal(*passage, conversation);
  for (const std::string& note : shown.notes) log("warning", format("{}: {}", tool, note));
  Json result = text_result(shown.text, false);
  result["structuredContent"] = std::move(shown.structured);
  return result;
}

Result<SandboxSpec> Session::default_spec(const CancelToken& cancel) {
  if (!options_.roots_are_workspace || !client_.has_roots()) return SandboxSpec{};
  const std::vector<std::string> roots = BELLJAR_TRY(client_.roots(cancel));
  if (roots.empty()) return SandboxSpec{};
  return SandboxSpec{.workspace = roots.front()};
}

Result<std::shared_ptr<ClientSandbox>> Session::sandbox_for(const Json& arguments, const CancelToken& cancel) {
  const auto id = arguments.find("sandbox");
  if (offers_sandboxes() && id != arguments.end() && !id->is_null()) {
    if (!id->is_string()) return wrong_type("the tool", "sandbox", "string");
    if (*id != ClientSandboxes::kDefault) {
      BELLJAR_CHECK(check_root(id->get<std::string>(), cancel));
      return sandboxes_.get(id->get<std::string>());
    }
  }
  return sandboxes_.get_default(BELLJAR_TRY(default_spec(cancel)));
}

// A root that the user has taken back is closed to the sandboxes that were made there.
Result<void> Session::check_root(const std::string& id, const CancelToken& cancel) {
  const auto entries = sandboxes_.list();
  const auto known = std::ranges::find(entries, id, &ClientSandbox::id);
  if (known == entries.end() || !(*known)->spec.workspace) return {};
  const std::string& workspace = *(*known)->spec.workspace;
  const std::vector<std::string> roots = BELLJAR_TRY(client_.roots(cancel));
  if (std::ranges::find(roots, workspace) != roots.end()) return {};
  (void)sandboxes_.kill(id);
  return Error(Code::kPermissionDenied, format("cannot use the sandbox {}", belljar::quoted(id)))
      .reason(format("its workspace {} is none of the client's roots any more, and it was ended", belljar::quoted(workspace)))
      .next("make another with sandbox_create");
}

Result<Json> Session::create_sandbox(const Json& arguments, const CancelToken& cancel) {
  SandboxSpec spec = BELLJAR_TRY(default_spec(cancel));
  for (const auto& [name, value] : arguments.items()) {
    if (value.is_null() && (name == "read_only" || name == "workspace")) continue;
    if (name == "read_only" && value.is_boolean()) spec.read_only = value.get<bool>();
    else if (name == "read_only") return wrong_type("sandbox_create", name, "boolean");
    else if (name != "workspace")
      return Error(Code::kInvalidArgument,
                   format("cannot call sandbox_create: there is no argument {}", belljar::quoted(name.substr(0, 80))))
          .next("sandbox_create takes workspace, read_only");
    else if (!value.is_string()) return wrong_type("sandbox_create", name, "string");
    else spec.workspace = value.get<std::string>();
  }
  if (!arguments.value("workspace", Json()).is_null()) {
    // A model names it: only what the user has opened to this client, never what merely lies inside (its own rules would be left
    // out).
    const std::vector<std::string> roots = BELLJAR_TRY(client_.roots(cancel));
    if (!options_.roots_are_workspace || std::ranges::find(roots, *spec.workspace) == roots.end()) {
      return Error(Code::kPermissionDenied, format("cannot use the workspace {}", belljar::quoted(*spec.workspace)))
          .reason(options_.roots_are_workspace ? "it is none of the client's roots" : "the workspace is given on the command line")
          .next("leave `workspace` out, or let the user add it to the roots");
    }
  }
  const std::shared_ptr<ClientSandbox> entry = BELLJAR_TRY(sandboxes_.create(spec));
  return Json{{"sandbox", entry->id}, {"workspace", entry->sandbox->workspace()}, {"read_only", spec.read_only}};
}

// Snapshots, their rollback, what was changed.
Result<Json> Session::run_layers_tool(const std::string& name, const Json& arguments, const CancelToken& cancel) {
  const std::string_view own = name == "sandbox_snapshot" ? "name" : name == "sandbox_rollback" ? "snapshot" : "";
  std::optional<std::string> given;
  for (const auto& [key, value] : arguments.items()) {
    if (key == "sandbox") continue;  // sandbox_for() looks at it
    if (key != own)
      return Error(Code::kInvalidArgument,
                   format("cannot call {}: there is no argument {}", name, belljar::quoted(key.substr(0, 80))));
    if (value.is_null()) continue;
    if (!value.is_string()) return wrong_type(name, key, "string");
    given = value.get<std::string>();
  }
  const std::shared_ptr<ClientSandbox> entry = BELLJAR_TRY(sandbox_for(arguments, cancel));
  if (entry->spec.read_only)
    return Error(Code::kFailedPrecondition, format("cannot call {} in the sandbox {}", name, entry->id))
        .reason("it was made with read_only: it sees the directory itself, and keeps nothing of its own")
        .next("use a sandbox that was made without read_only");
  if (name == "sandbox_diff") {
    const auto changes = BELLJAR_TRY(entry->sandbox->changes());
    return defence_.clean(list_of(changes));
  }
  Call call;
  if (ToolVerdict verdict =
          entry->hook({.tool = name, .kind = ToolKind::kWrite, .arguments = to_line(arguments), .cancel = cancel}, call);
      !verdict.allowed)
    return Error(Code::kPermissionDenied, format("{} was not allowed", name))
        .reason(std::move(verdict.reason))
        .next(std::move(verdict.next));
  return name == "sandbox_snapshot" ? take_snapshot(*entry, given.value_or("")) : roll_back(*entry, given);
}

Result<Json> Session::take_snapshot(ClientSandbox& entry, const std::string& name) {
  constexpr std::size_t kMostSnapshots = 32;
  const std::lock_guard lock(entry.layers_mutex);
  if (entry.snapshots.size() >= kMostSnapshots)
    return Error(Code::kResourceExhausted, "cannot take another snapshot")
        .reason(format("there are {} already", kMostSnapshots))
        .next("return to one of them");
  BELLJAR_CHECK(entry.sandbox->snapshot(name));
  entry.snapshots.push_back(name);
  return Json{{"sandbox", entry.id}, {"snapshot", name}};
}

// Not to what others have kept: what came after it is somebody's work.
Result<Json> Session::roll_back(ClientSandbox& entry, const std::optional<std::string>& to) {
  const std::lock_guard lock(entry.layers_mutex);
  const auto found = to ? std::ranges::find(entry.snapshots, *to) : entry.snapshots.end();
  // An empty name is none: it would drop all that was done.
  if (to && found == entry.snapshots.end())
    return Error(Code::kNotFound, format("cannot find the snapshot {}", belljar::quoted(*to)))
        .reason("sandbox_snapshot has made none of that name here")
        .next("leave `snapshot` out to return to where this sandbox began");
  BELLJAR_CHECK(entry.sandbox->rollback(to.value_or(entry.base)));
  entry.snapshots.erase(to ? found + 1 : entry.snapshots.begin(), entry.snapshots.end());
  return Json{{"sandbox", entry.id}, {"now_at", to.value_or("where this sandbox began")}};
}

Result<Json> Session::run_own_tool(const std::string& name, const Json& arguments, const CancelToken& cancel) {
  if (name == "sandbox_create") return create_sandbox(arguments, cancel);
  const auto tool = std::ranges::find(kOwnTools, name, &OwnTool::name);
  if (tool->layers) return run_layers_tool(name, arguments, cancel);
  if (name == "sandbox_list") {
    Json list = Json::array();
    for (const std::shared_ptr<ClientSandbox>& entry : sandboxes_.list()) {
      Json row{{"sandbox", entry->id},
               {"backend", entry->sandbox->backend()},
               {"workspace", entry->sandbox->workspace()},
               {"read_only", entry->spec.read_only},
               {"created", rfc3339(entry->created)}};
      if (const auto stats = entry->sandbox->stats()) {
        row["processes"] = stats->processes;
        row["memory"] = stats->memory.count;
        row["commands"] = stats->execs;
      } else {
        row["ended"] = stats.error().line();
      }
      list.push_back(std::move(row));
    }
    return Json{{"sandboxes", std::move(list)}};
  }
  const auto id = arguments.find("sandbox");
  if (id == arguments.end() || !id->is_string()) return wrong_type(name, "sandbox", "string");
  BELLJAR_CHECK(sandboxes_.kill(id->get<std::string>()));
  return Json{{"sandbox", *id}, {"ended", true}};
}

void Session::read_resource(const Message& request, const Reply& reply) {
  const auto uri = request.params.find("uri");
  if (uri == request.params.end() || !uri->is_string())
    return reply(make_error({kInvalidParams, "Invalid params: `uri` must be a string", request.id}));
  in_background(request, reply, [this, uri = uri->get<std::string>(), id = request.id](const CancelToken& cancel) {
    auto found = resource(uri, cancel);
    if (found) return make_result(id, {{"contents", Json::array({std::move(*found)})}});
    const bool missing = found.error().code() == Code::kNotFound;
    return make_error({missing ? kResourceNotFound : kInternalError, found.error().line(), id});
  });
}

Result<Json> Session::resource(const std::string& uri, const CancelToken& cancel) {
  const auto content = [&](std::string text) {
    return Json{{"uri", uri}, {"mimeType", "application/json"}, {"text", std::move(text)}};
  };
  if (uri == "belljar://violations") {
    Json list;
    {
      const std::lock_guard lock(mutex_);
      list = Json(violations_);
    }
    return content(to_line(defence_.clean(std::move(list))));
  }
  if (uri != "belljar://policy" && uri != "belljar://enforcement")
    return Error(Code::kNotFound, format("Resource not found: {}", belljar::quoted(uri.substr(0, 200))))
        .next("resources/list shows those there are");
  const std::shared_ptr<ClientSandbox> entry = BELLJAR_TRY(sandbox_for(Json::object(), cancel));
  return content(uri == "belljar://policy" ? entry->policy : json_of(entry->sandbox->enforcement()));
}

}  // namespace belljar::mcp
