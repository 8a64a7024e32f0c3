// An About as JSON.
#pragma once

#include <string>

#include "belljar/result.h"
#include "keeper/directory.h"

namespace belljar::keeper {

std::string to_json(const About& about);
// Errors: kDataLoss.
Result<About> parse_about(const std::string& text);

}  // namespace belljar::keeper
