// Calls of Volcengine's OpenAPI. Each try is signed anew, as a signature is good for some minutes only.
//
// CreateSandbox is sent once, is not cancelled in the middle and is repeated only when it was refused for being
// asked too often. Its answer is the only place that names the sandbox. When the answer is lost, lost() lists
// the sandboxes with a random session in their metadata and ends them. The list is compared here, since it is
// not known that the service filters it. None found proves nothing: one may still be in the making, so the
// error names the session.
#include "remote/volcengine/control.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/json.h"
#include "remote/retry.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/reply.h"
#include "remote/volcengine/sign.h"

namespace belljar::remote::volcengine {

using http::Clock;
namespace {

using Json = nlohmann::json;
using Milliseconds = std::chrono::milliseconds;

constexpr int kCallTries = 4;
constexpr std::size_t kMostAnswer = 4U << 20;
constexpr char kUnit[] = "second";

std::int64_t whole_seconds_of(Milliseconds time) { return std::chrono::ceil<std::chrono::seconds>(time).count(); }

std::pair<const char*, const char*> service_of(std::string_view action) noexcept {
  return action == "ListRoutes" ? std::pair{"apig", "2022-11-12"} : std::pair{"vefaas", "2024-06-06"};
}

// As ListSandboxes has it.
bool is_of_session(const Json& sandbox, const std::string& session) {
  if (text_in(member(sandbox, "Metadata"), "session") == session) return true;
  return std::ranges::any_of(member(sandbox, "MetadataList"), [&](const Json& entry) {
    return text_in(entry, "MetaKey") == "session" && text_in(entry, "MetaValue") == session;
  });
}

}  // namespace

Result<Json> Control::call(const char* action, const Json& body, const std::string& what, Times times,
                           const CancelToken& cancel) const {
  const auto [service, version] = service_of(action);
  const std::string url = address_.url_of(service);
  Call call{.service = service,
            .region = address_.region,
            .authority = authority_of(url),
            .query = {{"Action", action}, {"Version", version}},
            .content_type = "application/json; charset=utf-8",
            .body = dump(body),
            .now = {}};
  const auto deadline = Clock::now() + patience_;
  for (int turn = 1;; ++turn) {
    call.now = now_();  // a signature is good for some minutes only
    const auto reply = http_.ask({.method = "POST",
                                  .url = url + "/?" + canonical_query(call.query),
                                  .headers = sign(call, address_.keys).headers,
                                  .body = call.body,
                                  .only_once = times == Times::kOnce,
                                  .deadline = deadline,
                                  .most_reply = kMostAnswer},
                                 times == Times::kOnce ? -1 : cancel.fd());  // what was made is in the answer
    if (!reply)
      return Error(code_unheard(reply.error()), what)
          .reason("Volcengine gave no answer: " + reply.error().reason())
          .next("check the network, and VOLCENGINE_API_URL");
    const auto refusal = find_refusal(*reply);
    const bool again =
        refusal && (asked_too_often(reply->status, refusal->code) || (times == Times::kMany && reply->status >= 500));
    if (!again || turn == kCallTries || !BELLJAR_TRY(wait_before_retry(turn, *reply, deadline, cancel.fd())))
      return parse_reply(*reply, what, address_.secrets());
  }
}

Result<Json> Control::call_on(const char* action, const std::string& id, Json more, const char* doing,
                              const CancelToken& cancel) const {
  more["FunctionId"] = address_.function_id;
  more["SandboxId"] = id;
  return call(action, more, format("cannot {} the sandbox {}", doing, belljar::quoted(id)), Times::kMany, cancel);
}

// --- made and found

Result<std::string> Control::create(const CreateRequest& wanted) const {
  std::map<std::string, std::string> metadata = wanted.metadata;
  metadata["made_by"] = "belljar";
  metadata["session"] = wanted.session;
  Json body = {{"FunctionId", address_.function_id},
               {"Timeout", whole_seconds_of(wanted.lifetime)},
               {"TimeoutUnit", kUnit},
               {"Metadata", metadata}};
  if (wanted.cpu_milli) body["CpuMilli"] = *wanted.cpu_milli;
  if (wanted.memory_mb) body["MemoryMB"] = *wanted.memory_mb;
  if (!wanted.image.empty()) body["InstanceImageInfo"] = {{"Image", wanted.image}};
  for (const auto& [name, value] : wanted.envs) body["Envs"].push_back({{"Key", name}, {"Value", value}});
  if (wanted.closed) body["NetworkRules"] = {{"AllowEgressAccess", false}};
  const auto made = call("CreateSandbox", body, "cannot create a sandbox", Times::kOnce, wanted.cancel);
  if (!made) return lost(wanted.session, made.error());
  std::string id = text_in(*made, "SandboxId");
  if (is_id(id)) return id;
  return lost(wanted.session, Error(Code::kDataLoss, "cannot create a sandbox")
                                  .reason(format("Volcengine answered without its id, {}", belljar::quoted(id.substr(0, 80)))));
}

// An answer that did not come, or made no sense, does not say that nothing was made. What was is found by its metadata.
Error Control::lost(const std::string& session, const Error& why) const {
  if (why.code() != Code::kUnavailable && why.code() != Code::kDeadlineExceeded && why.code() != Code::kDataLoss) return why;
  const Json body = {
      {"FunctionId", address_.function_id}, {"Metadata", {{"session", session}}}, {"PageNumber", 1}, {"PageSize", 100}};
  const auto found = call("ListSandboxes", body, "cannot list the sandboxes");
  int listed = 0, ended = 0;  // none may be one that is still being made
  if (found) {
    for (const Json& sandbox : member(*found, "Sandboxes")) {
      if (!is_of_session(sandbox, session)) continue;
      const std::string id = text_in(sandbox, "Id");
      ++listed;
      if (is_id(id) && kill(id)) ++ended;
    }
  }
  if (listed > 0 && ended == listed) return why;
  return Error(why.code(), why.what())
      .reason(why.reason())
      .next(format("check the network, and end the sandbox with the metadata session={} if there is one", session));
}

Error Control::abandon(const std::string& id, const Error& why) const {
  if (kill(id)) return why;
  // Nobody else would know of it.
  return Error(why.code(), why.what())
      .reason(why.reason())
      .next(format("end the sandbox {}, which could not be ended from here", belljar::quoted(id)));
}

Result<Description> Control::describe(const std::string& id) const {
  Description found = parse_description(BELLJAR_TRY(call_on("DescribeSandbox", id, Json::object(), "find")));
  found.error = shown(found.error, address_.secrets());
  return found;
}

Result<std::string> Control::find_endpoint() const {
  if (!address_.endpoint.empty()) return address_.endpoint;
  const char* const what = "cannot find where the sandboxes answer";
  const Json triggers = BELLJAR_TRY(call("ListTriggers", {{"FunctionId", address_.function_id}}, what));
  const std::string upstream = find_upstream(triggers);
  const std::string url =
      upstream.empty()
          ? std::string()
          : find_route(BELLJAR_TRY(call("ListRoutes", {{"UpstreamId", upstream}, {"PageNumber", 1}, {"PageSize", 100}}, what)));
  if (url.empty())
    return Error(Code::kFailedPrecondition, what)
        .reason(upstream.empty() ? "no API gateway stands in front of the application" : "its gateway has no route with a domain")
        .next("add one in the console of veFaaS, or set SANDBOX_ENDPOINT");
  return volcengine::check_url("the address of the sandboxes that Volcengine named", url);
}

// --- their life

Result<bool> Control::kill(const std::string& id, const CancelToken& cancel) const {
  const auto killed = call_on("KillSandbox", id, Json::object(), "end", cancel);
  if (killed) return true;
  if (killed.error().code() == Code::kNotFound) return false;
  return killed.error();
}

Result<void> Control::pause(const std::string& id, const CancelToken& cancel) const {
  return call_on("PauseSandbox", id, Json::object(), "pause", cancel).map([](const Json&) {});
}

Result<void> Control::resume(const std::string& id, Milliseconds lifetime) const {
  return call_on("ResumeSandbox", id, {{"Timeout", whole_seconds_of(lifetime)}, {"TimeoutUnit", kUnit}}, "resume")
      .map([](const Json&) {});
}

Result<void> Control::set_timeout(const std::string& id, Milliseconds lifetime) const {
  return call_on("SetSandboxTimeout", id, {{"Timeout", whole_seconds_of(lifetime)}, {"TimeoutUnit", kUnit}}, "set the time of")
      .map([](const Json&) {});
}

}  // namespace belljar::remote::volcengine
