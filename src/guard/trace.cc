// Where a string of a call stands in what entered, and what that says.
//
// A text is read once, as it is and with its encoded layers opened; every string is looked for in each of the spellings that a
// person would know it by: a path with and without its directories, a host with and without its scheme, "anna at firm dot example".
// A place counts only where it is no piece of a longer word.
//
// Beside the place it matters what is said there. Within the lines that belong together (an empty line ends them, unless the line
// before it introduces what follows: "run:"), a word for such an act makes an instruction of a mention; the head of a mail asks for
// nothing. In a hidden layer every mention is one: nobody hides what only describes. Distance alone would not do: a list has its
// verb far above, and a log has every verb beside every path.
#include "guard/trace.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "belljar/turn.h"
#include "detect/detect.h"
#include "detect/normal.h"
#include "guard/call.h"
#include "guard/lexicon.h"

namespace belljar::guard {

using detect::decode_layers;
using detect::Hidden;
using detect::normalise;
using detect::scan;

namespace {

constexpr std::size_t kNear = 220;       // bytes around a place that belong to it
constexpr std::size_t kMostPlaces = 64;  // of one string in one text

bool is_word_byte(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// [begin, end) is no piece of a longer word or path.
bool stands_alone(std::string_view text, std::size_t begin, std::size_t end, bool below_counts) noexcept {
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : ' '; };
  if (begin > 0 && is_word_byte(text[begin]) && (is_word_byte(text[begin - 1]) || text[begin - 1] == '-')) return false;
  const char next = at(end);
  if (is_word_byte(next) && is_word_byte(text[end - 1])) return false;
  if (next == '-' && is_word_byte(at(end + 1))) return false;
  if (next == '.' && is_word_byte(at(end + 1))) return false;
  if (next == '@' && is_word_byte(at(end + 1))) return false;
  return below_counts || next != '/' || !(is_word_byte(at(end + 1)) || at(end + 1) == '.');
}

// Calls `each(begin)` for each place; ends when it returns true.
template <class Each>
void places(std::string_view text, std::string_view word, bool below_counts, Each each) {
  if (word.empty()) return;
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos && count < kMostPlaces; at = text.find(word, at + 1)) {
    if (!stands_alone(text, at, at + word.size(), below_counts)) continue;
    ++count;
    if (each(at)) return;
  }
}

bool holds(std::string_view text, std::string_view word, bool below_counts) {
  bool found = false;
  places(text, word, below_counts, [&](std::size_t) { return found = true; });
  return found;
}

struct Window {
  std::size_t begin, end;
};
// The line that ends at `end` introduces what follows it: "To check it, run:".
bool introduces(std::string_view text, std::size_t end) noexcept {
  const std::size_t last = end == 0 ? std::string_view::npos : text.find_last_not_of(" *_", end - 1);
  return last != std::string_view::npos && (text[last] == ':' || text.substr(0, last + 1).ends_with("：")) && text[last] != '\n';
}

// What belongs together: up to kNear bytes, not beyond an empty line; over one if the line before it introduces what follows.
Window around(std::string_view text, std::size_t begin, std::size_t end) noexcept {
  std::size_t from = begin > kNear ? begin - kNear : 0;
  std::size_t to = std::min(end + kNear, text.size());
  std::size_t gap = begin == 0 ? std::string_view::npos : text.rfind("\n\n", begin - 1);
  if (gap != std::string_view::npos && gap > 0 && introduces(text, gap)) gap = text.rfind("\n\n", gap - 1);
  if (gap != std::string_view::npos && gap >= from) from = gap + 2;
  gap = text.find("\n\n", end);
  if (gap != std::string_view::npos && introduces(text, gap)) gap = text.find("\n\n", gap + 2);
  if (gap != std::string_view::npos && gap < to) to = gap;
  return {from, to};
}

std::string_view line_before(std::string_view text, std::size_t at) noexcept {
  const std::size_t begin = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t from = begin == std::string_view::npos ? 0 : begin + 1;
  return text.substr(from, at - from);
}

// Head lines of a mail say who wrote; they ask for nothing.
bool is_header(std::string_view text, std::size_t at) noexcept {
  const std::string_view line = line_before(text, at);
  constexpr std::string_view kHeads[] = {
      "from:", "to:", "cc:",   "reply-to:", "sender:", "von:",      "an:",     "de:",         "para:",
      "a:",    "от:", "кому:", "发件人",    "收件人",  "\"from\":", "\"to\":", "\"sender\":", "author:"};
  return std::ranges::any_of(kHeads, [&](std::string_view head) { return line.starts_with(head); });
}

bool speaks_of(std::string_view text, Window window, std::size_t begin, std::size_t end, const std::vector<CallClass>& words) {
  const std::string_view near = text.substr(0, window.end);
  for (const CallClass kind : words) {
    for (std::size_t at = find_act_word(kind, near, window.begin); at != std::string_view::npos;
         at = find_act_word(kind, near, at + 1)) {
      if (at < begin || at >= end) return true;
    }
  }
  return false;
}

std::string cut(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kLongest = 300;
  while (begin < end && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  end = std::min(end, begin + kLongest);
  while (end > begin && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(begin, end - begin));
}

// An order begins with its verb.
bool begins_sentence(std::string_view text, std::size_t at) noexcept {
  const std::size_t last = at == 0 ? std::string_view::npos : text.find_last_not_of(" \t", at - 1);
  return last == std::string_view::npos || std::string_view("\n.!?:;|-*\">(#/").find(text[last]) != std::string_view::npos;
}

// Four words and more in the line, apart from paths, hosts and numbers: somebody speaks.
bool is_prose_line(std::string_view text, std::size_t begin, std::size_t least = 4) noexcept {
  const std::size_t from = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
  const std::string_view line = text.substr(from, std::min(text.find('\n', begin), text.size()) - from);
  std::size_t words = 0, far = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    std::string_view word = line.substr(at, end - at);
    at = end + 1;
    while (!word.empty() && std::string_view(".,:;!?)\"'`").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
    while (!word.empty() && std::string_view("(\"'`").find(word.front()) != std::string_view::npos) word.remove_prefix(1);
    far += static_cast<std::size_t>(std::ranges::count_if(word, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }));
    if (word.size() >= 2 && std::ranges::all_of(word, [](char c) { return (c >= 'a' && c <= 'z') || c == '\'' || c == '-'; }))
      ++words;
  }
  return words + far / 6 >= least;
}

// In a comment of markup, or in an element that is not shown: nobody but a program reads it.
bool is_unseen(std::string_view text, std::size_t at) noexcept {
  const std::string_view before = text.substr(at > 400 ? at - 400 : 0, std::min<std::size_t>(at, 400));
  const std::size_t comment = before.rfind("<!--");
  if (comment != std::string_view::npos && before.find("-->", comment) == std::string_view::npos) return true;
  for (const std::string_view sign : {" hidden>", "display:none", "display: none", "visibility:hidden", "font-size:0"}) {
    const std::size_t begin = before.rfind(sign);
    if (begin != std::string_view::npos && before.find("</", begin) == std::string_view::npos) return true;
  }
  return false;
}

// The sentence before `at` begins with a word for an act, "Tell", "Delete", "Install": it is an order. Not before `from`.
bool is_order(std::string_view text, std::size_t from, std::size_t at) noexcept {
  std::size_t begin = at;
  while (begin > from && !begins_sentence(text, begin)) --begin;
  if (!begins_sentence(text, begin)) return false;
  while (begin < at && text[begin] == ' ') ++begin;
  constexpr CallClass kKinds[] = {CallClass::kDestructive, CallClass::kSending,     CallClass::kPrivilege, CallClass::kCommitment,
                                  CallClass::kInstalling,  CallClass::kPersistence, CallClass::kRunning};
  const std::string_view front = text.substr(0, std::min(begin + 24, text.size()));
  return std::ranges::any_of(kKinds, [&](CallClass kind) { return find_act_word(kind, front, begin) == begin; });
}

// Words near a place say what is to be done, whatever the act.
bool is_directed(const TracedText::Layer& layer, std::size_t begin, std::size_t end) noexcept {
  const std::string_view plain = layer.plain.text;
  const Window window = around(plain, begin, end);
  return layer.how != "text" || is_unseen(plain, begin) || is_order(plain, window.begin, begin) ||
         (!is_header(plain, begin) &&
          find_topic_word(Topic::kDirection, plain.substr(0, window.end), window.begin) != std::string_view::npos);
}

// The words around a place as the original has them.
TextMatch found_at(const TracedText& known, const TracedText::Layer& layer, std::size_t begin, std::size_t end) {
  const bool hidden = layer.how != "text";
  const Window window = around(layer.plain.text, begin, end);
  std::size_t from = std::max(window.begin, begin > 120 ? begin - 120 : 0);
  TextMatch found{.known = &known, .hidden = hidden};
  const std::string_view plain = layer.plain.text;
  found.header = !hidden && is_header(plain, begin);
  found.directed = is_directed(layer, begin, end);
  found.prose = hidden || is_prose_line(plain, begin);
  found.evidence = {.source = known.what.source, .name = known.what.name, .layer = layer.how};
  const auto original = [&](std::size_t i) { return i < layer.plain.at.size() ? layer.plain.at[i] : known.what.text.size(); };
  if (hidden) {
    found.evidence.at = layer.at;
    found.evidence.quote = cut(layer.plain.text, from, window.end);
  } else {
    found.evidence.at = original(begin);
    found.evidence.quote = cut(known.what.text, original(from), original(window.end));
  }
  return found;
}

void add_tokens(TracedText& known) {
  for (std::size_t at = 0; at < known.what.text.size() && known.tokens.size() < 256;) {
    const std::size_t end = std::min(known.what.text.find_first_of(" \t\r\n=:\"',;", at), known.what.text.size());
    const std::string_view token = std::string_view(known.what.text).substr(at, end - at);
    const bool digits = token.find_first_of("0123456789") != std::string_view::npos;
    if (token.size() >= 8 && token.size() <= 256 && digits) known.tokens.emplace_back(token);
    at = end + 1;
  }
}

void add(std::vector<std::string>& list, std::string text) {
  if (text.size() >= 2 && std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
}

std::string host_of(std::string_view text) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) text.remove_prefix(scheme + 3);
  text = text.substr(0, text.find_first_of("/?#"));
  if (const std::size_t user = text.rfind('@'); user != std::string_view::npos) text.remove_prefix(user + 1);
  return std::string(text.substr(0, text.find(':')));
}

