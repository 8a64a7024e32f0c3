// The tools of the documents this project began with, their names and texts to the letter (docs/FEATURES.md,
// themes 4 to 7). What the documents leave open (the texts of str_replace and delete) is said in our own
// words.
//
// Each document counts and words things in its own way: characters or bytes, a notice in front or at the end,
// errors as results or as text. Those differences are promises to whoever already speaks to such tools, so
// they are kept in functions with the document's number (`bash_000`, `read_001`) and not unified. Common is
// what lies below: one call of the sandbox, its deadline, and its output, of which more is captured than any
// of the documents shows, so that the cut is theirs.
//
// Only the words that are certain to be ours are marked as such (own_from). What a command printed stays
// data, also between the words of a document.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/format.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "tools/arguments.h"
#include "tools/text.h"
#include "tools/tool.h"

namespace belljar::tools {
namespace {

using enum ArgumentType;
using enum Need;

constexpr std::uint64_t kOutput000 = 200'000, kNotice000 = 200;  // characters: kept, and kept free for the notice
constexpr std::uint64_t kOutput002 = 50'000;
constexpr std::chrono::milliseconds kTimeout002 = std::chrono::seconds(120);
constexpr std::uint64_t kCaptured = std::uint64_t{4} << 20;  // bytes: more than 000 and 002 show

Result<ExecResult> run(Call& call, ExecOptions options = {}) {
  options.cancel = call.context.cancel;
  options.output_bytes = kCaptured;
  for (OutputCallback* each : {&options.on_stdout, &options.on_stderr}) {
    if (!call.context.on_output) break;
    *each = [count = std::move(*each), tell = call.context.on_output](std::string_view piece) {
      if (count) count(piece);
      tell(piece);
    };
  }
  return call.sandbox.exec(shell_command(call.arguments.text("command")), options);
}

ToolAnswer answer_of(std::string text, const ExecResult& result) {
  const bool told = !result.message.empty() && text.ends_with(result.message);
  const std::size_t own_from = told ? text.size() - result.message.size() : std::string::npos;
  return {.text = std::move(text),
          .structured = {{"exit_code", result.exit_code}},
          .violations = result.violations,
          .own_from = own_from};
}

// A command that did not end by itself: what ended it, where the documents have the message of their error.
std::string with_ending(std::string text, const ExecResult& result) {
  if (result.message.empty()) return text;
  return text + (text.empty() || text.ends_with('\n') ? "" : "\n") + result.message;
}

// Lock 3 of document 000. `seen`: all that arrived, also what the sandbox did not keep.
std::string cut_000(const Output& output, const CharacterCount& seen) {
  const std::uint64_t total =
      seen.bytes() == output.total ? seen.characters() : characters(output.bytes) + output.omitted;  // nobody told us
  if (total <= kOutput000) return output.bytes;
  const std::string_view head = first_characters(output.bytes, kOutput000 - kNotice000);
  return format("{}\n\n[... truncated, {} chars omitted ...]", head, total - characters(head));
}

Result<ToolAnswer> bash_000(Call& call) {
  CharacterCount out_seen, err_seen;
  const ExecResult result = BELLJAR_TRY(run(call, {.on_stdout = [&](std::string_view piece) { out_seen.add(piece); },
                                                   .on_stderr = [&](std::string_view piece) { err_seen.add(piece); }}));
  const std::string out = cut_000(result.out, out_seen);
  const std::string err = with_ending(result.reason == Reason::kTimeout ? "" : cut_000(result.err, err_seen), result);
  const std::string output = err.empty() ? out : out + "\n" + err;
  const std::string_view text = trim(output);
  if (text.empty()) return answer_of(result.exit_code == 0 ? "(no output)" : format("(exit code {})", result.exit_code), result);
  return answer_of(std::string(text), result);
}

Result<ToolAnswer> read_000(Call& call) {
  std::string text = BELLJAR_TRY(call.sandbox.read_file(call.arguments.text("path"), {.call = call.in_time}));
  return ToolAnswer{.text = text.empty() ? "(empty)" : std::move(text)};
}

// By a rule for commands (with_command_rules), before anything ran; what the hook refuses comes here through Tool::blocked.
bool refused_by_command_rule(const Error& error) {
  return error.code() == Code::kPermissionDenied && error.what().starts_with("the command ");
}

// Of what nobody has decided yet: without it nobody would learn that a person can allow it.
std::string how_to_allow(const ToolVerdict& refused) { return refused.undecided ? "; " + refused.next : ""; }

ToolAnswer blocked_001(const ToolVerdict& refused) {
  return own_words("Command blocked: " + refused.reason + how_to_allow(refused), true);
}

Result<ToolAnswer> run_001(Call& call) {
  auto ran = run(call);
  if (!ran && refused_by_command_rule(ran.error()))
    return blocked_001({.allowed = false, .reason = ran.error().reason(), .next = ""});
  const ExecResult result = BELLJAR_TRY(std::move(ran));
  // The document cuts nothing; what one answer cannot hold is said.
  const std::uint64_t omitted = result.out.omitted + result.err.omitted;
  const std::string cut = omitted > 0 ? format("\n[... truncated, {} bytes omitted ...]", omitted) : "";
  const std::string output = with_ending(result.out.bytes + result.err.bytes + cut, result);
  if (result.exit_code != 0) return answer_of(format("Command failed (exit code {}):\n{}", result.exit_code, output), result);
  return answer_of(output.empty() ? "Command completed successfully (no output)" : output, result);
}

bool leaves(const Error& error) { return error.what().starts_with("path escapes workspace"); }

// Document 001 returns errors as text.
ToolAnswer outside_001(const Call& call) {
  return own_words("Error: Path is outside the allowed workspace: " + call.arguments.text("path"));
}

// Its file tools look at the path before they touch anything. A link that leads out is left to the act.
std::optional<ToolAnswer> first_001(Call& call) {
  const auto there = call.sandbox.stat(call.arguments.text("path"), call.in_time);
  if (there || !leaves(there.error())) return {};
  return outside_001(call);
}

Result<ToolAnswer> read_001(Call& call) {
  auto text = call.sandbox.read_file(call.arguments.text("path"), {.call = call.in_time});
  if (text) return ToolAnswer{.text = *std::move(text)};
  if (leaves(text.error())) return outside_001(call);
  if (text.error().code() == Code::kNotFound) return own_words("Error: File not found: " + call.arguments.text("path"));
  return own_words("Error reading file: " + text.error().line());
}

Result<ToolAnswer> write_001(Call& call) {
  const std::string& content = call.arguments.text("content");
  const auto written = call.sandbox.write_file(call.arguments.text("path"), content, {.call = call.in_time});
  if (written)
    return ToolAnswer{.text = format("Successfully wrote {} characters to {}", utf16_length(content), call.arguments.text("path"))};
  if (leaves(written.error())) return outside_001(call);
  return own_words("Error writing file: " + written.error().line());
}

Result<ToolAnswer> delete_001(Call& call) {
  const auto removed = call.sandbox.remove(call.arguments.text("path"), {.call = call.in_time});
  if (removed) return ToolAnswer{.text = "Successfully deleted " + call.arguments.text("path")};
  if (leaves(removed.error())) return outside_001(call);
  if (removed.error().code() == Code::kNotFound) return own_words("Error: File not found: " + call.arguments.text("path"));
  return own_words("Error deleting file: " + removed.error().line());
}

Result<ToolAnswer> list_001(Call& call) {
  const auto found = call.sandbox.list(call.arguments.text("path"), call.in_time);
  if (!found && leaves(found.error())) return outside_001(call);
  if (!found) return own_words("Error listing files: " + found.error().line());
  ToolAnswer answer;
  for (const FileInfo& info : *found) answer.text += (answer.text.empty() ? "" : "\n") + info.path;
  return answer;
}

// "120s", "1.5s".
std::string seconds(std::chrono::milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (const auto rest = time.count() % 1000; rest != 0) {
    text += format(".{:03}", rest);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + "s";
}

ToolAnswer blocked_002(const ToolVerdict& refused) {
  const std::string why = refused.undecided ? ": " + refused.reason + how_to_allow(refused) : "";
  return own_words("Error: Dangerous command blocked" + why, true);
}

Result<ToolAnswer> run_002(Call& call) {
  auto ran = run(call, {.timeout = std::min(call.options.timeout.value_or(kTimeout002), kTimeout002)});
  if (!ran && refused_by_command_rule(ran.error()))
    return blocked_002({.allowed = false, .reason = ran.error().reason(), .next = ""});
  const ExecResult result = BELLJAR_TRY(std::move(ran));
  if (result.reason == Reason::kTimeout)
    return answer_of(format("Error: Timeout ({})", seconds(timeout_of(result).value_or(kTimeout002))), result);
  const std::string output = result.out.bytes + result.err.bytes;
  const std::string_view text = first_characters(trim(output), kOutput002);
  return answer_of(text.empty() ? "(no output)" : std::string(text), result);
}

Error as_in_002(Error error, const Call& call) {
  if (!leaves(error)) return error;
  return Error(error.code(), "Path escapes workspace: " + call.arguments.text("path"));
}

Result<ToolAnswer> read_002(Call& call) {
  auto text = call.sandbox.read_file(call.arguments.text("path"), {.call = call.in_time});
  if (!text) return as_in_002(std::move(text).error(), call);
  return ToolAnswer{.text = *std::move(text)};
}

Result<ToolAnswer> write_002(Call& call) {
  auto answer = write_file(call);
  if (!answer) return as_in_002(std::move(answer).error(), call);
  return answer;
}

constexpr Parameter kCommand[] = {{"command", kText, kRequired, "The shell command to execute"}};
constexpr Parameter kPathToRead[] = {{"path", kText, kRequired, "The path to the file to read"}};
constexpr Parameter kAnyPath[] = {{"path", kText, kRequired, "The path"}};
constexpr Parameter kPathToWrite[] = {{"path", kText, kRequired, "The path to the file to write"},
                                      {"content", kText, kRequired, "The content to write to the file"}};
constexpr Parameter kPathToReplace[] = {{"path", kText, kRequired, "The path to the file"},
                                        {"old", kText, kRequired, "The text to replace, which must be there once"},
                                        {"new", kText, kRequired, "What is to be there instead"}};

constexpr std::string_view kRun =
    "Execute a shell command and return its output. Use this for system operations, running scripts, or interacting with the "
    "operating system.";
constexpr std::string_view kReads = "Read the contents of a file at the specified path. Use this to examine file contents.";
constexpr std::string_view kWrites =
    "Write content to a file at the specified path. Creates the file if it doesn't exist, overwrites if it does.";

constexpr Tool k000[] = {
    {"bash", "Run a command", kRun, ToolKind::kExecute, kCommand, {}, bash_000},
    {"read_file", "Read a file", kReads, ToolKind::kRead, kPathToRead, {}, read_000},
    {"write_file", "Write a file", kWrites, ToolKind::kWrite, kPathToWrite, {}, write_file},
    {"str_replace",
     "Replace text in a file",
     "Replaces a text that is in a file exactly once.",
     ToolKind::kWrite,
     kPathToReplace,
     {},
     str_replace},
};
constexpr Tool k001[] = {
    {"runCommand", "Run a command", kRun, ToolKind::kExecute, kCommand, {}, run_001, nullptr, blocked_001},
    {"readFile", "Read a file", kReads, ToolKind::kRead, kPathToRead, {}, read_001, nullptr, nullptr, false, first_001},
    {"writeFile", "Write a file", kWrites, ToolKind::kWrite, kPathToWrite, {}, write_001, nullptr, nullptr, false, first_001},
    {"deleteFile",
     "Delete a file",
     "Delete the file at the specified path.",
     ToolKind::kWrite,
     kAnyPath,
     {},
     delete_001,
     nullptr,
     nullptr,
     true,
     first_001},
    {"listFiles",
     "List a directory",
     "List the names in the directory at the specified path.",
     ToolKind::kRead,
     kAnyPath,
     {},
     list_001,
     nullptr,
     nullptr,
     false,
     first_001},
};
constexpr Tool k002[] = {
    {"run_bash", "Run a command", kRun, ToolKind::kExecute, kCommand, {}, run_002, nullptr, blocked_002},
    {"read_file", "Read a file", kReads, ToolKind::kRead, kPathToRead, {}, read_002},
    {"write_file", "Write a file", kWrites, ToolKind::kWrite, kPathToWrite, {}, write_002},
};

}  // namespace

std::span<const Tool> document_tools(ToolTexts texts) noexcept {
  if (texts == ToolTexts::kDocument000) return k000;
  if (texts == ToolTexts::kDocument001) return k001;
  if (texts == ToolTexts::kDocument002) return k002;
  return {};
}

}  // namespace belljar::tools
