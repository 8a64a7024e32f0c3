// One pass over a text, a sentence at a time.
//
// A word is looked up once for the roles it can have (vocabulary.h), and only words with roles are kept: all others count as
// distance. At the end of a sentence two readers look at the same words. `find_at` tries the patterns that begin with a role of
// each word; the roles of all that follow, gathered from behind, say beforehand which patterns cannot match. `count_roles` and its
// kind add up what the model weighs: roles, pairs of roles in their order, marks between the words, and the patterns that were
// found.
//
// What tells an instruction from a description is whether its verb is spoken as an order: it begins a clause, or follows a word
// that leads to one ("please", "then"), or has the form of an order in its language. A parser of sentences would know more, for
// fifteen languages and half a sentence in a table cell it does not exist.
//
// The model sums log-odds. A sentence is weighed alone or with the three before it, so an attack that is spread over four is found
// and one that is diluted by many harmless ones is not lost among them. Nothing around it excuses it but the quotation marks that
// it stands in (quotations.h).
#include "detect/speech.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "detect/signs.h"
#include "detect/vocabulary.h"
#include "detect/work.h"

namespace belljar::detect {
namespace {

struct ByteSet {
  bool is[256] = {};
  constexpr explicit ByteSet(std::string_view bytes) {
    for (const char c : bytes) is[static_cast<unsigned char>(c)] = true;
  }
  constexpr bool has(char c) const noexcept { return is[static_cast<unsigned char>(c)]; }
};
constexpr ByteSet kBeforeClause(" *\"'`-#/<({[_@"), kEndsClause("\n!?)]}"), kEndsPart(".:,;=|"), kBeginsItem("\n-#*|<["),
    kEndsLine(">]");
constexpr ByteSet kNaming("abcdefghijklmnopqrstuvwxyz0123456789-_./:");  // of a name without blanks
constexpr ByteSet kMarking(":@{<\"`=;$|-.~");                            // what a mark of a sentence begins with

enum Kind : unsigned char { kOther, kWord, kWide, kStop, kCode, kColon, kOpen, kAngle, kLine };
struct Kinds {
  Kind of[256];
  constexpr Kinds() : of{} {
    for (int c = 0; c < 256; ++c) {
      const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '\'' || c >= 0x80;
      of[c] = c >= 0xE3 && c <= 0xE9 ? kWide : word ? kWord : kOther;
    }
    of['.'] = of['!'] = of['?'] = kStop;
    of['{'] = of['}'] = of[';'] = kCode;
    of[':'] = kColon, of['('] = kOpen, of['>'] = kAngle, of['\n'] = kLine;
  }
};
constexpr Kinds kKinds;

Kind kind(char c) noexcept { return kKinds.of[static_cast<unsigned char>(c)]; }
bool is_number(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_wide(char c) noexcept { return kind(c) == kWide; }  // the first byte of a Chinese or Japanese letter
bool is_word(char c) noexcept { return kind(c) == kWord || kind(c) == kWide; }
bool is_gap(char c) noexcept { return c == ' ' || c == '\n' || static_cast<unsigned char>(c) >= 0x80; }
bool is_new(Roles& known, std::uint32_t bit) noexcept {
  const bool found = (known & role(bit)) == 0;
  known |= role(bit);
  return found;
}

constexpr std::string_view kStart = "^";  // stands before the first word of a sentence
std::uint32_t bit_of(Mark mark) noexcept { return 1U << static_cast<unsigned>(mark); }

}  // namespace

Speech::Speech(std::string_view text, std::vector<SentenceFeatures>* log)
    : text_(text), quotations_(text), addresses_(text), log_(log) {
  constexpr std::size_t kUsual = 64;  // bytes of a sentence or a line
  sentences_.reserve(text.size() / kUsual);
  if (log_ != nullptr) log_->emplace_back();
  tokenise();
  end_sentence();
  if (log_ != nullptr) trim_log();
  judge_all();
}

// A sentence at a time: its words are let go of; of each sentence a few numbers stay, for those around it.
void Speech::end_sentence() {
  if (tokens_.size() > 1) {
    join_neighbours();
    for (std::size_t i = tokens_.size(); i-- > 1;) tokens_[i - 1].ahead = tokens_[i].ahead | tokens_[i].roles;
    for (std::size_t at = 0; at < tokens_.size(); ++at) find_at(at);
  }
  close_sentence();
  for (; counted_ < found_.size(); ++counted_) count_sign(found_[counted_]);
  tokens_.clear();
  led_ = 0;
}

void Speech::add_token(Meaning meaning, std::size_t begin, std::size_t end) {
  ++position_;
  if ((meaning.weighed & kMust) != 0 && is_possession(begin, end)) meaning.roles &= ~kMust, meaning.weighed &= ~kMust;
  Roles roles = meaning.roles;
  if (meaning.weighed == 0) return;
  if ((meaning.weighed & kTalk) != 0 && quotation_ == 0) talk_.push_back(static_cast<std::uint32_t>(begin));
  const bool led = led_ == position_;
  if ((roles & kLead) != 0) led_ = position_ + 1;
  if (meaning.weighed == kLead && !is_wide(text_[begin])) return;  // of use to the next word only, and there are many
  if (led) roles |= kLed;
  tokens_.push_back({roles, meaning.weighed, 0, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), position_});
  count_roles();
}

// The word names a speaker and stands first in a tag: [system], (system_message), <admin note>.
bool Speech::is_role_tag(const Token& token) const noexcept {
  constexpr Roles kNamesSpeaker = kOffice | kModel | kAi | kOrders | kPrompt | kNotice;
  constexpr std::string_view kOpens = "[<{(*|#", kCloses = "]>})*|#";
  constexpr std::size_t kMost = 20;
  if ((token.weighed & kNamesSpeaker) == 0 || token.begin == 0 || kOpens.find(text_[token.begin - 1]) == std::string_view::npos)
    return false;
  std::size_t at = token.end;
  while (at < text_.size() && at < token.end + kMost && (is_word(text_[at]) || text_[at] == ' ' || text_[at] == '-')) ++at;
  count_steps(at - token.end);
  return at < text_.size() && kCloses.find(text_[at]) != std::string_view::npos;
}

// "The agent has access" orders nothing, "the agent has to go" does.
bool Speech::is_possession(std::size_t begin, std::size_t end) const noexcept {
  const std::string_view word = text_.substr(begin, end - begin);
  return (word == "has" || word == "have" || word == "needs") && !text_.substr(end).starts_with(" to ");
}

// --- the model (model.h) ---------------------------------------------------------------------------------------------------------

void Speech::count(FeatureKind kind, std::uint32_t id, std::string_view name) {
  add_score(weights_.of({kind, id}));
  if (log_ == nullptr) return;
  log_->back().features.push_back({kind, id});
  log_->back().names.emplace_back(name);
  log_quoted_.back().push_back(quotation_ != 0);
}

// Of the line that it begins in, which may be closed long since.
void Speech::count_sign(const SignMatch& match) {
  const auto after = std::ranges::partition_point(sentences_, [&](const Sentence& one) { return one.first <= match.begin; });
  if (after == sentences_.begin()) return;
  Sentence& line = *(after - 1);
  const std::uint32_t id = hash_of(match.sign), quotation = quotations_.around(match.begin);
  const float weight = weights_.of({FeatureKind::kSign, id});
  line.score += weight;
  (quotation != 0 ? cited_of(line) : line.plain).signs |= sign_bit(match.sign);
  if (quotation != 0) line.quoted += weight, line.quotation = quotation;
  if (log_ == nullptr) return;
  const auto at = static_cast<std::size_t>(after - 1 - sentences_.begin());
  (*log_)[at].features.push_back({FeatureKind::kSign, id}), (*log_)[at].names.emplace_back(match.sign);
  log_quoted_[at].push_back(quotation != 0);
}

RoleBits& Speech::cited_of(Sentence& sentence) {
  if (sentence.cited == 0) sentence.cited = static_cast<std::uint32_t>(cited_.size()), cited_.emplace_back();
  return cited_[sentence.cited];
}

void Speech::add_score(float weight) noexcept {
  sentence_.score += weight;
  if (quotation_ != 0) sentence_.quoted += weight;
}

void Speech::count_word(std::size_t begin, std::size_t end, const KnownWord& word) {
  constexpr float kSaysNothing = 0.5F;
  constexpr std::uint32_t kLongest = 48;  // a table or code without stops must not drown what it holds
  if (sentence_.words >= kLongest) close_sentence();
  Sentence& sentence = sentence_;
  // A sentence goes on over the end of a line; lines that say nothing before one that does are left out of what is pointed at.
  const bool new_line = begin > 0 && text_[begin - 1] == '\n' && sentence.score < kSaysNothing;
  if (sentence.words == 0) sentence.first = static_cast<std::uint32_t>(begin), sentence.line = line_;
  else sentence.marks |= marks_;
  marks_ = 0;
  if (sentence.words++ == 0 || new_line) sentence.begin = static_cast<std::uint32_t>(begin);
  sentence.end = static_cast<std::uint32_t>(end);
  quotation_ = quotations_.around(begin, last_quotation_);
  if (quotation_ != 0) sentence.quotation = quotation_;
  if (sentence.words == 1) last_text_ = kStart, last_word_ = hash_of(kStart);
  if (is_number(text_[begin])) return;  // hundreds of them, as in a drawing, would add up to something
  add_score(word.weight);
  const std::uint32_t pair = hash_of_two(last_word_, word.hash);
  add_score(weights_.of({FeatureKind::kTwoWords, pair}));
  last_word_ = word.hash;
  if (log_ == nullptr) return;
  const std::string_view spelled = known_word(text_.substr(begin, end - begin));
  log_word(spelled, word.hash, pair);
  last_text_ = spelled;
}

void Speech::log_word(std::string_view word, std::uint32_t hash, std::uint32_t pair) {
  SentenceFeatures& log = log_->back();
  const auto add = [&](FeatureKind kind, std::uint32_t id, std::string_view name) {
    log.features.push_back({kind, id}), log.names.emplace_back(name), log_quoted_.back().push_back(quotation_ != 0);
  };
  add(FeatureKind::kWord, hash, word);
  if (const std::string_view stem = stem_of(word); !stem.empty()) add(FeatureKind::kStem, hash_of(stem), stem);
  add(FeatureKind::kTwoWords, pair, std::string(last_text_) + " " + std::string(word));
}

// Of the newest word: its roles, whether it is an order or negated, and each earlier word of the last nine with it. Once in a
// sentence: a list or a log that says one thing again and again says no more than that.
void Speech::count_roles() {
  constexpr std::uint32_t kNear = 9;
  constexpr Roles kCounted = ~(kLed | kLanguage | kMd | kLead);
  const std::size_t at = tokens_.size() - 1;
  const Token& token = tokens_[at];
  Counted& counted = counted_once_[quotation_ != 0 ? 1 : 0];
  if (is_role_tag(token)) sentence_.marks |= bit_of(Mark::kRoleTag);
  const bool order = (token.weighed & kAnyAct) != 0 && is_order(at), negated = is_negated(at);
  Roles earlier = 0;
  for (std::size_t i = at; i-- > 0 && token.position - tokens_[i].position <= kNear;) {
    earlier |= tokens_[i].weighed & kCounted;
    count_steps(1);
  }
  for (Roles bits = token.weighed & kCounted; bits != 0; bits &= bits - 1) {
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
    if (is_new(counted.roles, bit)) count(FeatureKind::kRole, bit);
    if (order && (kAnyAct & role(bit)) != 0 && is_new(counted.orders, bit)) count(FeatureKind::kOrder, bit);
    if (negated && is_new(counted.negated, bit)) count(FeatureKind::kNegated, bit);
    Roles others = earlier & ~counted.pairs[bit];
    counted.pairs[bit] |= others;
    for (; others != 0; others &= others - 1)
      count(FeatureKind::kPair, static_cast<std::uint32_t>(std::countr_zero(others)) * 64 + bit);
  }
}

// What the byte at `at`, between two words of a sentence, says besides them.
std::uint32_t Speech::mark_at(std::size_t at) const noexcept {
  const char before = at > 0 ? text_[at - 1] : ' ', after = at + 1 < text_.size() ? text_[at + 1] : ' ';
  switch (text_[at]) {
    case ':':
      return text_.substr(at, 3) == "://" ? bit_of(Mark::kAddress) : 0;
    case '@':
      return is_word(after) ? bit_of(Mark::kAddress) : 0;
    case '{':
    case '<':
      return is_word(after) ? bit_of(Mark::kToBeFilled) : 0;
    case '"':
    case '`':
      return bit_of(Mark::kQuoted);
    case '=':
    case ';':
      return bit_of(Mark::kCode);
    case '$':
    case '|':
      return bit_of(Mark::kShell);
    case '-':
      return before == ' ' && after != ' ' ? bit_of(Mark::kShell) : 0;
    case '.':
      return before == ' ' ? bit_of(Mark::kHomeFile) : 0;
    case '~':
      return after == '/' ? bit_of(Mark::kHomeFile) : 0;
    default:
      return 0;
  }
}

// Each of what a sentence has besides its words, once.
void Speech::count_marks() {
  constexpr std::size_t kSeen = 200;  // of a line before the sentence: more is not looked at
  const std::size_t start = sentence_.first, from = start - std::min(start, kSeen);
  const std::string_view said = text_.substr(start, sentence_.end - start);
  count_steps(kSeen);
  const std::string_view before = text_.substr(from, start - from);
  const std::string_view line = before.substr(std::max<std::size_t>(sentence_.line, from) - from);
  std::uint32_t marks = sentence_.marks;
  const auto mark = [&](Mark which) { marks |= bit_of(which); };
  const auto first = std::ranges::find_if(said, [](char c) { return c == ' ' || c == ':' || c == ']'; });
  if (first != said.end() && *first != ' ') mark(Mark::kKey);
  if (sentence_.quotation != 0) mark(Mark::kQuoted);
  if (before.ends_with("<!--") || before.ends_with("<!-- ")) mark(Mark::kHidden);
  if (line.starts_with("//") || line.starts_with("#") || line.starts_with("*") || line.starts_with("/*")) mark(Mark::kComment);
  sentence_.plain.marks = marks;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Mark::kCount); ++i) {
    if (((marks >> i) & 1U) != 0) count(FeatureKind::kMark, i);
  }
}

