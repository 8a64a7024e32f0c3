// A turn: the texts that entered it, and a judgement on each call that is proposed in it.
//
// The idea is provenance. A call is taken apart into acts, each with the strings that decide what it does:
// paths, hosts, addresses, amounts (call.h). Every such string is looked for in what the user wrote and in
// what came from elsewhere (trace.h). A string that the user named, or that stands nowhere, is the user's or
// the model's own choice; one that stands only in content from elsewhere was chosen by that content. What
// follows from that is a row of the table (turn_rows.cc, docs/design/guard.md).
//
// Strings alone would miss a way around: content that goes through a file. turn_files.cc follows it.
//
// Everything is bounded: bytes of text, files, strings for each act. Where more text entered than is searched
// the judgement is a question, unless the caller has said that the oldest may be forgotten
// (Overflow::kForgetOldest).
//
// The strictest ruling over all acts is the judgement. What could not be parsed is traced as plain text, with
// every string in it as one that decides.
#include "belljar/turn.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "guard/call.h"
#include "guard/trace.h"
#include "guard/turn_state.h"

namespace belljar {

using guard::Act;
using guard::Atom;
using guard::Call;

void Turn::State::make_room(std::size_t wanted) {
  while (!foreign.empty() && wanted > settings.max_bytes - std::min(bytes, settings.max_bytes)) {
    bytes -= foreign.front().what.text.size();
    foreign.pop_front();
  }
}

Turn::Turn(TurnSettings settings) : state_(std::make_unique<State>()) {
  while (settings.workspace.size() > 1 && settings.workspace.ends_with('/')) settings.workspace.pop_back();
  state_->settings = std::move(settings);
}
Turn::~Turn() = default;
Turn::Turn(Turn&&) noexcept = default;
Turn& Turn::operator=(Turn&&) noexcept = default;

void Turn::entered(Entered what) {
  const bool trusted =
      what.trust == TextTrust::kTrusted || (what.trust == TextTrust::kBySource && what.source == TextSource::kUser);
  State& state = *state_;
  if (!trusted && state.is_own_text(what)) return;
  if (state.settings.overflow == Overflow::kForgetOldest) state.make_room(what.text.size());
  const std::size_t room = state.settings.max_bytes - std::min(state.bytes, state.settings.max_bytes);
  if (what.text.size() > room) {
    what.text.resize(room);
    state.full = state.full || !trusted;
  }
  state.bytes += what.text.size();
  (trusted ? state.user : state.foreign).push_back(guard::read_text(std::move(what), !trusted));
}

namespace {

// The stricter of two; of two alike the first.
void keep_stricter(Judgement& judgement, Ruling ruling, CallClass kind, std::string_view what, std::string_view file = {}) {
  if (ruling.advice <= judgement.advice) return;
  judgement.advice = ruling.advice;
  judgement.row = std::move(ruling.row);
  const std::string where = file.empty() ? "" : format(" of the file {}", quoted(file));
  judgement.reason = format("{}{} ({}): {}", quoted(what.substr(0, 200)), where, to_string(kind), ruling.why);
  judgement.evidence = std::move(ruling.evidence);
  const auto at = std::ranges::find(judgement.classes, kind);
  if (at != judgement.classes.end()) std::rotate(judgement.classes.begin(), at, at + 1);
  else judgement.classes.insert(judgement.classes.begin(), kind);
}

Ruling stricter(Ruling first, Ruling second) { return second.advice > first.advice ? std::move(second) : std::move(first); }

// What could not be read is traced as text: every string in it counts as deciding.
Act as_text(const Call& call, const std::string& text) {
  Act whole{.kind = CallClass::kRunning, .what = text};
  for (const std::string& each : call.texts) {
    auto atoms = guard::find_atoms(std::string_view(each).substr(0, 64U << 10));
    whole.atoms.insert(whole.atoms.end(), atoms.begin(), atoms.end());
  }
  return whole;
}

}  // namespace

Judgement Turn::judge(const ProposedCall& proposed) {
  Call call = guard::read_call(proposed, state_->reader);
  std::vector<std::string> made;
  for (const guard::WrittenFile& file : call.writes) {
    if (file.whole) made.push_back(file.path);
  }
  Judgement judgement = judge_call(proposed, call);
  state_->note_made(made);  // for later calls: what this one empties and removes was not its own
  return judgement;
}

Judgement Turn::judge_call(const ProposedCall& proposed, guard::Call& call) {
  State& state = *state_;
  state.follow_copies(call);
  state.follow_written(call);
  Judgement judgement{.reason = "nothing but trusted text entered", .row = "nothing-foreign"};
  for (const Act& act : call.acts) judgement.classes.push_back(act.kind);
  if (!call.unread.empty()) judgement.classes.push_back(CallClass::kUnread);
  if (state.foreign.empty() && !state.full) return judgement;
  judgement.row = "own";
  judgement.reason = "nothing in it comes from untrusted content alone";
  for (const Act& act : call.acts) {
    const bool leaks = state.deciding(act, call).kind == CallClass::kExfiltrating;
    Ruling ruling = state.judge_act(act, call);
    if (ruling.advice == Advice::kAllow) ruling = stricter(std::move(ruling), state.judge_change(act));
    const bool weak = ruling.advice == Advice::kAllow || (ruling.row == "foreign-mentioned" && ruling.advice == Advice::kAsk);
    if (weak && state.user_words_unknown()) ruling = stricter(state.judge_unheard(act), std::move(ruling));
    state.settle(act, call, leaks ? CallClass::kExfiltrating : act.kind, ruling);
    keep_stricter(judgement, std::move(ruling), leaks ? CallClass::kExfiltrating : act.kind, act.what, act.file);
    if (state.full && act.kind != CallClass::kReading)
      keep_stricter(judgement, {.advice = Advice::kAsk, .row = "unsearched", .why = "more text entered than is searched"}, act.kind,
                    act.what);
  }
  const std::string& text = proposed.command.empty() ? proposed.arguments : proposed.command;
  if (!call.undecided.empty())
    keep_stricter(judgement, {.advice = Advice::kAsk, .row = "undecided", .why = call.undecided}, CallClass::kUnread, text);
  if (call.unread.empty()) return judgement;
  keep_stricter(judgement, state.judge_act(as_text(call, text), call), CallClass::kUnread, text);
  if (call.acts.empty())
    keep_stricter(judgement, {.advice = Advice::kAsk, .row = "unread", .why = call.unread}, CallClass::kUnread, text);
  return judgement;
}

void guard::TurnProbe::watch(Turn& turn, Watch watch) { turn.state_->watch = std::move(watch); }

}  // namespace belljar
