// Pairs of quotation marks are found in one pass for each kind of mark.
#include "detect/quotations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace belljar::detect {
namespace {

constexpr std::size_t kLongest = 1000;  // bytes of a quotation
constexpr std::size_t kNear = 240;      // bytes on either side that may speak about it

bool in_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '\'' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_blank(char c) noexcept { return c == ' ' || c == '\n'; }

}  // namespace

Quotations::Quotations(std::string_view text) : text_(text) {
  for (const char mark : {'"', '`', '\''}) add_all(mark);
  std::ranges::stable_sort(spans_, {}, &Span::begin);
  // What stands within another, or begins in it, is part of it.
  std::uint32_t end = 0;
  std::erase_if(spans_, [&](const Span& span) {
    if (span.end != 0 && span.begin < end) return true;
    end = std::max(end, span.end);
    return false;
  });
}

void Quotations::add_all(char mark) {
  std::size_t open = std::string_view::npos;
  for (std::size_t at = text_.find(mark); at != std::string_view::npos; at = text_.find(mark, at + 1)) {
    const char before = at > 0 ? text_[at - 1] : ' ', after = at + 1 < text_.size() ? text_[at + 1] : ' ';
    const bool may_open = !in_word(before) && !is_blank(after), may_close = !is_blank(before) && !in_word(after);
    const bool is_near = open != std::string_view::npos && at - open <= kLongest;
    if (may_close && is_near && text_.substr(open, at - open).find("\n\n") == std::string_view::npos) {
      if (!is_value(open)) spans_.push_back({static_cast<std::uint32_t>(open), static_cast<std::uint32_t>(at)});
      open = std::string_view::npos;
    } else if (may_open) {
      open = at;
    }
  }
}

// Behind `"key":`, `key:` at the begin of a line, `key=`; of code (`name = "text"`) it is a quotation.
bool Quotations::is_value(std::size_t begin) const noexcept {
  std::size_t i = begin;
  while (i > 0 && text_[i - 1] == ' ') --i;
  if (i == 0 || (text_[i - 1] != ':' && text_[i - 1] != '=')) return false;
  if (text_[i - 1] == '=') return i == begin;
  if (i == 1 || text_[i - 2] == '"' || text_[i - 2] == '\'') return true;
  constexpr std::size_t kKey = 40;
  for (std::size_t k = --i; k > 0 && i - k < kKey; --k) {
    const char c = text_[k - 1];
    if (c == '\n' || c == '{' || c == ',') return true;
    if (c == ' ') return std::string_view("\n-#*/{,").find(k > 1 ? text_[k - 2] : '\n') != std::string_view::npos;
  }
  return i <= kKey;
}

std::uint32_t Quotations::around(std::size_t at) const noexcept {
  const auto after = std::ranges::partition_point(spans_, [&](const Span& span) { return span.begin <= at; });
  auto from = static_cast<std::uint32_t>(after - spans_.begin() - 1);  // the first is at the begin of every text
  return around(at, from);
}

// A line that a paragraph is broken into ends in the middle of what it says; what ends with its line speaks for itself.
bool Quotations::joins(std::size_t from, std::size_t to) const noexcept {
  if (to - from > kNear) return false;
  const std::string_view between = text_.substr(from, to - from);
  for (std::size_t at = between.find('\n'); at != std::string_view::npos; at = between.find('\n', at + 1)) {
    const char last = from + at > 0 ? text_[from + at - 1] : '\n';
    if (!in_word(last) && last != ',' && last != ':' && last != ' ') return false;
  }
  return true;
}

}  // namespace belljar::detect
