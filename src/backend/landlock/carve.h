// "Everything below `root` but these" as a list of folders and files to allow.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"

namespace belljar::backend {

// Names in a folder; nullopt when it cannot be listed.
using Lister = std::function<std::optional<std::vector<std::string>>(const std::string&)>;

// The largest paths below `root` that contain none of `hidden` (canonical, absolute). A folder that cannot be listed and holds a
// hidden path is left out whole. Errors: kResourceExhausted beyond `most` paths.
Result<std::vector<std::string>> carve(const std::string& root, const std::vector<std::string>& hidden, const Lister& list,
                                       std::size_t most);

}  // namespace belljar::backend
