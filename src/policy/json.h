// Values as JSON text, for `--json`. Writing needs no library.
#pragma once

#include <string>
#include <string_view>

#include "policy/layer.h"

namespace belljar::policy {

// A JSON string, quotes included. Bytes that are not UTF-8 (a path may hold any) come out as U+FFFD.
std::string json_text(std::string_view text);
std::string to_json(const Value& value);
std::string to_json(const Origin& origin);

}  // namespace belljar::policy
