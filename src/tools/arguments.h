// The arguments of a call, from one table: the schema that is told and the check that is made cannot differ.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "belljar/result.h"

namespace belljar::tools {

enum class ArgumentType { kText, kInteger, kFlag };
enum class Need { kRequired, kOptional };

struct Parameter {
  std::string_view name;
  ArgumentType type = ArgumentType::kText;
  Need need = Need::kRequired;
  std::string_view doc;
  std::int64_t least = 0;                        // of kInteger
  std::string_view values = std::string_view{};  // of kText: "a|b", the words that are taken; empty: any
};

class Arguments {
 public:
  // Errors: kInvalidArgument, with the tool, the argument, what it is and what was expected.
  static Result<Arguments> parse(std::string_view tool, std::span<const Parameter> parameters, std::string_view json);

  bool has(std::string_view name) const { return values_.contains(name); }
  // Empty, when it was not given.
  const std::string& text(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  bool flag(std::string_view name) const;

 private:
  using Value = std::variant<std::string, std::int64_t, bool>;
  std::map<std::string, Value, std::less<>> values_;
};

// JSON Schema of an object with these parameters and no others.
std::string schema_of(std::span<const Parameter> parameters);

}  // namespace belljar::tools
