#include "agent/wire.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/json.h"
#include "agent/sse.h"
#include "base/format.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "support/model_server.h"

namespace belljar::agent {
namespace {

using test::StreamCall;

constexpr ModelWire kWires[] = {ModelWire::kAnthropic, ModelWire::kOpenAiChat, ModelWire::kOpenAiResponses};

std::vector<std::string> stream(ModelWire wire, const std::string& text, const std::vector<StreamCall>& calls = {}) {
  return wire == ModelWire::kAnthropic    ? test::anthropic_stream(text, calls)
         : wire == ModelWire::kOpenAiChat ? test::chat_stream(text, calls)
                                          : test::responses_stream(text, calls);
}

Result<ModelReply> decoded(ModelWire wire, const std::vector<std::string>& pieces, std::string* streamed = nullptr) {
  const auto decoder = wire_of(wire).decoder([&](std::string_view piece) {
    if (streamed != nullptr) *streamed += piece;
  });
  std::optional<Error> broken;
  SseReader reader(1U << 20, [&](const SseEvent& event) {
    const auto handled = decoder->handle(event);
    if (!handled) broken = handled.error();
    return handled.has_value();
  });
  for (const std::string& piece : pieces) (void)reader.feed(piece);
  if (broken) return *broken;
  return decoder->finish();
}

const std::vector<StreamCall> kTwo{{"t1", "bash", R"({"command":"echo \"hi\""})"}, {"t2", "read_file", R"({"path":"a"})"}};

TEST(Wire, TextCallsAndUseOfAllThree) {
  for (const ModelWire wire : kWires) {
    SCOPED_TRACE(static_cast<int>(wire));
    std::string streamed;
    const auto reply = decoded(wire, stream(wire, "Let me \"look\".", kTwo), &streamed);
    ASSERT_TRUE(reply) << reply.error().line();
    EXPECT_EQ(reply->message.text, "Let me \"look\".");
    EXPECT_EQ(streamed, reply->message.text);
    EXPECT_EQ(reply->message.calls,
              (std::vector<ToolUse>{{"t1", "bash", kTwo[0].arguments}, {"t2", "read_file", kTwo[1].arguments}}));
    EXPECT_EQ(reply->stop, ModelStop::kTools);
    EXPECT_EQ(reply->use, (TokenUse{120, 30}));
    const auto end = decoded(wire, stream(wire, "done"));
    ASSERT_TRUE(end) << end.error().line();
    EXPECT_EQ(end->stop, ModelStop::kEnd);
  }
}

TEST(Wire, AStreamThatIsCutAnywhereIsNoAnswer) {
  for (const ModelWire wire : kWires) {
    const std::vector<std::string> whole = stream(wire, "text", kTwo);
    // The last two events of chat completions carry the use and nothing that is needed.
    const std::size_t needed = whole.size() - (wire == ModelWire::kOpenAiChat ? 2 : 0);
    for (std::size_t events = 0; events < needed; ++events) {
      const auto reply = decoded(wire, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(events)});
      ASSERT_FALSE(reply) << static_cast<int>(wire) << " after " << events;
      EXPECT_EQ(reply.error().code(), Code::kDataLoss);
    }
    EXPECT_TRUE(decoded(wire, whole));
  }
}

TEST(Wire, MalformedEventsAreErrorsAndUnknownOnesPass) {
  for (const ModelWire wire : kWires) {
    for (const char* data : {"{", "[]", "7", "nonsense", "{\"a\":\"\xFF\"}"}) {
      auto pieces = stream(wire, "text");
      pieces.insert(pieces.begin() + 1, "data: " + std::string(data) + "\n\n");
      EXPECT_FALSE(decoded(wire, pieces)) << data;
    }
    auto pieces = stream(wire, "text");
    pieces.insert(pieces.begin() + 1, "event: new\ndata: {\"type\":\"something.new\",\"choices\":[]}\n\n");
    EXPECT_TRUE(decoded(wire, pieces));
  }
}

TEST(Wire, ErrorsInTheMiddleOfAStreamAreThoseOfTheEndpoint) {
  const auto error = [](ModelWire wire, const char* type) {
    auto pieces = stream(wire, "text");
    pieces.insert(pieces.begin() + 2,
                  belljar::format(R"(data: {{"type":"error","error":{{"type":"{}","message":"m\u001b[31m"}}}})", type) + "\n\n");
    const auto reply = decoded(wire, pieces);
    EXPECT_FALSE(reply);
    return reply ? Error(Code::kUnknown, "") : reply.error();
  };
  for (const ModelWire wire : kWires) {
    EXPECT_EQ(error(wire, "overloaded_error").code(), Code::kUnavailable);
    EXPECT_EQ(error(wire, "invalid_request_error").code(), Code::kInvalidArgument);
    EXPECT_EQ(error(wire, "authentication_error").code(), Code::kUnauthenticated);
    EXPECT_EQ(error(wire, "x").line().find('\033'), std::string::npos);
  }
}

TEST(Wire, AnErrorThatIsTheEventItselfIsToldByItsCode) {
  const auto reply = decoded(ModelWire::kOpenAiResponses,
                             {"data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}\n\n"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().reason(), "rate_limit_exceeded: slow down");
}

TEST(Wire, CutAndRefusedAnswersSaySo) {
  const auto stop = [](ModelWire wire, const std::string& from, const std::string& to) {
    auto pieces = stream(wire, "text");
    for (std::string& piece : pieces) {
      if (const std::size_t at = piece.find(from); at != std::string::npos) piece.replace(at, from.size(), to);
    }
    const auto reply = decoded(wire, pieces);
    return reply ? reply->stop : ModelStop::kTools;
  };
  EXPECT_EQ(stop(ModelWire::kAnthropic, "end_turn", "max_tokens"), ModelStop::kLength);
  EXPECT_EQ(stop(ModelWire::kAnthropic, "end_turn", "refusal"), ModelStop::kRefused);
  EXPECT_EQ(stop(ModelWire::kOpenAiChat, "\"stop\"", "\"length\""), ModelStop::kLength);
  EXPECT_EQ(stop(ModelWire::kOpenAiChat, "\"stop\"", "\"content_filter\""), ModelStop::kRefused);
  EXPECT_EQ(stop(ModelWire::kOpenAiResponses, R"("status":"completed",)",
                 R"("status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},)"),
            ModelStop::kLength);
  EXPECT_EQ(stop(ModelWire::kOpenAiResponses, R"("type":"response.completed")", R"("type":"response.incomplete")"),
            ModelStop::kLength)
      << "no reason told";
  EXPECT_EQ(stop(ModelWire::kOpenAiResponses, R"("status":"completed",)",
                 R"("status":"incomplete","incomplete_details":{"reason":"content_filter"},)"),
            ModelStop::kRefused);
  EXPECT_EQ(stop(ModelWire::kOpenAiResponses, "text", "text"), ModelStop::kEnd) << "the twin";
}

const ModelRequest kRequest{.system = "be good",
                            .messages = {{.text = "do it"},
                                         {.role = ChatRole::kAssistant,
                                          .text = "ok",
                                          .calls = {{"t1", "bash", R"({"command":"ls"})"}, {"t2", "bash", "{broken"}}},
                                         {.role = ChatRole::kTool, .text = "a b", .call_id = "t1", .tool = "bash"},
                                         {.role = ChatRole::kTool, .text = "no", .call_id = "t2", .tool = "bash", .failed = true},
                                         {.text = "and more"}},
                            .tools = {{.name = "bash", .description = "runs", .input_schema = R"({"type":"object"})"}},
                            .max_output = 77};

TEST(Wire, ARequestOfEachWire) {
  const Json anthropic = anthropic_body("m", kRequest);
  EXPECT_EQ(
      dump(anthropic),
      R"({"model":"m","max_tokens":77,"stream":true,"system":"be good","tools":[{"name":"bash","description":"runs","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":[{"type":"text","text":"do it"}]},{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}},{"type":"tool_use","id":"t2","name":"bash","input":{"not_json":"{broken"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a b","is_error":false},{"type":"tool_result","tool_use_id":"t2","content":"no","is_error":true},{"type":"text","text":"and more"}]}]})");
  const Json chat = chat_body("m", kRequest);
  EXPECT_EQ(
      dump(chat),
      R"({"model":"m","max_completion_tokens":77,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"be good"},{"role":"user","content":"do it"},{"role":"assistant","content":"ok","tool_calls":[{"id":"t1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"t2","type":"function","function":{"name":"bash","arguments":"{\"not_json\":\"{broken\"}"}}]},{"role":"tool","tool_call_id":"t1","content":"a b"},{"role":"tool","tool_call_id":"t2","content":"no"},{"role":"user","content":"and more"}],"tools":[{"type":"function","function":{"name":"bash","description":"runs","parameters":{"type":"object"}}}]})");
  const Json responses = responses_body("m", kRequest);
  EXPECT_EQ(
      dump(responses),
      R"({"model":"m","max_output_tokens":77,"stream":true,"store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},{"type":"function_call","call_id":"t1","name":"bash","arguments":"{\"command\":\"ls\"}"},{"type":"function_call","call_id":"t2","name":"bash","arguments":"{\"not_json\":\"{broken\"}"},{"type":"function_call_output","call_id":"t1","output":"a b"},{"type":"function_call_output","call_id":"t2","output":"no"},{"type":"message","role":"user","content":[{"type":"input_text","text":"and more"}]}],"instructions":"be good","tools":[{"type":"function","name":"bash","description":"runs","parameters":{"type":"object"},"strict":false}]})");
}

}  // namespace
}  // namespace belljar::agent
