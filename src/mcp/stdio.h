// The transport of a client that started us: a message a line, in by one descriptor and out by another.
#pragma once

#include <cstddef>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "mcp/session.h"

namespace belljar::mcp {

inline constexpr std::size_t kLongestLine = std::size_t{16} << 20;

// Serves until the client closes its end, goes away, or SIGTERM, SIGINT or SIGHUP arrives; then ends everything. The caller has
// blocked these signals in all threads and ignores SIGPIPE. Calls in hand when `input` ends get a second to finish: `printf ... |
// belljar mcp`.
Result<void> serve_stdio(SessionOptions options, UniqueFd input, UniqueFd output);

}  // namespace belljar::mcp
