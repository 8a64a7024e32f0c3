#include "broker/git_config.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"

namespace belljar::broker {
namespace {

// git's own character classes, ctype.c: the locale has no say.
constexpr bool is_space(int c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
constexpr bool is_key(int c) noexcept { return is_alnum(static_cast<char>(c)) || c == '-'; }

constexpr std::size_t kMostKeys = 4U << 20;  // bytes of all keys together

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Parser {
 public:
  explicit Parser(std::string_view text) noexcept : text_(text) {}

  GitConfig run() {
    config_.broken = !skip_byte_order_mark() || !parse();
    return std::move(config_);
  }

 private:
  // The end of the text counts as a line end; at_end_ tells the two apart.
  int next() noexcept {
    if (at_ >= text_.size()) return at_end_ = true, '\n';
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    return static_cast<unsigned char>(text_[at_++]);
  }

  bool skip_byte_order_mark() noexcept {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    else if (!text_.empty() && text_.front() == kByteOrderMark.front()) return false;  // part of one
    return true;
  }

  bool parse() {
    for (bool comment = false;;) {
      const int c = next();
      if (c == '\n') {
        if (at_end_) return true;
        comment = false;
      } else if (comment || is_space(c)) {
        continue;
      } else if (c == '#' || c == ';') {
        comment = true;
      } else if (c == '[') {
        if (!section()) return false;
      } else if (!is_letter(static_cast<char>(c)) || !entry(c)) {
        return false;
      }
    }
  }

  bool section() {
    section_.clear();
    for (;;) {
      const int c = next();
      if (at_end_) return false;
      if (c == ']') break;
      if (is_space(c)) {
        if (!subsection(c)) return false;
        break;
      }
      if (!is_key(c) && c != '.') return false;
      section_.push_back(to_lower(static_cast<char>(c)));
    }
    if (section_.empty()) return false;
    section_.push_back('.');
    return true;
  }

  bool subsection(int c) {
    do {
      if (c == '\n') return false;
      c = next();
    } while (is_space(c));
    if (c != '"') return false;
    section_.push_back('.');
    for (;;) {
      c = next();
      if (c == '"') return next() == ']';
      if (c == '\\') c = next();
      if (c == '\n') return false;
      section_.push_back(static_cast<char>(c));
    }
  }

  bool entry(int c) {
    if ((keys_ += section_.size()) > kMostKeys) {
      config_.excessive = true;
      return false;
    }
    GitConfigEntry entry{section_, std::nullopt};
    do {
      entry.key.push_back(to_lower(static_cast<char>(c)));
      c = next();
    } while (!at_end_ && is_key(c));
    while (c == ' ' || c == '\t') c = next();
    if (c != '\n') {
      if (c != '=') return false;
      entry.value.emplace();
      if (!value(*entry.value)) return false;
    }
    config_.entries.push_back(std::move(entry));
    return true;
  }

  bool value(std::string& result) {
    bool quoted = false;
    bool comment = false;
    for (std::size_t spaces = 0;;) {
      int c = next();
      if (c == '\n') return !quoted;
      if (comment) continue;
      if (is_space(c) && !quoted) {
        if (!result.empty()) ++spaces;
        continue;
      }
      if (!quoted && (c == ';' || c == '#')) {
        comment = true;
        continue;
      }
      result.append(std::exchange(spaces, 0), ' ');
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      if (c == '\\' && !escape(c)) return false;
      if (c != kNothing) result.push_back(static_cast<char>(c));
    }
  }

  // What stands after a backslash, in `c`: kNothing for a line end.
  bool escape(int& c) noexcept {
    c = next();
    switch (c) {
      case '\n':
        c = kNothing;
        return true;
      case 't':
        c = '\t';
        return true;
      case 'b':
        c = '\b';
        return true;
      case 'n':
        c = '\n';
        return true;
      case '\\':
      case '"':
        return true;
      default:
        return false;
    }
  }

  static constexpr int kNothing = -1;

  std::string_view text_;
  std::size_t at_ = 0;
  bool at_end_ = false;
  std::size_t keys_ = 0;
  std::string section_;  // with its dot at the end
  GitConfig config_;
};

}  // namespace

GitConfig parse_git_config(std::string_view text) { return Parser(text).run(); }

}  // namespace belljar::broker
