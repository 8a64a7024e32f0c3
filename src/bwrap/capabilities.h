// Names of capabilities, capabilities(7).
#pragma once

#include <optional>
#include <string_view>

namespace belljar::bwrap {

// "CAP_KILL", in any case, to its number.
std::optional<int> find_capability(std::string_view name) noexcept;

}  // namespace belljar::bwrap
