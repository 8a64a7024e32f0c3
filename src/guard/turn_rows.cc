// The rows of the table that decides about one act. docs/design/guard.md has the table with its reasons.
//
// For one act the steps are these:
//
// 1. deciding(): what the act really is in its call. A fetch that carries content sends it; sending while a
//   secret is touched may lose the secret.
// 2. trace(): each deciding string in the user's words and in content from elsewhere. Strings that the user
//   named count as the user's, unless the act is harmful and the user named the thing without the act.
// 3. judge_foreign(): some strings come only from content. Whether that matters depends on the kind of act,
//   on whether the content speaks of such an act near the string (instructed) or merely contains it, on
//   whether the detector finds the content suspicious, and on whether the user left the choice to it
//   (may_choose).
// 4. judge_spoken(), judge_copied(): no string comes from content, but content speaks of such an act, or
//   holds the command word by word.
// 5. judge_unheard(): the caller has no access to the user's words, as an MCP server often has not. Then far
//   less can be asked about, or every call would be: only what content holds word by word, or what is
//   suspicious.
//
// A block needs two things to agree, for instance a harmful act and suspicious content. One alone leads to a
// question, because honest pages are full of commands and addresses, and people do ask models to act on them.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/turn.h"
#include "guard/call.h"
#include "guard/daily.h"
#include "guard/lexicon.h"
#include "guard/trace.h"
#include "guard/turn_state.h"

