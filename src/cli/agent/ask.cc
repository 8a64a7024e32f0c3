#include "cli/agent/ask.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "belljar/agent.h"
#include "belljar/call_record.h"
#include "belljar/cancel.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/review.h"
#include "belljar/state_dir.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "cli/agent/display.h"
#include "mcp/defence.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kMostShown = 6000, kMostEvidence = 4;

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, text.data(), text.size());
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

std::string indented(const std::string& text) {
  std::string out = "      ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "      ";
  }
  return out + "\n";
}

std::string question_text(const AgentQuestion& question, bool colour) {
  const ToolRequest& request = question.request;
  const std::string act = act_text(request);
  std::string text = colour ? "\033[1m? \033[0m" : "? ";
  text += format("{} wants to do this:\n", escaped(request.tool));
  // In whole characters: the cut end of one would be escaped, which is fine.
  text += indented(printable(act.substr(0, kMostShown)));
  if (act.size() > kMostShown) text += format("      ... and {} bytes more that are not shown\n", act.size() - kMostShown);
  if (!question.reason.empty()) text += format("  why: {}\n", escaped(question.reason));
  for (std::size_t i = 0; i < std::min(question.evidence.size(), kMostEvidence); ++i) {
    const Evidence& each = question.evidence[i];
    text += format("  {} stands in {} {}: {}\n", belljar::quoted(each.text), to_string(each.source), belljar::quoted(each.name),
                   belljar::quoted(each.quote));
  }
  return text + "  y: yes, once   s: yes, this very call for the session   anything else: no > ";
}

// Empty: the end of input, or cancelled.
std::string read_line(const CancelToken& cancel) {
  std::string line;
  for (;;) {
    pollfd look[] = {{STDIN_FILENO, POLLIN, 0}, {cancel.fd(), POLLIN, 0}};
    if (::poll(look, 2, -1) < 0) continue;
    if (look[1].revents != 0) return {};
    char c = 0;
    if (::read(STDIN_FILENO, &c, 1) != 1) return {};
    if (c == '\n') return line;
    if (line.size() < 80) line += c;
  }
}

}  // namespace

bool can_ask() noexcept { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

AgentAnswer ask_on_terminal(const AgentQuestion& question, bool colour) {
  (void)::tcflush(STDIN_FILENO, TCIFLUSH);
  put(question_text(question, colour));
  const std::string line = read_line(question.request.cancel);
  if (line == "y" || line == "yes") return AgentAnswer::kOnce;
  if (line == "s" || line == "session") return AgentAnswer::kSession;
  return AgentAnswer::kNo;
}

Result<AgentAsk> ask_by_review(std::chrono::milliseconds patience, std::string workspace, std::shared_ptr<const Redactor> secrets,
                               std::function<void(const std::string&)> tell) {
  const ReviewQueue queue = BELLJAR_TRY(ReviewQueue::open(default_state_dir()));
  return AgentAsk([queue, patience, workspace = std::move(workspace), secrets = std::move(secrets), tell = std::move(tell),
                   session = "agent-" + random_hex(12)](const AgentQuestion& question) {
    const ToolRequest& request = question.request;
    ReviewRequest wanted =
        mcp::reviewed({.tool = request.tool, .call = act_text(request), .reason = question.reason, .evidence = question.evidence},
                      workspace, secrets.get());
    wanted.session = session;
    const auto id = queue.submit(wanted, patience);
    if (id && id->empty()) return AgentAnswer::kOnce;  // approved before
    if (!id) {
      tell(id.error().line());
      return AgentAnswer::kNo;
    }
    tell(format("{} waits for `belljar review answer {} once` (or session, always, deny)", request.tool, *id));
    const auto decision = queue.wait_for(*id, patience, request.cancel.fd());
    if (!decision || !*decision) return AgentAnswer::kNo;
    switch ((*decision)->answer) {
      case ReviewAnswer::kOnce:
        return AgentAnswer::kOnce;
      case ReviewAnswer::kSession:
      case ReviewAnswer::kAlways:
        return AgentAnswer::kSession;
      case ReviewAnswer::kDeny:
        break;
    }
    return AgentAnswer::kNo;
  });
}

CallRecorder recorder_of(CallRecorder trail, std::string workspace, std::shared_ptr<const Redactor> secrets, bool by_review) {
  return [trail = std::move(trail), workspace = std::move(workspace), secrets = std::move(secrets), by_review,
          session = "agent-" + random_hex(12)](const CallRecord& step) -> Result<std::int64_t> {
    const std::int64_t number = trail ? BELLJAR_TRY(trail(step)) : -1;
    const bool answer = !step.answer.empty();
    // Who answers by the queue is in it already.
    if (answer ? by_review || step.by == "approval" : step.verdict != CallOutcome::kBlock) return number;
    const auto decided = answer ? parse_review_answer(step.answer) : Result<ReviewAnswer>(ReviewAnswer::kDeny);
    // What cannot be kept there was decided all the same.
    if (const auto queue = ReviewQueue::open(default_state_dir()); queue && decided) {
      ReviewRequest kept = mcp::reviewed(step, workspace, secrets.get());
      kept.session = session;
      kept.advice = answer ? Advice::kAsk : Advice::kBlock;
      (void)queue->record(kept, {*decided, step.by});
    }
    return number;
  };
}

}  // namespace belljar::cli
