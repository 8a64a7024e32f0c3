// The streamable HTTP transport (https://modelcontextprotocol.io/specification/2025-06-18/basic/transports): many clients, a
// Session for each.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "belljar/result.h"
#include "mcp/http_rules.h"
#include "mcp/session.h"

namespace belljar::mcp {

struct HttpOptions {
  HttpAddress address;  // port 0: any
  HttpRules rules;      // the port is set here
  std::size_t most_sessions = 64, most_connections = 256;
  std::size_t largest_body = std::size_t{16} << 20;
  std::chrono::milliseconds session_idle = std::chrono::minutes(30);  // without a request, a stream or a call in hand
  std::chrono::milliseconds request_time = std::chrono::seconds(30);  // for a request to arrive, and between two of a connection
  std::chrono::milliseconds write_time = std::chrono::minutes(1);     // for a client to read what it is sent
  std::function<void(std::uint16_t port)> ready;                      // it listens
};

// Serves until SIGTERM, SIGINT or SIGHUP arrives, which the caller has blocked in all threads; then ends everything.
// Errors: kInvalidArgument, another address than loopback without a token; kUnavailable, the address cannot be had.
Result<void> serve_http(const SessionOptions& session, HttpOptions options);

}  // namespace belljar::mcp
