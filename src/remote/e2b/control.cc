// The control plane of E2B. A create costs money and has no id before its answer, so it is the one call with
// care of its own.
//
// It is sent once, on a connection of its own, since libcurl sends again what an old connection swallowed. Only
// 429 says that nothing was made; 503 does not, and a lost answer does not either. So each sandbox carries a
// random tag in its metadata, by which lost() finds and ends it. The list is compared here, as a service that
// takes no notice of the filter would list sandboxes of others.
//
// Compatible services know one of two paths, /sandboxes or /v2/sandboxes. 404 and 405 say that nothing was
// done, so the second is asked then, also for a create. Where both fail the first one's words are told unless
// the second says more.
#include "remote/e2b/control.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "base/random.h"
#include "belljar/cancel.h"
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
constexpr char kTag[] = "belljar";  // in the metadata of what we made
constexpr std::size_t kMostControlAnswer = 4U << 20;

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

bool is_older(std::string_view version, std::array<int, 3> than) noexcept {
  std::array<int, 3> parts{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto read = std::from_chars(at, end, parts[i]);
    if (read.ec != std::errc()) return false;
    at = read.ptr;
    if (at == end) break;
    if (*at != '.') break;
    ++at;
  }
  return parts < than;
}

// Of either plane: a daemon whose disk is full says 507.
Code code_of_status(long status) noexcept { return status == 507 ? Code::kResourceExhausted : remote::code_of_status(status); }

Error Control::refused(const http::Reply& reply, const std::string& what) const {
  const Json json = Json::parse(reply.body, nullptr, false);
  std::string said = text_in(json, "message");
  said = said.empty() ? format("status {}", reply.status) : format("status {}: {}", reply.status, shown(said, {address_.api_key}));
  const Code code = code_of_status(reply.status);
  return Error(code, what).reason("the E2B service answered with " + said).next(next_of(code));
}

std::int64_t Control::seconds_of(std::chrono::milliseconds lifetime) const {
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(std::max(lifetime, least_)).count(), 1);
}

Result<http::Reply> Control::ask_either(const char* method, const std::string& rest, const std::string& body, Times times,
                                        const CancelToken& cancel) const {
  http::Reply reply = BELLJAR_TRY(ask(method, "/sandboxes" + rest, body, times, cancel));
  if (reply.status != 404 && reply.status != 405) return reply;
  // A service that knows the path and not the template says 404 there, too: its words are the ones to tell.
  http::Reply other = BELLJAR_TRY(ask(method, "/v2/sandboxes" + rest, body, times, cancel));
  // 405 is said of a path that is not there.
  const bool first = other.status == 405 || (other.status == 404 && reply.status == 404);
  return first ? std::move(reply) : std::move(other);
}

Result<http::Reply> Control::ask(const char* method, const std::string& path, const std::string& body, Times times,
                                 const CancelToken& cancel, int end_fd) const {
  const auto deadline = Clock::now() + patience_;
  // 503 does not say that none was made; 429 does.
  const bool creates = times == Times::kOnce;
  for (int turn = 1;; ++turn) {
    http::Request request{
        .method = method, .url = address_.api_url + path, .body = body, .deadline = deadline, .most_reply = kMostControlAnswer};
    request.only_once = creates;
    request.headers = address_.headers;
    request.headers.emplace_back("Content-Type: application/json");
    auto reply = http_.ask(std::move(request), end_fd);
    if (!reply)
      return Error(reply.error().code(), "cannot reach the E2B service")
          .reason(reply.error().reason())
          .next("check the network, E2B_API_URL and E2B_DOMAIN");
    const bool again = reply->status == 429 || (reply->status == 503 && !creates);
    if (!again || turn == kTries || !BELLJAR_TRY(wait_before_retry(turn, *reply, deadline, cancel.fd()))) return reply;
  }
}

Result<SandboxAccess> Control::access(const http::Reply& reply) const {
  const Json json = Json::parse(reply.body, nullptr, false);
  if (!json.is_object())
    return Error(Code::kDataLoss, "the E2B service answered with nonsense")
        .reason(format("no JSON object, content type {}", belljar::quoted(reply.content_type.substr(0, 80))))
        .next("check E2B_API_URL");
  SandboxAccess access{.id = text_in(json, "sandboxID"),
                       .token = text_in(json, "envdAccessToken"),
                       .url = {},
                       .envd_version = text_in(json, "envdVersion")};
  access.url = BELLJAR_TRY(sandbox_address(address_, access.id, text_in(json, "domain")));
  if (is_older(access.envd_version, {0, 1, 0}))
    return Error(Code::kFailedPrecondition, "cannot use the sandbox")
        .reason(format("its daemon is of version {}, and 0.1.0 is the oldest that is served", escaped(access.envd_version)))
        .next("build the template again");
  if (access.token.find_first_of("\r\n") != std::string::npos)
    return Error(Code::kDataLoss, "the E2B service answered with nonsense").reason("its access token is no header");
  return access;
}

