#include "detect/concealed.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "detect/work.h"

namespace belljar::detect {
namespace {

constexpr std::size_t kNear = 600;
constexpr std::string_view kOpens = "<!--", kCloses = "-->";
// What stands before the colon of a style, and behind it.
struct Style {
  std::string_view name, value;
};
constexpr Style kStyles[] = {{"display", "none"}, {"display", " none"},     {"font-size", "0"},
                             {"font-size", " 0"}, {"visibility", "hidden"}, {"opacity", "0"},
                             {"color", "white"},  {"color", "#fff"},        {"[//]", " #"}};

}  // namespace

Concealed::Concealed(std::string_view text) {
  count_steps(3 * text.size());
  for (std::size_t i = text.find('<'); i != std::string_view::npos; i = text.find('<', i + 1)) {
    if (text.substr(i).starts_with(kOpens)) opened_.push_back({i, i + kOpens.size()});
  }
  for (std::size_t i = text.find('>'); i != std::string_view::npos; i = text.find('>', i + 1)) {
    if (text.substr(0, i + 1).ends_with(kCloses)) closed_.push_back({i + 1 - kCloses.size(), i + 1});
  }
  for (std::size_t i = text.find(':'); i != std::string_view::npos; i = text.find(':', i + 1)) {
    for (const Style& style : kStyles) {
      if (text.substr(0, i).ends_with(style.name) && text.substr(i + 1).starts_with(style.value))
        styles_.push_back({i - style.name.size(), i + 1 + style.value.size()});
    }
  }
}

// The last that ends before `at`, or none.
const Concealed::Mark* Concealed::last_before(const Marks& marks, std::size_t at) noexcept {
  const auto after = std::ranges::partition_point(marks, [&](const Mark& mark) { return mark.end <= at; });
  return after == marks.begin() ? nullptr : &*(after - 1);
}

bool Concealed::at(std::size_t at) const noexcept {
  const std::size_t from = at - std::min(at, kNear);
  const Mark* const opened = last_before(opened_, at);
  if (opened != nullptr && opened->begin >= from) {
    const Mark* const closed = last_before(closed_, at);
    if (closed == nullptr || closed->begin < opened->begin) return true;
  }
  const Mark* const style = last_before(styles_, at);
  return style != nullptr && style->begin >= from;
}

}  // namespace belljar::detect
