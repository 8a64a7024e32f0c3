// Points in time as text.
#pragma once

#include <chrono>
#include <string>

namespace belljar {

// RFC 3339, UTC, with microseconds: "2026-11-21T10:00:00.000005Z".
std::string rfc3339(std::chrono::system_clock::time_point time);

}  // namespace belljar
