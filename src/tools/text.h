// Texts for a model: cut to what it is shown, never inside a character. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/error.h"

namespace belljar::tools {

// The largest size <= `limit` that does not end inside a UTF-8 sequence of `text`. What is no UTF-8 is cut anywhere; never 0 unless
// `limit` or `text` is.
std::size_t whole_characters(std::string_view text, std::size_t limit) noexcept;
// `text` from the first byte on that begins a character.
std::string_view from_whole_character(std::string_view text) noexcept;

// Code points; a byte that is no UTF-8 counts as one.
std::uint64_t characters(std::string_view text) noexcept;
// The same of a text that comes in pieces, which may end inside a character.
class CharacterCount {
 public:
  void add(std::string_view piece);
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t characters() const noexcept { return whole_ + tools::characters(rest_); }

 private:
  std::uint64_t bytes_ = 0, whole_ = 0;
  std::string rest_;  // what may be the beginning of a character
};
// The first `count` code points.
std::string_view first_characters(std::string_view text, std::uint64_t count) noexcept;
// UTF-16 code units: what a program in JavaScript calls the length.
std::uint64_t utf16_length(std::string_view text) noexcept;

// Head and tail of `text`, at most `limit` bytes and the notice: how much was left out, and `how` to get it.
std::string shorten(std::string_view text, std::size_t limit, std::string_view how);

// "what; reason; next", the text of a failed call.
std::string words_of(const Error& error);

struct Lines {
  std::vector<std::string_view> lines;  // without their ends
  bool ends_with_newline = true;
};
Lines split_lines(std::string_view text);

}  // namespace belljar::tools
