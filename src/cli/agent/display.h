// What a user sees of an agent at work: events as lines of text, or as JSON.
#pragma once

#include <string>
#include <string_view>

#include "belljar/agent.h"
#include "belljar/agent_model.h"

namespace belljar::cli {

struct PrintOptions {
  bool json = false;    // each event as an object on stdout
  bool live = false;    // the model's words on stdout as they come
  bool status = false;  // stderr is a terminal: "..." while the model thinks
  bool colour = false;
};

// One thread at a time.
class EventPrinter {
 public:
  explicit EventPrinter(PrintOptions options) : options_(options) {}
  void operator()(const AgentEvent& event);
  // Ends what stands on the line.
  void end_line();

 private:
  void show(const AgentEvent& event);
  void tell(const AgentEvent& event, std::string_view mark, std::string_view colour, const std::string& text);
  void status(bool on);

  const PrintOptions options_;
  bool status_on_ = false, in_text_ = false;
};

std::string event_json(const AgentEvent& event);

// Lines and tabs stay, all else that a terminal would take for an order is escaped.
std::string printable(std::string_view text);
// What a call is about, for people: the command, the path, or the arguments.
std::string call_text(const ToolUse& call);

}  // namespace belljar::cli
