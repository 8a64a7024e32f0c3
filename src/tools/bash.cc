// bash, bash_output and bash_kill: commands in front and in the background.
//
// Output is collected in a Spool while the command runs, and the model gets its head and tail. Whatever was
// shortened, or still runs, can be asked for by an id and an absolute offset, so that a page that was read
// once is not sent again. A command in the foreground is kept for that only if it said more than was shown.
//
// bash_output waits until there is something new behind the offset, until the command has ended, or until the
// time is over. It waits for the end of the process, and looks for new output every 50 ms in between.
//
// What was refused is told with a result once, whoever asks first: the same violations on each page would
// look like new ones.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "belljar/violation_text.h"
#include "tools/commands.h"
#include "tools/spool.h"
#include "tools/text.h"
#include "tools/tool.h"

namespace belljar::tools {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLongestWait = std::chrono::minutes(1);

Command command_of(const Call& call) {
  Command command = shell_command(call.arguments.text("command"));
  if (!call.options.shell.empty()) {
    command.argv = call.options.shell;
    command.argv.push_back(call.arguments.text("command"));
  }
  const std::string& cwd = call.arguments.text("cwd");
  if (!cwd.empty()) command.cwd = cwd.starts_with('/') ? cwd : call.sandbox.workspace() + "/" + cwd;
  return command;
}

// "[exit code 137: killed by signal 9; memory: ...]".
std::string ending_of(const ExecResult& result) {
  std::string text = format("[exit code {}", result.exit_code);
  if (result.reason != Reason::kExited) text += format("; {}", to_string(result.reason));
  if (!result.message.empty()) text += ": " + result.message;
  return text + "]";
}

Json json_of(const Violation& violation) {
  return {{"operation", violation.operation},      {"target", violation.target},   {"rule", violation.rule},
          {"origin", to_string(violation.origin)}, {"allowed", violation.allowed}, {"count", violation.count}};
}

void add_result(Json& json, const ExecResult& result) {
  json["exit_code"] = result.exit_code;
  json["reason"] = to_string(result.reason);
  if (result.signal) json["signal"] = *result.signal;
  if (!result.message.empty()) json["message"] = result.message;
  json["duration_ms"] = std::chrono::duration_cast<milliseconds>(result.duration).count();
  if (!result.limits_hit.empty()) json["limits_hit"] = result.limits_hit;
  if (result.violations.empty()) return;
  Json& refused = json["violations"] = Json::array();
  for (const Violation& violation : merge_alike(result.violations)) refused.push_back(json_of(violation));
}

// The beginning of a stream, for programs; a model is shown both together, in the order in which they came.
void add_stream(Json& json, const std::string& name, const Output& output, std::size_t limit) {
  const std::string part = output.bytes.substr(0, whole_characters(output.bytes, limit));
  json[name + "_omitted"] = output.omitted + (output.bytes.size() - part.size());
  json[name] = part;
}

// What a command wrote, in the order of its arrival, as much as is shown; whether that is less than all.
std::pair<std::string, bool> shown(const Spool& spool, std::size_t limit, const std::string& id) {
  const std::uint64_t total = spool.total();
  if (total <= limit) return {spool.read(0, limit).bytes, false};
  const Page head = spool.read(0, limit / 2);
  Page tail = spool.read(total - limit / 2, limit);
  const auto newlines = [](const std::string& text) { return static_cast<std::uint64_t>(std::ranges::count(text, '\n')); };
  const std::string end(from_whole_character(tail.bytes));
  const std::uint64_t lines = spool.lines() - std::min(spool.lines(), newlines(head.bytes) + newlines(end));
  return {format("{}\n[... {} of {} bytes, {} lines left out; bash_output with id \"{}\" and offset {} reads on ...]\n{}",
                 head.bytes, total - head.bytes.size() - end.size(), total, lines, id, head.next, end),
          true};
}

// Behind what the command wrote, on a line of its own.
void begin_own_words(ToolAnswer& answer) {
  if (!answer.text.empty() && !answer.text.ends_with('\n')) answer.text += '\n';
  answer.own_from = answer.text.size();
}

// The spool holds more than the sandbox keeps: what only `stdout` and `stderr` lack was not cut for who is shown the text.
void forget_output_limit(ExecResult& result, const Spool& spool) {
  if (result.reason == Reason::kOutput || spool.total() < result.out.total + result.err.total) return;
  std::erase(result.limits_hit, "output");
  std::erase_if(result.violations, [](const Violation& one) { return one.operation == "limit" && one.target == "output"; });
}

// Behind what the command wrote.
void add_ending(ToolAnswer& answer, const ExecResult& result) {
  begin_own_words(answer);
  answer.text += ending_of(result);
  if (const std::string note = to_model_text(result); !note.empty()) answer.text += "\n" + note;
}

ToolAnswer answer_of(const Call& call, TrackedCommand& command, ExecResult result) {
  ToolAnswer answer;
  bool cut = false;
  std::tie(answer.text, cut) = shown(*command.spool, call.options.text_bytes, command.id);
  add_result(answer.structured, result);
  add_stream(answer.structured, "stdout", result.out, call.options.text_bytes);
  add_stream(answer.structured, "stderr", result.err, call.options.text_bytes);
  if (cut) answer.structured["id"] = command.id;
  answer.violations = result.violations;
  forget_output_limit(result, *command.spool);
  add_ending(answer, result);
  return answer;
}

OutputCallback into(std::shared_ptr<Spool> spool, const ToolContext& context) {
  return [spool = std::move(spool), tell = context.on_output](std::string_view piece) {
    spool->append(piece);
    if (tell) tell(piece);
  };
}

Result<ToolAnswer> run_in_front(Call& call) {
  const auto command = std::make_shared<TrackedCommand>();
  ExecOptions options{.stdin_bytes = call.arguments.text("stdin"), .cancel = call.context.cancel};
  if (const auto timeout = call.arguments.integer("timeout_ms")) options.timeout = milliseconds(*timeout);
  options.on_stdout = options.on_stderr = into(command->spool, call.context);
  ExecResult result = BELLJAR_TRY(call.sandbox.exec(command_of(call), options));
  if (command->spool->total() == 0) command->spool->append(result.out.bytes), command->spool->append(result.err.bytes);
  if (command->spool->total() > call.options.text_bytes) {
    command->id = call.commands.next_id();
    command->ended = result;
    command->told = true;
    call.commands.keep(command);
  }
  return answer_of(call, *command, std::move(result));
}

Result<ToolAnswer> run_behind(Call& call) {
  if (call.arguments.has("stdin"))
    return Error(Code::kInvalidArgument, "cannot give stdin to a command in the background")
        .next("put the text into a file, and redirect it");
  BELLJAR_CHECK(call.commands.check_room());
  const auto command = std::make_shared<TrackedCommand>();
  command->text = call.arguments.text("command");
  command->cancel = BELLJAR_TRY(CancelToken::create());
  SpawnOptions options{.cancel = command->cancel};
  if (const auto timeout = call.arguments.integer("timeout_ms")) options.timeout = milliseconds(*timeout);
  // The output arrives when this call has long been answered: nobody is told.
  options.on_stdout = options.on_stderr = into(command->spool, {});
  options.output_bytes = 0;
  command->process = BELLJAR_TRY(call.sandbox.spawn(command_of(call), options));
  command->id = call.commands.next_id();
  call.commands.keep(command);
  return ToolAnswer{
      .text = format("[running in the background; bash_output with id \"{0}\" reads its output, bash_kill ends it]", command->id),
      .structured = {{"id", command->id}, {"running", true}, {"pid", command->process->pid()}},
      .own_from = 0};
}

// Until it has ended, has said something behind `offset`, nobody waits any more, or the time is over.
Result<std::optional<ExecResult>> wait_for_news(TrackedCommand& command, std::uint64_t offset, milliseconds patience,
                                                const CancelToken& cancel) {
  const Clock::time_point end = Clock::now() + std::min(patience, kLongestWait);
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    const bool enough = left.count() <= 0 || command.spool->total() > offset || cancel.cancelled();
    auto ended = BELLJAR_TRY(result_of(command, enough ? milliseconds(0) : std::min(left, milliseconds(50))));
    if (ended || enough) return ended;
  }
}

