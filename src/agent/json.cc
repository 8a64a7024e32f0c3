#include "agent/json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_shape.h"
#include "belljar/agent_model.h"

namespace belljar::agent {
namespace {

constexpr std::size_t kDeepest = 128;

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  if (json_shape(text).deepest > kDeepest) return std::nullopt;
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) json = Json::parse(without_lone_surrogates(text), nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const Json& member(const Json& json, std::string_view key) {
  static const Json kNull;
  if (!json.is_object()) return kNull;
  const auto found = json.find(key);
  return found == json.end() ? kNull : *found;
}

std::string text_of(const Json& json, std::string_view key) {
  const Json& value = member(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::uint64_t count_of(const Json& json, std::string_view key) {
  const Json& value = member(json, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

Json arguments_of(const ToolUse& call) {
  if (auto parsed = parse_json(call.arguments.empty() ? "{}" : call.arguments); parsed && parsed->is_object())
    return std::move(*parsed);
  return Json{{"not_json", call.arguments}};
}

}  // namespace belljar::agent
