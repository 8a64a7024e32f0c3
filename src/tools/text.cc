#include "tools/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kLongest = 4;  // of a character, in bytes

bool is_continuation(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Length of the well-formed sequence at the front (RFC 3629, section 4); 0: there is none.
std::size_t sequence(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xC2 && first <= 0xDF   ? 2
                           : first >= 0xE0 && first <= 0xEF ? 3
                           : first >= 0xF0 && first <= 0xF4 ? 4
                                                            : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const unsigned char second = at(1);
  const bool fits = (first != 0xE0 || second >= 0xA0) && (first != 0xED || second < 0xA0) && (first != 0xF0 || second >= 0x90) &&
                    (first != 0xF4 || second < 0x90);
  return fits ? size : 0;
}

}  // namespace

std::size_t whole_characters(std::string_view text, std::size_t limit) noexcept {
  if (limit >= text.size()) return text.size();
  for (std::size_t back = 1; back <= 3 && back <= limit; ++back) {
    if (is_continuation(text[limit - back])) continue;
    const std::size_t size = sequence(text.substr(limit - back));
    return size > back && back < limit ? limit - back : limit;
  }
  return limit;
}

std::string_view from_whole_character(std::string_view text) noexcept {
  for (int i = 0; i < 3 && !text.empty() && is_continuation(text[0]); ++i) text.remove_prefix(1);
  return text;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t size = sequence(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::uint64_t characters(std::string_view text) noexcept {
  std::uint64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(sequence(text), 1));
  return count;
}

void CharacterCount::add(std::string_view piece) {
  bytes_ += piece.size();
  const std::string joined = rest_.empty() ? std::string() : rest_ + std::string(piece);
  std::string_view text = rest_.empty() ? piece : joined;
  while (!text.empty()) {
    const std::size_t size = sequence(text);
    if (size == 0 && text.size() < kLongest) break;  // what comes next decides
    text.remove_prefix(std::max<std::size_t>(size, 1));
    ++whole_;
  }
  rest_ = text;
}

std::string_view first_characters(std::string_view text, std::uint64_t count) noexcept {
  std::string_view rest = text;
  for (; count > 0 && !rest.empty(); --count) rest.remove_prefix(std::max<std::size_t>(sequence(rest), 1));
  return text.substr(0, text.size() - rest.size());
}

std::uint64_t utf16_length(std::string_view text) noexcept {
  std::uint64_t count = 0;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(sequence(text), 1);
    count += size == 4 ? 2 : 1;  // a surrogate pair
    text.remove_prefix(size);
  }
  return count;
}

std::string shorten(std::string_view text, std::size_t limit, std::string_view how) {
  if (text.size() <= limit) return std::string(text);
  const std::string_view head = text.substr(0, whole_characters(text, limit / 2));
  const std::string_view tail = from_whole_character(text.substr(text.size() - limit / 2));
  const std::string_view between = text.substr(head.size(), text.size() - head.size() - tail.size());
  return format("{}\n[... {} bytes, {} lines left out{}{} ...]\n{}", head, between.size(), std::ranges::count(between, '\n'),
                how.empty() ? "" : "; ", how, tail);
}

std::string words_of(const Error& error) {
  std::string text = "Error: " + error.what();
  if (error.errnum() != 0) text += format(": {}", std::strerror(error.errnum()));
  if (!error.reason().empty()) text += "\nreason: " + error.reason();
  if (!error.next().empty()) text += "\nnext: " + error.next();
  return text;
}

Lines split_lines(std::string_view text) {
  Lines result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result.lines.push_back(text.substr(0, end));
    result.ends_with_newline = end != std::string_view::npos;
    text.remove_prefix(result.ends_with_newline ? end + 1 : text.size());
  }
  return result;
}

}  // namespace belljar::tools
