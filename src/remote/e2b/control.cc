#include "remote/e2b/control.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/e2b/address.h"
#include "remote/json.h"
#include "remote/retry.h"

namespace belljar::remote::e2b {

using http::Clock;
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr int kTries = 4;
constexpr std::size_t kMostAnswer = 4U << 20;

std::int64_t seconds_of(std::chrono::milliseconds time) {
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(time).count(), 1);
}

// Empty: what is there could lead anywhere, in a path.
std::string id_in(const http::Reply& reply) {
  const Json json = Json::parse(reply.body, nullptr, false);
  std::string id = text_in(json, "sandboxID");
  return consists_of(id, "-_") ? id : std::string();
}

const char* next_of(Code code) noexcept {
  switch (code) {
    case Code::kUnauthenticated:
      return "check E2B_API_KEY";
    case Code::kResourceExhausted:
      return "end other sandboxes, or wait";
    case Code::kNotFound:
      return "check the name of the template, or the id of the sandbox";
    default:
      return "try again";
  }
}

}  // namespace

Code code_of_status(long status) noexcept {
  switch (status) {
    case 400:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kAborted;
    case 429:
    case 507:
      return Code::kResourceExhausted;
    default:
      return status >= 500 ? Code::kUnavailable : Code::kUnknown;
  }
}

Error Control::refused(const http::Reply& reply, const std::string& what) const {
  const Json json = Json::parse(reply.body, nullptr, false);
  std::string said = text_in(json, "message");
  said = said.empty() ? format("status {}", reply.status) : format("status {}: {}", reply.status, shown(said, {address_.api_key}));
  const Code code = code_of_status(reply.status);
  return Error(code, what).reason("the E2B service answered with " + said).next(next_of(code));
}

Result<http::Reply> Control::ask(const char* method, const std::string& path, const std::string& body) const {
  const auto deadline = Clock::now() + patience_;
  // 503 does not say that none was made; 429 does.
  const bool creates = path == "/sandboxes";
  for (int turn = 1;; ++turn) {
    http::Request request{
        .method = method, .url = address_.api_url + path, .body = body, .deadline = deadline, .most_reply = kMostAnswer};
    request.only_once = creates;
    request.headers = {"X-API-KEY: " + address_.api_key, "Content-Type: application/json"};
    auto reply = http_.ask(std::move(request));
    if (!reply)
      return Error(reply.error().code(), "cannot reach the E2B service")
          .reason(reply.error().reason())
          .next("check the network, E2B_API_URL and E2B_DOMAIN");
    const bool again = reply->status == 429 || (reply->status == 503 && !creates);
    if (!again || turn == kTries || !rest(turn, *reply, deadline)) return reply;
  }
}

Result<Granted> Control::granted(const http::Reply& reply) const {
  const Json json = Json::parse(reply.body, nullptr, false);
  if (!json.is_object())
    return Error(Code::kDataLoss, "the E2B service answered with nonsense")
        .reason(format("no JSON object, content type {}", belljar::quoted(reply.content_type.substr(0, 80))))
        .next("check E2B_API_URL");
  Granted granted{.id = text_in(json, "sandboxID"),
                  .token = text_in(json, "envdAccessToken"),
                  .url = {},
                  .envd_version = text_in(json, "envdVersion")};
  granted.url = BELLJAR_TRY(sandbox_address(address_, granted.id, text_in(json, "domain")));
  if (granted.token.find_first_of("\r\n") != std::string::npos)
    return Error(Code::kDataLoss, "the E2B service answered with nonsense").reason("its access token is no header");
  return granted;
}

Result<Granted> Control::create(const Wanted& wanted) const {
  Json json = {{"templateID", wanted.template_id},
               {"timeout", seconds_of(wanted.lifetime)},
               {"secure", true},
               {"allow_internet_access", wanted.internet}};
  // Nor in from outside: ports inside are served to everybody otherwise.
  if (!wanted.internet) json["network"] = {{"allowPublicTraffic", false}};
  if (!wanted.metadata.empty()) json["metadata"] = wanted.metadata;
  if (!wanted.variables.empty()) json["envVars"] = wanted.variables;
  const http::Reply reply = BELLJAR_TRY(ask("POST", "/sandboxes", dump(json)));
  if (reply.status == 201 || reply.status == 200) {
    auto made = granted(reply);
    if (!made) return abandon(id_in(reply), made.error());
    return made;
  }
  return refused(reply, format("cannot create a sandbox from the template {}", belljar::quoted(wanted.template_id)));
}

Error Control::abandon(const std::string& id, const Error& why) const {
  if (id.empty() || kill(id)) return why;
  // Nobody else would know of it.
  return Error(why.code(), why.what())
      .reason(why.reason())
      .next(format("end the sandbox {}, which could not be ended from here", belljar::quoted(id)));
}

Result<Granted> Control::connect(const std::string& id, std::chrono::milliseconds lifetime) const {
  const http::Reply reply =
      BELLJAR_TRY(ask("POST", "/sandboxes/" + http::url_escaped(id) + "/connect", dump({{"timeout", seconds_of(lifetime)}})));
  if (reply.status == 201 || reply.status == 200) return granted(reply);
  return refused(reply, format("cannot connect to the sandbox {}", belljar::quoted(id)));
}

Result<bool> Control::kill(const std::string& id) const {
  const http::Reply reply = BELLJAR_TRY(ask("DELETE", "/sandboxes/" + http::url_escaped(id), ""));
  if (reply.status / 100 == 2) return true;
  if (reply.status == 404) return false;
  return refused(reply, format("cannot end the sandbox {}", belljar::quoted(id)));
}

Result<bool> Control::pause(const std::string& id) const {
  const http::Reply reply = BELLJAR_TRY(ask("POST", "/sandboxes/" + http::url_escaped(id) + "/pause", "{}"));
  if (reply.status / 100 == 2) return true;
  if (reply.status == 409) return false;
  return refused(reply, format("cannot pause the sandbox {}", belljar::quoted(id)));
}

Result<void> Control::set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const {
  const http::Reply reply =
      BELLJAR_TRY(ask("POST", "/sandboxes/" + http::url_escaped(id) + "/timeout", dump({{"timeout", seconds_of(lifetime)}})));
  if (reply.status / 100 == 2) return {};
  return refused(reply, format("cannot set the time of the sandbox {}", belljar::quoted(id)));
}

}  // namespace belljar::remote::e2b