// "api.x.example" -> "x.example".
std::string parent_of(const std::string& host) {
  const std::size_t last = host.rfind('.');
  if (last == std::string::npos || last == 0) return host;
  const std::size_t before = host.rfind('.', last - 1);
  return before == std::string::npos ? host : host.substr(before + 1);
}

void add_path(std::vector<std::string>& list, std::string path, std::string_view workspace) {
  while (path.ends_with("/*") || path.ends_with("/.")) path.resize(path.size() - 2);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  add(list, path);
  for (const std::string_view prefix : {std::string_view("./"), std::string_view("~/"), std::string_view("$home/"), workspace}) {
    if (prefix.empty() || !path.starts_with(prefix)) continue;
    path.erase(0, prefix.size());
    while (path.starts_with('/')) path.erase(0, 1);
    add(list, path);
  }
  const std::string name(file_name(path));
  if (name.size() >= 4) add(list, name);
}

}  // namespace

std::string plain_of(std::string_view text) {
  Hidden hidden;
  std::string plain = normalise(text, hidden).text;
  while (!plain.empty() && (plain.back() == ' ' || plain.back() == '\n')) plain.pop_back();
  return plain;
}

TracedText read_text(Entered what, bool scanned) {
  TracedText known{.what = std::move(what)};
  Hidden hidden;
  known.layers.push_back({"text", normalise(known.what.text, hidden), 0});
  known.words.add(known.layers[0].plain.text);
  if (!scanned) {
    known.words.finish();
    return known;
  }
  for (detect::Layer& layer : decode_layers(known.what.text)) {
    if (layer.how == "rot13" || layer.how == "reversed") continue;  // of any text: the detector judges those
    Hidden inner;
    known.layers.push_back({layer.how, normalise(layer.text, inner), layer.begin, known.words.sentences().size()});
    known.words.add(known.layers.back().plain.text);
  }
  known.words.finish();
  known.suspicious = scan(known.what.text).suspicious();
  known.secret = is_secret_path(known.what.name);
  if (known.secret) add_tokens(known);
  return known;
}

