// Layers that are encoded inside a text: found by their letters, kept when what they hold reads like text.
//
// Each encoding is looked for by its shape, decoded, and kept only if the result looks like language
// (reads_like_text): most long runs of base64 letters are hashes, keys or images. Hexadecimal is tried before
// base64 because its letters are a subset, and base32 last. Escapes (percent, entities, `\x`) count only if
// there are many, since every web page has a few.
//
// Time must not grow faster than the text. Runs are found by probing every 24th byte, which cannot miss a run
// of that length; the number of layers and the bytes of all of them are limited; and detect.cc ends the
// nesting.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "detect/ascii.h"
#include "detect/normal.h"
#include "detect/work.h"

namespace belljar::detect {
namespace {

struct Base64 {
  signed char values[256];
  constexpr Base64() : values{} {
    for (auto& value : values) value = -1;
    for (int i = 0; i < 26; ++i) values['A' + i] = static_cast<signed char>(i), values['a' + i] = static_cast<signed char>(26 + i);
    for (int i = 0; i < 10; ++i) values['0' + i] = static_cast<signed char>(52 + i);
    values['+'] = values['-'] = 62;
    values['/'] = values['_'] = 63;
  }
};
constexpr Base64 kBase64;

inline int base64_value(char c) noexcept { return kBase64.values[static_cast<unsigned char>(c)]; }

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r'; }

// Mostly letters and blanks, no control characters: noise is not. Scripts without blanks have to be well spelled instead.
bool reads_like_text(std::string_view text) noexcept {
  std::size_t fine = 0;
  for (const char c : text) {
    if (is_control(c)) return false;
    if (is_letter(c) || c == ' ' || static_cast<unsigned char>(c) >= 0x80) ++fine;
  }
  return text.size() >= 12 && fine * 10 >= text.size() * 7 && (text.find(' ') != std::string_view::npos || is_utf8(text));
}

class Decoder {
 public:
  explicit Decoder(std::string_view text) : text_(text) {}

  std::vector<Layer> run() {
    count_steps(2 * text_.size());
    runs();
    percent_and_entities();
    for (Layer& layer : open_spellings(text_)) add(std::move(layer.how), std::move(layer.text), layer.begin, layer.end);
    return std::move(layers_);
  }

