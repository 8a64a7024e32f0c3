// JSON as this room reads and writes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/agent_model.h"

namespace belljar::agent {

using Json = nlohmann::ordered_json;

// nullopt: no JSON, or arrays and objects more than 128 deep (writing recurses).
std::optional<Json> parse_json(std::string_view text);
// On one line; bytes that are no UTF-8 become U+FFFD.
std::string dump(const Json& json);

// A member of an object: null, empty or 0 where it is absent or of another type.
const Json& member(const Json& json, std::string_view key);
std::string text_of(const Json& json, std::string_view key);
std::uint64_t count_of(const Json& json, std::string_view key);

// Arguments as an object, also where the model wrote none: its own text goes back to it under a name.
Json arguments_of(const ToolUse& call);

}  // namespace belljar::agent
