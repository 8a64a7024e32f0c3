// The other programs of ours, which lie beside this one.
#pragma once

#include <string>
#include <string_view>

#include "belljar/error.h"

namespace belljar::cli {

// The program that serves `run` with this backend, or nullptr: `belljar` itself does.
const char* program_of_backend(std::string_view name) noexcept;
// Its path.
std::string beside_us(std::string_view program);
// Replaces this process by `program`, `argv` from our command's word on. Returns only when that fails.
Error replace_by(const char* program, char* const* argv);

}  // namespace belljar::cli