std::vector<std::string> spellings(const Atom& atom, std::string_view workspace) {
  const std::string plain = plain_of(atom.text);
  std::vector<std::string> list;
  switch (atom.kind) {
    case Atom::Kind::kPath:
      add_path(list, plain, plain_of(workspace));
      break;
    case Atom::Kind::kUrl:
    case Atom::Kind::kHost:
      add(list, plain);
      add(list, host_of(plain));
      add(list, parent_of(host_of(plain)));
      break;
    case Atom::Kind::kAddress: {
      add(list, plain);
      const std::size_t at = plain.find('@');
      std::string spoken = plain.substr(0, at) + " at " + plain.substr(at + 1);
      add(list, spoken);
      for (std::size_t dot = spoken.find('.'); dot != std::string::npos; dot = spoken.find('.', dot + 5))
        spoken.replace(dot, 1, " dot ");
      add(list, spoken);
      break;
    }
    case Atom::Kind::kAmount:
      add(list, plain);
      add(list, plain + ".00");
      if (plain.find('.') != std::string::npos) add(list, plain + "0");
      if (plain.size() > 3 && plain.find_first_of(".,") == std::string::npos) {
        for (const char* mark : {",", ".", " "}) {
          std::string grouped = plain;
          for (std::size_t i = plain.size(); i > 3; i -= 3) grouped.insert(i - 3, mark);
          add(list, grouped);
        }
      }
      break;
    default:
      add(list, plain);
      if (is_account(atom) && plain.size() > 8) {  // as people write it, in groups of four
        std::string grouped;
        for (std::size_t i = 0; i < plain.size(); i += 4) grouped += (i > 0 ? " " : "") + plain.substr(i, 4);
        add(list, grouped);
      }
      // name@1.2, name==1.2: the text may have another way to say the version
      if (const std::size_t mark = plain.find("://") != std::string::npos ? std::string::npos : plain.find_first_of("@=<>~[", 1);
          mark != std::string::npos && mark >= 3)
        add(list, plain.substr(0, mark));
      break;
  }
  return list;
}

