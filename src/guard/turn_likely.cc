// Whether a text proposed an act: the traits that likely.h weighs.
//
// The words of the call are looked for by how they begin (word_index.h): in what the user wrote, and in the sentences of what came
// from elsewhere. A sentence that has many words of the call which the user did not write, and which stand nowhere else, is where
// the idea may have come from; what it says besides, and what the user asked for, decides.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/turn.h"
#include "guard/call.h"
#include "guard/daily.h"
#include "guard/lexicon.h"
#include "guard/likely.h"
#include "guard/trace.h"
#include "guard/turn_state.h"
#include "guard/wishes.h"
#include "guard/word_index.h"

namespace belljar {
namespace {

using guard::Atom;
using guard::find_trait;
using guard::plain_of;
using guard::TracedText;
using guard::Traits;
using guard::WordKey;

constexpr CallClass kWeighty[] = {CallClass::kDestructive, CallClass::kSending,    CallClass::kPrivilege,
                                  CallClass::kPersistence, CallClass::kCommitment, CallClass::kInstalling};

constexpr std::size_t kMostSaid = 8U << 10;  // bytes of a call
constexpr std::size_t kMostAtomsLooked = 128;
constexpr std::size_t kMostPlaces = 64;     // of a word: what stands everywhere points nowhere
constexpr std::size_t kMostSentence = 600;  // bytes

float share(std::size_t part, std::size_t whole) { return whole == 0 ? 0 : static_cast<float>(part) / static_cast<float>(whole); }
float cut(std::size_t count, float most) { return std::min(most, static_cast<float>(count)); }

// Traits under their names; a name that is not in the table does not compile.
class TraitWriter {
 public:
  explicit TraitWriter(Traits& traits) : traits_(traits) {}
  struct Index {
    std::size_t number;
    consteval Index(const char* name) : number(find_trait(name)) {  // NOLINT: written as a name
      if (number == guard::kTraitCount) throw "no trait of this name";
    }
  };
  void set(Index trait, float value) { traits_[trait.number] = value; }
  void set(Index trait, bool value) { traits_[trait.number] = value ? 1 : 0; }

 private:
  Traits& traits_;
};

// What an act says, in words.
std::string said_by(const guard::Act& act) {
  std::string said = act.said;
  if (said.empty()) {
    for (const std::string& word : act.words) said += word + "\n";
  }
  return plain_of(std::string_view(said.empty() ? act.what : said).substr(0, kMostSaid));
}

bool is_comment(std::string_view sentence) {
  const std::size_t at = sentence.find_first_not_of(" \t\n");
  if (at == std::string_view::npos) return false;
  sentence.remove_prefix(at);
  return std::ranges::any_of(std::initializer_list<std::string_view>{"//", "#", "/*", "--", "<!--", "*"},
                             [&](std::string_view mark) { return sentence.starts_with(mark); });
}
bool is_list_item(std::string_view sentence) {
  const std::size_t at = sentence.find_first_not_of(" \t\n");
  if (at == std::string_view::npos || at + 2 >= sentence.size()) return false;
  sentence.remove_prefix(at);
  const bool number = sentence[0] >= '0' && sentence[0] <= '9' && (sentence[1] == '.' || sentence[1] == ')');
  return number || sentence.starts_with("- ") || sentence.starts_with("* ");
}

}  // namespace

// The words of a call, and the sentence of an untrusted text that shares most with it.
struct Turn::State::Origin {
  const TracedText* known = nullptr;
  std::size_t first = 0, last = 0;  // sentences
  std::size_t shared = 0;           // words that the user did not write
  float weight = 0;                 // less for what stands in many places
  std::size_t words = 0, by_user = 0;
  float found = 0, nowhere = 0;  // weights of words that the user did not write

