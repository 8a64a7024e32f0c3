// Answers of the AIO server: {"success", "message", "data"}, under status 200 also when it failed; {"detail"}
// of its framework when it does not take a request; and whatever a gateway in front says. `success` must be
// there and a boolean, or it is not this server.
//
// A failure of a file call has error_type, which decides the code. One of a command has none and counts as
// kFailedPrecondition. Offsets must be there while the command runs: without them the next question would bring
// the same output twice.
#include "remote/volcengine/envelope.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/json.h"
#include "remote/retry.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/reply.h"

namespace belljar::remote::volcengine {
namespace {

using Json = nlohmann::json;

Code code_of(long status) noexcept {
  if (status == 422) return Code::kInvalidArgument;
  return status == 413 ? Code::kResourceExhausted : code_of_status(status);
}

Code code_of_file_error(std::string_view type) noexcept {
  if (type == "not_found") return Code::kNotFound;
  if (type == "permission_denied" || type == "read_only_filesystem") return Code::kPermissionDenied;
  if (type == "already_exists") return Code::kAlreadyExists;
  if (type == "invalid_path") return Code::kInvalidArgument;
  if (type == "no_space_left") return Code::kResourceExhausted;
  return type == "io_error" ? Code::kUnavailable : Code::kFailedPrecondition;
}

const char* next_of(long status) noexcept {
  switch (status) {
    case 401:
    case 403:
      return "check SANDBOX_AUTHORIZATION (the gateway's key) and SANDBOX_API_KEY (the AIO server's)";
    case 404:
      return "check SANDBOX_ENDPOINT, and whether the sandbox still runs";
    case 422:
      return "use an image with AIO sandbox 1.5 or later";
    default:
      return "try again";
  }
}

// What pydantic makes of a request that it does not take: {"detail": [{loc, msg, type}]}; a gateway has a message or nothing.
std::string said_in(const Json& json) {
  const Json& detail = member(json, "detail");
  if (detail.is_string()) return detail.get<std::string>();
  std::string said;
  if (detail.is_array()) {
    for (const Json& entry : detail) said += (said.empty() ? "" : "; ") + text_in(entry, "msg");
  }
  return said.empty() ? text_in(json, "message") : said;
}

Error nonsense(std::string reason) {
  return Error(Code::kDataLoss, "the AIO server answered with nonsense").reason(std::move(reason));
}

Result<Progress::State> state_of(const std::string& status) {
  if (status == "running" || status == "pending") return Progress::State::kRunning;
  if (status == "completed") return Progress::State::kEnded;
  if (status == "timed_out") return Progress::State::kTimedOut;
  if (status == "killed") return Progress::State::kKilled;
  return nonsense(format("a command is {}", belljar::quoted(status.substr(0, 80))));
}

Result<Progress> parse_progress(const Json& data, const Json& command) {
  if (!data.is_object()) return nonsense("it says nothing of the command");
  Progress progress{.session = text_in(data, "session_id"), .command = text_in(command, "command_id")};
  progress.state = BELLJAR_TRY(state_of(text_in(command, "status")));
  progress.out = text_in(data, "stdout");
  progress.err = text_in(data, "stderr");
  for (const auto& [name, to] : {std::pair{"offset", &progress.out_offset}, std::pair{"stderr_offset", &progress.err_offset}}) {
    const Json& offset = member(data, name);
    if (offset.is_number_integer() && offset.get<long>() >= 0) *to = offset.get<long>();
    else if (progress.state == Progress::State::kRunning) return nonsense("it does not say how much was read");
  }
  const Json& code = member(command, "exit_code");
  if (code.is_number_integer()) progress.exit_code = code.get<int>();
  else if (progress.state == Progress::State::kEnded) return nonsense("a command ended without an exit code");
  return progress;
}

}  // namespace

Error refused(const http::Reply& reply, const std::string& what, const std::vector<std::string>& secrets) {
  constexpr std::size_t kMostComplaint = 64U << 10;  // the server lives among the commands: they may have replaced it
  const std::string said = reply.body.size() > kMostComplaint ? "" : said_in(Json::parse(reply.body, nullptr, false));
  std::string reason = format("the sandbox's endpoint answered with status {}", reply.status);
  if (reply.status == 504) reason += ", which is what its gateway says of a call that takes too long";
  if (!said.empty()) reason += ": " + shown(said, secrets);
  return Error(code_of(reply.status), what).reason(std::move(reason)).next(next_of(reply.status));
}

Result<Json> parse_envelope(const http::Reply& reply, const std::string& what, const std::vector<std::string>& secrets) {
  if (reply.status / 100 != 2) return refused(reply, what, secrets);
  Json json = Json::parse(reply.body, nullptr, false);
  const Json& success = member(json, "success");
  if (!success.is_boolean())
    return Error(Code::kDataLoss, what)
        .reason(format("the sandbox's endpoint answered with nonsense, content type {}",
                       belljar::quoted(reply.content_type.substr(0, 80))))
        .next("check that AIO sandbox is what answers there");
  const Json& data = member(json, "data");
  if (success.get<bool>()) return data;
  const std::string type = text_in(data, "error_type");
  std::string said = text_in(data, "message");
  if (said.empty()) said = text_in(json, "message");
  return Error(type.empty() ? Code::kFailedPrecondition : code_of_file_error(type), what)
      .reason(said.empty() ? "the AIO server says that it failed" : shown(said, secrets));
}

bool may_be_complaint(const http::Reply& reply) {
  if (!reply.body.starts_with('{') || reply.body.size() > 65536) return false;
  const Json json = Json::parse(reply.body, nullptr, false);
  const Json& success = member(json, "success");
  return success.is_boolean() && !success.get<bool>();
}

Result<Progress> parse_exec(const Json& data) { return parse_progress(data, data); }
Result<Progress> parse_output(const Json& data) { return parse_progress(data, member(data, "command")); }

}  // namespace belljar::remote::volcengine
