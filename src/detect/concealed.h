// Where a text is not shown to who looks at it: inside an HTML comment, or behind the style of an element that nobody sees.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace belljar::detect {

// Of normalised text (normal.h). The marks are looked for once, by their rare bytes: the signs that ask are many, the marks few.
class Concealed {
 public:
  Concealed() = default;
  explicit Concealed(std::string_view text);
  // In the 600 bytes before `at` a comment is opened and not closed, or a style that hides stands.
  bool at(std::size_t at) const noexcept;

 private:
  struct Mark {
    std::size_t begin = 0, end = 0;
  };
  using Marks = std::vector<Mark>;  // by place
  static const Mark* last_before(const Marks& marks, std::size_t at) noexcept;

  Marks opened_, closed_, styles_;
};

}  // namespace belljar::detect