// The user named a directory above it: "the files in tmp/".
bool is_below_named(std::string_view text, std::string_view path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    bool found = false;
    places(text, path.substr(0, slash + 1), true, [&](std::size_t at) {
      const std::size_t end = at + slash + 1;
      const bool dot = end < text.size() && text[end] == '.';
      const std::size_t after = dot ? end + 1 : end;
      return found = after >= text.size() || !is_word_byte(text[after]);
    });
    if (found) return true;
  }
  return false;
}

bool is_named(const TracedText& user, const Atom& atom, const std::vector<std::string>& spelled) {
  const bool path = atom.kind == Atom::Kind::kPath;
  const std::string_view text = user.layers[0].plain.text;
  if (path && std::ranges::any_of(spelled, [&](const std::string& word) { return is_below_named(text, word); })) return true;
  return std::ranges::any_of(
      spelled, [&](const std::string& word) { return holds(user.layers[0].plain.text, word, atom.kind != Atom::Kind::kPath); });
}

std::optional<TextMatch> find_atom(const TracedText& known, const Atom& atom, const std::vector<std::string>& spelled,
                                   const std::vector<CallClass>& words) {
  std::optional<TextMatch> best;
  for (const TracedText::Layer& layer : known.layers) {
    const std::string_view text = layer.plain.text;
    for (const std::string& word : spelled) {
      places(text, word, true, [&](std::size_t at) {
        const std::size_t end = at + word.size();
        const bool instructed =
            layer.how != "text" || (!is_header(text, at) && speaks_of(text, around(text, at, end), at, end, words));
        if (best && !instructed && (best->directed || !is_directed(layer, at, end))) return false;
        best = found_at(known, layer, at, end);
        best->instructed = instructed;
        best->evidence.text = atom.text;
        best->evidence.kind = to_string(atom.kind);
        return instructed;
      });
      if (best && best->instructed) return best;
    }
  }
  return best;
}

namespace {

// Where the words end that begin at `at`; npos: others stand there.
std::size_t end_of_words(std::string_view text, std::size_t at, const std::vector<std::string>& words) {
  constexpr std::string_view kQuotes = "'\"`";
  const auto skip = [&](std::string_view letters) { at = std::min(text.find_first_not_of(letters, at), text.size()); };
  std::size_t end = at;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      const std::size_t before = at;
      skip(kQuotes);
      if (text.substr(at).starts_with("\\n")) at += 2, skip(kQuotes);  // printf 'x\n'
      const std::size_t blank = at;
      skip(" ");
      if (text.substr(at).starts_with("\\\n")) at += 2, skip(" ");  // the line goes on
      if (at == blank || at == before) return std::string_view::npos;
      skip(kQuotes);
    }
    if (!text.substr(at).starts_with(words[i]) || !stands_alone(text, at, at + words[i].size(), false))
      return std::string_view::npos;
    at = end = at + words[i].size();
  }
  return end;
}

}  // namespace