namespace belljar {
namespace {

using guard::Act;
using guard::Atom;
using guard::Call;
using guard::is_development;
using guard::is_product;
using guard::TextMatch;
using guard::TracedText;

// Strings of one act. Each costs a search through all that entered.
constexpr std::size_t kMostTraced = 128;

constexpr bool is_harmful(CallClass kind) noexcept {
  switch (kind) {
    case CallClass::kSending:
    case CallClass::kSecretReading:
    case CallClass::kExfiltrating:
    case CallClass::kDestructive:
    case CallClass::kPrivilege:
    case CallClass::kPersistence:
    case CallClass::kCommitment:
      return true;
    default:
      return false;
  }
}

// Words near a string that make an instruction of a mention.
std::vector<CallClass> words_for(CallClass kind) {
  switch (kind) {
    case CallClass::kExfiltrating:
      return {CallClass::kSending, CallClass::kSecretReading};
    case CallClass::kWriting:
      return {CallClass::kInstalling, CallClass::kPersistence};
    case CallClass::kSecretReading:
      return {CallClass::kSecretReading, CallClass::kSending};
    default:
      return {kind};
  }
}

}  // namespace

bool Turn::State::holds_secret(const Call& call) const {
  for (const TracedText& known : foreign) {
    for (const std::string& token : known.tokens) {
      if (std::ranges::any_of(call.texts, [&](const std::string& text) { return text.find(token) != std::string::npos; }))
        return true;
    }
  }
  return false;
}

std::optional<TextMatch> Turn::State::find(const Atom& atom, const std::vector<std::string>& spelled, CallClass kind) const {
  std::optional<TextMatch> best;
  for (auto known = foreign.rbegin(); known != foreign.rend(); ++known) {
    auto found = guard::find_atom(*known, atom, spelled, words_for(kind));
    if (!found) continue;
    if (!best || (found->instructed && !best->instructed)) best = std::move(found);
    if (best->instructed) break;
  }
  return best;
}

// The user left the choice to this content: it was named, and holds nothing to choose from; or the user named who stands there.
bool Turn::State::may_choose(CallClass kind, const Atom& atom, const TextMatch& found) const {
  if (found.hidden || found.known->suspicious) return false;
  const bool pointed = pointed_at(*found.known);
  switch (kind) {
    case CallClass::kSending:
    case CallClass::kCommitment:
      if (!found.instructed && linked(found)) return true;
      // Who named a receiver left no choice.
      if (!pointed || names_receiver() || atom.kind == Atom::Kind::kHost || atom.kind == Atom::Kind::kUrl) return false;
      if (kind == CallClass::kCommitment && atom.kind == Atom::Kind::kAmount) return true;
      return guard::is_account(atom) && guard::count_of_kind(*found.known, atom.kind) <= 1;
    case CallClass::kDestructive:
      return !found.instructed;
    case CallClass::kSecretReading:
    case CallClass::kPrivilege:
    case CallClass::kPersistence:
      return !found.instructed && pointed;
    case CallClass::kInstalling:
    case CallClass::kRunning:
      return !found.instructed || (pointed && follows());
    default:
      return true;
  }
}

// The user wants done what a text says, and not only something done with that text.
bool Turn::State::follows() const {
  constexpr std::string_view kWords[] = {"follow",   "according to", "as described", "instructions",  "steps",    "as it says",
                                         "says to",  "sigue",        "segun",        "instrucciones", "suis ",    "suivant",
                                         "selon",    "gemass",       "anleitung",    "befolge",       "согласно", "следуй",
                                         "инструкц", "按照",         "根据",         "依照"};
  return std::ranges::any_of(user, [&](const TracedText& known) {
    return std::ranges::any_of(kWords,
                               [&](std::string_view word) { return known.layers[0].plain.text.find(word) != std::string::npos; });
  });
}

// An address, host or account stands in the user's words.
bool Turn::State::names_receiver() const {
  return std::ranges::any_of(user, [](const TracedText& known) {
    return std::ranges::any_of(guard::find_atoms(known.what.text), [](const Atom& atom) {
      return atom.kind == Atom::Kind::kAddress || atom.kind == Atom::Kind::kHost || atom.kind == Atom::Kind::kUrl ||
             guard::is_account(atom);
    });
  });
}

Ruling Turn::State::judge_foreign(CallClass kind, MatchedAtoms found) const {
  const auto instructed = std::ranges::find_if(found, [](const auto& each) { return each.second.instructed; });
  if (instructed != found.end()) std::rotate(found.begin(), instructed, instructed + 1);
  const auto& [atom, first] = found[0];
  Ruling ruling{.advice = Advice::kAsk};
  const bool suspicious =
      std::ranges::any_of(found, [](const auto& each) { return each.second.known->suspicious || each.second.hidden; });
  const bool chosen =
      intended(kind) && std::ranges::all_of(found, [&](const auto& each) { return may_choose(kind, each.first, each.second); });
  if (kind == CallClass::kExfiltrating) {
    ruling.advice = first.instructed || suspicious ? Advice::kBlock : Advice::kAsk;
    ruling.row = "exfiltration";
  } else if (suspicious && (is_harmful(kind) || first.instructed)) {
    ruling.advice = is_harmful(kind) ? Advice::kBlock : Advice::kAsk;
    ruling.row = "foreign-suspicious";
  } else if (chosen || (kind == CallClass::kFetching && pointed_at(*first.known))) {
    return {.row = "delegated"};
  } else if (user_words_unknown() && kind == CallClass::kDestructive &&
             std::ranges::all_of(found, [&](const auto& each) { return is_product(each.first, settings.workspace); })) {
    return {.row = "foreign-mentioned"};
  } else if (is_harmful(kind) ? !first.instructed && user_words_unknown()
                              : !first.instructed || (user_words_unknown() && kind != CallClass::kInstalling)) {
    return {.row = "foreign-mentioned"};
  } else {
    ruling.row = first.instructed ? "foreign-instructed" : "foreign-mentioned";
  }
  ruling.why = format("{} {} comes only from {} {}", to_string(atom.kind), quoted(atom.text), to_string(first.known->what.source),
                      quoted(first.known->what.name));
  for (auto& each : found) ruling.evidence.push_back(std::move(each.second.evidence));
  return ruling;
}

// The place in all untrusted texts that fits best; words that the user wrote as well do not count.
std::optional<guard::ActMatch> Turn::State::spoken_of(CallClass kind, const Act& act) const {
  std::vector<std::string> words = guard::words_of(act.what);
  std::erase_if(words, [&](const std::string& word) { return named({Atom::Kind::kName, word}, {word}); });
  std::optional<guard::ActMatch> best;
  for (auto known = foreign.rbegin(); known != foreign.rend(); ++known) {
    auto place = guard::find_act(*known, kind, words);
    if (place && (!best || place->shared > best->shared)) best = std::move(place);
  }
  return best;
}

// A command that stands in untrusted content word by word, and that the user did not speak of.
Ruling Turn::State::judge_copied(const Act& act) const {
  const Atom command{Atom::Kind::kCommand, act.what};
  if (act.what.find(' ') == std::string::npos || is_development(act)) return {.row = "development"};
  const auto found = find(command, guard::spellings(command, settings.workspace), CallClass::kRunning);
  if (!found || (!found->instructed && !found->known->suspicious)) return {.row = "own"};
  if (user_words_unknown() && !found->known->suspicious && !found->hidden) return {.row = "own"};  // judge_unheard()
  for (std::string_view rest = act.what; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const Atom word{Atom::Kind::kName, std::string(rest.substr(0, end))};
    if (word.text.size() >= 4 && named(word, guard::spellings(word, settings.workspace))) return {.row = "named"};
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {.advice = Advice::kAsk,
          .row = "copied",
          .why = format("the command {} was copied from {} {}", quoted(act.what), to_string(found->known->what.source),
                        quoted(found->known->what.name)),
          .evidence = {found->evidence}};
}

// Nobody heard the user, so nobody knows whether a command was wanted that a text holds word by word. What a command said counts
// only where it tells to run something: builds and traces repeat commands.
Ruling Turn::State::judge_unheard(const Act& act) const {
  const guard::CommandWords words = guard::command_words(act, settings.workspace);
  if (guard::installs_what_is_listed(act)) return {.row = "own"};
  if (act.kind == CallClass::kDestructive &&
      std::ranges::all_of(act.atoms, [&](const Atom& atom) { return is_product(atom, settings.workspace); }))
    return {.row = "own"};
  for (auto known = foreign.rbegin(); known != foreign.rend(); ++known) {
    auto found = words.all.empty() ? std::nullopt : guard::find_command(*known, words.all);
    if (found && !found->instructed && known->what.source == TextSource::kTool && !known->suspicious) found.reset();
    if (!found && !words.script.empty()) {
      found = guard::find_command(*known, {words.script});
      if (found && !found->instructed) found.reset();
    }
    if (!found) continue;
    found->evidence.text = act.what;
    return {.advice = Advice::kAsk,
            .row = "copied",
            .why = format("it stands in {} {}, and nobody said whether the user wants it", to_string(known->what.source),
                          quoted(known->what.name)),
            .evidence = {std::move(found->evidence)}};
  }
  return {.row = "own"};
}

// Together with what else the call touches, an act may be another: a fetch that carries something sends it, a secret that is sent
// is lost.
Turn::State::DecidingAtoms Turn::State::deciding(const Act& act, const Call& call) const {
  DecidingAtoms what{act.kind, act.atoms};
  const auto drop_paths = [&] { std::erase_if(what.atoms, [](const Atom& atom) { return atom.kind == Atom::Kind::kPath; }); };
  if (what.kind == CallClass::kFetching && act.payload) what.kind = CallClass::kSending;
  if (what.kind == CallClass::kSending && (!call.secrets.empty() || holds_secret(call))) {
    what.kind = CallClass::kExfiltrating;
    for (const std::string& path : call.secrets) what.atoms.push_back({Atom::Kind::kPath, path});
    // Programs read their settings and talk to their servers: there the receiver must be who a text says to send something to.
    if (act.of_file) drop_paths();
  }
  if (what.kind == CallClass::kWriting) drop_paths();
  return what;
}

Turn::State::TraceResult Turn::State::trace(const Act& act, const DecidingAtoms& what) const {
  TraceResult traced;
  const CallClass near = act.of_file && what.kind == CallClass::kExfiltrating ? CallClass::kSending : what.kind;
  for (const Atom& atom : what.atoms) {
    const auto spelled = guard::spellings(atom, settings.workspace);
    if (spelled.empty()) continue;
    const bool users = named(atom, spelled);
    if (users) ++traced.named;
    // The user named the thing and not the act: does somebody else speak of the act?
    if (users && (!is_harmful(what.kind) || intended(what.kind))) continue;
    auto place = find(atom, spelled, users ? what.kind : near);
    if (place && (!users || place->instructed)) traced.found.emplace_back(atom, std::move(*place));
  }
  if (act.of_file) {  // what is only mentioned is what every program of the project is about
    std::erase_if(traced.found, [&](const auto& each) {
      const bool product = what.kind == CallClass::kDestructive && is_product(each.first, settings.workspace);
      return !each.second.known->suspicious && !each.second.hidden && (product || !each.second.instructed);
    });
  }
  return traced;
}

// What is run every day, and no suspicious text speaks of it.
bool Turn::State::is_daily(const Act& act, CallClass kind, const MatchedAtoms& found) const {
  const bool usual =
      (kind == CallClass::kRunning && is_development(act)) || (user_words_unknown() && guard::installs_what_is_listed(act));
  return usual && std::ranges::none_of(found, [](const auto& each) { return each.second.known->suspicious; });
}

// The strings are the model's own or the user's, but a text speaks of such an act. Where the user wants such acts, too, only a
// sentence that shares words with this one does.
std::optional<Ruling> Turn::State::judge_spoken(const Act& act, CallClass kind, std::size_t named_count) const {
  if (!is_harmful(kind)) return std::nullopt;
  const bool wanted = intended(kind);
  const auto place = spoken_of(kind, act);
  if (!place) return std::nullopt;
  const bool suspicious = place->found.known->suspicious;
  const bool counts = user_words_unknown() ? suspicious || place->found.hidden : !wanted || (named_count == 0 && place->shared > 0);
  if (!counts) return std::nullopt;
  return Ruling{.advice = suspicious && !wanted && !user_words_unknown() ? Advice::kBlock : Advice::kAsk,
                .row = "act-spoken-of",
                .why = format("{} {} speaks of such an act, and the user does not", to_string(place->found.known->what.source),
                              quoted(place->found.known->what.name)),
                .evidence = {place->found.evidence}};
}

Ruling Turn::State::judge_act(const Act& act, const Call& call) const {
  if (act.kind == CallClass::kReading) return judge_copied(act);
  DecidingAtoms what = deciding(act, call);
  const CallClass kind = what.kind;
  const bool weighty = is_harmful(kind) || kind == CallClass::kInstalling;
  if (act.of_file && !weighty) return kind == CallClass::kRunning ? judge_copied(act) : Ruling{.row = "own"};
  if (what.atoms.size() > kMostTraced) {
    if (!act.of_file && (weighty || kind == CallClass::kFetching))
      return {.advice = Advice::kAsk, .row = "unsearched", .why = "it has more strings than are looked for"};
    what.atoms.resize(kMostTraced);
  }
  TraceResult traced = trace(act, what);
  if (act.of_file && traced.found.empty()) return {.row = "own"};
  if (!traced.found.empty() && !is_daily(act, kind, traced.found)) {
    Ruling ruling = judge_foreign(kind, std::move(traced.found));
    return ruling.advice == Advice::kAllow && kind == CallClass::kRunning ? judge_copied(act) : ruling;
  }
  if (kind == CallClass::kRunning) return judge_copied(act);
  const bool all_named = traced.named == what.atoms.size();
  if (traced.named > 0 && all_named && kind != CallClass::kExfiltrating) return {.row = "named"};
  if (auto ruling = judge_spoken(act, kind, traced.named)) return std::move(*ruling);
  if (kind == CallClass::kExfiltrating && !all_named)
    return {.advice = Advice::kAsk,
            .row = "exfiltration",
            .why = "a secret would leave, and the user did not name both it and the receiver"};
  return {.row = "own"};
}

}  // namespace belljar
