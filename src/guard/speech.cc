#include "guard/speech.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "guard/signs.h"

namespace belljar::guard {
namespace {

// Words by a hash of their first three bytes: one look-up decides nearly every one. Built once.
class Lexicon {
 public:
  Lexicon() {
    for (const Words& row : words_of_signs()) {
      for (std::size_t at = 0; at < row.words.size();) {
        const std::size_t end = std::min(row.words.find(' ', at), row.words.size());
        if (end - at >= 2) place(row.words.substr(at, end - at), row.roles);
        at = end + 1;
      }
    }
    for (const Pattern& pattern : patterns()) {
      first_ |= pattern.roles[0];
      for (Roles bits = pattern.roles[0]; bits != 0; bits &= bits - 1)
        by_role_[static_cast<std::size_t>(std::countr_zero(bits))].push_back(&pattern);
    }
  }
  Roles roles(std::string_view word) const noexcept {
    if (word.size() < 2) return 0;
    Roles result = 0;
    for (const Entry& entry : lists_[index_[key(word)]]) {
      const std::size_t size = entry.text.size();
      if (entry.open ? word.size() < size : word.size() != size) continue;
      if (word[size - 1] == entry.text[size - 1] && std::memcmp(word.data(), entry.text.data(), size) == 0) result |= entry.roles;
    }
    return result;
  }
  // The longest word that begins `text`, of a script without blanks; its size.
  std::size_t longest(std::string_view text, Roles& roles) const noexcept {
    std::size_t size = 0;
    if (text.size() < 2) return 0;
    for (const Entry& entry : lists_[index_[key(text)]]) {
      if (entry.text.size() < size || !text.starts_with(entry.text)) continue;
      if (entry.text.size() > size) roles = 0;
      size = entry.text.size();
      roles |= entry.roles;
    }
    return size;
  }
  Roles first_roles() const noexcept { return first_; }
  const std::vector<const Pattern*>& beginning_with(std::size_t bit) const noexcept { return by_role_[bit]; }

 private:
  struct Entry {
    std::string_view text;
    bool open;
    Roles roles;
  };
  static std::size_t key(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) -> std::uint32_t { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
    return ((byte(0) | (byte(1) << 8U) | (byte(2) << 16U)) * 0x9E3779B1U) >> 16U;
  }
  void place(std::string_view word, Roles roles) {
    const bool open = word.ends_with('*');
    if (open) word.remove_suffix(1);
    std::uint16_t& list = index_[key(word)];
    if (list == 0) {
      list = static_cast<std::uint16_t>(lists_.size());
      lists_.emplace_back();
    }
    for (Entry& entry : lists_[list]) {
      if (entry.text == word && entry.open == open) {
        entry.roles |= roles;
        return;
      }
    }
    lists_[list].push_back({word, open, roles});
  }

  std::vector<std::uint16_t> index_ = std::vector<std::uint16_t>(1U << 16);  // into `lists_`, 0: none
  std::vector<std::vector<Entry>> lists_{{}};
  std::array<std::vector<const Pattern*>, 64> by_role_;
  Roles first_ = 0;  // with which a pattern begins
};

const Lexicon& lexicon() {
  static const Lexicon made;
  return made;
}

enum Kind : unsigned char { kOther, kWord, kWide, kStop, kCode, kColon, kOpen, kLine };
struct Kinds {
  Kind of[256];
  constexpr Kinds() : of{} {
    for (int c = 0; c < 256; ++c) {
      const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '\'' || c >= 0x80;
      of[c] = c >= 0xE4 && c <= 0xE9 ? kWide : word ? kWord : kOther;
    }
    of['.'] = of['!'] = of['?'] = kStop;
    of['{'] = of['}'] = of[';'] = kCode;
    of[':'] = kColon, of['('] = kOpen, of['\n'] = kLine;
  }
};
constexpr Kinds kKinds;

Kind kind(char c) noexcept { return kKinds.of[static_cast<unsigned char>(c)]; }
bool is_wide(char c) noexcept { return kind(c) == kWide; }  // the first byte of a Chinese letter
bool is_word(char c) noexcept { return kind(c) == kWord || kind(c) == kWide; }
bool is_gap(char c) noexcept { return c == ' ' || c == '\n' || static_cast<unsigned char>(c) >= 0x80; }
bool is_any(char c, std::string_view of) noexcept { return of.find(c) != std::string_view::npos; }

}  // namespace

Speech::Speech(std::string_view text) : text_(text) {
  tokenise();
  end_sentence();
}

// A sentence at a time: what is kept stays small, whatever the text.
void Speech::end_sentence() {
  if (tokens_.size() > 1) {
    join_neighbours();
    for (std::size_t i = tokens_.size(); i-- > 1;) tokens_[i - 1].ahead = tokens_[i].ahead | tokens_[i].roles;
    for (std::size_t at = 0; at < tokens_.size(); ++at) find_at(at);
  }
  tokens_.clear();
  led_ = 0;
}

void Speech::take(Roles roles, std::size_t begin, std::size_t end) {
  ++position_;
  if (roles == 0) return;
  if ((roles & kTalk) != 0) ++talk_;
  const bool led = led_ == position_;
  if ((roles & kLead) != 0) led_ = position_ + 1;
  if (roles == kLead && !is_wide(text_[begin])) return;  // of use to the next word only, and there are many
  if (led) roles |= kLed;
  tokens_.push_back({roles, 0, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), position_});
}

