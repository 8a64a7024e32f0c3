#include "policy/document.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::policy {
namespace {

std::string_view line_of(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

constexpr int kBefore = 60;  // characters shown before the place in a long line
constexpr std::size_t kShown = 100;

// The line, escaped, with a caret below the place: escapes widen the line, so the caret counts what is printed.
std::string excerpt(std::string_view text, Position at) {
  const std::string_view line = line_of(text, at.line);
  std::string shown;
  std::size_t caret = 0, i = 0;
  for (int column = 1; i < line.size() && shown.size() < caret + kShown; ++column) {
    if (column == at.column) caret = shown.size();
    const std::size_t length = std::max<std::size_t>(1, utf8_size(line.substr(i)));
    if (column > at.column - kBefore) shown += line[i] == '\t' ? std::string(" ") : escaped(line.substr(i, length));
    i += length;
    if (column < at.column) caret = shown.size();
  }
  // The caret stands below a character, not a byte.
  std::size_t cells = 0;
  for (std::size_t k = 0; k < std::min(caret, shown.size()); ++k) cells += (static_cast<unsigned char>(shown[k]) & 0xC0U) != 0x80;
  const std::string number = format("{}", at.line);
  return format("  {} | {}\n  {} | {}^", number, shown, std::string(number.size(), ' '), std::string(cells, ' '));
}

}  // namespace

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kBool:
      return node.flag ? "true" : "false";
    case Node::Kind::kInteger:
      return format("the number {}", node.integer);
    case Node::Kind::kFloat:
      return format("the number {}", node.number);
    case Node::Kind::kText:
      return "text " + quoted(node.text.size() > 64 ? node.text.substr(0, 64) + "..." : node.text);
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kTable:
      return "a table";
    case Node::Kind::kOther:
      return "a date or time";
  }
  return "something else";
}

Error error_at(const Source& source, Position at, std::string what) {
  const std::string place = at.line == 0 ? escaped(source.file) : format("{}:{}:{}", escaped(source.file), at.line, at.column);
  Error error(Code::kInvalidArgument, format("{}: {}", place, what));
  if (at.line == 0) return error;
  return std::move(error).excerpt(excerpt(source.text, at));
}

Result<void> check_text(const Source& source) {
  Position at{1, 1};
  std::string_view rest = source.text;
  while (!rest.empty()) {
    const std::size_t length = rest[0] == '\0' ? 0 : utf8_size(rest);
    if (length == 0) {
      const bool nul = rest[0] == '\0';
      return error_at(source, at, nul ? "a NUL byte in the text" : "the text is not valid UTF-8")
          .reason("a policy is UTF-8 text without NUL")
          .next("save the file as UTF-8");
    }
    if (rest[0] == '\n') at = {at.line + 1, 1};
    else ++at.column;
    rest.remove_prefix(length);
  }
  return {};
}

}  // namespace belljar::policy
