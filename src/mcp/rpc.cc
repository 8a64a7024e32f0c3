// JSON-RPC 2.0 messages, checked before anything else looks at them.
//
// Depth and number of members are measured before the text is parsed: freeing and writing a document recurse,
// and each member of an object is compared with those before it. A text with a lone surrogate is repaired and
// parsed once more, because a client would wait for ever on a request whose id nobody read.
//
// Everything that is no message becomes an RpcError with the code that the specification names, and with the
// request's id where that could be read.
#include "mcp/rpc.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/json_shape.h"

namespace belljar::mcp {
namespace {

constexpr std::size_t kDeepest = 128;
// Each member of an object is looked for among those before it. No tool has arguments with so many.
constexpr std::size_t kMostMembers = 10'000;

bool is_id(const Json& id) { return id.is_string() || id.is_number_integer(); }

}  // namespace

std::variant<Json, RpcError> parse_text(std::string_view text) {
  const JsonShape shape = json_shape(text);
  if (shape.deepest > kDeepest)
    return RpcError{kInvalidRequest, "Invalid Request: arrays and objects are nested more than 128 deep"};
  if (shape.commas > kMostMembers)
    return RpcError{kInvalidRequest, "Invalid Request: arrays and objects have more than 10000 members together"};
  Json json = Json::parse(text, nullptr, false);
  // A client waits for ever on a request whose `id` nobody read.
  if (json.is_discarded()) json = Json::parse(without_lone_surrogates(text), nullptr, false);
  if (json.is_discarded()) return RpcError{kParseError, "Parse error: the line is no JSON"};
  return json;
}

std::variant<Message, RpcError> to_message(Json&& json) {
  const auto refused = [](std::string why, Json id = nullptr) {
    return RpcError{kInvalidRequest, "Invalid Request: " + std::move(why), std::move(id)};
  };
  if (!json.is_object()) return refused("a message is an object");
  Message message;
  const auto id = json.find("id");
  const bool has_id = id != json.end();
  if (has_id && is_id(*id)) message.id = *id;
  const auto version = json.find("jsonrpc");
  if (version == json.end() || *version != "2.0") return refused("`jsonrpc` must be \"2.0\"", message.id);
  const auto method = json.find("method");
  if (method != json.end()) {
    if (!method->is_string()) return refused("`method` must be a string", message.id);
    if (has_id && message.id.is_null()) return refused("`id` must be a string or an integer");
    message.method = method->get<std::string>();
    message.kind = has_id ? Message::Kind::kRequest : Message::Kind::kNotification;
    if (const auto params = json.find("params"); params != json.end()) {
      if (!params->is_object()) return RpcError{kInvalidParams, "Invalid params: `params` must be an object", message.id};
      message.params = std::move(*params);
    }
    return message;
  }
  message.kind = Message::Kind::kResponse;
  // Some clients write the other member as null. What has both failed: to answer it with its `id` would name a request of theirs.
  const auto result = json.find("result"), error = json.find("error");
  const bool has_result = result != json.end(), has_error = error != json.end() && !error->is_null();
  if (!has_id || (!has_result && !has_error)) return refused("neither a `method` nor one of `result` and `error`", message.id);
  if (has_error) message.error = std::move(*error);
  else message.result = std::move(*result);
  return message;
}

Json make_result(const Json& id, Json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }

Json make_error(const RpcError& error) {
  return {{"jsonrpc", "2.0"}, {"id", error.id}, {"error", {{"code", error.code}, {"message", error.message}}}};
}

Json make_notification(std::string_view method, Json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

Json make_request(std::int64_t id, std::string_view method, Json params) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}

bool is_known_version(std::string_view version) noexcept { return std::ranges::find(kVersions, version) != std::end(kVersions); }

std::string to_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace belljar::mcp
