// JSON-RPC 2.0 (https://www.jsonrpc.org/specification), as the Model Context Protocol uses it. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace belljar::mcp {

using Json = nlohmann::ordered_json;

inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601, kInvalidParams = -32602,
                     kInternalError = -32603;
inline constexpr int kResourceNotFound = -32002;  // of MCP
inline constexpr int kServerBusy = -32000;        // of ours: -32000 to -32099 are left to servers

struct RpcError {
  int code = kInternalError;
  std::string message;
  Json id = nullptr;  // of the request, where it could be read
};

struct Message {
  enum class Kind { kRequest, kNotification, kResponse };
  Kind kind = Kind::kNotification;
  Json id;             // of kRequest and kResponse
  std::string method;  // of kRequest and kNotification
  Json params = Json::object();
  Json result;  // of kResponse: null when it failed
  Json error;   // of kResponse: null when it succeeded
};

// The text as JSON, whatever it says. Arrays and objects may stand in each other 128 deep: freeing and writing recurse.
std::variant<Json, RpcError> parse_text(std::string_view text);
// One object of it as a message.
std::variant<Message, RpcError> to_message(Json&& json);

Json make_result(const Json& id, Json result);
Json make_error(const RpcError& error);
Json make_notification(std::string_view method, Json params);
Json make_request(std::int64_t id, std::string_view method, Json params);
// Versions of the protocol that are spoken here, newest first.
inline constexpr std::string_view kVersions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
bool is_known_version(std::string_view version) noexcept;
// On one line; bytes that are no UTF-8 become U+FFFD.
std::string to_line(const Json& json);

}  // namespace belljar::mcp