void Speech::close_sentence() {
  if (sentence_.words == 0) return;
  count(FeatureKind::kSentence, 0);
  count_marks();
  const auto note = [](RoleBits& bits, const Counted& counted) {
    bits.roles = counted.roles, bits.orders = counted.orders, bits.negated = counted.negated;
  };
  note(sentence_.plain, counted_once_[0]);
  if (counted_once_[1].roles != 0) note(cited_of(sentence_), counted_once_[1]);
  if (log_ != nullptr) log_->emplace_back(), log_quoted_.emplace_back();
  sentences_.push_back(sentence_);
  sentence_ = {};
  for (Counted& counted : counted_once_) {
    for (; counted.roles != 0; counted.roles &= counted.roles - 1) counted.pairs[std::countr_zero(counted.roles)] = 0;
    counted.orders = counted.negated = 0;
  }
}

// The model learns from what it will see.
void Speech::trim_log() {
  for (std::size_t at = 0; at < sentences_.size(); ++at) {
    (*log_)[at].bits = bits_of(sentences_[at]);
    if (!is_talked_about(sentences_[at].quotation)) continue;
    SentenceFeatures& log = (*log_)[at];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < log.features.size(); ++i) {
      if (!log_quoted_[at][i]) log.features[kept] = log.features[i], log.names[kept++] = log.names[i];
    }
    log.features.resize(kept), log.names.resize(kept);
  }
}

