// Arguments of a call: checked against the row that their schema is made of.
//
// Models make mistakes here more often than anywhere else, so each error says the tool, the argument, what
// was given and what was expected, and the names that there are. An integer may be written as 1000.0, which
// JSON Schema allows; any other type is refused and not converted, because a text that looks like a number
// may be a text.
#include "tools/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(ArgumentType type) {
  return type == ArgumentType::kText ? "string" : type == ArgumentType::kInteger ? "integer" : "boolean";
}

std::string names_of(std::span<const Parameter> parameters) {
  std::string names;
  for (const Parameter& parameter : parameters) names += (names.empty() ? "" : ", ") + std::string(parameter.name);
  return names;
}

Error wrong(std::string_view tool, std::string what, std::string reason, std::span<const Parameter> parameters) {
  return Error(Code::kInvalidArgument, format("cannot call {}: {}", tool, what))
      .reason(std::move(reason))
      .next(format("{} takes {}", tool, names_of(parameters)));
}

bool is_one_of(std::string_view values, std::string_view word) {
  for (std::size_t at = 0; at <= values.size();) {
    const std::size_t end = std::min(values.find('|', at), values.size());
    if (values.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

const Parameter* find(std::span<const Parameter> parameters, std::string_view name) {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

// 1000.0 is an integer to JSON Schema since draft 6 (validation, 6.1.1), and some models write so. Others stay as they are.
Json without_fraction(const Json& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond, neighbours are the same
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  return number == std::trunc(number) && std::abs(number) <= kExact ? Json(static_cast<std::int64_t>(number)) : value;
}

// Why a value does not fit; empty when it does.
std::string misfit(const Parameter& parameter, const Json& value) {
  const bool fits = parameter.type == ArgumentType::kText      ? value.is_string()
                    : parameter.type == ArgumentType::kInteger ? value.is_number_integer()
                                                               : value.is_boolean();
  if (!fits)
    return format("it is {} {}, and must be of type {}", value.is_object() || value.is_array() ? "an" : "a", value.type_name(),
                  name_of(parameter.type));
  if (parameter.type == ArgumentType::kInteger) {
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    if (huge || value.get<std::int64_t>() < parameter.least) return format("it must be a number from {} on", parameter.least);
  }
  if (parameter.type == ArgumentType::kText && !parameter.values.empty() &&
      !is_one_of(parameter.values, value.get_ref<const std::string&>()))
    return format("it must be one of {}", parameter.values);
  return {};
}

}  // namespace

Result<Arguments> Arguments::parse(std::string_view tool, std::span<const Parameter> parameters, std::string_view text) {
  const Json json = text.empty() ? Json::object() : Json::parse(text, nullptr, false);
  if (json.is_discarded()) return wrong(tool, "its arguments are no JSON", "they could not be parsed", parameters);
  if (!json.is_object())
    return wrong(tool, "its arguments are no object", format("they are of type {}", json.type_name()), parameters);
  Arguments arguments;
  for (const auto& [name, given] : json.items()) {
    const Parameter* parameter = find(parameters, name);
    if (parameter == nullptr)
      return wrong(tool, format("there is no argument {}", belljar::quoted(name.substr(0, 80))), "the name is not known",
                   parameters);
    if (given.is_null() && parameter->need == Need::kOptional) continue;  // what many models write for "not given"
    const Json value = parameter->type == ArgumentType::kInteger ? without_fraction(given) : given;
    if (std::string why = misfit(*parameter, value); !why.empty())
      return wrong(tool, format("the argument `{}` does not fit", parameter->name), std::move(why), parameters);
    if (value.is_string()) arguments.values_[name] = value.get<std::string>();
    else if (value.is_boolean()) arguments.values_[name] = value.get<bool>();
    else arguments.values_[name] = value.get<std::int64_t>();
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.need == Need::kRequired && !arguments.has(parameter.name))
      return wrong(tool, format("the argument `{}` is missing", parameter.name), "it is required", parameters);
  }
  return arguments;
}

const std::string& Arguments::text(std::string_view name) const {
  static const std::string kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : std::get<std::string>(found->second);
}

std::optional<std::int64_t> Arguments::integer(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return {};
  return std::get<std::int64_t>(found->second);
}

bool Arguments::flag(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() && std::get<bool>(found->second);
}

std::string schema_of(std::span<const Parameter> parameters) {
  Json properties = Json::object(), required = Json::array();
  for (const Parameter& parameter : parameters) {
    Json property{{"type", name_of(parameter.type)}, {"description", parameter.doc}};
    if (parameter.type == ArgumentType::kInteger) property["minimum"] = parameter.least;
    if (!parameter.values.empty()) {
      Json& words = property["enum"] = Json::array();
      for (std::size_t at = 0; at <= parameter.values.size();) {
        const std::size_t end = std::min(parameter.values.find('|', at), parameter.values.size());
        words.push_back(parameter.values.substr(at, end - at));
        at = end + 1;
      }
    }
    properties[std::string(parameter.name)] = std::move(property);
    if (parameter.need == Need::kRequired) required.push_back(parameter.name);
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema.dump();
}

}  // namespace belljar::tools
