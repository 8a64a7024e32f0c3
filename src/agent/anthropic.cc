// Anthropic's messages (https://docs.anthropic.com/en/api/messages-streaming).
//
// An answer is a list of blocks, each with a beginning, deltas and an end, told apart by their index.
// Arguments of a call come as pieces of JSON text, which are joined and only parsed when the block has ended;
// some servers send them whole at its beginning. An answer is finished when the message says that it stopped.
// A stream that ends without it is kDataLoss, and the question is asked again.
//
// Roles have to take turns in this wire, so results of several calls go into one message.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/json.h"
#include "agent/sse.h"
#include "agent/wire.h"
#include "belljar/agent_model.h"
#include "belljar/result.h"
#include "belljar/tools.h"

namespace belljar::agent {
namespace {

void add_block(Json& messages, std::string_view role, Json block) {
  // Roles take turns: what follows in the same role belongs to the same message.
  if (messages.empty() || messages.back()["role"] != role) messages.push_back({{"role", role}, {"content", Json::array()}});
  messages.back()["content"].push_back(std::move(block));
}

void add_message(Json& messages, const ChatMessage& message) {
  if (message.role == ChatRole::kTool) {
    add_block(messages, "user",
              {{"type", "tool_result"}, {"tool_use_id", message.call_id}, {"content", message.text}, {"is_error", message.failed}});
    return;
  }
  const std::string_view role = message.role == ChatRole::kUser ? "user" : "assistant";
  // An empty text is refused by the service.
  if (message.text.find_first_not_of(" \t\r\n") != std::string::npos)
    add_block(messages, role, {{"type", "text"}, {"text", message.text}});
  for (const ToolUse& call : message.calls)
    add_block(messages, role, {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", arguments_of(call)}});
}

class AnthropicDecoder final : public Decoder {
 public:
  explicit AnthropicDecoder(OnText on_text) : on_text_(std::move(on_text)) {}
  Result<void> handle(const SseEvent& event) override;
  Result<ModelReply> finish() override;

 private:
  struct Block {
    bool is_call = false, ended = false;
    ToolUse call;
    std::string start_input;  // some servers send it whole at the beginning
  };
  Result<void> begin_block(const Json& event);
  Result<void> add_delta(const Json& event);
  void add_use(const Json& use);

  const OnText on_text_;
  std::map<std::uint64_t, Block> blocks_;
  ModelReply reply_;
  bool began_ = false, ended_ = false;
  std::string stop_;
};

void AnthropicDecoder::add_use(const Json& use) {
  std::uint64_t input = 0;
  for (const char* key : {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}) input += count_of(use, key);
  if (input > 0) reply_.use.input = input;
  if (const std::uint64_t output = count_of(use, "output_tokens"); output > 0) reply_.use.output = output;
}

Result<void> AnthropicDecoder::begin_block(const Json& event) {
  if (blocks_.size() >= kMostCalls) return malformed("it has too many parts");
  const Json& start = member(event, "content_block");
  Block& block = blocks_[count_of(event, "index")];
  block = {.is_call = text_of(start, "type") == "tool_use", .call = {.id = text_of(start, "id"), .name = text_of(start, "name")}};
  if (const Json& input = member(start, "input"); input.is_object() && !input.empty()) block.start_input = dump(input);
  const std::string text = text_of(start, "text");
  if (text_of(start, "type") != "text" || text.empty()) return {};
  reply_.message.text += text;
  if (on_text_) on_text_(text);
  return {};
}

Result<void> AnthropicDecoder::add_delta(const Json& event) {
  const auto block = blocks_.find(count_of(event, "index"));
  if (block == blocks_.end() || block->second.ended) return malformed("a piece belongs to no part");
  const Json& delta = member(event, "delta");
  const std::string type = text_of(delta, "type");
  if (type == "input_json_delta" && block->second.is_call) block->second.call.arguments += text_of(delta, "partial_json");
  if (type != "text_delta") return {};
  const std::string text = text_of(delta, "text");
  reply_.message.text += text;
  if (on_text_ && !text.empty()) on_text_(text);
  return {};
}

Result<void> AnthropicDecoder::handle(const SseEvent& sse) {
  const auto event = parse_json(sse.data);
  if (!event || !event->is_object()) return malformed("an event is no JSON object");
  const std::string type = text_of(*event, "type");
  if (type == "error") return endpoint_error(member(*event, "error"));
  if (type == "message_start") {
    began_ = true;
    add_use(member(member(*event, "message"), "usage"));
  }
  if (!began_ || ended_) return type == "ping" ? Result<void>() : malformed("it does not begin with its beginning");
  if (type == "content_block_start") return begin_block(*event);
  if (type == "content_block_delta") return add_delta(*event);
  if (type == "content_block_stop") {
    if (const auto block = blocks_.find(count_of(*event, "index")); block != blocks_.end()) block->second.ended = true;
  }
  if (type == "message_delta") {
    stop_ = text_of(member(*event, "delta"), "stop_reason");
    add_use(member(*event, "usage"));
  }
  ended_ = type == "message_stop";
  return {};
}

Result<ModelReply> AnthropicDecoder::finish() {
  if (!ended_ || stop_.empty()) return malformed("the stream ended before the answer did");
  for (auto& [index, block] : blocks_) {
    if (!block.is_call) continue;
    if (block.call.arguments.empty()) block.call.arguments = block.start_input;
    reply_.message.calls.push_back(std::move(block.call));
  }
  reply_.stop = stop_ == "max_tokens" || stop_ == "model_context_window_exceeded" ? ModelStop::kLength
                : stop_ == "refusal"                                              ? ModelStop::kRefused
                : reply_.message.calls.empty()                                    ? ModelStop::kEnd
                                                                                  : ModelStop::kTools;
  return std::move(reply_);
}

}  // namespace

Json anthropic_body(const std::string& model, const ModelRequest& request) {
  Json messages = Json::array(), tools = Json::array();
  for (const ChatMessage& message : request.messages) add_message(messages, message);
  for (const ToolSpec& tool : request.tools)
    tools.push_back({{"name", tool.name},
                     {"description", tool.description},
                     {"input_schema", parse_json(tool.input_schema).value_or(Json{{"type", "object"}})}});
  Json body{{"model", model}, {"max_tokens", request.max_output}, {"stream", true}};
  if (!request.system.empty()) body["system"] = request.system;
  if (!tools.empty()) body["tools"] = std::move(tools);
  body["messages"] = std::move(messages);
  return body;
}

std::unique_ptr<Decoder> anthropic_decoder(OnText on_text) { return std::make_unique<AnthropicDecoder>(std::move(on_text)); }

}  // namespace belljar::agent
