// The tools of a session have two ways: the session's own address (LinkUrl) with its token, and the control
// plane. The first needs address, token and the name of the tool's server, and is used only over https or on
// this machine, since the token is sent along.
//
// A token that is refused ran nothing, so it is asked for again, once, and the call is repeated. Other failures
// do not say whether the command ran and are told as such (kUnavailable): the caller in remote/shell finds out
// by the command's directory.
//
// The service ends a session that is not used. Whether a tool call is a use is written nowhere, so the time is
// begun anew whenever a third of it is over.
#include "remote/aliyun/session.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/rpc.h"
#include "remote/aliyun/tools.h"
#include "remote/aliyun/wire.h"
#include "remote/json.h"
#include "remote/retry.h"
#include "remote/shell/machine.h"
#include "runtime/json.h"

namespace belljar::remote::aliyun {

using http::Clock;
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// The service ends a command after 50 s, whatever it is asked.
constexpr milliseconds kLongest = 45s;
constexpr milliseconds kPolite = 5s;
constexpr char kWhat[] = "cannot run a command in the sandbox";

bool is_id(std::string_view text) noexcept { return !text.empty() && text.size() <= 200 && consists_of(text, "-_."); }

Error nonsense(std::string reason) {
  return Error(Code::kDataLoss, "the AgentBay service answered with nonsense").reason(std::move(reason));
}

std::string request_id() {
  std::random_device random;
  const auto now = std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  return format("link-{}-{:09d}", now.count(), random() % 1'000'000'000U);
}

}  // namespace

Result<SessionAccess> parse_session_access(const Json& data) {
  SessionAccess access{.id = text_in(data, "SessionId"),
                       .status = text_in(data, "Status"),
                       .link_url = text_in(data, "LinkUrl"),
                       .token = text_in(data, "Token"),
                       .servers = {}};
  if (!is_id(access.id)) return nonsense(format("no session has the id {}", belljar::quoted(access.id.substr(0, 80))));
  if (!is_header(access.token)) return nonsense("its access token is no header");
  while (access.link_url.ends_with('/')) access.link_url.pop_back();
  if (!is_safe_url(access.link_url) || access.token.empty()) access.link_url.clear();
  const Json tools = data.contains("ToolList") ? unwrapped(data["ToolList"]) : Json();
  if (!tools.is_array()) return access;
  for (const Json& tool : tools) {
    const auto either = [&](const char* name, const char* other) {
      std::string text = text_in(tool, name);
      return text.empty() ? text_in(tool, other) : text;
    };
    if (std::string name = either("name", "Name"); !name.empty()) access.servers[name] = either("server", "Server");
  }
  return access;
}

SessionTools::Way SessionTools::way_to(const std::string& tool) const {
  const std::lock_guard lock(mutex_);
  const auto server = access_.servers.find(tool);
  Way way{.url = {}, .token = {}, .server = server == access_.servers.end() ? std::string() : server->second};
  if (!way.server.empty() && !access_.link_url.empty()) {
    way.url = access_.link_url;
    way.token = access_.token;
  }
  return way;
}

Result<Content> SessionTools::call(const std::string& tool, const Json& arguments, milliseconds patience, int cancel_fd) const {
  const auto deadline = Clock::now() + patience;
  Way way = way_to(tool);
  if (way.url.empty()) return call_by_rpc(way.server, tool, arguments, patience, cancel_fd);
  const std::string token = way.token;
  auto said = call_directly(std::move(way), tool, arguments, deadline, cancel_fd);
  // A token that is refused ran nothing.
  if (said || said.error().code() != Code::kUnauthenticated) return said;
  BELLJAR_CHECK(renew(token, cancel_fd));
  way = way_to(tool);
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  if (way.url.empty()) return call_by_rpc(way.server, tool, arguments, left, cancel_fd);
  return call_directly(std::move(way), tool, arguments, deadline, cancel_fd);
}

Result<Content> SessionTools::call_directly(Way way, const std::string& tool, const Json& arguments, Clock::time_point deadline,
                                            int cancel_fd) const {
  const Json body = {
      {"args", arguments}, {"server", way.server}, {"requestId", request_id()}, {"tool", tool}, {"token", way.token}};
  for (int turn = 1;; ++turn) {
    http::Request request{
        .method = "POST", .url = way.url + "/callTool", .body = dump(body), .only_once = true, .deadline = deadline};
    request.headers = {"Content-Type: application/json", "X-Access-Token: " + way.token};
    request.most_reply = kMostAnswer;
    const auto reply = rpc_.http().ask(std::move(request), cancel_fd);
    if (!reply) return Error(code_unheard(reply.error()), kWhat).reason(reply.error().reason()).next("check the network");
    if (reply->status / 100 == 2) return parse_direct(reply->body);
    if (reply->status != 429) return refused(reply->status, way.token);
    const auto pause = pause_before(turn, *reply, deadline);
    if (!pause) return refused(reply->status, way.token);
    BELLJAR_CHECK(wait_for(*pause, cancel_fd));
  }
}

Error SessionTools::refused(long status, const std::string& token) const {
  const auto error = [&](Code code, const std::string& reason, std::string next) {
    return Error(code, kWhat).reason(shown(reason, {token})).next(std::move(next));
  };
  if (status == 401 || status == 403)
    return error(Code::kUnauthenticated, format("its address takes the access token no more (status {})", status),
                 "start() it again, which asks for a new one");
  if (status == 404 || status == 410)
    return error(Code::kNotFound, format("the session is gone (status {})", status), "start() it again");
  if (status == 429) return error(Code::kResourceExhausted, "it is asked too often (status 429)", "wait");
  return error(Code::kUnavailable, format("its address answered with status {}; whether the command ran is not known", status),
               "look before it is run again");
}

Result<Content> SessionTools::call_by_rpc(const std::string& server, const std::string& tool, const Json& arguments,
                                          milliseconds patience, int cancel_fd) const {
  Fields fields = {{"SessionId", id_}, {"Name", tool}, {"Args", dump(arguments)}, {"AutoGenSession", "false"}, {"Server", server}};
  const Answer answer = BELLJAR_TRY(rpc_.ask("CallMcpTool", std::move(fields), Repeat::kOnlyRefused, patience, cancel_fd));
  if (!answer.success) return rpc_.refused(answer, kWhat);
  return parse_content(answer.data);
}

Result<void> SessionTools::renew(const std::string& expired, int cancel_fd) const {
  const Answer answer = BELLJAR_TRY(rpc_.call("GetSession", {{"SessionId", id_}}, Repeat::kAlways, kWhat, cancel_fd));
  SessionAccess fresh = BELLJAR_TRY(parse_session_access(answer.data));
  if (fresh.token == expired)
    return Error(Code::kUnauthenticated, kWhat)
        .reason("its address takes the access token no more, and the service has no other")
        .next("start() it again");
  const std::lock_guard lock(mutex_);
  if (fresh.servers.empty()) fresh.servers = std::move(access_.servers);
  access_ = std::move(fresh);
  return {};
}

Result<shell::ScriptOutput> run_by_shell(const Tools& tools, const std::string& script, milliseconds longest, milliseconds patience,
                                         int cancel_fd) {
  if (runtime::to_utf8(script).replaced > 0)
    return Error(Code::kUnimplemented, kWhat).reason("it is no UTF-8, and goes there as JSON").next("write it to a file");
  const Json arguments = {{"command", script}, {"timeout_ms", longest.count()}};
  return parse_script_output(BELLJAR_TRY(tools.call("shell", arguments, patience, cancel_fd)));
}

Result<shell::ScriptOutput> Session::run(const std::string& script, milliseconds patience, int cancel_fd) const {
  keep_alive(std::min(patience, kPolite), cancel_fd);
  return run_by_shell(tools_, script, limits().longest, patience, cancel_fd);
}

// Whether a tool call counts as a use is not written anywhere. A refusal is no matter: the call itself will tell.
void Session::keep_alive(milliseconds patience, int cancel_fd) const {
  const auto now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (now - refreshed_ < idle_ / 3) return;
    refreshed_ = now;
  }
  (void)tools_.rpc().ask("RefreshSessionIdleTime", {{"SessionId", id()}}, Repeat::kOnlyRefused, patience, cancel_fd);
}

Result<void> Session::health(int cancel_fd) const {
  const std::string what = "the sandbox takes no commands";
  const auto answer = tools_.rpc().call("GetSessionDetail", {{"SessionId", id()}}, Repeat::kAlways, what, cancel_fd);
  if (!answer) return Error(Code::kUnavailable, what).reason(answer.error().reason());
  const std::string status = text_in(answer->data, "Status");
  if (status.empty() || status == "RUNNING") return {};
  return Error(Code::kUnavailable, what).reason("its status is " + shown(status, {}));
}

shell::Machine::Limits Session::limits() const noexcept {
  return {.longest = std::min(kLongest, idle_ / 2), .script = kPiece, .output = kPiece};
}

}  // namespace belljar::remote::aliyun
