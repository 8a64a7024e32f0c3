// The three wires: a request as a body, and the events of a streamed answer as a reply. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/json.h"
#include "agent/sse.h"
#include "belljar/agent_model.h"
#include "belljar/result.h"

namespace belljar::agent {

// Of one answer. More is not this protocol.
inline constexpr std::size_t kMostCalls = 128;

class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;
  // Errors: kDataLoss, it is not what the wire promises; kUnavailable, kInvalidArgument, kUnauthenticated: the endpoint says so in
  // the middle of the stream.
  virtual Result<void> handle(const SseEvent& event) = 0;
  // At the end of the stream. Errors: kDataLoss, the answer is not whole.
  virtual Result<ModelReply> finish() = 0;
};

using OnText = std::function<void(std::string_view piece)>;

struct Wire {
  std::string_view path;  // behind the URL
  Json (*body)(const std::string& model, const ModelRequest& request);
  std::unique_ptr<Decoder> (*decoder)(OnText on_text);
};
const Wire& wire_of(ModelWire wire) noexcept;

Json anthropic_body(const std::string& model, const ModelRequest& request);
std::unique_ptr<Decoder> anthropic_decoder(OnText on_text);
Json chat_body(const std::string& model, const ModelRequest& request);
std::unique_ptr<Decoder> chat_decoder(OnText on_text);
Json responses_body(const std::string& model, const ModelRequest& request);
std::unique_ptr<Decoder> responses_decoder(OnText on_text);

// What all three share.
Error malformed(std::string why);
// The error object of a body or an event as an Error: its type decides the code.
Error endpoint_error(const Json& error);
// Text that ends up in a message: text, of `limit` bytes at most.
std::string shortened(std::string text, std::size_t limit = 400);

}  // namespace belljar::agent
