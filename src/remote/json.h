// Reads the JSON of services: a member that is missing or of another type is empty.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace belljar::remote {

// null: it is missing, or `object` is none.
const nlohmann::json& member(const nlohmann::json& object, const char* name);
std::string text_in(const nlohmann::json& object, const char* name);
// Bytes that are no UTF-8 cannot be in JSON: they become U+FFFD, where callers may not rely on them.
std::string dump(const nlohmann::json& json);

}  // namespace belljar::remote