Result<SandboxAccess> Control::create(const CreateRequest& wanted) const {
  Json json = {{"templateID", wanted.template_id},
               {"timeout", seconds_of(wanted.lifetime)},
               {"secure", true},
               {"allow_internet_access", wanted.internet}};
  // Nor in from outside: ports inside are served to everybody otherwise.
  if (!wanted.internet) json["network"] = {{"allowPublicTraffic", false}};
  const std::string tag = random_hex(16);
  if (tag.empty()) return Error(Code::kUnavailable, "cannot name a sandbox").reason("this machine gives no random numbers");
  json["metadata"] = wanted.metadata;
  json["metadata"][kTag] = tag;
  if (!wanted.variables.empty()) json["envVars"] = wanted.variables;
  const auto reply = ask_either("POST", "", dump(json), Times::kOnce, wanted.cancel);
  if (!reply && reply.error().code() == Code::kCanceled) return reply.error();  // between tries: it was told that none was made
  if (!reply) return lost(tag, reply.error());
  if (reply->status / 100 == 2) {
    auto made = access(*reply);
    if (made) return made;
    const std::string id = id_in(*reply);
    return id.empty() ? lost(tag, made.error()) : abandon(id, made.error());
  }
  Error error = refused(*reply, format("cannot create a sandbox from the template {}", belljar::quoted(wanted.template_id)));
  return error.code() == Code::kUnavailable ? lost(tag, error) : error;
}

// An answer that did not come, or made no sense, does not say that nothing was made. What was is found by its tag.
Error Control::lost(const std::string& tag, const Error& why) const {
  const auto found = ask_either("GET", format("?metadata={}%3D{}", kTag, tag), "", Times::kAgain);
  const Json list = found && found->status == 200 ? Json::parse(found->body, nullptr, false) : Json();
  bool ended = false, all_ended = true;  // none found may be one that is still being made
  for (const Json& sandbox : list.is_array() ? list : Json::array()) {
    // One that took no notice of the filter lists others'.
    if (!sandbox.is_object() || !sandbox.contains("metadata") || text_in(sandbox["metadata"], kTag) != tag) continue;
    const std::string id = text_in(sandbox, "sandboxID");
    ended = !id.empty() && consists_of(id, "-_") && kill(id).has_value();
    all_ended = all_ended && ended;
  }
  if (ended && all_ended) return why;
  return Error(why.code(), why.what())
      .reason(why.reason())
      .next(format("check the network; a sandbox that was made all the same has the metadata {}={}", kTag, tag));
}

Error Control::abandon(const std::string& id, const Error& why) const {
  if (id.empty() || kill(id)) return why;
  // Nobody else would know of it.
  return Error(why.code(), why.what())
      .reason(why.reason())
      .next(format("end the sandbox {}, which could not be ended from here", belljar::quoted(id)));
}

Result<SandboxAccess> Control::connect(const std::string& id, std::chrono::milliseconds lifetime, const CancelToken& cancel) const {
  const http::Reply reply = BELLJAR_TRY(ask_either("POST", "/" + percent_encoded(id, "/") + "/connect",
                                                   dump({{"timeout", seconds_of(lifetime)}}), Times::kAgain, cancel));
  if (reply.status / 100 == 2) return access(reply);
  return refused(reply, format("cannot connect to the sandbox {}", belljar::quoted(id)));
}

Result<bool> Control::kill(const std::string& id, const CancelToken& cancel) const {
  const http::Reply reply =
      BELLJAR_TRY(ask("DELETE", "/sandboxes/" + percent_encoded(id, "/"), "", Times::kAgain, cancel, cancel.fd()));
  if (reply.status / 100 == 2) return true;
  if (reply.status == 404) return false;
  return refused(reply, format("cannot end the sandbox {}", belljar::quoted(id)));
}

Result<bool> Control::pause(const std::string& id, const CancelToken& cancel) const {
  const http::Reply reply =
      BELLJAR_TRY(ask("POST", "/sandboxes/" + percent_encoded(id, "/") + "/pause", "{}", Times::kAgain, cancel, cancel.fd()));
  if (reply.status / 100 == 2) return true;
  if (reply.status == 409) return false;
  return refused(reply, format("cannot pause the sandbox {}", belljar::quoted(id)));
}

Result<void> Control::set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const {
  const http::Reply reply =
      BELLJAR_TRY(ask("POST", "/sandboxes/" + percent_encoded(id, "/") + "/timeout", dump({{"timeout", seconds_of(lifetime)}})));
  if (reply.status / 100 == 2) return {};
  return refused(reply, format("cannot set the time of the sandbox {}", belljar::quoted(id)));
}

}  // namespace belljar::remote::e2b
