// A model that says what a script says.
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/json.h"
#include "base/format.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {
namespace agent {
namespace {

struct Line {
  ModelReply reply;
  std::string expect, error;
  bool hang = false;
  std::uint64_t times = 1;
};

class ScriptedModel final : public ModelProvider {
 public:
  explicit ScriptedModel(std::vector<Line> lines) : lines_(std::move(lines)) {}
  Result<ModelReply> ask(const ModelRequest& request, const ModelContext& context) override;

 private:
  const std::vector<Line> lines_;
  std::size_t at_ = 0;
  std::uint64_t said_ = 0;  // of the line we are at
  std::uint64_t serial_ = 0;
};

// What came since the model spoke last.
bool heard(const ModelRequest& request, const std::string& expected) {
  for (auto message = request.messages.rbegin(); message != request.messages.rend(); ++message) {
    if (message->role == ChatRole::kAssistant) return false;
    if (message->text.find(expected) != std::string::npos) return true;
  }
  return request.system.find(expected) != std::string::npos;
}

Result<ModelReply> ScriptedModel::ask(const ModelRequest& request, const ModelContext& context) {
  if (at_ < lines_.size() && said_ >= lines_[at_].times) {
    ++at_;
    said_ = 0;
  }
  if (at_ >= lines_.size())
    return Error(Code::kOutOfRange, "the script is at its end").reason(format("it has {} answers", lines_.size()));
  const Line& line = lines_[at_];
  ++said_;
  if (!heard(request, line.expect))
    return Error(Code::kFailedPrecondition, format("answer {} of the script expects {}", at_ + 1, belljar::quoted(line.expect)))
        .reason(request.messages.empty() ? "nothing was said"
                                         : "what came last is " + belljar::quoted(request.messages.back().text));
  if (line.hang) {
    pollfd look{context.cancel.fd(), POLLIN, 0};
    (void)::poll(&look, 1, -1);
  }
  if (context.cancel.cancelled()) return Error(Code::kCanceled, "the question to the model was cancelled");
  if (!line.error.empty()) return Error(Code::kUnavailable, "the model does not answer").reason(line.error);
  ModelReply reply = line.reply;
  for (ToolUse& call : reply.message.calls) call.id = format("call_{}", ++serial_);
  if (context.on_text && !reply.message.text.empty()) {
    const std::string_view text = reply.message.text;
    const std::size_t half = std::min(text.find(' '), text.size());
    context.on_text(text.substr(0, half));
    if (half < text.size()) context.on_text(text.substr(half));
  }
  return reply;
}

Result<Line> parse_line(const Json& json) {
  static const std::map<std::string, ModelStop> kStops{
      {"end", ModelStop::kEnd}, {"tools", ModelStop::kTools}, {"length", ModelStop::kLength}, {"refused", ModelStop::kRefused}};
  const auto bad = [](std::string why) { return Error(Code::kInvalidArgument, "cannot read the script").reason(std::move(why)); };
  if (!json.is_object()) return bad("an answer is an object");
  for (const auto& [key, value] : json.items()) {
    constexpr std::string_view kKeys[] = {"text",   "calls", "stop", "input_tokens", "output_tokens",
                                          "expect", "error", "hang", "times"};
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
      return bad("there is no key " + belljar::quoted(key));
  }
  Line line{.expect = text_of(json, "expect"), .error = text_of(json, "error"), .hang = member(json, "hang") == Json(true)};
  line.times = std::max<std::uint64_t>(count_of(json, "times"), 1);
  line.reply.message.text = text_of(json, "text");
  line.reply.use = {count_of(json, "input_tokens"), count_of(json, "output_tokens")};
  for (const Json& call : member(json, "calls")) {
    const Json& arguments = member(call, "arguments");
    line.reply.message.calls.push_back(
        {.name = text_of(call, "name"), .arguments = arguments.is_string() ? arguments.get<std::string>() : dump(arguments)});
  }
  line.reply.stop = line.reply.message.calls.empty() ? ModelStop::kEnd : ModelStop::kTools;
  if (const std::string stop = text_of(json, "stop"); !stop.empty()) {
    const auto known = kStops.find(stop);
    if (known == kStops.end()) return bad("there is no stop " + belljar::quoted(stop));
    line.reply.stop = known->second;
  }
  return line;
}

}  // namespace
}  // namespace agent

Result<std::shared_ptr<ModelProvider>> scripted_model(std::string_view script) {
  const auto json = agent::parse_json(script);
  if (!json || !json->is_array()) return Error(Code::kInvalidArgument, "cannot read the script").reason("it is no JSON list");
  std::vector<agent::Line> lines;
  for (const agent::Json& each : *json) lines.push_back(BELLJAR_TRY(agent::parse_line(each)));
  return std::shared_ptr<ModelProvider>(std::make_shared<agent::ScriptedModel>(std::move(lines)));
}

}  // namespace belljar
