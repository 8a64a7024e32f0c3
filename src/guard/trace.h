// The texts that entered a turn, and the places in them where a string of a call stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/turn.h"
#include "detect/normal.h"
#include "guard/call.h"
#include "guard/word_index.h"

namespace belljar::guard {

// One text, read once: as it is and with its hidden layers opened.
struct TracedText {
  struct Layer {
    std::string how;  // "text", "base64"
    detect::Plain plain;
    std::size_t at = 0;              // of a hidden layer: where it begins in the original
    std::size_t first_sentence = 0;  // in `words`
  };
  Entered what;
  std::vector<Layer> layers;
  WordIndex words;                  // of all layers
  bool suspicious = false;          // the detector finds an injection in it
  bool secret = false;              // the content of a key or credential file
  std::vector<std::string> tokens;  // of a secret: what would give it away
};

// A place in a text where a string of a call stands, and what is said around it.
struct TextMatch {
  const TracedText* known = nullptr;
  bool instructed = false;  // near words that speak of the act, or hidden
  bool hidden = false;
  bool directed = false;  // near words that say what is to be done or what holds from now on, whatever the act
  bool header = false;    // in a head line of a mail, which says who wrote
  bool prose = false;     // in a line of five words and more, not in a list or a row of data
  Evidence evidence;
};

// As texts are looked through: normalised (detect/normal.h), without blanks at the end.
std::string plain_of(std::string_view text);

// `scanned`: look for hidden layers and injections as well.
TracedText read_text(Entered what, bool scanned);

// Spellings under which an atom may stand in a text, the fullest first; normalised. `workspace` without a final slash.
std::vector<std::string> spellings(const Atom& atom, std::string_view workspace);

// The user wrote it (or its last component, or its host).
bool is_named(const TracedText& user, const Atom& atom, const std::vector<std::string>& spelled);
// The best place of it in an untrusted text: one that is instructed before one that only mentions it. `words`: which acts' words
// make an instruction of a mention.
std::optional<TextMatch> find_atom(const TracedText& known, const Atom& atom, const std::vector<std::string>& spelled,
                                   const std::vector<CallClass>& words);
// The best place where these words stand one after the other in a line, whatever quotes are around them; normalised, not empty.
std::optional<TextMatch> find_command(const TracedText& known, const std::vector<std::string>& words);
// The place that speaks of such an act and shares most words with the call; `shared` of the result says how many.
struct ActMatch {
  TextMatch found;
  std::size_t shared = 0;
};
std::optional<ActMatch> find_act(const TracedText& known, CallClass kind, const std::vector<std::string>& words);
// The place that speaks of protections; one that is directed before others.
std::optional<TextMatch> find_protection(const TracedText& known);
// Words of a text, normalised, of four letters and more.
std::vector<std::string> words_of(std::string_view text);

// The user's text names this text: its path, its file's name, its host.
bool points_at(const TracedText& user, const TracedText& known);
// How many different strings of this kind the text holds.
std::size_t count_of_kind(const TracedText& known, Atom::Kind kind);
// A word near the place of `found` that the user wrote as well: "Anna" before anna@firm.example.
bool is_linked(const TracedText& user, const TextMatch& found);

}  // namespace belljar::guard
