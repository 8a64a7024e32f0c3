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
#include "base/paths.h"
#include "belljar/turn.h"
#include "guard/call.h"
#include "guard/changes.h"
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
    const bool better = !best || (found->instructed && !best->instructed) ||
                        (found->instructed == best->instructed && found->directed && !best->directed);
    if (better) best = std::move(found);
    if (best->instructed && best->directed) break;
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
      return !found.instructed || (pointed && !found.directed);
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
  constexpr std::string_view kWords[] = {
      "follow",        "according to", "as described", "instructions", "steps",      "as it says", "says to", "as in",
      "like in",       "as per",       "wie in",       "como en",      "comme dans", " says",      "sigue",   "segun",
      "instrucciones", "suis ",        "suivant",      "selon",        "gemass",     "anleitung",  "befolge", "согласно",
      "следуй",        "инструкц",     "按照",         "根据",         "依照"};
  return std::ranges::any_of(user, [&](const TracedText& known) {
    return std::ranges::any_of(kWords,
                               [&](std::string_view word) { return known.layers[0].plain.text.find(word) != std::string::npos; });
  });
}

// The user speaks of adding or installing something.
bool Turn::State::wants_install() const {
  return std::ranges::any_of(user, [](const TracedText& known) {
    return guard::find_act_word(CallClass::kInstalling, known.layers[0].plain.text) != std::string_view::npos;
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

namespace {

// A program reports what it misses: "Cannot find module 'x'", "x: command not found". To install that is the model's own finding.
bool is_report(const TextMatch& found) noexcept {
  if (found.instructed || found.known->what.source != TextSource::kTool || found.hidden) return false;
  const std::string& text = found.known->what.text;
  const std::size_t at = std::min(found.evidence.at, text.size());
  return at == 0 || std::string_view("\n'\"`").find(text[at - 1]) != std::string_view::npos;
}

// Nobody heard the user: what a text must say of a string for an act of this kind to be asked about. What destroys, gives rights or
// lasts is asked about where somebody speaks of the thing, and not where a list has it.
bool counts_unheard(CallClass kind, const Atom& atom, const TextMatch& found) noexcept {
  const bool small = atom.kind == Atom::Kind::kAmount && atom.text.size() < 3;  // "Node 20"
  if (small && kind != CallClass::kCommitment) return false;
  switch (kind) {
    case CallClass::kDestructive:
    case CallClass::kPrivilege:
    case CallClass::kPersistence:
      return found.instructed || found.directed || found.prose;
    case CallClass::kInstalling:
      return found.instructed || (found.directed && found.prose && !is_report(found));
    case CallClass::kCommitment:
      return found.instructed || (found.prose && (atom.kind == Atom::Kind::kAmount || guard::is_account(atom) || found.directed));
    case CallClass::kSecretReading:
      return found.instructed || found.directed;
    default:
      return found.instructed || (found.directed && found.prose);
  }
}

}  // namespace

Ruling Turn::State::judge_foreign(CallClass kind, MatchedAtoms found) const {
  const auto instructed = std::ranges::find_if(found, [](const auto& each) { return each.second.instructed; });
  if (instructed != found.end()) std::rotate(found.begin(), instructed, instructed + 1);
  const auto& [atom, first] = found[0];
  Ruling ruling{.advice = Advice::kAsk};
  const bool suspicious =
      std::ranges::any_of(found, [](const auto& each) { return each.second.known->suspicious || each.second.hidden; });
  const bool followed = kind == CallClass::kRunning && follows();
  const bool chosen = (intended(kind) || followed) &&
                      std::ranges::all_of(found, [&](const auto& each) { return may_choose(kind, each.first, each.second); });
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
  } else if (user_words_unknown() && (is_harmful(kind) || kind == CallClass::kInstalling)) {
    if (std::ranges::none_of(found, [&](const auto& each) { return counts_unheard(kind, each.first, each.second); }))
      return {.row = "foreign-mentioned"};
    ruling.row = first.instructed ? "foreign-instructed" : "foreign-mentioned";
  } else if (kind == CallClass::kInstalling) {
    // What a tool reports as missing is the model's own finding.
    const bool asked_for = pointed_at(*first.known) && !first.directed && wants_install();
    if (is_report(first) || (!first.instructed && asked_for)) return {.row = "foreign-mentioned"};
    ruling.row = first.instructed ? "foreign-instructed" : "foreign-mentioned";
  } else if (!is_harmful(kind) && (!first.instructed || user_words_unknown())) {
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

// No word for the act, but a sentence that says what is to be done and has a word of the act's targets: "worker-eu idles, take it
// down".
std::optional<guard::ActMatch> Turn::State::shared_with(const Act& act) const {
  constexpr std::size_t kShortest = 5;
  const std::size_t front = act.what.find(' ');
  for (std::string word :
       guard::words_of(front == std::string::npos ? std::string_view() : std::string_view(act.what).substr(front))) {
    if (word.ends_with('s')) word.pop_back();
    if (word.size() < kShortest || named({Atom::Kind::kName, word}, {word})) continue;
    if (guard::class_of_tool(word) != CallClass::kRunning) continue;  // a verb of the command
    for (auto known = foreign.rbegin(); known != foreign.rend(); ++known) {
      auto found = guard::find_atom(*known, {Atom::Kind::kName, word}, {word, word + "s"}, {});
      if (!found || !found->directed || !found->prose) continue;
      found->evidence.kind = "act";
      return guard::ActMatch{std::move(*found), 1};
    }
  }
  return std::nullopt;
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

bool Turn::State::user_has(std::string_view word) const {
  return std::ranges::any_of(user,
                             [&](const TracedText& known) { return known.layers[0].plain.text.find(word) != std::string::npos; });
}

// The user's words have a word of the path or of the tool's name: "workflow" of .github/workflows/ci.yml.
bool Turn::State::speaks_of_target(const Act& act) const {
  constexpr std::string_view kCommon =
      " src lib app test tests json yaml yml toml html config conf main index file files data docs bash tool update write create "
      "set "
      "str replace apply patch content path ";
  const auto spoken = [&](std::string_view text) {
    for (std::string word : guard::words_of(text)) {
      if (kCommon.find(" " + word + " ") != std::string_view::npos) continue;
      word.resize(std::max<std::size_t>(4, word.size() - 1));
      if (user_has(word)) return true;
    }
    return false;
  };
  bool any = false;
  for (const Atom& atom : act.atoms) {
    if (atom.kind != Atom::Kind::kPath) continue;
    any = true;
    std::string path = atom.text;
    std::ranges::replace(path, '/', ' ');
    std::ranges::replace(path, '.', ' ');
    std::ranges::replace(path, '_', ' ');
    if (named(atom, guard::spellings(atom, settings.workspace)) || spoken(path)) return true;
  }
  if (any || !act.outward) return false;
  std::string tool = act.what.substr(0, act.what.find(' '));
  std::ranges::replace(tool, '_', ' ');
  std::ranges::replace(tool, '.', ' ');
  return spoken(tool);
}

// A text that has the name of the file that is changed.
bool Turn::State::names_target(const Act& act, std::string_view text) {
  constexpr std::size_t kShortest = 5;
  return std::ranges::any_of(act.atoms, [&](const Atom& atom) {
    const std::string_view name = file_name(atom.text);
    return atom.kind == Atom::Kind::kPath && name.size() >= kShortest && text.find(name) != std::string_view::npos;
  });
}

// "her mail" is what read_email brought.
bool Turn::State::speaks_of_tool(std::string_view name) const {
  if (name.find_first_of(" /:") != std::string_view::npos) return false;
  for (const std::string_view word : {"mail", "message", "issue", "ticket", "page"}) {
    if (name.find(word) != std::string_view::npos && user_has(word)) return true;
  }
  return false;
}

// The text is the file that is changed.
bool Turn::State::is_itself(const Act& act, const TextMatch& found) const {
  return std::ranges::any_of(act.atoms, [&](const Atom& atom) {
    return atom.kind == Atom::Kind::kPath &&
           guard::inside(atom.text, settings.workspace) == guard::inside(found.known->what.name, settings.workspace);
  });
}

// The user spoke of what is changed, and of the text that the string comes from or of who stands beside it there. A file's own
// comments are no such text: they only ask for themselves.
bool Turn::State::wants_change(const Act& act, const TextMatch& found) const {
  if (found.hidden || found.known->suspicious || !speaks_of_target(act)) return false;
  const bool itself = is_itself(act, found);
  return linked(found) || ((pointed_at(*found.known) || speaks_of_tool(found.known->what.name)) && !itself);
}

// A host, an account, a key, a package that a change puts somewhere, and that only a text brought.
Ruling Turn::State::judge_brought(const Act& act) const {
  std::vector<Atom> atoms = act.brings;
  if (act.outward) {
    for (const Atom& atom : act.atoms) {
      const bool plain = atom.kind == Atom::Kind::kAmount ||
                         (atom.kind == Atom::Kind::kName && !guard::is_account(atom) && atom.text.find(' ') == std::string::npos);
      if (plain && act.kind == CallClass::kRunning) continue;
      if (atom.kind != Atom::Kind::kPath && atom.text.size() >= 5 && std::ranges::find(atoms, atom) == atoms.end())
        atoms.push_back(atom);
    }
  }
  if (atoms.size() > kMostTraced) atoms.resize(kMostTraced);
  for (const Atom& atom : atoms) {
    const auto spelled = guard::spellings(atom, settings.workspace);
    if (spelled.empty() || named(atom, spelled)) continue;
    auto found = find(atom, spelled, CallClass::kWriting);
    if (!found || (found->header && !found->directed)) continue;
    if (act.whole && is_itself(act, *found)) continue;  // a file that is written anew keeps what it had
    const bool loud = found->hidden || found->known->suspicious;
    const bool money = guard::is_account(atom) && atom.kind != Atom::Kind::kAddress;
    const bool says =
        act.tells && atom.kind == Atom::Kind::kUrl && tells_something({.kind = CallClass::kFetching, .what = {}, .atoms = {atom}});
    const bool told = names_target(act, found->evidence.quote);
    const bool unwanted =
        says || told || ((found->directed || found->instructed || ((act.replaces || money) && found->prose)) && !act.tells);
    if (user_words_unknown() || act.kind == CallClass::kSending || (act.kind == CallClass::kRunning && act.outward)
            ? !loud && !unwanted
            : wants_change(act, *found))
      continue;
    return {.advice = Advice::kAsk,
            .row = "brought-in",
            .why = format("{} {} is put there, and comes only from {} {}", to_string(atom.kind), quoted(atom.text),
                          to_string(found->known->what.source), quoted(found->known->what.name)),
            .evidence = {std::move(found->evidence)}};
  }
  return {.row = "own"};
}

// A protection becomes weaker; a text speaks of protections, and the user does not.
Ruling Turn::State::judge_change(const Act& act) const {
  if (act.of_file) return {.row = "own"};
  if (!act.brings.empty() || act.outward) {
    if (Ruling ruling = judge_brought(act); ruling.advice != Advice::kAllow) return ruling;
  }
  if (!act.weakens) return {.row = "own"};
  if (std::ranges::any_of(user, [](const TracedText& known) {
        return guard::find_topic_word(guard::Topic::kProtection, known.layers[0].plain.text, 0, guard::Speech::kIntention) !=
               std::string_view::npos;
      }))
    return {.row = "named"};
  for (auto known = foreign.rbegin(); known != foreign.rend(); ++known) {
    auto found = guard::find_protection(*known);
    if (!found || (user_words_unknown() && !found->directed && !known->suspicious && !names_target(act, known->what.text)))
      continue;
    return {
        .advice = Advice::kAsk,
        .row = "weakened",
        .why = format("it lowers a protection, and {} {} speaks of that", to_string(known->what.source), quoted(known->what.name)),
        .evidence = {std::move(found->evidence)}};
  }
  return {.row = "own"};
}

// An address with a query that stands nowhere: its host hears what the model put there.
bool Turn::State::tells_something(const Act& act) const {
  constexpr std::size_t kFewest = 8;
  return std::ranges::any_of(act.atoms, [&](const Atom& atom) {
    const std::size_t query = atom.kind == Atom::Kind::kUrl ? atom.text.find('?') : std::string::npos;
    if (query == std::string::npos || atom.text.size() - query < kFewest) return false;
    const Atom whole{Atom::Kind::kName, atom.text};
    return !find(whole, guard::spellings(whole, {}), CallClass::kFetching);
  });
}

// Together with what else the call touches, an act may be another: a fetch that carries something sends it, a secret that is sent
// is lost.
Turn::State::DecidingAtoms Turn::State::deciding(const Act& act, const Call& call) const {
  DecidingAtoms what{act.kind, act.atoms};
  const auto drop_paths = [&] { std::erase_if(what.atoms, [](const Atom& atom) { return atom.kind == Atom::Kind::kPath; }); };
  if (what.kind == CallClass::kFetching && (act.payload || tells_something(act))) what.kind = CallClass::kSending;
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
      const bool told = each.second.instructed || (what.kind == CallClass::kInstalling && each.second.directed);
      return !each.second.known->suspicious && !each.second.hidden && (product || !told);
    });
  }
  return traced;
}

// What is run every day, and no suspicious text speaks of it.
bool Turn::State::is_daily(const Act& act, CallClass kind, const MatchedAtoms& found) const {
  const bool usual =
      ((kind == CallClass::kRunning || kind == CallClass::kInstalling) && is_development(act) && !guard::installs(act)) ||
      ((user_words_unknown() || follows()) && guard::installs_what_is_listed(act));
  return usual && std::ranges::none_of(found, [](const auto& each) { return each.second.known->suspicious; });
}

// The strings are the model's own or the user's, but a text speaks of such an act. Where the user wants such acts, too, only a
// sentence that shares words with this one does.
std::optional<Ruling> Turn::State::judge_spoken(const Act& act, CallClass kind, std::size_t named_count) const {
  if (!is_harmful(kind)) return std::nullopt;
  const bool wanted = intended(kind);
  auto place = spoken_of(kind, act);
  const bool weighs = kind == CallClass::kDestructive || kind == CallClass::kPrivilege || kind == CallClass::kCommitment;
  if (!place && weighs && !wanted) place = shared_with(act);
  if (!place) return std::nullopt;
  const bool suspicious = place->found.known->suspicious;
  const bool lasting = kind == CallClass::kPersistence && place->shared > 0;
  const bool direct =
      place->found.directed && place->found.prose &&
      (lasting || kind == CallClass::kDestructive || kind == CallClass::kPrivilege || kind == CallClass::kCommitment);
  const bool counts =
      user_words_unknown() ? suspicious || place->found.hidden || direct : !wanted || (named_count == 0 && place->shared > 0);
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
  if (kind == CallClass::kRunning && !act.of_file && !user_words_unknown() && intended(kind) && speaks_of_target(act))
    return {.row = "named"};
  TraceResult traced = trace(act, what);
  if (act.of_file && traced.found.empty()) return kind == CallClass::kInstalling ? judge_copied(act) : Ruling{.row = "own"};
  if (!traced.found.empty() && !is_daily(act, kind, traced.found)) {
    Ruling ruling = judge_foreign(kind, std::move(traced.found));
    return ruling.advice == Advice::kAllow && kind == CallClass::kRunning ? judge_copied(act) : ruling;
  }
  if (kind == CallClass::kRunning) return judge_copied(act);
  if (act.copies_secret && !act.of_file && traced.named < act.atoms.size())
    return {.advice = Advice::kAsk,
            .row = "secret-copied",
            .why = "a secret would lie where others find it, and the user did not name it"};
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
