// What the words of a text say together, as far as the rows of signs.h know: orders, and whom they address. Of normalised text
// (normal.h), in one pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detect/addresses.h"
#include "detect/model.h"
#include "detect/quotations.h"
#include "detect/role_net.h"
#include "detect/signs.h"
#include "detect/vocabulary.h"

namespace belljar::detect {

// A row of patterns.cc that matched, in bytes of the text.
struct SignMatch {
  std::string_view sign;
  int weight = 0;
  std::size_t begin = 0, end = 0;
};

// What the model looks at, for who makes its weights.
struct SentenceFeatures {
  std::vector<Feature> features;
  std::vector<std::string> names;  // of words and pairs of words; empty for the others
  RoleBits bits;                   // without what is only quoted and talked about
};
constexpr std::size_t kMostTogether = 4;  // lines or sentences that the model looks at as one

constexpr std::string_view kLikely = "likely-instruction";  // the model says so

class Speech {
 public:
  // `log` gets each sentence's features when there is one.
  explicit Speech(std::string_view text, std::vector<SentenceFeatures>* log = nullptr);

  const std::vector<SignMatch>& matches() const noexcept { return found_; }
  // From `begin` to `end` stands what is only quoted, in a text that speaks about attacks beside it.
  bool excuses(std::size_t begin, std::size_t end) const;
  // The model finds nothing in the sentences from `begin` to `end` and the next: rows that do are rather mistaken.
  bool doubts(std::size_t begin, std::size_t end) const;

 private:
  struct Token {  // a word that means something; the others only count as distance
    Roles roles;
    Roles weighed;  // for the model: those, and more
    Roles ahead;    // of the words after it in the sentence
    std::uint32_t begin, end, position;
  };
  void tokenise();
  bool ends_sentence(std::size_t at) const noexcept;
  void add_token(Meaning meaning, std::size_t begin, std::size_t end);
  bool is_role_tag(const Token& token) const noexcept;
  bool is_possession(std::size_t begin, std::size_t end) const noexcept;
  void end_sentence();
  void join_neighbours();
  void find_at(std::size_t at);
  bool adjacent(std::size_t left, std::size_t right) const noexcept;
  std::size_t next(std::size_t from, Roles roles, int gap) const noexcept;
  bool is_order(std::size_t at) const noexcept;
  bool is_negated(std::size_t at) const noexcept;
  bool begins_clause(std::size_t at) const noexcept;
  bool speaks_to_reader(std::size_t at, bool order) const noexcept;
  bool has_destination(std::size_t at);
  bool is_key(std::size_t at) const noexcept;
  bool is_name(std::size_t at) const noexcept;
  bool is_in_key(std::size_t at) const noexcept;
  bool is_of_protocol(std::size_t at) const noexcept;
  bool is_login(std::size_t at) const noexcept;
  bool is_in_name(std::size_t at) const noexcept;
  bool lists_another(std::size_t at) const noexcept;
  int called(std::size_t at) const noexcept;
  void match(const Pattern& pattern, std::size_t at, bool order);
  void match_call(std::size_t at);
  void match_tag(std::size_t at);

  // What the model makes of one sentence or a few that follow each other.
  struct Sentence {
    float score = 0;
    float quoted = 0;                                        // of that, what stands in a quotation
    std::uint32_t quotation = 0;                             // the last one that it has words of
    std::uint32_t first = 0, begin = 0, end = 0, words = 0;  // begin: of what is pointed at
    std::uint32_t line = 0;                                  // where the line begins that its first word is of
    std::uint32_t marks = 0;                                 // bits of Mark, between its words
    RoleBits plain;                                          // roles, orders and signs outside of quotations; marks of all of it
    std::uint32_t cited = 0;                                 // those in quotations: in `cited_`, 0: none
  };
  void count(FeatureKind kind, std::uint32_t id, std::string_view name = {});
  void count_word(std::size_t begin, std::size_t end, const KnownWord& word);
  void log_word(std::string_view word, std::uint32_t hash, std::uint32_t pair);
  std::uint32_t mark_at(std::size_t at) const noexcept;
  void count_marks();
  void count_roles();
  void count_sign(const SignMatch& match);
  void add_score(float weight) noexcept;
  RoleBits& cited_of(Sentence& sentence);
  void close_sentence();
  void trim_log();
  bool is_talked_about(std::uint32_t quotation) const;
  bool find_talk(std::uint32_t quotation) const;
  void judge_all();
  float score_of(const Sentence& sentence) const;
  RoleBits bits_of(const Sentence& sentence) const;
  bool has_roles(const Sentence& sentence) const noexcept;
  float best_ending_at(std::size_t sentence) const;

  std::string_view text_;
  Quotations quotations_;
  Addresses addresses_;
  mutable std::vector<signed char> talked_about_;     // of a quotation that was asked for: 1 or -1
  std::vector<std::uint32_t> talk_;                   // where words about attacks stand, outside of quotations
  std::uint32_t quotation_ = 0, last_quotation_ = 0;  // that the newest word stands in, or 0; the last one before it
  std::vector<Token> tokens_;                         // of the sentence
  std::vector<SignMatch> found_;
  std::uint32_t position_ = 0;
  std::uint32_t line_ = 0, marks_ = 0;  // where this line begins; bits of Mark since the last word
  std::uint32_t destination_of_ = ~0U;  // the word that was asked for last, by its place in the text
  bool has_destination_ = false;        // and the answer
  std::uint32_t led_ = 0;               // the place behind a word that leads to an order
  const Weights& weights_ = weights();
  const RoleNet& net_ = role_net();
  std::vector<SentenceFeatures>* log_;
  Sentence sentence_ = {};  // this one
  std::vector<Sentence> sentences_;
  std::vector<RoleBits> cited_ = {{}};
  struct Counted {
    Roles roles = 0, orders = 0, negated = 0, pairs[64] = {};
  };
  Counted counted_once_[2];      // in this sentence; of what is quoted, the second
  std::uint32_t last_word_ = 0;  // its hash
  std::string_view last_text_;
  std::size_t counted_ = 0;                           // of `found_`
  std::vector<std::vector<bool>> log_quoted_ = {{}};  // of each sentence's features
};

}  // namespace belljar::detect
