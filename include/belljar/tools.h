// What an agent calls: bash, files, search, patches. Protocol only: schema, arguments, texts. Every act goes through a Sandbox.
//
//   Toolbox tools(sandbox, {.hook = [&](const ToolRequest& request) { return ask_somebody(request); }});
//   for (const ToolSpec& spec : tool_specs()) offer(spec.name, spec.description, spec.input_schema);
//   ToolResult result = tools.call("bash", R"({"command": "make test"})");
//   give_to_model(result.text);
//
// A call never throws for what a model said: an unknown tool, arguments of the wrong type, a path that leaves the workspace, a
// refused act come back as a result with `failed` set, whose text says what was wrong, why, and what to do. A command that exits 1
// is not a failed call: its text ends with the exit code.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/sandbox.h"

namespace belljar {

// kControl: looks after a command that was let run already (bash_output, bash_kill).
enum class ToolKind { kRead, kWrite, kExecute, kControl };

struct ToolSpec {
  std::string name, title, description;
  ToolKind kind = ToolKind::kRead;
  std::string input_schema;   // JSON Schema of the arguments: one object
  std::string output_schema;  // JSON Schema of ToolResult::structured; empty: none is promised
};

// What is about to be done, before any of it is.
struct ToolRequest {
  std::string tool;
  ToolKind kind = ToolKind::kRead;
  std::string command;             // of kExecute: the shell text
  std::vector<std::string> paths;  // what the call names, as it names it; of apply_patch every file of the patch
  std::string arguments;           // JSON, as given
  CancelToken cancel;              // of the call: who asks somebody stops asking
  std::string input;               // of kExecute: what the command reads
  bool removes = false;            // `paths` go, with all that is below them
};
// What a person is asked about: the command where nothing stands beside it, else all arguments, one a line.
std::string act_text(const ToolRequest& request);

struct ToolVerdict {
  bool allowed = true;
  std::string reason, next;  // for the model, where it is not
  bool undecided = false;    // nobody has answered yet: `next` says how a person allows it
};
// Called from the thread of the call, before it; may take its time.
using ToolHook = std::function<ToolVerdict(const ToolRequest&)>;

// A set of tools and the texts of their answers. The documents are those this project began with: their names, texts and limits are
// kept to the letter, for programs and prompts that expect them, and they offer less than our own.
enum class ToolTexts {
  kBelljar,
  kDocument000,  // bash, read_file, write_file, str_replace
  kDocument001,  // runCommand, readFile, writeFile, deleteFile, listFiles
  kDocument002,  // run_bash, read_file, write_file
};

struct ToolOptions {
  ToolTexts texts = ToolTexts::kBelljar;
  // Bytes of one result's text that a model is shown: head and tail, with what lies between counted. At least 2000.
  std::size_t text_bytes = 30'000;
  ToolHook hook;
  // The policy's limits.timeout, for document-002, whose commands have its 120 s or less: without it they have those. Other tools
  // leave it to the sandbox.
  std::optional<std::chrono::milliseconds> timeout;
  // Words in front of a shell text: {"bash", "-c"}. Empty: /bin/sh -c.
  std::vector<std::string> shell;
  // Another absolute name of the workspace, through symbolic links: patches may name files below it. Other tools ask the sandbox.
  // Empty: it has none.
  std::string workspace_name;
  // Background commands that run at one time. One more is refused.
  std::size_t max_background = 16;
};

// The tools of a toolbox with these texts.
std::vector<ToolSpec> tool_specs(ToolTexts texts = ToolTexts::kBelljar);

struct ToolResult {
  std::string text;        // for a model; any bytes that the command wrote, so perhaps no UTF-8
  std::string structured;  // one JSON object, valid UTF-8; empty when the call failed
  bool failed = false;
  std::vector<Violation> violations;  // refused acts of the command, oldest first
  // Where in `text` our own words begin (how a command ended, what was refused, an error): they last to its end. npos: nowhere.
  std::size_t own_from = std::string::npos;
};
// The parts of a result's text that came from elsewhere, for a Turn: everything but our own words, and whatever those quote beyond
// the call's `arguments`.
std::string foreign_text(const ToolResult& result, std::string_view arguments);

struct ToolContext {
  CancelToken cancel;  // the command is ended, and so is a call of a file that waits
  // Each piece of a command's output as it arrives; from a thread of the sandbox's.
  std::function<void(std::string_view piece)> on_output;
  ToolHook hook;  // replaces ToolOptions::hook for this call
  // Of the whole call, ended then as by `cancel`; a command that was let run in the background is not. Unset: none.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// Keeps the sandbox alive; does not start or stop it. Background commands end with the toolbox. Safe from any thread; calls may run
// at the same time.
class Toolbox {
 public:
  explicit Toolbox(std::shared_ptr<Sandbox> sandbox, ToolOptions options = {});
  ~Toolbox();
  Toolbox(const Toolbox&) = delete;
  Toolbox& operator=(const Toolbox&) = delete;

  // `arguments`: a JSON object; empty means {}.
  ToolResult call(std::string_view name, std::string_view arguments, const ToolContext& context = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace belljar
