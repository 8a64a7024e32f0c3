// What a text quotes: closed quotations and blocks between fences, and what stands beside them. Where that speaks about attacks the
// quotation is excused, and nothing else is, however much a text talks about attacks: whoever writes an attack can write such talk
// as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace belljar::detect {

// Of normalised text (normal.h), which outlives it. Values of JSON, YAML and logs are data and no quotations.
class Quotations {
 public:
  explicit Quotations(std::string_view text);

  std::size_t size() const noexcept { return spans_.size(); }  // and the first is none
  // In which one `at` stands, whether the sentence speaks about it or not; none: 0. `from`: the answer for a place before it.
  std::uint32_t around(std::size_t at) const noexcept;
  std::uint32_t around(std::size_t at, std::uint32_t& from) const noexcept {
    while (from + 1 < spans_.size() && spans_[from + 1].begin <= at) ++from;
    return at < spans_[from].end ? from : 0;
  }
  std::size_t begin_of(std::uint32_t quotation) const noexcept { return spans_[quotation].begin; }
  std::size_t end_of(std::uint32_t quotation) const noexcept { return spans_[quotation].end + std::size_t{1}; }
  // What stands at `from` and at `to` behind it may speak about each other: near, and no line between them ends what it says.
  bool joins(std::size_t from, std::size_t to) const noexcept;
  // The line that introduces it, from where to where: of a block between fences, or of items that are each a quotation, the one
  // above that ends with a colon. Empty: there is none.
  std::pair<std::size_t, std::size_t> introduction_of(std::uint32_t quotation) const noexcept;

 private:
  struct Span {
    std::uint32_t begin = 0, end = 0;  // of the marks; `end` is the place of the closing one
  };
  void add_all(char mark);
  void add_fences();
  bool is_value(std::size_t begin) const noexcept;

  std::string_view text_;
  std::vector<Span> spans_{{}};  // by place, none within another; the first is none
};

}  // namespace belljar::detect