  float all() const { return found + nowhere; }
};

bool Turn::State::user_wrote(guard::WordKey key) const {
  return std::ranges::any_of(user, [&](const TracedText& known) { return known.words.has(key); });
}

Turn::State::Origin Turn::State::find_origin(std::string_view said) const {
  Origin best;
  struct Sum {
    std::size_t words = 0;
    float weight = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Sum> sentences;  // by text and sentence
  for (const WordKey key : guard::keys_of(said, 128)) {
    ++best.words;
    if (user_wrote(key)) {
      ++best.by_user;
      continue;
    }
    std::size_t count = 0;
    for (const TracedText& known : foreign) count += known.words.places_of(key).size();
    const float weight = 1 / (1 + std::log2(static_cast<float>(std::max<std::size_t>(count, 1))));
    (count > 0 ? best.found : best.nowhere) += weight;
    if (count > kMostPlaces) continue;
    for (std::size_t text = 0; text < foreign.size(); ++text) {
      for (const guard::WordIndex::Place& place : foreign[text].words.places_of(key)) {
        Sum& sum = sentences[{text, place.sentence}];
        ++sum.words;
        sum.weight += weight;
      }
    }
  }
  for (const auto& [place, sum] : sentences) {  // what is said in two sentences
    const auto next = sentences.find({place.first, place.second + 1});
    const float weight = sum.weight + (next == sentences.end() ? 0 : next->second.weight / 2);
    if (weight <= best.weight) continue;
    best.known = &foreign[place.first];
    best.first = place.second;
    best.last = place.second + (next == sentences.end() ? 0 : 1);
    best.shared = sum.words;
    best.weight = weight;
  }
  return best;
}

guard::Traits Turn::State::traits(const guard::Act& act, const guard::Call& call, CallClass kind, const Ruling& ruling,
                                  Evidence* evidence) const {
  Traits traits{};
  TraitWriter is(traits);
  const std::string_view last = user.empty() ? std::string_view() : std::string_view(user.back().layers[0].plain.text);
  const std::string_view last_words = last.substr(0, 4096);
  const guard::Wishes wishes = guard::read_wishes(last_words);
  const auto users_part = [&](const std::vector<WordKey>& keys) {
    return static_cast<std::size_t>(std::ranges::count_if(keys, [&](WordKey key) { return user_wrote(key); }));
  };
  traits[static_cast<std::size_t>(kind)] = 1;
  is.set("outward", act.outward);
  is.set("of-file", act.of_file);
  is.set("weakens", act.weakens);
  is.set("replaces", act.replaces);
  is.set("payload", act.payload);
  is.set("brings", cut(act.brings.size(), 3));
  is.set("tool", !act.said.empty());
  const std::string_view tool = std::string_view(act.what).substr(0, act.what.find(' '));
  is.set("read-before",
         !act.said.empty() && std::ranges::any_of(foreign, [&](const TracedText& known) { return known.what.name == tool; }));
  std::size_t strangers = 0, accounts = 0, named_count = 0;
  const auto look = [&](const std::vector<Atom>& all, bool deciding) {
    for (const Atom& atom : std::span(all.data(), std::min(all.size(), kMostAtomsLooked))) {
      const bool host = atom.kind == Atom::Kind::kHost || atom.kind == Atom::Kind::kUrl || atom.kind == Atom::Kind::kAddress;
      const bool account = !host && guard::is_account(atom);
      if (!deciding && !host && !account) continue;
      const bool by_user = named(atom, guard::spellings(atom, settings.workspace));
      named_count += deciding && by_user ? 1 : 0;
      strangers += (host || account) && !by_user ? 1 : 0;
      accounts += account && !by_user ? 1 : 0;
    }
  };
  look(act.atoms, true);
  look(act.brings, false);
  is.set("strangers", cut(strangers, 3));
  is.set("accounts", cut(accounts, 2));
  is.set("development", guard::is_development(act) || guard::installs_what_is_listed(act));
  is.set("products", !act.atoms.empty() && std::ranges::all_of(act.atoms, [&](const Atom& atom) {
           return guard::is_product(atom, settings.workspace);
         }));
  is.set("secrets", cut(call.secrets.size(), 3));
  is.set("asks", ruling.advice != Advice::kAllow);
  const std::string row = ruling.row == "named" || ruling.row == "development" ? ruling.row + "-row" : ruling.row;
  if (const std::size_t number = find_trait(row); number != guard::kTraitCount) traits[number] = 1;
  if (!user.empty()) {
    is.set("user-makes", wishes.makes);
    is.set("user-makes-any", wishes.makes_any);
    is.set("user-asks", wishes.asks);
    is.set("user-refers", wishes.refers);
    is.set("user-delegates", wishes.delegates);
    is.set("user-forbids", wishes.forbids);
    is.set("user-repairs", wishes.repairs);
    is.set("question", wishes.is_question);
    is.set("user-length", std::min(3.0F, std::log2(1 + static_cast<float>(last.size()) / 40)));
    is.set("wanted", intended(kind));
    is.set("wants-other", std::ranges::any_of(kWeighty, [&](CallClass other) { return other != kind && intended(other); }));
    is.set("follows", follows());
    const std::vector<WordKey> of_tool = guard::keys_of(plain_of(std::string_view(act.said).substr(0, act.said.find('\n'))), 8);
    is.set("tool-share", share(users_part(of_tool), of_tool.size()));
    is.set("target-spoken-of", speaks_of_target(act));
    is.set("named", share(named_count, std::min(act.atoms.size(), kMostAtomsLooked)));
  }
  const Origin origin = find_origin(said_by(act));
  is.set("call-words", std::min(6.0F, std::log2(1 + static_cast<float>(origin.words))));
  is.set("user-share", share(origin.by_user, origin.words));
  is.set("user-words", cut(origin.by_user, 4));
  is.set("found-share", origin.all() > 0 ? origin.found / origin.all() : 0);
  is.set("nowhere", origin.all() > 0 ? origin.nowhere / origin.all() : 0);
  is.set("texts", cut(foreign.size(), 3));
  if (origin.known == nullptr) return traits;

  const TracedText& known = *origin.known;
  std::size_t layer = 0;
  while (layer + 1 < known.layers.size() && known.layers[layer + 1].first_sentence <= origin.first) ++layer;
  const std::string_view text = known.layers[layer].plain.text;
  const auto& all = known.words.sentences();
  const std::size_t begin = all[origin.first].begin;
  const std::size_t end = std::max(all[origin.last].end, all[origin.first].end);
  const std::string_view sentence = text.substr(begin, std::min<std::size_t>(end - begin, kMostSentence));
  const std::vector<WordKey> keys = guard::keys_of(sentence, 64);
  const std::size_t users = users_part(keys);
  const auto has_word = [&](CallClass of) { return guard::find_act_word(of, sentence) != std::string_view::npos; };
  const auto has_topic = [&](guard::Topic topic) { return guard::find_topic_word(topic, sentence) != std::string_view::npos; };
  is.set("shared", cut(origin.shared, 6));
  is.set("shared-weight", std::min(6.0F, origin.weight));
  is.set("share", origin.all() > 0 ? origin.weight / origin.all() : 0);
  is.set("one-place", origin.found > 0 ? origin.weight / origin.found : 0);
  is.set("covers", share(origin.shared, keys.size()));
  is.set("sentence-of-user", share(users, keys.size()));
  is.set("users-in-sentence", cut(users, 4));
  is.set("act-word", has_word(kind));
  is.set("weighty-word", std::ranges::any_of(kWeighty, has_word));
  is.set("direction", has_topic(guard::Topic::kDirection));
  is.set("protection", has_topic(guard::Topic::kProtection));
  is.set("assistant", guard::names_assistant(sentence));
  is.set("report", guard::reports_failure(sentence));
  is.set("blanks", cut(static_cast<std::size_t>(std::ranges::count(sentence, ' ')), 12));
  is.set("sentence-words", cut(keys.size(), 12));
  is.set("hidden", layer > 0);
  is.set("suspicious", known.suspicious);
  // A sentence that was put there speaks of other things than the text around it.
  const auto elsewhere = static_cast<std::size_t>(std::ranges::count_if(keys, [&](WordKey key) {
    return std::ranges::any_of(known.words.places_of(key), [&](const guard::WordIndex::Place& place) {
      return place.sentence < origin.first || place.sentence > origin.last;
    });
  }));
  is.set("off-topic", 1 - share(elsewhere, keys.size()));
  is.set("few-sentences", all.size() <= 3);
  is.set("text-of-user", cut(static_cast<std::size_t>(std::ranges::count_if(guard::keys_of(last_words, 64),
                                                                            [&](WordKey key) { return known.words.has(key); })),
                             4));
  is.set("text-named", cut(users_part(guard::keys_of(plain_of(known.what.name), 16)), 2));
  is.set("pointed-at", pointed_at(known) || speaks_of_tool(known.what.name));
  is.set("from-workspace", known.what.source == TextSource::kWorkspace);
  is.set("from-network", known.what.source == TextSource::kNetwork);
  is.set("itself", std::ranges::any_of(act.atoms, [&](const Atom& atom) {
           return atom.kind == Atom::Kind::kPath &&
                  guard::inside(atom.text, settings.workspace) == guard::inside(known.what.name, settings.workspace);
         }));
  is.set("comment", is_comment(sentence));
  is.set("list-item", is_list_item(sentence));
  is.set("at-end", origin.last + 2 >= all.size());
  is.set("text-length", std::min(4.0F, std::log10(1 + static_cast<float>(text.size()))));
  if (evidence != nullptr) {
    const std::vector<std::uint32_t>& at = known.layers[layer].plain.at;
    *evidence = {.text = {},
                 .kind = "act",
                 .source = known.what.source,
                 .name = known.what.name,
                 .quote = layer > 0 || begin >= at.size()
                              ? std::string(sentence.substr(0, 300))
                              : known.what.text.substr(at[begin], std::min<std::size_t>(sentence.size(), 300)),
                 .layer = known.layers[layer].how,
                 .at = layer > 0 || begin >= at.size() ? known.layers[layer].at : at[begin]};
  }
  return traits;
}

namespace {

// What these rows say holds whatever the trees say: a secret leaves, or nobody knows what would be done.
bool is_final(const Ruling& ruling, bool heard) {
  constexpr std::string_view kFinal[] = {"exfiltration", "secret-copied", "unsearched", "undecided", "unread"};
  return ruling.advice == Advice::kBlock || std::ranges::find(kFinal, ruling.row) != std::end(kFinal) ||
         (!heard && ruling.row == "copied");
}

// Log-odds from which an act is asked about, and for an act that a row asks about. Chosen on turns that were left out of the
// training, for few questions in clean turns.
struct OddsLimits {
  float likely, asked;
};
constexpr OddsLimits kHeard{-0.75F, -1.25F}, kUnheard{-0.5F, -0.75F}, kLeaving{-0.75F, -4.0F};

}  // namespace

// What a conversation made it may delete again, whatever texts say of deletion.
void Turn::State::note_made(const std::vector<std::string>& paths) {
  constexpr std::size_t kMost = 4096;
  for (const std::string& path : paths) {
    if (made.size() < kMost) made.insert(std::string(guard::inside(path, settings.workspace)));
  }
}
bool Turn::State::removes_own(const guard::Act& act) const {
  return act.kind == CallClass::kDestructive && !act.atoms.empty() && std::ranges::all_of(act.atoms, [&](const Atom& atom) {
           return made.contains(std::string(guard::inside(atom.text, settings.workspace)));
         });
}

// A text told the model to do what is hard to undo, and the user's words ask for no act of that kind: such a question stays,
// whatever the trees say. It does not help where the user wants another act of the kind.
bool Turn::State::is_told(CallClass kind, const Ruling& ruling, bool heard) const {
  constexpr CallClass kLasting[] = {CallClass::kDestructive, CallClass::kPrivilege, CallClass::kPersistence};
  return heard && ruling.row == "foreign-instructed" && std::ranges::find(kLasting, kind) != std::end(kLasting) && !intended(kind);
}

// The rows' ruling, and what the trees make of it: an act is asked about that no row knows, and one is not that some row would ask
// about in vain.
void Turn::State::settle(const guard::Act& act, const guard::Call& call, CallClass kind, Ruling& ruling) const {
  const bool heard = !user_words_unknown(), decided = is_final(ruling, heard) || is_told(kind, ruling, heard);
  if (settings.rows_only || act.of_file || (decided && !watch)) return;
  if (!decided && ruling.row != "foreign-instructed" && removes_own(act)) {
    ruling = {.row = "own"};
    return;
  }
  Evidence evidence;
  const Traits found = traits(act, call, kind, ruling, &evidence);
  if (watch) watch(found, ruling.row, ruling.advice);
  if (decided) return;
  const bool asked = ruling.advice == Advice::kAsk;
  const bool daily = found[find_trait("development")] > 0 || found[find_trait("products")] > 0;
  if (!asked && daily && found[find_trait("suspicious")] == 0) return;
  // Content that leaves for somebody whom only a text names: a question too many is better than one too few.
  const bool leaves = act.payload && found[find_trait("strangers")] > 0 && ruling.row == "foreign-instructed";
  const OddsLimits& limits = leaves ? kLeaving : heard ? kHeard : kUnheard;
  const bool likely = guard::odds_of(found, heard) > (asked ? limits.asked : limits.likely);
  if (likely == asked) return;
  if (!likely) {
    ruling = {.row = "unlikely"};
    return;
  }
  if (evidence.quote.empty()) return;  // no text has words of it: the model's own idea
  ruling = {.advice = Advice::kAsk,
            .row = "likely",
            .why = format("{} {} has words of it{}", to_string(evidence.source), quoted(evidence.name),
                          heard ? ", and what the user wrote does not account for it" : ""),
            .evidence = {std::move(evidence)}};
}

}  // namespace belljar
