// OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat-streaming), as many servers
// speak them.
//
// Calls come in pieces with an index, by which they are joined. Servers differ here: some leave the index out
// and send a call whole, and some send the arguments as an object where the wire has a text. Both are read.
// Token counts come in an event of their own without choices, or not at all, and then they are estimated
// (loop.cc).
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "agent/json.h"
#include "agent/sse.h"
#include "agent/wire.h"
#include "belljar/agent_model.h"
#include "belljar/result.h"
#include "belljar/tools.h"

namespace belljar::agent {
namespace {

Json message_json(const ChatMessage& message) {
  if (message.role == ChatRole::kTool) return {{"role", "tool"}, {"tool_call_id", message.call_id}, {"content", message.text}};
  if (message.role == ChatRole::kUser) return {{"role", "user"}, {"content", message.text}};
  Json json{{"role", "assistant"}, {"content", message.text}};
  if (message.calls.empty()) return json;
  if (message.text.empty()) json["content"] = nullptr;
  for (const ToolUse& call : message.calls)
    json["tool_calls"].push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", dump(arguments_of(call))}}}});
  return json;
}

class ChatDecoder final : public Decoder {
 public:
  explicit ChatDecoder(OnText on_text) : on_text_(std::move(on_text)) {}
  Result<void> handle(const SseEvent& event) override;
  Result<ModelReply> finish() override;

 private:
  Result<void> add_calls(const Json& calls);

  const OnText on_text_;
  std::map<std::uint64_t, ToolUse> calls_;
  ModelReply reply_;
  std::string stop_;
  bool refused_ = false;
};

Result<void> ChatDecoder::add_calls(const Json& calls) {
  if (!calls.is_array()) return {};
  for (const Json& piece : calls) {
    // Some servers leave the index out where a call comes whole.
    const bool indexed = member(piece, "index").is_number_unsigned();
    if (!indexed && calls_.size() >= kMostCalls) return malformed("it has too many calls");
    ToolUse& call = calls_[indexed ? count_of(piece, "index") : calls_.size()];
    if (calls_.size() > kMostCalls) return malformed("it has too many calls");
    const Json& function = member(piece, "function");
    if (call.id.empty()) call.id = text_of(piece, "id");
    if (call.name.empty()) call.name = text_of(function, "name");
    const Json& arguments = member(function, "arguments");
    if (arguments.is_object()) call.arguments += dump(arguments);
    else call.arguments += text_of(function, "arguments");
  }
  return {};
}

Result<void> ChatDecoder::handle(const SseEvent& sse) {
  if (sse.data == "[DONE]") return {};
  const auto event = parse_json(sse.data);
  if (!event || !event->is_object()) return malformed("an event is no JSON object");
  if (const Json& error = member(*event, "error"); !error.is_null()) return endpoint_error(error);
  if (const Json& use = member(*event, "usage"); use.is_object())
    reply_.use = {count_of(use, "prompt_tokens"), count_of(use, "completion_tokens")};
  const Json& choices = member(*event, "choices");
  if (!choices.is_array() || choices.empty()) return {};
  const Json& choice = choices.front();
  const Json& delta = member(choice, "delta");
  if (const std::string text = text_of(delta, "content"); !text.empty()) {
    reply_.message.text += text;
    if (on_text_) on_text_(text);
  }
  if (const std::string words = text_of(delta, "refusal"); !words.empty()) {
    refused_ = true;
    reply_.message.text += words;
    if (on_text_) on_text_(words);
  }
  if (const std::string stop = text_of(choice, "finish_reason"); !stop.empty()) stop_ = stop;
  return add_calls(member(delta, "tool_calls"));
}

Result<ModelReply> ChatDecoder::finish() {
  if (stop_.empty()) return malformed("the stream ended before the answer did");
  for (auto& [index, call] : calls_) reply_.message.calls.push_back(std::move(call));
  reply_.stop = stop_ == "length"                       ? ModelStop::kLength
                : stop_ == "content_filter" || refused_ ? ModelStop::kRefused
                : reply_.message.calls.empty()          ? ModelStop::kEnd
                                                        : ModelStop::kTools;
  return std::move(reply_);
}

}  // namespace

Json chat_body(const std::string& model, const ModelRequest& request) {
  Json body{{"model", model},
            {"max_completion_tokens", request.max_output},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}},
            {"messages", Json::array()}};
  if (!request.system.empty()) body["messages"].push_back({{"role", "system"}, {"content", request.system}});
  for (const ChatMessage& message : request.messages) body["messages"].push_back(message_json(message));
  for (const ToolSpec& tool : request.tools)
    body["tools"].push_back({{"type", "function"},
                             {"function",
                              {{"name", tool.name},
                               {"description", tool.description},
                               {"parameters", parse_json(tool.input_schema).value_or(Json{{"type", "object"}})}}}});
  return body;
}

std::unique_ptr<Decoder> chat_decoder(OnText on_text) { return std::make_unique<ChatDecoder>(std::move(on_text)); }

}  // namespace belljar::agent
