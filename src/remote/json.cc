#include "remote/json.h"

#include <nlohmann/json.hpp>
#include <string>

namespace belljar::remote {

const nlohmann::json& member(const nlohmann::json& object, const char* name) {
  static const nlohmann::json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string text_in(const nlohmann::json& object, const char* name) {
  const nlohmann::json& found = member(object, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::string dump(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace belljar::remote
