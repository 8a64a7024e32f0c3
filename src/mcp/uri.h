// The names of a client's roots. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace belljar::mcp {

// "file:///home/me/a%20b" as a path (RFC 8089); nullopt: it is no file of this machine.
std::optional<std::string> path_of_uri(std::string_view uri);

}  // namespace belljar::mcp