 private:
  void add(std::string how, std::string text, std::size_t begin, std::size_t end) {
    if (layers_.size() >= 64 || total_ + text.size() > (256U << 10)) return;
    total_ += text.size();
    layers_.push_back({std::move(how), std::move(text), static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
  }
  // Runs of base64 letters: hexadecimal first, it is a subset. One that is long enough covers every place that is that many on, so
  // most of a text is never looked at.
  void runs() {
    constexpr std::size_t kShortest = 24;
    const auto is_letter_at = [&](std::size_t i) { return base64_value(text_[i]) >= 0; };
    for (std::size_t next = 0; next + kShortest <= text_.size();) {
      const std::size_t probe = next + kShortest - 1;
      if (!is_letter_at(probe)) {
        next = probe + 1;
        continue;
      }
      std::size_t begin = probe, end = probe + 1;
      while (begin > next && is_letter_at(begin - 1)) --begin;
      while (end < text_.size() && is_letter_at(end)) ++end;
      while (end + 1 < text_.size() && text_[end] == '\n' && end - begin >= 60 && is_letter_at(end + 1)) {  // wrapped, as in a mail
        for (++end; end < text_.size() && is_letter_at(end);) ++end;
      }
      if (end - begin >= kShortest) decode_run(begin, end);
      next = end;
    }
  }
  // Most long runs are hashes, keys and pictures: the first byte that no text has ends the decoding, and that comes soon.
  void decode_run(std::size_t begin, std::size_t end) {
    std::string run(text_.substr(begin, end - begin));
    count_steps(3 * run.size());
    if (run.find('\n') != std::string::npos) std::erase(run, '\n');
    const bool hex = std::ranges::all_of(run, [](char c) { return hex_digit(c) >= 0; });
    std::string text = hex ? from_hex(run) : from_base64(run);
    if (reads_like_text(text)) return add(hex ? "hexadecimal" : "base64", std::move(text), begin, end);
    text = from_base32(run);
    if (reads_like_text(text)) add("base32", std::move(text), begin, end);
  }
  static std::string from_hex(std::string_view run) {
    std::string text;
    for (std::size_t i = 0; i + 1 < run.size(); i += 2) {
      text += static_cast<char>(hex_digit(run[i]) * 16 + hex_digit(run[i + 1]));
      if (is_control(text.back())) return {};
    }
    return text;
  }
  static std::string from_base32(std::string_view run) {  // RFC 4648
    std::string text;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : run) {
      if (!((c >= 'A' && c <= 'Z') || (c >= '2' && c <= '7'))) return {};
      bits = (bits << 5U) | static_cast<std::uint32_t>(c >= 'A' ? c - 'A' : c - '2' + 26);
      if ((count += 5) < 8) continue;
      text += static_cast<char>((bits >> static_cast<unsigned>(count -= 8)) & 0xFFU);
      if (is_control(text.back())) return {};
    }
    return text;
  }
  static std::string from_base64(std::string_view run) {
    std::string text;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : run) {
      bits = (bits << 6U) | static_cast<std::uint32_t>(base64_value(c));
      if ((count += 6) < 8) continue;
      text += static_cast<char>((bits >> static_cast<unsigned>(count -= 8)) & 0xFFU);
      if (is_control(text.back())) return {};
    }
    return text;
  }
  // %41, \x41, &#65;, &#x41; where many stand together: the stretch with all of them decoded. What stands around it does not count,
  // or a page around an attack would hide it.
  void percent_and_entities() {
    std::string text;
    std::size_t count = 0, begin = 0, end = 0;  // of the stretch
    const auto close = [&] {
      count_steps(text.size());
      if (count >= kFewestEscapes && count * kEvery >= end - begin && reads_like_text(text)) add("escapes", text, begin, end);
      text.clear(), count = 0;
    };
    for (std::size_t i = 0; i < text_.size();) {
      while (count == 0 && i < text_.size() && !may_escape(text_[i])) ++i;
      if (i == text_.size()) break;
      std::uint32_t code = 0;
      const std::size_t length = may_escape(text_[i]) ? escape_at(i, code) : 0;
      if (length == 0) {
        if (count > 0 && i - end >= kApart) close();
        if (count > 0) text += text_[i];
        ++i;
        continue;
      }
      if (count++ == 0) begin = i;
      const bool is_byte = text_[i] == '%' || text_[i] == '=' || text_.substr(i, 2) == "\\x";
      if (code > 0x10FFFF) text += text_.substr(i, length);
      else if (is_byte) text += static_cast<char>(code);
      else append_utf8(text, code);
      end = i += length;
    }
    close();
  }
  static constexpr std::size_t kFewestEscapes = 8, kEvery = 12, kApart = 24;  // bytes without an escape end a stretch
  static bool may_escape(char c) noexcept { return c == '%' || c == '=' || c == '\\' || c == '&'; }
  std::size_t escape_at(std::size_t i, std::uint32_t& code) const noexcept {
    const std::string_view rest = text_.substr(i, 10);
    const auto pair = [&](std::size_t at) {
      if (at + 1 >= rest.size() || hex_digit(rest[at]) < 0 || hex_digit(rest[at + 1]) < 0) return false;
      code = static_cast<std::uint32_t>(hex_digit(rest[at]) * 16 + hex_digit(rest[at + 1]));
      return true;
    };
    if ((rest[0] == '%' || rest[0] == '=') && pair(1)) return 3;  // and quoted-printable
    if (rest.starts_with("\\x") && pair(2)) return 4;
    if (rest.starts_with("\\u") && pair(2)) {
      const std::uint32_t high = code;
      if (pair(4)) return code += high << 8U, 6;
    }
    if (!rest.starts_with("&#")) return 0;
    const std::size_t end = rest.find(';');
    if (end == std::string_view::npos || end < 3) return 0;
    const bool hex = rest[2] == 'x' || rest[2] == 'X';
    for (std::size_t k = hex ? 3 : 2; k < end; ++k) {
      const int digit = hex_digit(rest[k]);
      if (digit < 0 || (!hex && digit > 9)) return 0;
      code = code * (hex ? 16U : 10U) + static_cast<std::uint32_t>(digit);
    }
    return end + 1;
  }

  std::string_view text_;
  std::vector<Layer> layers_;
  std::size_t total_ = 0;
};

}  // namespace

std::vector<Layer> decode_layers(std::string_view text) { return Decoder(text).run(); }

}  // namespace belljar::detect
