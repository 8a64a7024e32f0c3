// The only file that includes toml++: it is heavy.
#define TOML_EXCEPTIONS 0
// 3.3.0 asserts on `[~x]`, which it then reports as the syntax error it is: without NDEBUG, hostile text would abort us (found by
// fuzzing). Parsing goes on past the assertion to the same error in every build.
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>

#include "base/format.h"
#include "policy/document.h"

namespace belljar::policy {
namespace {

Position position(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

Node convert(const toml::node& from);

Node convert_table(const toml::table& table, Node node) {
  node.kind = Node::Kind::kTable;
  for (const auto& [key, value] : table) node.members.push_back({std::string(key.str()), position(key.source()), convert(value)});
  // toml++ sorts by name; a policy is read in the order it was written.
  std::ranges::stable_sort(node.members, [](const Member& a, const Member& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  return node;
}

Node convert(const toml::node& from) {
  Node node;
  node.at = position(from.source());
  if (const auto* table = from.as_table()) return convert_table(*table, std::move(node));
  if (const auto* array = from.as_array()) {
    node.kind = Node::Kind::kList;
    for (const toml::node& item : *array) node.items.push_back(convert(item));
  } else if (const auto* text = from.as_string()) {
    node.kind = Node::Kind::kText;
    node.text = text->get();
  } else if (const auto* integer = from.as_integer()) {
    node.kind = Node::Kind::kInteger;
    node.integer = integer->get();
  } else if (const auto* number = from.as_floating_point()) {
    node.kind = Node::Kind::kFloat;
    node.number = number->get();
  } else if (const auto* flag = from.as_boolean()) {
    node.kind = Node::Kind::kBool;
    node.flag = flag->get();
  } else {
    node.kind = Node::Kind::kOther;
  }
  return node;
}

// toml++ limits the depth of nested values, not of dotted keys: `a.a.a...` with 400 000 parts overflows the stack when the tables
// are freed (found by hand, 3.3.0). And it holds a hundred bytes and more for each value. So both are counted before it runs:
// strings and comments are skipped as TOML reads them, what is left are keys, dots and punctuation.
class Counter {
 public:
  explicit Counter(const Source& source) : source_(source), text_(source.text) {}

  Result<void> check() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark, which toml++ skips too
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      // Outside strings and comments TOML is ASCII; toml++ runs into __builtin_unreachable on some of the rest (U+FE3F, by
      // fuzzing).
      if (static_cast<unsigned char>(c) >= 0x80) return refuse("not valid TOML: a character outside ASCII stands outside quotes");
      if (c == '.' && ++dots_ > kMaxDepth) return refuse(format("a key has more than {} parts", kMaxDepth));
      if (c == '\n' || c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}') dots_ = 0;
      if ((c == '=' || c == ',' || c == '[') && ++values_ > kMaxValues) return refuse(format("more than {} values", kMaxValues));
      ++at_;
    }
    return {};
  }

 private:
  void skip_string(char quote) {
    const std::string_view triple = quote == '"' ? R"(""")" : "'''";
    if (text_.substr(at_, 3) == triple) {
      at_ += 3;
      while (at_ < text_.size() && text_.substr(at_, 3) != triple) at_ += quote == '"' && text_[at_] == '\\' ? 2 : 1;
      at_ = std::min(at_ + 3, text_.size());
      for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;  // """x""""" ends with two quotes of its own
      return;
    }
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n';) at_ += quote == '"' && text_[at_] == '\\' ? 2 : 1;
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
    at_ = std::min(at_, text_.size());
  }
  Error refuse(const std::string& why) const {
    Position at{1, 1};
    for (std::size_t i = 0; i < at_; ++i) {
      if (text_[i] == '\n') at = {at.line + 1, 1};
      else if ((static_cast<unsigned char>(text_[i]) & 0xC0U) != 0x80) ++at.column;
    }
    return error_at(source_, at, why);
  }

  Source source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t dots_ = 0, values_ = 0;
};

}  // namespace

Result<Node> parse_toml_document(const Source& source) {
  BELLJAR_CHECK(check_text(source));
  BELLJAR_CHECK(Counter(source).check());
  const toml::parse_result result = toml::parse(source.text);
  if (!result) {
    const toml::parse_error& error = result.error();
    return error_at(source, position(error.source()), "not valid TOML").reason(escaped(error.description()));
  }
  return convert(result.table());
}

}  // namespace belljar::policy
