#include "agent/json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "belljar/agent_model.h"

namespace belljar::agent {
namespace {

constexpr int kDeepest = 128;

bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  if (is_too_deep(text)) return std::nullopt;
  Json json = Json::parse(text, nullptr, false);
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
