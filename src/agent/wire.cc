#include "agent/wire.h"

#include <cstddef>
#include <string>
#include <utility>

#include "agent/json.h"
#include "base/format.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"

namespace belljar::agent {

const Wire& wire_of(ModelWire wire) noexcept {
  static constexpr Wire kAnthropic{"/v1/messages", anthropic_body, anthropic_decoder};
  static constexpr Wire kChat{"/v1/chat/completions", chat_body, chat_decoder};
  static constexpr Wire kResponses{"/v1/responses", responses_body, responses_decoder};
  return wire == ModelWire::kAnthropic ? kAnthropic : wire == ModelWire::kOpenAiChat ? kChat : kResponses;
}

Error malformed(std::string why) { return Error(Code::kDataLoss, "the model's answer cannot be read").reason(std::move(why)); }

std::string shortened(std::string text, std::size_t limit) {
  if (text.size() > limit) text = text.substr(0, limit) + "...";
  return escaped(text);
}

Error endpoint_error(const Json& error) {
  std::string type = text_of(error, "type");
  if (type.empty() || type == "error") type = text_of(error, "code");  // the event itself, in the responses wire
  const std::string message = error.is_string() ? error.get<std::string>() : text_of(error, "message");
  const Code code = type == "invalid_request_error" || type == "not_found_error" || type == "request_too_large"
                        ? Code::kInvalidArgument
                    : type == "authentication_error" || type == "permission_error" ? Code::kUnauthenticated
                                                                                   : Code::kUnavailable;
  return Error(code, "the endpoint answers with an error")
      .reason(type.empty() ? shortened(message) : format("{}: {}", shortened(type, 80), shortened(message)));
}

}  // namespace belljar::agent
