// The other programs of ours, which lie beside this one: belljar-full, which does what `run` shall not pay for (TLS, HTTP, a parser
// of shell, the tools of agents) in parts of their own names, and belljar-bench.
#pragma once

#include <string>
#include <string_view>

#include "belljar/error.h"

namespace belljar::cli {

inline constexpr const char kFullProgram[] = "belljar-full";
// The part that serves everything with TLS in it; its words are ours, the first included.
inline constexpr const char kTlsPart[] = "tls";
// The part that keeps a sandbox for `create`.
inline constexpr const char kKeepPart[] = "keep";

// The part that serves `run` with this backend, or nullptr: `belljar` itself does.
const char* part_of_backend(std::string_view name) noexcept;
// The path of a program beside this one.
std::string beside_us(std::string_view program);
// Replaces this process by what does `part`; nullptr: by `belljar`. `argv`: from our command's word on. Returns only when that
// fails.
Error replace_by(const char* part, char* const* argv);
// What to say where the program is not there, with errno of what failed.
Error not_beside_us(const std::string& what, std::string_view program);

}  // namespace belljar::cli
