// Failures come in three shapes: a status of 4xx or 5xx with or without JSON; "Success": false under status
// 200; and the same one level deeper, in Data. All become one Answer. Where the status is 200, HttpStatusCode
// of the envelope stands in for it.
//
// A 200 with neither Success nor Data, and with a code that is not "ok", is a failure: only what is told as
// success counts as one.
//
// Values inside may be JSON, or text that holds JSON; unwrapped() takes both. "Not found" is told from other
// failures by code, and with status 400 by the message.
#include "remote/aliyun/wire.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"
#include "base/rfc3339.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/json.h"

namespace belljar::remote::aliyun {
namespace {

constexpr std::string_view kVersion = "2025-05-06";

bool says(const std::string& text, std::string_view words) { return lower_case(text).find(words) != std::string::npos; }

bool is_false(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && !found->get<bool>();
}

// The envelope's own word for what HTTP calls 200.
long status_in(const Json& envelope, long status) {
  const auto found = envelope.find("HttpStatusCode");
  if (found == envelope.end() || !found->is_number_integer()) return status;
  const long told = found->get<long>();
  return told >= 400 && told < 600 ? told : status;
}

void fail(Answer& answer, const Json& envelope) {
  answer.success = false;
  if (answer.status / 100 == 2) answer.status = status_in(envelope, answer.status);
  if (iequals(answer.code, "ok")) answer.code.clear();
}

}  // namespace

std::string form_of(const Fields& fields) {
  std::string form;
  for (const auto& [name, text] : fields) {
    if (text.empty()) continue;
    if (!form.empty()) form += '&';
    form += percent_encoded(name) + "=" + percent_encoded(text);
  }
  return form;
}

std::string query_of(std::string_view action, std::chrono::system_clock::time_point now, std::string_view nonce) {
  const std::string time = rfc3339(now).substr(0, 19) + "Z";
  return format("?Action={}&Format=json&Version={}&Timestamp={}&SignatureNonce={}", percent_encoded(action), kVersion,
                percent_encoded(time), percent_encoded(nonce));
}

Json unwrapped(const Json& value) {
  if (!value.is_string()) return value;
  Json inner = Json::parse(value.get_ref<const std::string&>(), nullptr, false);
  return inner.is_object() || inner.is_array() ? inner : value;
}

Result<Answer> parse_answer(long status, const std::string& body) {
  Answer answer{.status = status, .success = status / 100 == 2, .code = {}, .message = {}, .data = {}};
  const Json envelope = Json::parse(body, nullptr, false);
  if (!envelope.is_object()) {
    if (!answer.success) return answer;  // some proxy's page
    return Error(Code::kDataLoss, "the AgentBay service answered with nonsense")
        .reason("its answer is no JSON object")
        .next("check AGENTBAY_ENDPOINT");
  }
  answer.code = text_in(envelope, "Code");
  answer.message = text_in(envelope, "Message");
  if (const auto data = envelope.find("Data"); data != envelope.end()) answer.data = unwrapped(*data);
  const bool told = envelope.contains("Success") || !answer.data.is_null() || answer.code.empty() || iequals(answer.code, "ok");
  if (!answer.success || is_false(envelope, "Success") || !told) fail(answer, envelope);
  if (answer.success && answer.data.is_object() && is_false(answer.data, "Success")) {
    fail(answer, envelope);
    if (std::string said = text_in(answer.data, "ErrMsg"); !said.empty()) answer.message = std::move(said);
  }
  return answer;
}

bool is_throttled(const Answer& answer) noexcept {
  return !answer.success && (answer.status == 429 || answer.code.starts_with("Throttling"));
}

bool is_gone(const Answer& failure) {
  if (failure.success) return false;
  if (failure.code == "InvalidMcpSession.NotFound" || failure.code == "InvalidSession.NotFound") return true;
  if (failure.status != 400 || !says(failure.message, "not found")) return false;
  return failure.code.empty() || says(failure.message, "session");
}

Code code_of(const Answer& failure) {
  const std::string& code = failure.code;
  if (is_throttled(failure)) return Code::kResourceExhausted;
  if (is_gone(failure)) return Code::kNotFound;
  if (code == "InvalidAction.NotFound") return Code::kUnimplemented;
  if (code == "NOT_LOGIN" || failure.status == 401 || code.starts_with("InvalidApiKey") || code.starts_with("InvalidAccessKey") ||
      code.starts_with("Unauthorized"))
    return Code::kUnauthenticated;
  if (failure.status == 403 || code.starts_with("Forbidden") || code.starts_with("NoPermission")) return Code::kPermissionDenied;
  if (says(failure.message, "exceed limit") || says(failure.message, "concurrency limit")) return Code::kResourceExhausted;
  if (code.ends_with(".NotFound") || failure.status == 404) return Code::kNotFound;
  return failure.status == 400 ? Code::kInvalidArgument : Code::kUnavailable;
}

}  // namespace belljar::remote::aliyun
