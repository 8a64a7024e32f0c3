// A gateway speaks JSON-RPC 2.0 (https://www.jsonrpc.org/specification): status 200 with `result` or `error`.
// Any other status is of HTTP and says nothing about the command, except 401, 403 and 429, which refused it.
//
// Behind it is one machine that somebody else runs. It is neither made nor ended from here; create() looks
// whether its tool is there, and kill() says that there was nothing to end.
#include "remote/aliyun/gateway.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/session.h"
#include "remote/aliyun/tools.h"
#include "remote/aliyun/wire.h"
#include "remote/json.h"
#include "remote/retry.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {

using http::Clock;
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Its clients give up on an answer after 30 s.
constexpr milliseconds kLongestByGateway = 25s;
constexpr char kWhatByGateway[] = "cannot run a command by the gateway";
constexpr char kId[] = "gateway";

class GatewayMachine final : public shell::Machine {
 public:
  GatewayMachine(std::shared_ptr<const GatewayTools> tools, milliseconds patience)
      : tools_(std::move(tools)), patience_(patience) {}
  const std::string& id() const noexcept override { return id_; }
  Result<shell::ScriptOutput> run(const std::string& script, milliseconds patience, int cancel_fd) const override {
    return run_by_shell(*tools_, script, kLongestByGateway, patience, cancel_fd);
  }
  Result<void> health(int cancel_fd) const override {
    if (const auto there = tools_->find_shell(patience_, cancel_fd); !there)
      return Error(Code::kUnavailable, "the gateway takes no commands").reason(there.error().reason());
    return {};
  }
  Limits limits() const noexcept override { return {.longest = kLongestByGateway, .script = kPiece, .output = kPiece}; }

 private:
  std::shared_ptr<const GatewayTools> tools_;
  milliseconds patience_;
  std::string id_ = kId;
};

Error only_here(const char* what) {
  return Error(Code::kUnimplemented, what)
      .reason("behind an MCP endpoint is one machine, which its owner begins and ends")
      .next("use AgentBay (AGENTBAY_API_KEY)");
}

}  // namespace

Result<Json> parse_rpc(long status, const std::string& body, const GatewayAddress& address) {
  const auto said = [&](std::string_view text) { return shown(text, {address.key_secret, address.key_id, address.token}); };
  if (status != 200) {
    const Code code = status == 401   ? Code::kUnauthenticated
                      : status == 403 ? Code::kPermissionDenied
                      : status == 429 ? Code::kResourceExhausted
                                      : Code::kUnavailable;
    return Error(code, kWhatByGateway)
        .reason(format("http error: {} - {}", status, said(body)))
        .next(status == 401 || status == 403 ? "check the access key" : "try again");
  }
  const Json reply = Json::parse(body, nullptr, false);
  if (!reply.is_object())
    return Error(Code::kDataLoss, kWhatByGateway).reason("its answer is no JSON object").next("check ALIYUN_MCP_ENDPOINT");
  if (const auto error = reply.find("error"); error != reply.end() && error->is_object()) {
    const auto code = error->find("code");
    const long number = code != error->end() && code->is_number_integer() ? code->get<long>() : 0;
    return Error(Code::kUnavailable, kWhatByGateway)
        .reason(format("mcp error: {} (code: {})", said(text_in(*error, "message")), number));
  }
  const auto result = reply.find("result");
  if (result == reply.end()) return Error(Code::kDataLoss, kWhatByGateway).reason("its answer has neither `result` nor `error`");
  return *result;
}

Result<Json> GatewayTools::ask(const char* method, Json params, milliseconds patience, int cancel_fd) const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Json body = {{"jsonrpc", "2.0"},
                     {"method", method},
                     {"id", std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()},
                     {"params", std::move(params)}};
  http::Request request{.method = "POST",
                        .url = address_.url,
                        .body = dump(body),
                        .only_once = true,
                        .deadline = Clock::now() + patience,
                        .most_reply = kMostAnswer};
  request.headers = {"Content-Type: application/json", "X-Access-Key-Id: " + address_.key_id,
                     "X-Access-Key-Secret: " + address_.key_secret};
  if (!address_.token.empty()) request.headers.push_back("X-Security-Token: " + address_.token);
  const auto reply = http_.ask(std::move(request), cancel_fd);
  if (!reply)
    return Error(code_unheard(reply.error()), kWhatByGateway)
        .reason(reply.error().reason())
        .next("check the network and ALIYUN_MCP_ENDPOINT");
  return parse_rpc(reply->status, reply->body, address_);
}

// Its result is the tool's own JSON; a gateway that wraps it as MCP does is understood, too.
Result<Content> GatewayTools::call(const std::string& tool, const Json& arguments, milliseconds patience, int cancel_fd) const {
  const Json result = BELLJAR_TRY(ask("tools/call", {{"name", tool}, {"arguments", arguments}}, patience, cancel_fd));
  if (result.is_object() && result.contains("content")) return parse_content(result);
  return Content{.is_error = false, .text = result.is_string() ? result.get<std::string>() : dump(result)};
}

Result<void> GatewayTools::find_shell(milliseconds patience, int cancel_fd) const {
  const Json result = BELLJAR_TRY(ask("tools/list", Json::object(), patience, cancel_fd));
  const Json tools = result.is_object() && result.contains("tools") ? result["tools"] : Json::array();
  if (std::ranges::any_of(tools, [](const Json& tool) { return text_in(tool, "name") == "shell"; })) return {};
  return Error(Code::kUnimplemented, "cannot use the gateway")
      .reason("`shell` is not among its tools")
      .next("check ALIYUN_MCP_ENDPOINT");
}

std::string Gateway::host() const {
  const auto parts = http::parse_url(tools_->address().url);
  return parts ? parts->host : std::string();
}

Result<void> Gateway::check_supported(const Policy& /*policy*/) const { return {}; }

shell::ClauseEnforcement Gateway::holds(const Policy& /*policy*/, std::string_view /*clause*/) const {
  return {.enforced = Enforced::kNone,
          .mechanism = {},
          .detail = "the machine behind the gateway is somebody's own, and nothing asks it"};
}

Result<std::shared_ptr<const shell::Machine>> Gateway::create(const Policy& /*policy*/, const CancelToken& /*cancel*/) const {
  BELLJAR_CHECK(tools_->find_shell(patience_));
  return std::make_shared<const GatewayMachine>(tools_, patience_);
}

Result<std::shared_ptr<const shell::Machine>> Gateway::connect(const std::string& id, const CancelToken& cancel) const {
  if (id != kId) return only_here("cannot connect to a session of a gateway");
  return create({}, cancel);
}

// There is nothing to end: what stop() leaves behind is the machine as it was.
Result<bool> Gateway::kill(const std::string& /*id*/, const CancelToken& /*cancel*/) const { return false; }

Result<void> Gateway::pause(const std::string& /*id*/, const CancelToken& /*cancel*/) const {
  return only_here("cannot pause the machine of a gateway");
}

Result<void> Gateway::set_timeout(const std::string& /*id*/, milliseconds /*lifetime*/) const {
  return only_here("cannot set the time of the machine of a gateway");
}

}  // namespace belljar::remote::aliyun
