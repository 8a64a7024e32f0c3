// What the tool `shell` says of a script, in the forms that the service and its clients know: JSON with
// exit_code, stdout and stderr, in a result or in what the tool calls an error; errorCode where it is an error;
// no code at all where it is zero.
//
// Text of any other form is nonsense and not a result, as nobody can say how the command ended. A complaint of
// a time limit is found by its words, because the tool has no code for it.
#include "remote/aliyun/tools.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "belljar/error.h"
#include "belljar/result.h"
#include "remote/address.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/wire.h"
#include "remote/json.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {
namespace {

Error nonsense_of_sandbox(std::string reason) {
  return Error(Code::kDataLoss, "the sandbox answered with nonsense").reason(std::move(reason));
}

// Nothing of it beyond what an exit status can be.
std::optional<int> exit_code_in(const Json& said, const char* name) {
  const auto found = said.find(name);
  if (found == said.end() || !found->is_number_integer()) return {};
  const auto code = found->get<std::int64_t>();
  if (code < std::numeric_limits<int>::min() || code > std::numeric_limits<int>::max()) return {};
  return static_cast<int>(code);
}

}  // namespace

Result<Content> parse_content(const Json& data) {
  if (!data.is_object()) return nonsense_of_sandbox("what a tool said is no object");
  Content content;
  if (const auto error = data.find("isError"); error != data.end() && error->is_boolean()) content.is_error = error->get<bool>();
  const auto items = data.find("content");
  if (items == data.end() || !items->is_array()) return nonsense_of_sandbox("a tool said nothing: `content` is missing");
  if (items->empty()) return content;
  const Json& first = items->front();
  if (first.is_string()) {
    content.text = first.get<std::string>();
    return content;
  }
  for (const char* name : {"text", "blob", "data"}) {
    content.text = text_in(first, name);
    if (!content.text.empty()) break;
  }
  return content;
}

Result<Content> parse_direct(const std::string& body) {
  const Json reply = Json::parse(body, nullptr, false);
  if (!reply.is_object()) return nonsense_of_sandbox("its answer is no JSON object");
  const auto data = reply.find("data");
  if (data == reply.end()) return nonsense_of_sandbox("`data` is missing in its answer");
  const Json inner = unwrapped(*data);
  const auto result = inner.is_object() ? inner.find("result") : inner.end();
  if (!inner.is_object() || result == inner.end()) return nonsense_of_sandbox("`result` is missing in its answer");
  return parse_content(*result);
}

Result<shell::ScriptOutput> parse_script_output(const Content& content) {
  const Json said = Json::parse(content.text, nullptr, false);
  if (said.is_object()) {
    auto code = exit_code_in(said, "exit_code");
    if (content.is_error && code.value_or(0) == 0) code = exit_code_in(said, "errorCode");
    // A zero may be left out where it is no error, as the service's own clients take it.
    if (!code && !content.is_error && said.contains("stdout") && !said.contains("exit_code")) code = 0;
    if (code && !(content.is_error && *code == 0))
      return shell::ScriptOutput{.exit_code = *code, .out = text_in(said, "stdout"), .err = text_in(said, "stderr")};
  }
  if (!content.is_error) return nonsense_of_sandbox("its shell did not say how the command ended");
  const bool late = content.text.find("timed out") != std::string::npos || content.text.find("timeout") != std::string::npos;
  return Error(late ? Code::kDeadlineExceeded : Code::kUnavailable, "the sandbox did not run the command")
      .reason("its shell says: " + shown(content.text, {}));
}

}  // namespace belljar::remote::aliyun
