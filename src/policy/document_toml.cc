// The only file that includes toml++: it is heavy.
#define TOML_EXCEPTIONS 0
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

}  // namespace

Result<Node> parse_toml_document(const Source& source) {
  BELLJAR_CHECK(check_text(source));
  const toml::parse_result result = toml::parse(source.text);
  if (!result) {
    const toml::parse_error& error = result.error();
    return error_at(source, position(error.source()), "not valid TOML").reason(escaped(error.description()));
  }
  return convert(result.table());
}

}  // namespace belljar::policy