// --- words and sentences ---------------------------------------------------------------------------------------------------------

void Speech::tokenise() {
  WordCache words(text_);
  count_steps(text_.size());
  const char* const text = text_.data();
  for (std::size_t i = 0; i < text_.size();) {
    const Kind is = kind(text[i]);
    const std::size_t begin = i;
    if (is == kWord) {
      while (i < text_.size() && kind(text[i]) == kWord) ++i;
      const KnownWord word = words.of(begin, i);
      count_word(begin, i, word);
      add_token(word.meaning, begin, i);
    } else if (is == kWide) {
      Meaning meaning;
      const std::size_t size = vocabulary().longest(text_.substr(i, 32), meaning);
      i += size == 0 ? std::min<std::size_t>(3, text_.size() - i) : size;
      count_word(begin, i, know_word(text_.substr(begin, i - begin), meaning));
      add_token(meaning, begin, begin + (size == 0 ? 1 : size));
    } else {
      if (ends_sentence(i)) end_sentence();
      if (kMarking.has(text[i])) marks_ |= mark_at(i);
      if (is == kLine) {
        close_sentence();
        line_ = static_cast<std::uint32_t>(i + 1);
      }
      ++i;
    }
  }
}

// In code a brace, a call or a scope ends what belongs together.
bool Speech::ends_sentence(std::size_t at) const noexcept {
  const Kind is = kind(text_[at]);
  if (is == kOther) return false;
  const char after = at + 1 < text_.size() ? text_[at + 1] : '\n';
  if (is == kStop) return after == '"' || after == '<' || after == '[' || is_gap(after);
  if (is == kAngle) return at > 0 && text_[at - 1] == '|';  // <|end|>
  if (is == kColon) return after == ':';
  if (is == kOpen) return at > 0 && is_word(text_[at - 1]);
  return is == kCode || kBeginsItem.has(after) || (at > 0 && kEndsLine.has(text_[at - 1]));
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

bool Speech::adjacent(std::size_t left, std::size_t right) const noexcept {
  return tokens_[right].position - tokens_[left].position <= 1;
}

// The next word of these roles in the sentence, with at most `gap` words on the way; its index, or 0.
std::size_t Speech::next(std::size_t from, Roles roles, int gap) const noexcept {
  for (std::size_t i = from + 1;
       i < tokens_.size() && tokens_[i].position - tokens_[from].position <= static_cast<std::uint32_t>(gap); ++i) {
    count_steps(1);
    if ((tokens_[i].roles & roles) != 0) return i;
  }
  return 0;
}

// Nothing of the clause stands before it but quotes and the marks of lists, comments and keys. In code a point or a colon between
// two words ends no clause.
bool Speech::begins_clause(std::size_t at) const noexcept {
  std::size_t i = tokens_[at].begin;
  while (i > 0 && kBeforeClause.has(text_[i - 1])) --i;
  count_steps(tokens_[at].begin - i);
  if (i == 0 || kEndsClause.has(text_[i - 1])) return true;
  if (text_[i - 1] == '>') return i == 1 || text_[i - 2] != '-';
  const bool apart = i < tokens_[at].begin || static_cast<unsigned char>(text_[i]) >= 0x80;
  return apart && kEndsPart.has(text_[i - 1]);
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
  return at > 0 && adjacent(at - 1, at) && (tokens_[at - 1].roles & kNot) != 0;
}

bool Speech::has_destination(std::size_t at) {
  constexpr std::size_t kNear = 200;
  const std::uint32_t begin = tokens_[at].begin;
  if (std::exchange(destination_of_, begin) != begin)
    has_destination_ = addresses_.has_foreign(begin, std::min(begin + kNear, text_.size()));
  return has_destination_;
}

// `email: 'a@b.example'` names a field, `llm.call` and `"gpt-4o"` name a thing: none of them is spoken to anybody.
bool Speech::is_key(std::size_t at) const noexcept {
  const std::size_t end = tokens_[at].end;
  const std::string_view rest = text_.substr(end, 3);
  if (rest.empty()) return false;
  if (rest[0] == '=' || rest[0] == '_') return true;
  const bool closed = rest[0] == '"' || rest[0] == '\'' || rest[0] == '`';
  return closed && rest.size() > 1 && (rest[1] == ':' || rest[1] == '=');
}
bool Speech::is_name(std::size_t at) const noexcept {
  const Token& token = tokens_[at];
  const std::string_view rest = text_.substr(token.end, 48);
  if (rest.size() > 1 && rest[0] == '.' && is_word(rest[1])) return true;
  std::size_t begin = token.begin;
  while (begin > 0 && token.begin - begin < 32 && kNaming.has(text_[begin - 1])) --begin;
  const char opens = begin > 0 ? text_[begin - 1] : ' ';
  if (opens != '"' && opens != '\'' && opens != '`') return false;
  const auto* const closes = std::ranges::find_if(rest, [](char c) { return !kNaming.has(c); });
  return closes != rest.end() && *closes == opens;
}

// `user-agent`, `multi-agent`, `sub-agent`: a kind of program.
bool Speech::is_of_protocol(std::size_t at) const noexcept {
  const std::string_view before = text_.substr(0, tokens_[at].begin);
  return text_.substr(tokens_[at].begin).starts_with("agent") &&
         (before.ends_with("user-") || before.ends_with("multi-") || before.ends_with("sub-"));
}

// The word stands inside a JSON key of a few words: `"AI reply prefix": "..."` names a field and calls nobody.
bool Speech::is_in_key(std::size_t at) const noexcept {
  constexpr std::size_t kLongest = 60;
  constexpr std::string_view kEnds = "\".,:!?\n";
  count_steps(2 * kLongest);
  const std::size_t begin = tokens_[at].begin, from = begin - std::min(begin, kLongest);
  const std::string_view before = text_.substr(from, begin - from), rest = text_.substr(tokens_[at].end, kLongest);
  const std::size_t opens = before.find_last_of(kEnds), closes = rest.find_first_of(kEnds);
  return opens != std::string_view::npos && before[opens] == '"' && closes != std::string_view::npos && rest[closes] == '"' &&
         rest.substr(closes + 1).starts_with(":");
}

// Two models with a comma between.
bool Speech::lists_another(std::size_t at) const noexcept {
  if (at + 1 >= tokens_.size() || !adjacent(at, at + 1) || text_.substr(tokens_[at].end, 2) != ", ") return false;
  return (tokens_[at].roles & (kModel | kAi)) != 0 && (tokens_[at + 1].roles & (kModel | kAi)) != 0;
}

// How plainly the model at `at` is spoken to: it begins a clause, ends one with a colon, or stands behind "dear" or "to".
int Speech::called(std::size_t at) const noexcept {
  const Token& token = tokens_[at];
  const std::string_view rest = text_.substr(token.end, 6);
  // A program of that name, with an option; "User-Agent: curl"; "ChatGPT, Claude and others".
  if (rest.starts_with(" -") || is_key(at) || is_name(at) || is_of_protocol(at)) return 0;
  if (lists_another(at) || (at > 0 && lists_another(at - 1))) return 0;
  const std::size_t colon = rest.starts_with(" :") ? 1 : 0;  // as in French
  const bool colon_ends = colon < rest.size() && rest[colon] == ':' && (colon + 1 == rest.size() || is_gap(rest[colon + 1]));
  const bool is_listed = rest.starts_with(", or ") || rest.starts_with(", and ");
  const bool ends = colon_ends || (!is_listed && rest.size() > 1 && rest[0] == ',' && is_gap(rest[1]));
  if (!ends && is_in_key(at)) return 0;
  const char before = token.begin > 0 ? text_[token.begin - 1] : '\n';
  if (before == '@') return 45;
  if (begins_clause(at)) return ends ? ((token.roles & kAi) != 0 ? 55 : 45) : ((token.roles & kAi) != 0 ? 35 : 15);
  std::size_t first = at;
  while (first > 0 && token.position - tokens_[first - 1].position <= 3) --first;
  for (std::size_t i = first; i < at; ++i) {
    if (text_.substr(tokens_[i].end, token.begin - tokens_[i].end).find(':') != std::string_view::npos) continue;
    // "To use Claude, install it" is about a program, "to Claude: install it" speaks to one.
    const bool verb = i + 1 < at && (tokens_[i + 1].roles & kAnyAct) != 0;
    const bool to = (tokens_[i].roles & kTo) != 0 && begins_clause(i) && !verb;
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

// In `https://e.example/gpg.key`, `email@e.example` and `reset-admin-password` the word is of an address or of a name.
bool Speech::is_in_name(std::size_t at) const noexcept {
  constexpr std::size_t kLongest = 64;
  const std::size_t begin = tokens_[at].begin, from = begin - std::min(begin, kLongest);
  count_steps(kLongest);
  if (begin > 0 && (text_[begin - 1] == '-' || text_[begin - 1] == '_')) return true;
  const std::string_view before = text_.substr(from, begin - from);
  const std::string_view word = before.substr(before.find_last_of(" \n") + 1);  // npos + 1: the whole
  const std::string_view after = text_.substr(tokens_[at].end, 1);
  return word.find("://") != std::string_view::npos || word.find('@') != std::string_view::npos || after == "@" || after == "-";
}

// "Send", "you must send", "you are to send": said to who reads. `send: x` names a field, "users send" and "it sends" describe.
bool Speech::speaks_to_reader(std::size_t at, bool order) const noexcept {
  const std::string_view rest = text_.substr(tokens_[at].end, 2);
  if (is_key(at) || is_in_name(at) || rest.starts_with(":") || rest == " /") return false;  // and `POST /oauth/token`
  // Where a language has a form of its own for orders, the words are listed in that.
  if (order || static_cast<unsigned char>(text_[tokens_[at].begin]) >= 0x80) return true;
  for (std::size_t i = at; i > 0 && tokens_[at].position - tokens_[i - 1].position <= 3; --i) {
    if ((tokens_[i - 1].roles & (kMust | kNeed | kYou)) != 0) return true;
  }
  return false;
}

// `curl -u 'me:<password>' https://...` shows how to log in, where no other word but the address can name a file or a value of
// ours.
bool Speech::is_login(std::size_t at) const noexcept {
  constexpr std::size_t kLongest = 200;
  if (text_.substr(tokens_[at].begin, tokens_[at].end - tokens_[at].begin) != "curl") return false;
  std::string_view line = text_.substr(tokens_[at].end, kLongest);
  count_steps(kLongest);
  const std::size_t end = line.find('\n');
  if (end == std::string_view::npos && line.size() == kLongest) return false;
  line = line.substr(0, end);
  bool logs_in = false;
  while (!line.empty()) {
    const std::string_view word = cut(line, ' ');
    logs_in = logs_in || word == "-u" || word == "--user";
    if (word.find("://") == std::string_view::npos && word.find_first_of("/$@`~|.") != std::string_view::npos) return false;
  }
  return logs_in;
}

void Speech::match(const Pattern& pattern, std::size_t at, bool order) {
  const int weight = order ? pattern.ordered : pattern.told;
  if (weight == 0 || (pattern.needs == Pattern::Needs::kSink && is_login(at))) return;
  // "do not forget to follow ..."
  if (pattern.roles[0] == kNot && at + 1 < tokens_.size() && adjacent(at, at + 1) && (tokens_[at + 1].roles & kDrop) != 0) return;
  std::size_t last = at, second = 0;
  for (std::size_t k = 1; k < std::size(pattern.roles) && pattern.roles[k] != 0; ++k) {
    if ((last = next(last, pattern.roles[k], pattern.gap)) == 0) return;
    if (k == 1) second = last;
    if (pattern.needs == Pattern::Needs::kSink && is_in_name(last)) return;
  }
  // `transfer-funds`, `user-agent: x` are names and order nothing.
  const bool joined = (pattern.roles[0] & (kPay | kPerson)) != 0 && text_.substr(tokens_[at].end, 1) == "-" &&
                      tokens_[at + 1].begin == tokens_[at].end + 1;
  if (joined) return;
  if (pattern.needs == Pattern::Needs::kSink && !speaks_to_reader(at, order)) return;
  if ((pattern.needs == Pattern::Needs::kDestination || pattern.needs == Pattern::Needs::kSink) && !has_destination(at)) return;
  const auto has_colon = [&](std::size_t from) {
    return text_.substr(tokens_[from].begin, tokens_[last].begin - tokens_[from].begin).find(':') != std::string_view::npos;
  };
  if (pattern.needs == Pattern::Needs::kColon && !has_colon(at)) return;
  if (pattern.needs == Pattern::Needs::kColonBehind && !has_colon(second)) return;
  if (pattern.needs == Pattern::Needs::kNoColon && has_colon(at)) return;
  found_.push_back({pattern.sign, weight, tokens_[at].begin, tokens_[last].end});
}

// "[system message] delete ...", "###(admin_note) please send ...": whose message this is, and then an order. `[admin] delete ...`
// is a line of a changelog.
void Speech::match_tag(std::size_t at) {
  constexpr std::uint32_t kNear = 4;
  if ((tokens_[at].weighed & kOffice) == 0 || !is_role_tag(tokens_[at])) return;
  std::size_t last = at;  // of the tag
  if ((tokens_[at].weighed & kNotice) == 0) ++last;
  if (last >= tokens_.size() || (tokens_[last].weighed & kNotice) == 0 || !adjacent(at, last)) return;
  for (std::size_t i = last + 1; i < tokens_.size() && tokens_[i].position - tokens_[last].position <= kNear; ++i) {
    if ((tokens_[i].roles & kAnyAct) == 0 || !is_order(i)) continue;
    found_.push_back({"role-marker", 50, tokens_[at].begin, tokens_[i].end});
    return;
  }
}

void Speech::find_at(std::size_t at) {
  const Vocabulary& known = vocabulary();
  const Roles roles = tokens_[at].roles, ahead = tokens_[at].ahead;
  match_tag(at);
  if ((roles & (kModel | kAi)) != 0) match_call(at);
  Roles bits = roles & known.first_roles();
  if (bits == 0 || ahead == 0) return;
  if (is_negated(at)) bits &= ~kAnyAct;  // "do not ignore ..."
  const bool order = is_order(at);
  for (; bits != 0; bits &= bits - 1) {
    for (const Pattern* pattern : known.beginning_with(static_cast<std::size_t>(std::countr_zero(bits)))) {
      count_steps(1);
      const bool possible = (pattern->roles[1] & ahead) != 0 && (pattern->roles[2] == 0 || (pattern->roles[2] & ahead) != 0);
      if (possible) match(*pattern, at, order);
    }
  }
}

}  // namespace belljar::detect
