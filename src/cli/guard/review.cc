// belljar review list | show | answer
#include "belljar/review.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/format.h"
#include "belljar/state_dir.h"
#include "belljar/turn.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/guard/commands.h"
#include "policy/json.h"

namespace belljar::cli {
namespace {

struct ReviewFlags {
  std::string id, answer;
  bool json = false, all = false;
};

std::int64_t seconds_left(const ReviewItem& item) {
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return std::max<std::int64_t>(item.deadline_ms - now, 0) / 1000;
}

std::string as_json(const ReviewItem& item) {
  std::string evidence;
  for (const Evidence& each : item.request.evidence)
    evidence +=
        format(R"({}{{"text":{},"kind":{},"source":"{}","name":{},"quote":{},"layer":{},"at":{}}})", evidence.empty() ? "" : ",",
               policy::json_text(each.text), policy::json_text(each.kind), to_string(each.source), policy::json_text(each.name),
               policy::json_text(each.quote), policy::json_text(each.layer), each.at);
  const bool answered = item.state == ReviewState::kAnswered;
  return format(
             R"({{"id":"{}","state":"{}","answer":"{}","by":{},"session":{},"tool":{},"call":{},"advice":"{}","reason":{},"asked_ms":{},"deadline_ms":{},"evidence":[{}]}})",
             item.id, to_string(item.state), answered ? to_string(item.decision.answer) : "", policy::json_text(item.decision.by),
             policy::json_text(item.request.session), policy::json_text(item.request.tool), policy::json_text(item.request.call),
             to_string(item.request.advice), policy::json_text(item.request.reason), item.asked_ms, item.deadline_ms, evidence) +
         "\n";
}

std::string state_of(const ReviewItem& item) {
  if (item.state == ReviewState::kAnswered) return format("{} ({})", to_string(item.decision.answer), escaped(item.decision.by));
  if (item.state == ReviewState::kExpired) return "denied (time is over)";
  return format("waits, {} s left", seconds_left(item));
}

std::string one_line(const ReviewItem& item) {
  constexpr std::size_t kLongest = 80;
  std::string call = item.request.call.substr(0, kLongest);
  if (item.request.call.size() > kLongest) call += "...";
  return format("{}  {:<20} {} {}\n", item.id, state_of(item), escaped(item.request.tool), escaped(call));
}

std::string as_text(const ReviewItem& item) {
  std::string text =
      format("review   {}\nstate    {}\ntool     {}\ncall     {}\nadvice   {}\nreason   {}\n", item.id, state_of(item),
             escaped(item.request.tool), escaped(item.request.call), to_string(item.request.advice), escaped(item.request.reason));
  for (const Evidence& each : item.request.evidence) {
    text +=
        format("evidence {} {} from {} {}, byte {}{}\n         {}\n", each.kind.empty() ? "act" : escaped(each.kind),
               each.text.empty() ? "" : belljar::quoted(each.text), to_string(each.source), belljar::quoted(each.name), each.at,
               each.layer == "text" || each.layer.empty() ? "" : ", hidden as " + escaped(each.layer), belljar::quoted(each.quote));
  }
  if (item.state == ReviewState::kWaiting) text += format("answer   belljar review answer {} once|session|always|deny\n", item.id);
  return text;
}

int list(const ReviewFlags& flags) {
  auto queue = ReviewQueue::open(default_state_dir());
  if (!queue) return print_error(queue.error());
  auto items = queue->list();
  if (!items) return print_error(items.error());
  std::string text;
  for (const ReviewItem& item : *items) {
    if (flags.all || item.state == ReviewState::kWaiting) text += flags.json ? as_json(item) : one_line(item);
  }
  if (text.empty() && !flags.json) text = "nothing waits for an answer\n";
  return print_result(text);
}

int show(const ReviewFlags& flags) {
  auto queue = ReviewQueue::open(default_state_dir());
  if (!queue) return print_error(queue.error());
  auto item = queue->find(flags.id);
  if (!item) return print_error(item.error());
  return print_result(flags.json ? as_json(*item) : as_text(*item));
}

int answer(const ReviewFlags& flags) {
  auto word = parse_review_answer(flags.answer);
  if (!word) return print_error(word.error());
  auto queue = ReviewQueue::open(default_state_dir());
  if (!queue) return print_error(queue.error());
  if (auto done = queue->answer(flags.id, *word); !done) return print_error(done.error());
  return 0;
}

}  // namespace

void add_review(const OptionParser& app, int& exit_code) {
  const OptionParser group =
      app.add_subcommand("review", "Calls of an agent that wait for a person. What nobody answers in time is denied");
  group.require_subcommand();
  const auto flags = std::make_shared<ReviewFlags>();
  const OptionParser listing = group.add_subcommand("list", "Those that wait, the oldest first");
  listing.add_flag("--all", flags->all, "Answered and expired ones as well");
  listing.add_flag("--json", flags->json, "One JSON object for each");
  listing.callback([flags, &exit_code] { exit_code = list(*flags); });
  const OptionParser showing = group.add_subcommand("show", "One of them, with the evidence");
  showing.add_option("ID", flags->id, "As `list` shows it").required();
  showing.add_flag("--json", flags->json, "As one JSON object");
  showing.callback([flags, &exit_code] { exit_code = show(*flags); });
  const OptionParser answering =
      group.add_subcommand("answer",
                           "once: this time. session: this very call again in this session. always: this very call, "
                           "whoever asks. deny. The first answer counts");
  answering.add_option("ID", flags->id, "As `list` shows it").required();
  answering.add_option("ANSWER", flags->answer, "once, session, always or deny").required();
  answering.callback([flags, &exit_code] { exit_code = answer(*flags); });
}

}  // namespace belljar::cli
