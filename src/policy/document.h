// A parsed document, TOML or JSON alike: values with the place where each key and value stands. parse.cc reads policies out of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"

namespace belljar::policy {

// 1-based line and column; columns count characters, not bytes. {0,0}: unknown.
struct Position {
  int line = 0;
  int column = 0;
  bool operator==(const Position&) const = default;
};

struct Member;

struct Node {
  enum class Kind { kNull, kBool, kInteger, kFloat, kText, kList, kTable, kOther };
  Kind kind = Kind::kNull;
  Position at;
  bool flag = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Node> items;
  std::vector<Member> members;  // in the order written
};

struct Member {
  std::string key;
  Position at;
  Node value;
};

// "a list", "the number 3" for messages.
std::string describe(const Node& node);

// Far above any policy, far below what costs memory or time that a hostile file should not have.
inline constexpr std::size_t kMaxDepth = 32;
inline constexpr std::size_t kMaxValues = 100'000;
inline constexpr std::size_t kMaxElements = 10'000;  // of one list or table

// Text of a policy and the name it goes by in messages.
struct Source {
  std::string_view text;
  std::string_view file;
};

// An error at a place of the source: "file:line:column: what", the line with a caret below it as the excerpt.
Error error_at(const Source& source, Position at, std::string what);

// Refuses what neither format may hold: NUL and invalid UTF-8, with the place.
Result<void> check_text(const Source& source);

Result<Node> parse_toml_document(const Source& source);
Result<Node> parse_json_document(const Source& source);

}  // namespace belljar::policy
