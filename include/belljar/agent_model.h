// A model as an agent sees it, and the three wires it may speak: Anthropic's messages, OpenAI's chat completions and responses.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/result.h"
#include "belljar/tools.h"

namespace belljar {

struct ToolUse {
  std::string id, name;
  std::string arguments;  // as the model wrote them: perhaps no JSON
  bool operator==(const ToolUse&) const = default;
};

enum class ChatRole { kUser, kAssistant, kTool };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string text;
  bool made = false;           // of kUser: not by the user but by a middleware
  std::vector<ToolUse> calls;  // of kAssistant
  std::string call_id, tool;   // of kTool
  bool failed = false;         // of kTool
  bool operator==(const ChatMessage&) const = default;
};

struct TokenUse {
  std::uint64_t input = 0, output = 0;
  std::uint64_t total() const noexcept { return input + output; }
  bool operator==(const TokenUse&) const = default;
};

struct ModelRequest {
  std::string system;
  std::vector<ChatMessage> messages;
  std::vector<ToolSpec> tools;
  std::uint64_t max_output = 8192;
};

enum class ModelStop { kEnd, kTools, kLength, kRefused };

struct ModelReply {
  ChatMessage message{.role = ChatRole::kAssistant};
  ModelStop stop = ModelStop::kEnd;
  TokenUse use;  // zero: the endpoint did not say
};

struct ModelContext {
  CancelToken cancel;
  std::function<void(std::string_view piece)> on_text;
  // What came so far is void; it is asked again after `wait`.
  std::function<void(std::string_view reason, std::chrono::milliseconds wait)> on_retry;
};

class ModelProvider {
 public:
  ModelProvider() = default;
  ModelProvider(const ModelProvider&) = delete;
  ModelProvider& operator=(const ModelProvider&) = delete;
  virtual ~ModelProvider() = default;
  // Blocks; the functions of `context` are called meanwhile, on the same thread. One call at a time, unless its maker says more.
  // Errors: every reason why there is no whole answer; kCanceled.
  virtual Result<ModelReply> ask(const ModelRequest& request, const ModelContext& context) = 0;
};

enum class ModelWire { kAnthropic, kOpenAiChat, kOpenAiResponses };

struct HttpModelOptions {
  ModelWire wire = ModelWire::kAnthropic;
  // Up to, and without, /v1/messages and so on. http:// only to this machine.
  std::string url;
  std::string model;
  std::string key;  // empty: no header. Never part of an error.
  // Asked again: no connection, a broken or malformed stream, 408, 409, 429 and 5xx. Waits double from `first_wait`; `retry-after`
  // counts where it is longer, up to `longest_wait`: beyond it the endpoint's wish is the error.
  unsigned attempts = 5;
  std::chrono::milliseconds first_wait{1000}, longest_wait{60'000};
  std::chrono::milliseconds silence{300'000};  // without a byte
};
// May be asked by several threads at once. Errors: kInvalidArgument.
Result<std::shared_ptr<ModelProvider>> http_model(HttpModelOptions options);

// Says what a script says, for tests. A JSON list of answers, in order, each an object, every key optional:
//   text, calls [{name, arguments (an object, or any text)}], stop (end, tools, length, refused), input_tokens, output_tokens,
//   expect (this must stand in what came since its last answer), error (instead of an answer), hang (true: until cancelled),
//   times (so often).
// Errors: kInvalidArgument. Asked beyond its end it answers with kOutOfRange.
Result<std::shared_ptr<ModelProvider>> scripted_model(std::string_view script);

}  // namespace belljar
