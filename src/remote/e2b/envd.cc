// Calls to the daemon inside a sandbox: unary Connect calls are plain POSTs of JSON
// (https://connectrpc.com/docs/protocol), files go by HTTP.
//
// Two things mean that the sandbox is gone: status 502, and Connect's code "unavailable" at the end of a
// stream. The same code with another status may come from a proxy on the way and says nothing of the sandbox.
//
// Only SendInput must not be sent twice: the same bytes again are other input. A range past the end of a file
// is answered with 416 (RFC 9110, section 15.5.17) and is an empty read here. A server may leave Range aside
// and answer 200 with the whole file (section 14.2), and then the part is cut out here.
#include "remote/e2b/envd.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/e2b/address.h"
#include "remote/e2b/control.h"
#include "remote/e2b/events.h"
#include "remote/frames.h"

namespace belljar::remote::e2b {

using http::Clock;
namespace {

constexpr std::size_t kMostAnswer = 64U << 20;
constexpr std::size_t kMostFile = (256U << 20) + 1;

Error gone(const std::string& what) {
  return Error(Code::kUnavailable, what)
      .reason("the sandbox is gone: it was ended, it is paused, or its time is over")
      .next("start() it again, with a longer lifetime");
}

}  // namespace

std::vector<std::string> Envd::headers() const {
  std::vector<std::string> all = {"E2b-Sandbox-Id: " + access_.id, "E2b-Sandbox-Port: 49983"};
  if (!access_.token.empty()) all.push_back("X-Access-Token: " + access_.token);
  if (!user_.empty()) all.push_back("Authorization: Basic " + to_base64(user_ + ":"));
  return all;
}

Error Envd::refused(const Complaint& complaint, const std::string& what) const {
  if (complaint.code == Code::kUnavailable) return gone(what);
  std::string said = shown(complaint.message, {api_key_, access_.token});
  if (complaint.code == Code::kUnauthenticated)
    return Error(Code::kUnauthenticated, what)
        .reason("the sandbox takes the access token no more: " + said)
        .next("start() it again, which asks for a new one");
  return Error(complaint.code, what).reason(said.empty() ? std::string(to_string(complaint.code)) : std::move(said));
}

std::optional<Error> Envd::refusal(const http::Reply& head, const std::string& body, const std::string& what) const {
  if (head.status == 502) return gone(what);
  if (head.status / 100 == 2) return {};
  Complaint complaint = parse_complaint(body).value_or(Complaint{Code::kUnknown, format("status {}", head.status)});
  if (complaint.code == Code::kUnknown) complaint.code = code_of_status(head.status);
  if (complaint.code == Code::kUnavailable)  // of a proxy on the way; only 502 means the sandbox
    return Error(Code::kUnavailable, what).reason(format("the service answered with status {}", head.status)).next("try again");
  return refused(complaint, what);
}

Result<std::string> Envd::call(const char* method, const std::string& json, const std::string& what,
                               std::chrono::milliseconds patience, int cancel_fd) const {
  http::Request request{.method = "POST",
                        .url = access_.url + "/" + method,
                        .headers = headers(),
                        .body = json,
                        .deadline = Clock::now() + patience,
                        .most_reply = kMostAnswer};
  request.only_once = std::string_view(method) == "process.Process/SendInput";  // input twice is other input
  request.headers.insert(request.headers.end(), {"Content-Type: application/json", "Connect-Protocol-Version: 1"});
  auto reply = http_.ask(std::move(request), cancel_fd);
  if (!reply) return Error(reply.error().code(), what).reason(reply.error().reason()).next("check the network");
  if (auto error = refusal(*reply, reply->body, what)) return *std::move(error);
  return std::move(reply->body);
}

Result<std::unique_ptr<http::Stream>> Envd::start(const std::string& json, std::optional<std::chrono::milliseconds> lives) const {
  http::Request request{
      .method = "POST", .url = access_.url + "/process.Process/Start", .headers = headers(), .body = make_frame(json)};
  request.most_reply = SIZE_MAX;  // read as it comes, and capped there
  request.headers.insert(request.headers.end(), {"Content-Type: application/connect+json", "Connect-Protocol-Version: 1",
                                                 format("Keepalive-Ping-Interval: {}", kKeepalive.count())});
  if (lives) request.headers.push_back(format("Connect-Timeout-Ms: {}", lives->count()));
  return http_.open(std::move(request));
}

std::string Envd::files_url(const std::string& path) const {
  std::string url = access_.url + "/files?path=" + percent_encoded(path, "/");
  if (!user_.empty()) url += "&username=" + percent_encoded(user_, "/");
  return url;
}

Result<std::string> Envd::read(const std::string& path, std::optional<std::pair<std::uint64_t, std::uint64_t>> part,
                               const std::string& what, int cancel_fd) const {
  http::Request request{
      .url = files_url(path), .headers = headers(), .deadline = Clock::now() + patience_, .most_reply = kMostFile};
  if (part) request.headers.push_back(format("Range: bytes={}-{}", part->first, part->second));
  auto reply = http_.ask(std::move(request), cancel_fd);
  if (!reply) return Error(reply.error().code(), what).reason(reply.error().reason()).next("check the network");
  if (part && reply->status == 416) return std::string();  // nothing that far behind
  if (auto error = refusal(*reply, reply->body, what)) return *std::move(error);
  // Who knows no ranges sends all of it.
  if (part && reply->status == 200) {
    if (part->first >= reply->body.size()) return std::string();
    return reply->body.substr(part->first, part->second - part->first + 1);
  }
  return std::move(reply->body);
}

Result<void> Envd::write(const std::string& path, std::string_view bytes, const std::string& what, int cancel_fd) const {
  http::Request request{.method = "POST",
                        .url = files_url(path),
                        .headers = headers(),
                        .body = std::string(bytes),
                        .as_file = true,
                        .deadline = Clock::now() + patience_,
                        .most_reply = kMostAnswer};
  auto reply = http_.ask(std::move(request), cancel_fd);
  if (!reply) return Error(reply.error().code(), what).reason(reply.error().reason()).next("check the network");
  if (auto error = refusal(*reply, reply->body, what)) return *std::move(error);
  return {};
}

Result<void> Envd::health(int cancel_fd) const {
  http::Request request{.url = access_.url + "/health", .headers = headers(), .deadline = Clock::now() + patience_};
  const auto reply = http_.ask(std::move(request), cancel_fd);
  const std::string what = "the sandbox takes no commands";
  if (!reply) return Error(Code::kUnavailable, what).reason(reply.error().reason());
  if (auto error = refusal(*reply, reply->body, what)) return Error(Code::kUnavailable, what).reason(error->line());
  return {};
}

}  // namespace belljar::remote::e2b
