// Answers of Volcengine's OpenAPI: ResponseMetadata, with Error in it where it failed, beside Result. The
// gateway before the service has another form (errorcode, message).
//
// The code of the service decides, and the HTTP status only where the code says nothing: the same status stands
// for several things. Codes are found by parts of their names. Quota and throttling are asked for first,
// whatever the status.
#include "remote/volcengine/reply.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
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
#include "remote/volcengine/address.h"

namespace belljar::remote::volcengine {
namespace {

using Json = nlohmann::json;

bool has(std::string_view text, std::string_view part) noexcept { return text.find(part) != std::string_view::npos; }

const char* next_of(Code code) noexcept {
  switch (code) {
    case Code::kUnauthenticated:
      return "check the access key, its secret and, of a temporary key, its token; and this machine's clock";
    case Code::kPermissionDenied:
      return "give the key's user the rights of veFaaS";
    case Code::kResourceExhausted:
      return "end other sandboxes, or wait";
    case Code::kNotFound:
      return "check SANDBOX_APP_ID, the region, or the id of the sandbox";
    case Code::kInvalidArgument:
      return "check the settings it names";
    default:
      return "try again";
  }
}

std::optional<long> number_in(const Json& object, const char* name) {
  const Json& found = member(object, name);
  return found.is_number_integer() ? std::optional(found.get<long>()) : std::nullopt;
}

Description::State state_of(std::string_view status, bool paused) noexcept {
  if (status == "Ready") return Description::State::kReady;
  if (status == "Paused" || status == "Pausing") return Description::State::kPaused;
  if (status == "Failed") return Description::State::kFailed;
  if (status.starts_with("Terminat") || status.starts_with("Delet")) return Description::State::kGone;
  return paused ? Description::State::kPaused : Description::State::kStarting;
}

}  // namespace

std::optional<Refusal> find_refusal(const http::Reply& reply) {
  const Json json = Json::parse(reply.body, nullptr, false);
  const Json& metadata = member(json, "ResponseMetadata");
  const Json& error = member(metadata, "Error");
  if (error.is_object()) return Refusal{text_in(error, "Code"), text_in(error, "Message")};
  // What stands before the service speaks otherwise.
  if (const std::string code = text_in(json, "errorcode"); !code.empty()) return Refusal{code, text_in(json, "message")};
  if (reply.status / 100 != 2) return Refusal{"", text_in(json, "message")};
  return std::nullopt;
}

bool asked_too_often(long status, const std::string& service_code) noexcept {
  return status == 429 || has(service_code, "Throttl") || has(service_code, "FlowLimit") || has(service_code, "TooManyRequests");
}

Code code_of(long status, const std::string& service_code) noexcept {
  if (asked_too_often(status, service_code) || has(service_code, "Quota") || has(service_code, "LimitExceeded"))
    return Code::kResourceExhausted;
  if (has(service_code, "NotFound")) return Code::kNotFound;
  for (const char* const part :
       {"InvalidCredential", "InvalidAccessKey", "AccessKeyNotExist", "SignatureDoesNotMatch", "InvalidSecretToken",
        "InvalidSecurityToken", "ExpiredToken", "TokenExpired", "InvalidAuthorization"}) {
    if (has(service_code, part)) return Code::kUnauthenticated;
  }
  if (has(service_code, "AccessDenied")) return Code::kPermissionDenied;
  if (has(service_code, "ServiceFailure") || has(service_code, "InternalError") || status >= 500) return Code::kUnavailable;
  switch (status) {
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    default:
      return status == 400 ? Code::kInvalidArgument : Code::kUnknown;
  }
}

Result<Json> parse_reply(const http::Reply& reply, const std::string& what, const std::vector<std::string>& secrets) {
  if (const auto refusal = find_refusal(reply)) {
    const Code code = code_of(reply.status, refusal->code);
    std::string said = format("status {}", reply.status);
    if (!refusal->code.empty()) said += " " + shown(refusal->code, secrets);
    if (!refusal->message.empty()) said += ": " + shown(refusal->message, secrets);
    return Error(code, what).reason("Volcengine answered with " + said).next(next_of(code));
  }
  Json json = Json::parse(reply.body, nullptr, false);
  if (!member(json, "ResponseMetadata").is_object())
    return Error(Code::kDataLoss, what)
        .reason(format("Volcengine answered with nonsense, content type {}", belljar::quoted(reply.content_type.substr(0, 80))))
        .next("check VOLCENGINE_API_URL, and what stands between this machine and the service");
  return member(json, "Result");
}

Description parse_description(const Json& result) {
  Description found;
  found.status = text_in(result, "Status");
  found.state = state_of(found.status, !text_in(result, "PausedAt").empty());
  found.error = text_in(result, "ErrorCode");
  if (const std::string message = text_in(result, "ErrorMessage"); !message.empty())
    found.error += (found.error.empty() ? "" : ": ") + message;
  if (const Json& egress = member(member(result, "NetworkRules"), "AllowEgressAccess"); egress.is_boolean())
    found.egress = egress.get<bool>();
  found.cpu_milli = number_in(result, "CpuMilli");
  found.memory_mb = number_in(result, "MemoryMB");
  return found;
}

std::string find_upstream(const Json& result) {
  for (const Json& item : member(result, "Items")) {
    if (text_in(item, "Type") != "apig") continue;
    std::string upstream = text_in(Json::parse(text_in(item, "DetailedConfig"), nullptr, false), "UpstreamId");
    if (!upstream.empty()) return upstream;
  }
  return {};
}

std::string find_route(const Json& result) {
  std::string any;
  for (const Json& route : member(result, "Items")) {
    std::string prefix = text_in(member(member(route, "MatchRule"), "Path"), "MatchContent");
    prefix = prefix.substr(0, prefix.find('*'));
    while (prefix.ends_with('/')) prefix.pop_back();
    for (const Json& domain : member(route, "Domains")) {
      const std::string name = text_in(domain, "Domain");
      if (name.empty()) continue;
      std::string url = (has(name, "://") ? name : "https://" + name) + prefix;
      std::string type = text_in(domain, "Type");
      std::ranges::transform(type, type.begin(), [](char letter) { return letter == 'P' ? 'p' : letter; });
      if (type == "public") return url;
      if (any.empty()) any = std::move(url);
    }
  }
  return any;
}

}  // namespace belljar::remote::volcengine
