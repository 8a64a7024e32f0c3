// Bytes as text, for wires that carry nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace belljar::remote {

std::string to_base64(std::string_view bytes);
// nullopt: it is none, or more than 64 MiB.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace belljar::remote
