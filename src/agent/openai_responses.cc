// OpenAI's responses (https://platform.openai.com/docs/api-reference/responses-streaming), without state on their side.
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

void add_items(Json& input, const ChatMessage& message) {
  if (message.role == ChatRole::kTool) {
    input.push_back({{"type", "function_call_output"}, {"call_id", message.call_id}, {"output", message.text}});
    return;
  }
  const bool user = message.role == ChatRole::kUser;
  if (!message.text.empty())
    input.push_back({{"type", "message"},
                     {"role", user ? "user" : "assistant"},
                     {"content", {{{"type", user ? "input_text" : "output_text"}, {"text", message.text}}}}});
  for (const ToolUse& call : message.calls)
    input.push_back(
        {{"type", "function_call"}, {"call_id", call.id}, {"name", call.name}, {"arguments", dump(arguments_of(call))}});
}

class ResponsesDecoder final : public Decoder {
 public:
  explicit ResponsesDecoder(OnText on_text) : on_text_(std::move(on_text)) {}
  Result<void> handle(const SseEvent& event) override;
  Result<ModelReply> finish() override;

 private:
  Result<void> add_item(const Json& event);
  void note_end(const Json& response, bool whole);

  const OnText on_text_;
  std::map<std::uint64_t, ToolUse> calls_;  // by their place in the output
  ModelReply reply_;
  bool ended_ = false, refused_ = false, cut_ = false;
};

Result<void> ResponsesDecoder::add_item(const Json& event) {
  const Json& item = member(event, "item");
  if (text_of(item, "type") != "function_call") return {};
  ToolUse& call = calls_[count_of(event, "output_index")];
  if (calls_.size() > kMostCalls) return malformed("it has too many calls");
  call.id = text_of(item, "call_id");
  call.name = text_of(item, "name");
  if (const std::string arguments = text_of(item, "arguments"); !arguments.empty()) call.arguments = arguments;
  return {};
}

void ResponsesDecoder::note_end(const Json& response, bool whole) {
  const Json& use = member(response, "usage");
  reply_.use = {count_of(use, "input_tokens"), count_of(use, "output_tokens")};
  const std::string why = text_of(member(response, "incomplete_details"), "reason");
  refused_ = refused_ || why == "content_filter";
  cut_ = (!whole || !why.empty()) && why != "content_filter";  // by whatever: the last call may lack its end
  ended_ = true;
}

Result<void> ResponsesDecoder::handle(const SseEvent& sse) {
  if (sse.data == "[DONE]") return {};
  const auto event = parse_json(sse.data);
  if (!event || !event->is_object()) return malformed("an event is no JSON object");
  const std::string type = text_of(*event, "type");
  if (type == "error") return endpoint_error(member(*event, "error").is_object() ? member(*event, "error") : *event);
  if (type == "response.failed") return endpoint_error(member(member(*event, "response"), "error"));
  if (type == "response.output_text.delta" || type == "response.refusal.delta") {
    refused_ = refused_ || type == "response.refusal.delta";
    const std::string text = text_of(*event, "delta");
    reply_.message.text += text;
    if (on_text_ && !text.empty()) on_text_(text);
  }
  if (type == "response.output_item.added" || type == "response.output_item.done") return add_item(*event);
  if (type == "response.function_call_arguments.delta") {
    const auto call = calls_.find(count_of(*event, "output_index"));
    if (call == calls_.end()) return malformed("a piece belongs to no call");
    call->second.arguments += text_of(*event, "delta");
  }
  if (type == "response.completed" || type == "response.incomplete")
    note_end(member(*event, "response"), type == "response.completed");
  return {};
}

Result<ModelReply> ResponsesDecoder::finish() {
  if (!ended_) return malformed("the stream ended before the answer did");
  for (auto& [index, call] : calls_) reply_.message.calls.push_back(std::move(call));
  reply_.stop = cut_                           ? ModelStop::kLength
                : refused_                     ? ModelStop::kRefused
                : reply_.message.calls.empty() ? ModelStop::kEnd
                                               : ModelStop::kTools;
  return std::move(reply_);
}

}  // namespace

Json responses_body(const std::string& model, const ModelRequest& request) {
  Json body{
      {"model", model}, {"max_output_tokens", request.max_output}, {"stream", true}, {"store", false}, {"input", Json::array()}};
  if (!request.system.empty()) body["instructions"] = request.system;
  for (const ChatMessage& message : request.messages) add_items(body["input"], message);
  for (const ToolSpec& tool : request.tools)
    body["tools"].push_back({{"type", "function"},
                             {"name", tool.name},
                             {"description", tool.description},
                             {"parameters", parse_json(tool.input_schema).value_or(Json{{"type", "object"}})},
                             {"strict", false}});
  return body;
}

std::unique_ptr<Decoder> responses_decoder(OnText on_text) { return std::make_unique<ResponsesDecoder>(std::move(on_text)); }

}  // namespace belljar::agent