void Speech::tokenise() {
  const Lexicon& known = lexicon();
  for (std::size_t i = 0; i < text_.size();) {
    if (is_wide(text_[i])) {
      Roles roles = 0;
      const std::size_t size = known.longest(text_.substr(i, 32), roles);
      take(roles, i, i + (size == 0 ? 1 : size));
      i += size == 0 ? std::min<std::size_t>(3, text_.size() - i) : size;
    } else if (kind(text_[i]) == kWord) {
      const std::size_t begin = i;
      std::size_t cut = 0;
      for (; i < text_.size() && kind(text_[i]) == kWord; ++i) {
        if (text_[i] == '\'') cut = i + 1;
      }
      Roles roles = known.roles(text_.substr(begin, i - begin));
      if (cut != 0) roles |= known.roles(text_.substr(cut, i - cut));  // l'injection
      take(roles, begin, i);
    } else {
      if (ends_sentence(i)) end_sentence();
      ++i;
    }
  }
}

// In code a brace, a call or a scope ends what belongs together.
bool Speech::ends_sentence(std::size_t at) const noexcept {
  const Kind is = kind(text_[at]);
  if (is == kOther) return false;
  const char after = at + 1 < text_.size() ? text_[at + 1] : '\n';
  if (is == kStop) return after == '"' || is_gap(after);
  if (is == kColon) return after == ':';
  if (is == kOpen) return at > 0 && is_word(text_[at - 1]);
  return is == kCode || is_any(after, "\n-#*|");
}

// `language model` is no other model; `CLAUDE.md` is a file.
void Speech::join_neighbours() {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if ((tokens_[i].roles & (kModel | kAi)) == 0) continue;
    const bool after = i + 1 < tokens_.size() && tokens_[i + 1].position - tokens_[i].position <= 2;
    const bool before = i > 0 && tokens_[i].position - tokens_[i - 1].position <= 1;
    if ((after && (tokens_[i + 1].roles & kLanguage) != 0) || (before && (tokens_[i - 1].roles & kLanguage) != 0))
      tokens_[i].roles |= kAi;
    if (after && (tokens_[i + 1].roles & kMd) != 0 && text_[tokens_[i].end] == '.') tokens_[i].roles = kStore;
  }
}

bool Speech::beside(std::size_t left, std::size_t right) const noexcept {
  return tokens_[right].position - tokens_[left].position <= 1;
}

// The next word of these roles in the sentence, with at most `gap` words on the way; its index, or 0.
std::size_t Speech::next(std::size_t from, Roles roles, int gap) const noexcept {
  for (std::size_t i = from + 1;
       i < tokens_.size() && tokens_[i].position - tokens_[from].position <= static_cast<std::uint32_t>(gap); ++i) {
    if ((tokens_[i].roles & roles) != 0) return i;
  }
  return 0;
}

// Nothing of the clause stands before it but quotes and the marks of lists, comments and keys. In code a point or a colon between
// two words ends no clause.
bool Speech::begins_clause(std::size_t at) const noexcept {
  std::size_t i = tokens_[at].begin;
  while (i > 0 && is_any(text_[i - 1], " *\"'`-#/<({[_@")) --i;
  if (i == 0 || is_any(text_[i - 1], "\n!?)]}")) return true;
  if (text_[i - 1] == '>') return i == 1 || text_[i - 2] != '-';
  const bool apart = i < tokens_[at].begin || static_cast<unsigned char>(text_[i]) >= 0x80;
  return apart && is_any(text_[i - 1], ".:,;=|");
}

bool Speech::is_order(std::size_t at) const noexcept {
  if (begins_clause(at) || (tokens_[at].roles & kLed) != 0) return true;
  if (!is_wide(text_[tokens_[at].begin])) return false;
  // Chinese puts what the order is about before the verb: 把 ... 写入.
  for (std::size_t i = at; i > 0 && tokens_[at].position - tokens_[i - 1].position <= 10; --i) {
    if ((tokens_[i - 1].roles & kLead) != 0 && is_wide(text_[tokens_[i - 1].begin])) return true;
  }
  return false;
}

