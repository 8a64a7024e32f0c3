// The same calls with the same results, again and again: a model that is stuck spends tokens until somebody
// looks.
//
// Each call is reduced to a hash of its name, its arguments and its result. A loop is a cycle of up to
// kLongestCycle such hashes that repeats at the end of the list, so that "read, edit, test, read, edit, test"
// is found as well as one call made five times. Numbers in a result count as one and the same, because
// durations and dates differ each time although nothing has changed.
//
// At the third repetition the model is told; at the fifth the run ends. bash_output is left out: it is how
// one waits.
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/tools.h"

namespace belljar {
namespace {

constexpr std::size_t kLongestCycle = 4, kWarnAt = 3, kEndAt = 5;

// Numbers that differ each time (a duration, a date) would hide that nothing changes.
std::size_t print_of(const ToolUse& call, const std::string& result) {
  std::string text = call.name + '\n' + call.arguments + '\n';
  for (const char c : result) {
    if (c < '0' || c > '9') text += c;
    else if (text.back() != '0') text += '0';
  }
  return std::hash<std::string>{}(text);
}

class LoopDetection final : public AgentMiddleware {
 public:
  void after_tool(AgentRun& run, const ToolUse& call, ToolResult& result) override;
  void after_run(AgentRun& run, AgentResult& /*result*/) override { seen_.erase(run.id); }

 private:
  // How often the newest calls repeat what stands before them: the most of all cycles.
  static std::size_t repeats(const std::deque<std::size_t>& seen);
  std::map<unsigned, std::deque<std::size_t>> seen_;  // by run, newest last
};

std::size_t LoopDetection::repeats(const std::deque<std::size_t>& seen) {
  std::size_t most = 1;
  for (std::size_t cycle = 1; cycle <= kLongestCycle; ++cycle) {
    std::size_t alike = cycle;
    while (alike < seen.size() && seen[seen.size() - 1 - alike] == seen[seen.size() - 1 - alike + cycle]) ++alike;
    if (alike <= seen.size() && alike / cycle > most) most = alike / cycle;
  }
  return most;
}

void LoopDetection::after_tool(AgentRun& run, const ToolUse& call, ToolResult& result) {
  if (call.name == "bash_output") return;  // waiting for something is no loop
  std::deque<std::size_t>& seen = seen_[run.id];
  seen.push_back(print_of(call, result.text));
  if (seen.size() > kLongestCycle * kEndAt) seen.pop_front();
  const std::size_t times = repeats(seen);
  if (times >= kEndAt) {
    run.stop = AgentEnd::kLoop;
    run.stop_reason = "the model makes the same calls again and again, and nothing changes (last: " + call.name + ")";
  } else if (times >= kWarnAt) {
    result.text += "\n[the same call had the same result before; do something else, or say what is missing]";
    run.tell({.kind = AgentEvent::Kind::kNote, .text = "the model repeats itself: " + call.name});
  }
}

}  // namespace

std::shared_ptr<AgentMiddleware> loop_detection() { return std::make_shared<LoopDetection>(); }

}  // namespace belljar
