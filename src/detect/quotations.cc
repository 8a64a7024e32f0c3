// Pairs of quotation marks are found in one pass for each kind of mark.
#include "detect/quotations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "detect/work.h"

namespace belljar::detect {
namespace {

constexpr std::size_t kLongest = 1000;  // bytes of a quotation
constexpr std::size_t kNear = 240;      // bytes on either side that may speak about it

bool in_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '\'' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_wide(char c) noexcept { return static_cast<unsigned char>(c) >= 0xE3 && static_cast<unsigned char>(c) <= 0xE9; }
bool is_blank(char c) noexcept { return c == ' ' || c == '\n'; }

}  // namespace

Quotations::Quotations(std::string_view text) : text_(text) {
  count_steps(4 * text.size());
  add_fences();
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
    // Chinese has no blanks beside its quotation marks.
    const bool wide_before = at >= 3 && is_wide(text_[at - 3]) && static_cast<unsigned char>(before) >= 0x80;
    const bool wide_after = is_wide(after);
    const bool may_open = (wide_before || !in_word(before)) && !is_blank(after),
               may_close = !is_blank(before) && (wide_after || !in_word(after));
    const bool is_near = open != std::string_view::npos && at - open <= kLongest;
    if (may_close && is_near) count_steps(at - open);
    if (may_close && is_near && text_.substr(open, at - open).find("\n\n") == std::string_view::npos) {
      if (!is_value(open)) spans_.push_back({static_cast<std::uint32_t>(open), static_cast<std::uint32_t>(at)});
      open = std::string_view::npos;
    } else if (may_open) {
      open = at;
    }
  }
}

// A block of code of Markdown, which is closed.
void Quotations::add_fences() {
  std::size_t open = std::string_view::npos;
  for (std::size_t at = text_.find("```"); at != std::string_view::npos;) {
    const bool begins_line = at == 0 || text_[at - 1] == '\n';
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    const bool closes = open != std::string_view::npos && at + 3 == end;
    if (begins_line && closes && at - open <= kLongest) {
      spans_.push_back({static_cast<std::uint32_t>(open), static_cast<std::uint32_t>(end - 1)});
      open = std::string_view::npos;
    } else if (begins_line) {
      open = closes ? std::string_view::npos : at;
    }
    at = end < text_.size() ? text_.find("```", end) : std::string_view::npos;
  }
}

std::pair<std::size_t, std::size_t> Quotations::introduction_of(std::uint32_t quotation) const noexcept {
  constexpr std::size_t kItems = 12;  // of a list
  constexpr std::string_view kBeforeItem = " -*0123456789.)#";
  const std::size_t begin = begin_of(quotation);
  const std::string_view beside = text_.substr(begin - std::min(begin, kNear), std::min(begin, kNear));
  std::size_t line = begin - beside.size() + (beside.rfind('\n') + 1);  // npos + 1: no line ends near
  if (text_.substr(line, begin - line).find_first_not_of(kBeforeItem) != std::string_view::npos) return {};
  for (std::size_t item = 0; item < kItems && line > 0; ++item) {
    std::size_t end = line - 1;
    if (end > 0 && text_[end - 1] == '\n') --end;  // an empty line between
    const std::string_view before = text_.substr(end - std::min(end, kNear), std::min(end, kNear));
    line = end - before.size() + (before.rfind('\n') + 1);
    const std::string_view said = text_.substr(line, end - line);
    count_steps(before.size());
    if (said.ends_with(':')) return {line, end};
    const std::size_t first = said.find_first_not_of(kBeforeItem);
    const char mark = first == std::string_view::npos ? '\0' : said[first];
    if (mark != '"' && mark != '`' && mark != '\'') return {};  // another item that is a quotation
  }
  return {};
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
    if (c == '\n' || c == '{') return true;
    // `{a: 1, text: "..."}`, and no sentence that says ", for example: "...""
    if (c == ',')
      return k > 1 && (!in_word(text_[k - 2]) ||
                       text_.substr(k - std::min(k, kNear), std::min(k, kNear)).find('{') != std::string_view::npos);
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
  count_steps(between.size());
  for (std::size_t at = between.find('\n'); at != std::string_view::npos; at = between.find('\n', at + 1)) {
    const char last = from + at > 0 ? text_[from + at - 1] : '\n';
    if (!in_word(last) && last != ',' && last != ':' && last != ' ') return false;
  }
  return true;
}

}  // namespace belljar::detect
