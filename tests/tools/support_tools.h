// A toolbox on a sandbox, for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "belljar/tools.h"
#include "support/has.h"

namespace belljar::test {

inline nlohmann::json parsed(const ToolResult& result) { return nlohmann::json::parse(result.structured, nullptr, false); }

// One act, and its twin that must succeed; both as JSON arguments.
struct Refusal {
  const char* tool;
  const char* refused;
  const char* words;  // in the text of the refusal
  const char* twin;
};

}  // namespace belljar::test
