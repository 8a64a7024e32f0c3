#include "keeper/about.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "belljar/error.h"
#include "belljar/result.h"
#include "runtime/json.h"

namespace belljar::keeper {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson ordered_or_null(const std::optional<std::int64_t>& value) { return value ? OrderedJson(*value) : OrderedJson(nullptr); }

std::optional<std::int64_t> number(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return {};
  return found->get<std::int64_t>();
}

std::string text(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

// A workspace's path may be any bytes; it is shown, and never opened from here.
std::string to_json(const About& about) {
  const OrderedJson object = {{"id", about.id},
                              {"name", about.name},
                              {"workspace", runtime::to_utf8(about.workspace).text},
                              {"policy", runtime::to_utf8(about.policy).text},
                              {"backend", about.backend},
                              {"created_ms", about.created_ms},
                              {"expires_ms", ordered_or_null(about.expires_ms)},
                              {"idle_timeout_ms", ordered_or_null(about.idle_timeout_ms)},
                              {"output_bytes", ordered_or_null(about.output_bytes)},
                              {"output_action", about.output_kills ? "kill" : "drain"},
                              {"ended_ms", ordered_or_null(about.ended_ms)},
                              {"ended", runtime::to_utf8(about.ended).text}};
  return object.dump() + "\n";
}

Result<About> parse_about(const std::string& json) {
  const OrderedJson object = OrderedJson::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Error(Code::kDataLoss, "the description of a sandbox is damaged");
  About about;
  about.id = text(object, "id");
  about.name = text(object, "name");
  about.workspace = text(object, "workspace");
  about.policy = text(object, "policy");
  about.backend = text(object, "backend");
  about.created_ms = number(object, "created_ms").value_or(0);
  about.expires_ms = number(object, "expires_ms");
  about.idle_timeout_ms = number(object, "idle_timeout_ms");
  about.output_bytes = number(object, "output_bytes");
  about.output_kills = text(object, "output_action") == "kill";
  about.ended_ms = number(object, "ended_ms");
  about.ended = text(object, "ended");
  return about;
}

}  // namespace belljar::keeper
