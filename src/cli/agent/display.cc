#include "cli/agent/display.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "agent/json.h"
#include "base/format.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"

namespace belljar::cli {
namespace {

using agent::Json;
using Kind = AgentEvent::Kind;

constexpr std::size_t kLongestLine = 160;
constexpr std::string_view kDim = "\033[2m", kRed = "\033[31m", kYellow = "\033[33m", kCyan = "\033[36m";

// A reader that is gone is no reason to end the run.
void put(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

std::string one_line(std::string_view text) {
  const std::string_view whole = text;
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  const std::string_view line = text.substr(0, text.find('\n'));
  std::string shown = escaped(line.substr(0, kLongestLine));
  if (line.size() > kLongestLine) shown += "...";
  const auto lines = static_cast<std::size_t>(std::count(whole.begin(), whole.end(), '\n')) + (whole.ends_with('\n') ? 0 : 1);
  return lines > 1 ? format("{}  (+{} lines)", shown, lines - 1) : shown;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out += escaped(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string call_text(const ToolUse& call) {
  const Json arguments = agent::arguments_of(call);
  for (const char* key : {"command", "path", "pattern", "text", "prompt", "name"}) {
    if (const std::string text = agent::text_of(arguments, key); !text.empty()) return text;
  }
  return agent::dump(arguments);
}

std::string event_json(const AgentEvent& event) {
  Json json{{"event", to_string(event.kind)}};
  if (!event.agent.empty()) json["agent"] = event.agent;
  const bool tool = event.kind == Kind::kToolBegins || event.kind == Kind::kToolEnds;
  if (tool) {
    json["id"] = event.call.id;
    json["tool"] = event.call.name;
    if (event.kind == Kind::kToolBegins) json["arguments"] = agent::arguments_of(event.call);
    else json["failed"] = event.failed;
  }
  if (event.kind == Kind::kNote) json["failed"] = event.failed;
  if (event.kind == Kind::kEnd) json["end"] = to_string(event.end);
  if (!event.text.empty()) json["text"] = event.text;
  if (event.kind == Kind::kRetry) json["wait_ms"] = event.wait.count();
  if (event.kind == Kind::kModelEnds || event.kind == Kind::kEnd) {
    json["turn"] = event.turn;
    json["input_tokens"] = event.use.input;
    json["output_tokens"] = event.use.output;
  }
  return agent::dump(json) + "\n";
}

void EventPrinter::status(bool on) {
  if (!options_.status || on == status_on_) return;
  put(STDERR_FILENO, on ? "..." : "\r\033[K");
  status_on_ = on;
}

void EventPrinter::end_line() {
  status(false);
  if (in_text_) put(STDOUT_FILENO, "\n");
  in_text_ = false;
}

void EventPrinter::tell(const AgentEvent& event, std::string_view mark, std::string_view colour, const std::string& text) {
  end_line();
  const std::string line = format("{}{} {}", event.agent.empty() ? "" : "    ", mark, text);
  put(STDERR_FILENO, options_.colour ? format("{}{}\033[0m\n", colour, line) : line + "\n");
}

void EventPrinter::operator()(const AgentEvent& event) {
  if (options_.json) put(STDOUT_FILENO, event_json(event));
  else show(event);
}

void EventPrinter::show(const AgentEvent& event) {
  switch (event.kind) {
    case Kind::kModelBegins:
      status(!in_text_);
      break;
    case Kind::kText:
      if (!options_.live || !event.agent.empty()) break;
      status(false);
      put(STDOUT_FILENO, printable(event.text));
      in_text_ = true;
      break;
    case Kind::kModelEnds:
      end_line();
      break;
    case Kind::kToolBegins:
      tell(event, ">", kCyan, format("{}  {}", escaped(event.call.name), one_line(call_text(event.call))));
      break;
    case Kind::kToolEnds:
      tell(event, " ", event.failed ? kRed : kDim, one_line(event.text));
      break;
    case Kind::kRetry:
      tell(event, "!", kYellow, format("asked again in {} ms: {}", event.wait.count(), escaped(event.text)));
      break;
    case Kind::kNote:
      tell(event, "!", event.failed ? kRed : kYellow, escaped(event.text));
      break;
    case Kind::kTodo:
      tell(event, "#", kDim, printable("steps\n" + event.text.substr(0, event.text.size() - 1)));
      break;
    case Kind::kEnd:
      tell(event, "=", kDim,
           format("{}: {} answers, {} tokens in, {} out", to_string(event.end), event.turn, event.use.input, event.use.output));
      break;
  }
}

}  // namespace belljar::cli