std::optional<TextMatch> find_command(const TracedText& known, const std::vector<std::string>& words) {
  std::optional<TextMatch> best;
  for (const TracedText::Layer& layer : known.layers) {
    const std::string_view text = layer.plain.text;
    places(text, words[0], false, [&](std::size_t at) {
      const std::size_t end = end_of_words(text, at, words);
      if (end == std::string_view::npos) return false;
      const bool instructed =
          layer.how != "text" || speaks_of(text, around(text, at, end), at, end, {CallClass::kRunning, CallClass::kInstalling});
      if (best && !instructed) return false;
      best = found_at(known, layer, at, end);
      best->instructed = instructed;
      best->evidence.kind = "command";
      return instructed;
    });
    if (best && best->instructed) break;
  }
  return best;
}

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::size_t kMost = 64;
  const std::string plain = plain_of(text.substr(0, 4096));
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < plain.size() && words.size() < kMost;) {
    std::size_t end = begin;
    while (end < plain.size() && is_word_byte(plain[end])) ++end;
    if (end - begin >= 4) add(words, plain.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::optional<ActMatch> find_act(const TracedText& known, CallClass kind, const std::vector<std::string>& words) {
  std::optional<ActMatch> best;
  for (const TracedText::Layer& layer : known.layers) {
    const std::string_view text = layer.plain.text;
    std::size_t count = 0;
    for (std::size_t at = find_act_word(kind, text); at != std::string_view::npos && count < kMostPlaces;
         at = find_act_word(kind, text, at + 1), ++count) {
      const Window window = around(text, at, at + 1);
      const std::string_view near = text.substr(window.begin, window.end - window.begin);
      const auto shared =
          static_cast<std::size_t>(std::ranges::count_if(words, [&](const std::string& word) { return holds(near, word, true); }));
      if (best && shared < best->shared) continue;
      TextMatch found = found_at(known, layer, at, at + 1);
      found.directed = found.directed || begins_sentence(text, at);
      if (best && shared == best->shared && !(found.directed && !best->found.directed)) continue;
      best = ActMatch{std::move(found), shared};
      best->found.instructed = true;
      best->found.evidence.kind = "act";
    }
  }
  return best;
}

std::optional<TextMatch> find_protection(const TracedText& known) {
  std::optional<TextMatch> best;
  for (const TracedText::Layer& layer : known.layers) {
    const std::string_view text = layer.plain.text;
    std::size_t count = 0;
    for (std::size_t at = find_topic_word(Topic::kProtection, text); at != std::string_view::npos && count < kMostPlaces;
         at = find_topic_word(Topic::kProtection, text, at + 1), ++count) {
      TextMatch found = found_at(known, layer, at, at + 1);
      found.directed = found.directed || begins_sentence(text, at);
      if (!is_prose_line(text, at, 3) || (best && !found.directed)) continue;
      found.evidence.kind = "act";
      best = std::move(found);
      if (best->directed) return best;
    }
  }
  return best;
}

bool points_at(const TracedText& user, const TracedText& known) {
  const std::string name = plain_of(known.what.name);
  if (name.size() < 3) return false;
  const std::string_view text = user.layers[0].plain.text;
  if (holds(text, name, true)) return true;
  if (name.find("://") != std::string::npos) return holds(text, host_of(name), true);
  const std::string base(file_name(name));
  if (base.find('.') == std::string::npos && name.find('/') == std::string::npos) return false;
  const std::string stem = base.substr(0, base.find('.'));
  return holds(text, base, true) || (stem.size() >= 4 && holds(text, stem, true));
}

std::size_t count_of_kind(const TracedText& known, Atom::Kind kind) {
  std::vector<std::string> seen;
  const std::vector<Atom> atoms = find_atoms(known.what.text);
  if (atoms.size() >= kMostAtoms) return kMostAtoms;  // there may be more
  for (const Atom& atom : atoms) {
    const bool host = kind == Atom::Kind::kHost || kind == Atom::Kind::kUrl;
    if (host ? atom.kind == Atom::Kind::kHost || atom.kind == Atom::Kind::kUrl : atom.kind == kind)
      add(seen, host ? host_of(atom.text) : atom.text);
  }
  return seen.size();
}

bool is_linked(const TracedText& user, const TextMatch& found) {
  const std::string quote = plain_of(found.evidence.quote);
  const std::string place = plain_of(found.evidence.text);
  const std::size_t at = quote.find(place);
  if (at == std::string::npos) return false;
  const std::size_t end = std::min(quote.find('\n', at), quote.size());
  const std::string_view line =
      std::string_view(quote).substr(at - line_before(quote, at).size(), end - at + line_before(quote, at).size());
  for (std::size_t begin = 0; begin < line.size();) {
    std::size_t stop = begin;
    while (stop < line.size() && (is_word_byte(line[stop]) || static_cast<unsigned char>(line[stop]) >= 0x80)) ++stop;
    const std::string_view word = line.substr(begin, stop - begin);
    constexpr std::string_view kCommon[] = {"the",  "and",  "for",  "from", "with",    "mail", "email",
                                            "name", "send", "this", "that", "example", "com",  "org"};
    if (word.size() >= 3 && std::ranges::find(kCommon, word) == std::end(kCommon) && holds(user.layers[0].plain.text, word, true))
      return true;
    begin = stop + 1;
  }
  return false;
}

}  // namespace belljar::guard
