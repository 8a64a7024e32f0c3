#include "belljar/turn.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "guard/call.h"
#include "guard/daily.h"
#include "guard/lexicon.h"
#include "guard/trace.h"
#include "shell/script.h"

namespace belljar {
namespace {

using guard::Act;
using guard::Atom;
using guard::Call;
using guard::Found;
using guard::is_development;
using guard::is_product;
using guard::Known;

// Strings of one act. Each costs a search through all that entered.
constexpr std::size_t kMostTraced = 128;

// What one act comes down to.
struct Ruling {
  Advice advice = Advice::kAllow;
  std::string row, why;
  std::vector<Evidence> evidence;
};

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

struct Turn::State {
  TurnSettings settings;
  std::deque<Known> user;     // trusted, the newest last
  std::deque<Known> foreign;  // untrusted
  std::size_t bytes = 0;
  bool full = false;
  shell::ShellReader reader;
  std::vector<guard::WrittenFile> written;  // what calls put into files that may be run, the newest last
  std::set<std::string> copies;             // files that calls put a secret's content into, as seen from the workspace

  // Nobody knows what the user asked for.
  bool deaf() const { return settings.user_words == UserWords::kUnseen && user.empty(); }
  void make_room(std::size_t wanted);
  bool named(const Atom& atom, const std::vector<std::string>& spelled) const {
    return std::ranges::any_of(user, [&](const Known& known) { return guard::is_named(known, atom, spelled); });
  }
  bool pointed_at(const Known& known) const {
    return std::ranges::any_of(user, [&](const Known& words) { return guard::points_at(words, known); });
  }
  bool linked(const Found& found) const {
    return std::ranges::any_of(user, [&](const Known& words) { return guard::is_linked(words, found); });
  }
  // The user's last words ask for such an act. A short answer ("yes, do it") stands for what was said before.
  bool intended(CallClass kind) const {
    constexpr std::size_t kShort = 40;
    for (auto words = user.rbegin(); words != user.rend(); ++words) {
      if (guard::find_act_word(kind, words->layers[0].plain.text, 0, guard::Speech::kIntention) != std::string_view::npos)
        return true;
      if (words->what.text.size() > kShort) return false;
    }
    return false;
  }
  std::optional<Found> find(const Atom& atom, const std::vector<std::string>& spelled, CallClass kind) const {
    std::optional<Found> best;
    for (auto known = foreign.rbegin(); known != foreign.rend(); ++known) {
      auto found = guard::find_atom(*known, atom, spelled, words_for(kind));
      if (!found) continue;
      if (!best || (found->instructed && !best->instructed)) best = std::move(found);
      if (best->instructed) break;
    }
    return best;
  }
  bool holds_secret(const Call& call) const;
  void follow_copies(Call& call);
  void follow_written(Call& call);
  Ruling judge_act(const Act& act, const Call& call) const;
  Ruling judge_foreign(CallClass kind, std::vector<std::pair<Atom, Found>> found) const;
  Ruling judge_copied(const Act& act) const;
  Ruling judge_unheard(const Act& act) const;
  bool names_receiver() const;
  bool follows() const;
  std::optional<guard::Spoken> spoken_of(CallClass kind, const Act& act) const;
  bool may_choose(CallClass kind, const Atom& atom, const Found& found) const;
};

bool Turn::State::holds_secret(const Call& call) const {
  for (const Known& known : foreign) {
    for (const std::string& token : known.tokens) {
      if (std::ranges::any_of(call.texts, [&](const std::string& text) { return text.find(token) != std::string::npos; }))
        return true;
    }
  }
  return false;
}

// A secret's content is a secret under every name. Whether an earlier call was made is not known here: it counts as if.
void Turn::State::follow_copies(Call& call) {
  constexpr std::size_t kMost = 1024;
  const auto inside = [&](std::string_view path) { return std::string(guard::inside(path, settings.workspace)); };
  if (!copies.empty()) {
    for (const std::string& text : call.texts) {
      for (const Atom& atom : guard::find_atoms(std::string_view(text).substr(0, 64U << 10))) {
        std::string_view path = atom.text;
        path.remove_prefix(std::min(path.find_last_of("=@") + 1, path.size()));
        if (copies.contains(inside(path)) && call.secrets.size() < 64) call.secrets.emplace_back(path);
      }
    }
  }
  for (const std::string& path : call.copies) {
    if (copies.size() < kMost) copies.insert(inside(path));
  }
}

// A file that an earlier call wrote, or this one, is run as what stands in it. Whether the call was made is not known: it counts as
// if.
void Turn::State::follow_written(Call& call) {
  constexpr std::size_t kMostPaths = 8192, kMostTexts = 256, kLongest = 64U << 10;
  for (guard::WrittenFile& file : call.writes) {
    const auto known = std::ranges::find(written, file.path, &guard::WrittenFile::path);
    if (known != written.end()) {
      if (!file.whole) {
        file.text = known->text + "\n" + file.text;
        file.decided = known->decided && file.decided;
      }
      written.erase(known);
    }
    if (written.size() >= kMostPaths) written.erase(written.begin());
    if (written.size() >= kMostTexts) {
      guard::WrittenFile& oldest = written[written.size() - kMostTexts];
      oldest.text.clear();
      oldest.decided = false;
    }
    if (const std::size_t size = file.text.size(); size >= kLongest) {
      file.text.erase(file.whole ? kLongest - 1 : 0, size - kLongest + 1);  // of edits the newest
      file.decided = false;
    }
    written.push_back(std::move(file));
  }
  std::set<std::string> read;
  for (std::size_t i = 0; i < call.acts.size(); ++i) {  // what a file runs is one of them then
    const Act act = call.acts[i];
    const guard::RunFiles run = guard::files_run(act);
    for (const guard::WrittenFile& file : written) {
      if (!guard::is_run_by(run, file.path) || !read.insert(file.path).second) continue;
      if (!file.decided) call.undecided = format("what stands in {} is not known in full", quoted(file.path));
      guard::read_file_code(file, act, reader, call);
    }
  }
}

// The user left the choice to this content: it was named, and holds nothing to choose from; or the user named who stands there.
bool Turn::State::may_choose(CallClass kind, const Atom& atom, const Found& found) const {
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
  return std::ranges::any_of(user, [&](const Known& known) {
    return std::ranges::any_of(kWords,
                               [&](std::string_view word) { return known.layers[0].plain.text.find(word) != std::string::npos; });
  });
}

// An address, host or account stands in the user's words.
bool Turn::State::names_receiver() const {
  return std::ranges::any_of(user, [](const Known& known) {
    return std::ranges::any_of(guard::find_atoms(known.what.text), [](const Atom& atom) {
      return atom.kind == Atom::Kind::kAddress || atom.kind == Atom::Kind::kHost || atom.kind == Atom::Kind::kUrl ||
             guard::is_account(atom);
    });
  });
}

Ruling Turn::State::judge_foreign(CallClass kind, std::vector<std::pair<Atom, Found>> found) const {
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
  } else if (deaf() && kind == CallClass::kDestructive &&
             std::ranges::all_of(found, [&](const auto& each) { return is_product(each.first, settings.workspace); })) {
    return {.row = "foreign-mentioned"};
  } else if (is_harmful(kind) ? !first.instructed && deaf() : !first.instructed || (deaf() && kind != CallClass::kInstalling)) {
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
std::optional<guard::Spoken> Turn::State::spoken_of(CallClass kind, const Act& act) const {
  std::vector<std::string> words = guard::words_of(act.what);
  std::erase_if(words, [&](const std::string& word) { return named({Atom::Kind::kName, word}, {word}); });
  std::optional<guard::Spoken> best;
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
  if (deaf() && !found->known->suspicious && !found->hidden) return {.row = "own"};  // judge_unheard()
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

Ruling Turn::State::judge_act(const Act& act, const Call& call) const {
  CallClass kind = act.kind;
  std::vector<Atom> atoms = act.atoms;
  if (kind == CallClass::kReading) return judge_copied(act);
  if (kind == CallClass::kFetching && act.payload) kind = CallClass::kSending;
  const bool secret = !call.secrets.empty() || holds_secret(call);
  if (kind == CallClass::kSending && secret) {
    kind = CallClass::kExfiltrating;
    for (const std::string& path : call.secrets) atoms.push_back({Atom::Kind::kPath, path});
    // Programs read their settings and talk to their servers: there the receiver must be who a text says to send something to.
    if (act.of_file) std::erase_if(atoms, [](const Atom& atom) { return atom.kind == Atom::Kind::kPath; });
  }
  if (act.of_file && !is_harmful(kind) && kind != CallClass::kInstalling)
    return kind == CallClass::kRunning ? judge_copied(act) : Ruling{.row = "own"};
  if (kind == CallClass::kWriting) std::erase_if(atoms, [](const Atom& atom) { return atom.kind == Atom::Kind::kPath; });
  if (atoms.size() > kMostTraced) {
    if (!act.of_file && (is_harmful(kind) || kind == CallClass::kInstalling || kind == CallClass::kFetching))
      return {.advice = Advice::kAsk, .row = "unsearched", .why = "it has more strings than are looked for"};
    atoms.resize(kMostTraced);
  }
  std::vector<std::pair<Atom, Found>> found;
  std::size_t named_count = 0;
  for (const Atom& atom : atoms) {
    const auto spelled = guard::spellings(atom, settings.workspace);
    if (spelled.empty()) continue;
    if (named(atom, spelled)) {
      ++named_count;
      // The user named the thing and not the act: does somebody else speak of the act?
      if (!is_harmful(kind) || intended(kind)) continue;
      if (auto place = find(atom, spelled, kind); place && place->instructed) found.emplace_back(atom, std::move(*place));
      continue;
    }
    if (auto place = find(atom, spelled, act.of_file && kind == CallClass::kExfiltrating ? CallClass::kSending : kind))
      found.emplace_back(atom, std::move(*place));
  }
  if (act.of_file) {  // what is only mentioned is what every program of the project is about
    std::erase_if(found, [&](const auto& each) {
      const bool product = kind == CallClass::kDestructive && is_product(each.first, settings.workspace);
      return !each.second.known->suspicious && !each.second.hidden && (product || !each.second.instructed);
    });
    if (found.empty()) return {.row = "own"};
  }
  const bool usual = (kind == CallClass::kRunning && is_development(act)) || (deaf() && guard::installs_what_is_listed(act));
  const bool daily = usual && std::ranges::none_of(found, [](const auto& each) { return each.second.known->suspicious; });
  if (!found.empty() && !daily) {
    Ruling ruling = judge_foreign(kind, std::move(found));
    if (ruling.advice != Advice::kAllow) return ruling;
    if (kind == CallClass::kRunning) return judge_copied(act);
    return ruling;
  }
  if (kind == CallClass::kRunning) return judge_copied(act);
  if (named_count > 0 && named_count == atoms.size() && kind != CallClass::kExfiltrating) return {.row = "named"};
  if (is_harmful(kind)) {
    // Where the user wants such acts, too, only a sentence that shares words with this one speaks of it.
    const bool wanted = intended(kind);
    const auto counts = [&](const guard::Spoken& place) {
      if (deaf()) return place.found.known->suspicious || place.found.hidden;
      return !wanted || (named_count == 0 && place.shared > 0);
    };
    if (const auto place = spoken_of(kind, act); place && counts(*place))
      return {.advice = place->found.known->suspicious && !wanted && !deaf() ? Advice::kBlock : Advice::kAsk,
              .row = "act-spoken-of",
              .why = format("{} {} speaks of such an act, and the user does not", to_string(place->found.known->what.source),
                            quoted(place->found.known->what.name)),
              .evidence = {place->found.evidence}};
  }
  if (kind == CallClass::kExfiltrating && named_count != atoms.size())
    return {.advice = Advice::kAsk,
            .row = "exfiltration",
            .why = "a secret would leave, and the user did not name both it and the receiver"};
  return {.row = "own"};
}

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
  if (state.settings.overflow == Overflow::kForgetOldest) state.make_room(what.text.size());
  const std::size_t room = state.settings.max_bytes - std::min(state.bytes, state.settings.max_bytes);
  if (what.text.size() > room) {
    what.text.resize(room);
    state.full = state.full || !trusted;
  }
  state.bytes += what.text.size();
  (trusted ? state.user : state.foreign).push_back(guard::read_text(std::move(what), !trusted));
}

Judgement Turn::judge(const ProposedCall& proposed) {
  State& state = *state_;
  Call call = guard::read_call(proposed, state.reader);
  state.follow_copies(call);
  state.follow_written(call);
  Judgement judgement{.reason = "nothing but trusted text entered", .row = "nothing-foreign"};
  for (const Act& act : call.acts) judgement.classes.push_back(act.kind);
  if (!call.unread.empty()) judgement.classes.push_back(CallClass::kUnread);
  if (state.foreign.empty() && !state.full) return judgement;
  judgement.row = "own";
  judgement.reason = "nothing in it comes from untrusted content alone";
  const auto take = [&](Ruling ruling, CallClass kind, std::string_view what) {
    if (ruling.advice <= judgement.advice) return;
    judgement.advice = ruling.advice;
    judgement.row = std::move(ruling.row);
    judgement.reason = format("{} ({}): {}", quoted(what.substr(0, 200)), to_string(kind), ruling.why);
    judgement.evidence = std::move(ruling.evidence);
    const auto at = std::ranges::find(judgement.classes, kind);
    if (at != judgement.classes.end()) std::rotate(judgement.classes.begin(), at, at + 1);
    else judgement.classes.insert(judgement.classes.begin(), kind);
  };
  for (const Act& act : call.acts) {
    const bool leaks = act.kind == CallClass::kSending || (act.kind == CallClass::kFetching && act.payload);
    const bool secret = leaks && (!call.secrets.empty() || state.holds_secret(call));
    Ruling ruling = state.judge_act(act, call);
    if (ruling.advice == Advice::kAllow && state.deaf()) ruling = state.judge_unheard(act);
    take(std::move(ruling), secret ? CallClass::kExfiltrating : act.kind, act.what);
    if (state.full && act.kind != CallClass::kReading)
      take({.advice = Advice::kAsk, .row = "unsearched", .why = "more text entered than is searched"}, act.kind, act.what);
  }
  if (!call.undecided.empty())
    take({.advice = Advice::kAsk, .row = "undecided", .why = call.undecided}, CallClass::kUnread,
         proposed.command.empty() ? proposed.arguments : proposed.command);
  if (call.unread.empty()) return judgement;
  // What could not be read is traced as text: every string in it counts as deciding.
  Act whole{.kind = CallClass::kRunning, .what = proposed.command.empty() ? proposed.arguments : proposed.command};
  for (const std::string& text : call.texts) {
    auto atoms = guard::find_atoms(std::string_view(text).substr(0, 64U << 10));
    whole.atoms.insert(whole.atoms.end(), atoms.begin(), atoms.end());
  }
  take(state.judge_act(whole, call), CallClass::kUnread, whole.what);
  if (call.acts.empty()) take({.advice = Advice::kAsk, .row = "unread", .why = call.unread}, CallClass::kUnread, whole.what);
  return judgement;
}

std::string_view to_string(TextSource source) noexcept {
  constexpr std::string_view kNames[] = {"user", "workspace", "network", "tool"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view to_string(CallClass kind) noexcept {
  constexpr std::string_view kNames[] = {"reading",     "writing",        "running",      "installing",  "fetching",
                                         "sending",     "secret-reading", "exfiltrating", "destructive", "privilege",
                                         "persistence", "commitment",     "unread"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Advice advice) noexcept {
  constexpr std::string_view kNames[] = {"allow", "ask", "block"};
  return kNames[static_cast<std::size_t>(advice)];
}

}  // namespace belljar