bool Speech::is_negated(std::size_t at) const noexcept {
  return at > 0 && beside(at - 1, at) && (tokens_[at - 1].roles & kNot) != 0;
}

bool Speech::has_destination(std::size_t at) const noexcept {
  const std::string_view near = text_.substr(tokens_[at].begin, 200);
  std::size_t mark = near.find('@');
  while (mark != std::string_view::npos && (mark == 0 || !is_word(near[mark - 1]))) mark = near.find('@', mark + 1);
  return near.find("http") != std::string_view::npos || near.find("webhook") != std::string_view::npos ||
         (mark != std::string_view::npos && near.find('.', mark) != std::string_view::npos);
}

// How plainly the model at `at` is spoken to: it begins a clause, ends one with a colon, or stands behind "dear" or "to".
int Speech::called(std::size_t at) const noexcept {
  const Token& token = tokens_[at];
  const std::string_view rest = text_.substr(token.end, 3);
  const std::size_t colon = rest.starts_with(" :") ? 1 : 0;  // as in French
  const bool colon_ends = colon < rest.size() && rest[colon] == ':' && (colon + 1 == rest.size() || is_gap(rest[colon + 1]));
  const bool ends = colon_ends || (rest.size() > 1 && rest[0] == ',' && is_gap(rest[1]));
  const char before = token.begin > 0 ? text_[token.begin - 1] : '\n';
  if (before == '@') return 45;
  if (begins_clause(at)) return ends ? ((token.roles & kAi) != 0 ? 55 : 45) : ((token.roles & kAi) != 0 ? 35 : 15);
  std::size_t first = at;
  while (first > 0 && token.position - tokens_[first - 1].position <= 3) --first;
  for (std::size_t i = first; i < at; ++i) {
    const bool to = (tokens_[i].roles & kTo) != 0 && begins_clause(i);
    if (to || (tokens_[i].roles & kNotice) != 0) return (token.roles & kAi) != 0 ? 50 : ends ? 40 : 25;
  }
  if (colon_ends) return (token.roles & kAi) != 0 ? 50 : 35;
  return 0;
}

// "Assistant: delete ...", "to all agents: first run ...".
void Speech::match_call(std::size_t at) {
  const int weight = called(at);
  if (weight == 0) return;
  for (std::size_t i = at; (i = next(i, kAnyAct | kMust, 12)) != 0;) {
    if (tokens_[i].position - tokens_[at].position > 14) return;
    // Where the language has a form of its own for orders, the place says little.
    const bool plain =
        static_cast<unsigned char>(text_[tokens_[i].begin]) >= 0x80 || tokens_[i].position - tokens_[at].position == 1;
    if ((tokens_[i].roles & kMust) == 0 && !plain && !is_order(i)) continue;
    found_.push_back({"addresses-assistant", weight, tokens_[at].begin, tokens_[i].end});
    return;
  }
}

void Speech::match(const Pattern& pattern, std::size_t at, bool order) {
  const int weight = order ? pattern.ordered : pattern.told;
  if (weight == 0) return;
  // "do not forget to follow ..."
  if (pattern.roles[0] == kNot && at + 1 < tokens_.size() && beside(at, at + 1) && (tokens_[at + 1].roles & kDrop) != 0) return;
  std::size_t last = at;
  for (std::size_t k = 1; k < std::size(pattern.roles) && pattern.roles[k] != 0; ++k) {
    if ((last = next(last, pattern.roles[k], pattern.gap)) == 0) return;
  }
  if (pattern.needs == Pattern::Needs::kDestination && !has_destination(at)) return;
  if (pattern.needs == Pattern::Needs::kColon &&
      text_.substr(tokens_[at].begin, tokens_[last].begin - tokens_[at].begin).find(':') == std::string_view::npos)
    return;
  found_.push_back({pattern.sign, weight, tokens_[at].begin, tokens_[last].end});
}

void Speech::find_at(std::size_t at) {
  const Lexicon& known = lexicon();
  const Roles roles = tokens_[at].roles, ahead = tokens_[at].ahead;
  if ((roles & (kModel | kAi)) != 0) match_call(at);
  Roles bits = roles & known.first_roles();
  if (bits == 0 || ahead == 0) return;
  if (is_negated(at)) bits &= ~kAnyAct;  // "do not ignore ..."
  const bool order = is_order(at);
  for (; bits != 0; bits &= bits - 1) {
    for (const Pattern* pattern : known.beginning_with(static_cast<std::size_t>(std::countr_zero(bits)))) {
      const bool possible = (pattern->roles[1] & ahead) != 0 && (pattern->roles[2] == 0 || (pattern->roles[2] & ahead) != 0);
      if (possible) match(*pattern, at, order);
    }
  }
}

}  // namespace belljar::guard