// A refusal is told once.
std::vector<Violation> take_violations(TrackedCommand& command, const ExecResult& result) {
  const std::lock_guard lock(command.mutex);
  return std::exchange(command.told, true) ? std::vector<Violation>() : result.violations;
}

ToolAnswer page_of(TrackedCommand& command, std::optional<ExecResult> ended, std::uint64_t offset, std::size_t limit) {
  if (ended) forget_output_limit(*ended, *command.spool);
  const Page page = command.spool->read(offset, limit);
  ToolAnswer answer;
  if (page.offset > offset) answer.text = format("[{} bytes from offset {} on were dropped]\n", page.offset - offset, offset);
  answer.text += page.bytes;
  const bool more = page.next < page.total;
  if (!more && ended) {
    add_ending(answer, *ended);
  } else {
    begin_own_words(answer);
    answer.text += more ? format("[{} more bytes; go on with offset {}]", page.total - page.next, page.next)
                        : format("[still running; go on with offset {}]", page.next);
  }
  answer.structured = {{"id", command.id},      {"running", !ended},        {"output", page.bytes},
                       {"offset", page.offset}, {"next_offset", page.next}, {"total", page.total}};
  if (!ended) return answer;
  add_result(answer.structured, *ended);
  answer.violations = take_violations(command, *ended);
  return answer;
}

}  // namespace

Result<ToolAnswer> bash(Call& call) { return call.arguments.flag("background") ? run_behind(call) : run_in_front(call); }

Result<ToolAnswer> bash_output(Call& call) {
  const auto command = BELLJAR_TRY(call.commands.find(call.arguments.text("id")));
  const auto offset = static_cast<std::uint64_t>(call.arguments.integer("offset").value_or(0));
  const auto wanted = static_cast<std::uint64_t>(call.arguments.integer("limit").value_or(INT64_MAX));
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, call.options.text_bytes));
  const milliseconds patience(call.arguments.integer("wait_ms").value_or(0));
  auto ended = BELLJAR_TRY(wait_for_news(*command, offset, patience, call.context.cancel));
  return page_of(*command, std::move(ended), offset, limit);
}

Result<ToolAnswer> bash_kill(Call& call) {
  const auto command = BELLJAR_TRY(call.commands.find(call.arguments.text("id")));
  if (BELLJAR_TRY(result_of(*command, milliseconds(0)))) {
    return Error(Code::kFailedPrecondition, format("cannot end the command {}", command->id))
        .reason("it has ended")
        .next("bash_output shows how");
  }
  command->cancel.cancel();
  std::optional<ExecResult> ended;
  while (!ended) ended = BELLJAR_TRY(result_of(*command, kLongestWait));
  ToolAnswer answer = own_words(ending_of(*ended));
  answer.structured = {{"id", command->id}, {"running", false}};
  add_result(answer.structured, *ended);
  answer.violations = take_violations(*command, *ended);
  return answer;
}

}  // namespace belljar::tools
