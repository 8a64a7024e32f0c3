// Text -> Layer. TOML and JSON share one shape; every key is checked against schema.cc, unknown ones are errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "policy/layer.h"

namespace belljar::policy {

// `file` goes into messages and origins; `layer_name` is "system", "user", "project", "policy" or a profile's name.
// Errors: kInvalidArgument with file:line:column, the line with a caret (Error::excerpt) and the nearest right key;
// kUnimplemented for keys that are known and not offered.
Result<Layer> parse_toml(std::string_view text, std::string_view file, std::string_view layer_name);
Result<Layer> parse_json(std::string_view text, std::string_view file, std::string_view layer_name);
// By the file's name: *.json is JSON, everything else TOML.
Result<Layer> parse_policy(std::string_view text, std::string_view file, std::string_view layer_name);

// What can be read of it: every error goes into `errors`, and what it is about is left out.
Layer parse_all(std::string_view text, std::string_view file, std::string_view layer_name, std::vector<Error>& errors);

}  // namespace belljar::policy
