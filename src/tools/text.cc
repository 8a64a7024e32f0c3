#include "tools/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kLongest = 4;  // of a character, in bytes

bool is_continuation(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::size_t whole_characters(std::string_view text, std::size_t limit) noexcept {
  if (limit >= text.size()) return text.size();
  for (std::size_t back = 1; back <= 3 && back <= limit; ++back) {
    if (is_continuation(text[limit - back])) continue;
    const std::size_t size = utf8_size(text.substr(limit - back));
    return size > back && back < limit ? limit - back : limit;
  }
  return limit;
}

std::string_view from_whole_character(std::string_view text) noexcept {
  for (int i = 0; i < 3 && !text.empty() && is_continuation(text[0]); ++i) text.remove_prefix(1);
  return text;
}

std::uint64_t characters(std::string_view text) noexcept {
  std::uint64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(utf8_size(text), 1));
  return count;
}

void CharacterCount::add(std::string_view piece) {
  bytes_ += piece.size();
  const std::string joined = rest_.empty() ? std::string() : rest_ + std::string(piece);
  std::string_view text = rest_.empty() ? piece : joined;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0 && text.size() < kLongest) break;  // what comes next decides
    text.remove_prefix(std::max<std::size_t>(size, 1));
    ++whole_;
  }
  rest_ = text;
}

std::string_view first_characters(std::string_view text, std::uint64_t count) noexcept {
  std::string_view rest = text;
  for (; count > 0 && !rest.empty(); --count) rest.remove_prefix(std::max<std::size_t>(utf8_size(rest), 1));
  return text.substr(0, text.size() - rest.size());
}

std::uint64_t utf16_length(std::string_view text) noexcept {
  std::uint64_t count = 0;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(utf8_size(text), 1);
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
