// What a tool is, inside this room: a row of a table.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "tools/arguments.h"
#include "tools/commands.h"

namespace belljar::tools {

using Json = nlohmann::ordered_json;

// The result of a call.
struct ToolAnswer {
  std::string text;
  Json structured = Json::object();
  std::vector<Violation> violations;
  bool failed = false;                       // and `text` says why in a document's words; any other failure is an Error
  std::size_t own_from = std::string::npos;  // as ToolResult has it
};

// All of it in our own words.
inline ToolAnswer own_words(std::string text, bool failed = false) {
  return {.text = std::move(text), .failed = failed, .own_from = 0};
}

// A call with all that a tool may use.
struct Call {
  Sandbox& sandbox;
  Commands& commands;
  const ToolOptions& options;
  const Arguments& arguments;
  const ToolContext& context;  // its token is cancelled at the deadline, too
  const CallOptions& in_time;  // of calls of files: what the caller gave
};

using ToolFunction = Result<ToolAnswer> (*)(Call& call);
// What the call names, for the hook. Empty where it cannot be told: then the act fails by itself.
using PathsOf = std::vector<std::string> (*)(const Arguments& arguments);
using AnswerBeforeAsking = std::optional<ToolAnswer> (*)(Call& call);
using RefusalWording = ToolAnswer (*)(const ToolVerdict& refused);

struct Tool {
  std::string_view name, title, description;
  ToolKind kind = ToolKind::kRead;
  std::span<const Parameter> parameters;
  std::string_view output_schema;
  ToolFunction act = nullptr;
  PathsOf paths = nullptr;             // unset: the argument `path`
  RefusalWording blocked = nullptr;    // how a document words what was refused before anything ran; unset: an error as any other
  bool removes = false;                // what it names goes, with all that is below
  AnswerBeforeAsking first = nullptr;  // answers what a document answers before anybody is asked
};

std::span<const Tool> own_tools() noexcept;
// Those of a document. kBelljar: none.
std::span<const Tool> document_tools(ToolTexts texts) noexcept;

// One file a group: bash.cc, files.cc, search.cc, apply_patch.cc.
Result<ToolAnswer> bash(Call& call);
Result<ToolAnswer> bash_output(Call& call);
Result<ToolAnswer> bash_kill(Call& call);
Result<ToolAnswer> read_file(Call& call);
Result<ToolAnswer> write_file(Call& call);
Result<ToolAnswer> str_replace(Call& call);
Result<ToolAnswer> remove(Call& call);
Result<ToolAnswer> list(Call& call);
Result<ToolAnswer> glob(Call& call);
Result<ToolAnswer> grep(Call& call);
Result<ToolAnswer> apply_patch(Call& call);
std::vector<std::string> paths_of_patch(const Arguments& arguments);

// A text without bytes that JSON cannot hold: each that is no UTF-8 becomes U+FFFD. What JSON needs anyway is left to dump().
std::string dump(const Json& json);

}  // namespace belljar::tools
