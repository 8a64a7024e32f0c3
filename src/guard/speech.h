// What the words of a text say together, as far as the rows of signs.h know: orders, and whom they address. Of normalised text
// (normal.h), in one pass.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "guard/signs.h"

namespace belljar::guard {

// A combination that was found, in bytes of the text.
struct Saying {
  std::string_view sign;
  int weight = 0;
  std::size_t begin = 0, end = 0;
};

class Speech {
 public:
  explicit Speech(std::string_view text);

  const std::vector<Saying>& sayings() const noexcept { return found_; }
  // Words that say the text is about attacks.
  int talk() const noexcept { return talk_; }

 private:
  struct Token {  // a word that means something; the others only count as distance
    Roles roles;
    Roles ahead;  // of the words after it in the sentence
    std::uint32_t begin, end, position;
  };
  void tokenise();
  bool ends_sentence(std::size_t at) const noexcept;
  void take(Roles roles, std::size_t begin, std::size_t end);
  void end_sentence();
  void join_neighbours();
  void find_at(std::size_t at);
  bool beside(std::size_t left, std::size_t right) const noexcept;
  std::size_t next(std::size_t from, Roles roles, int gap) const noexcept;
  bool is_order(std::size_t at) const noexcept;
  bool is_negated(std::size_t at) const noexcept;
  bool begins_clause(std::size_t at) const noexcept;
  bool has_destination(std::size_t at) const noexcept;
  int called(std::size_t at) const noexcept;
  void match(const Pattern& pattern, std::size_t at, bool order);
  void match_call(std::size_t at);

  std::string_view text_;
  std::vector<Token> tokens_;  // of the sentence
  std::vector<Saying> found_;
  std::uint32_t position_ = 0;
  std::uint32_t led_ = 0;  // the place behind a word that leads to an order
  int talk_ = 0;
};

}  // namespace belljar::guard
