// One request to AgentBay and its tries. Nothing is signed: the API key goes as a form field, in the body and
// not in the URL, since URLs are written to logs on the way.
//
// Two kinds of requests. kAlways may run twice and is sent again at 503 and when throttled. kOnlyRefused, a
// create or a command, is sent again only when it was refused unread (429, or a code Throttling*). Each try has
// a new nonce and time. Pauses double from 0.2 s, unless the server names one.
#include "remote/aliyun/rpc.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/wire.h"
#include "remote/retry.h"

namespace belljar::remote::aliyun {

using http::Clock;
namespace {

using namespace std::chrono_literals;

constexpr int kTries = 5;
constexpr std::size_t kMostRpcAnswer = 16U << 20;

const char* next_of(Code code) noexcept {
  switch (code) {
    case Code::kUnauthenticated:
      return "check AGENTBAY_API_KEY, and that the region is the one that made it";
    case Code::kResourceExhausted:
      return "end other sandboxes, or wait";
    case Code::kNotFound:
      return "check the name of the image, or the id of the session";
    default:
      return "try again";
  }
}

}  // namespace

std::optional<std::chrono::milliseconds> pause_before(int turn, const http::Reply& reply, Clock::time_point deadline) {
  if (turn >= kTries) return {};
  const auto left = std::chrono::floor<std::chrono::milliseconds>(deadline - Clock::now()).count();
  // Compared as numbers: what a server names may be more than a clock can count.
  const std::int64_t seconds = reply.retry_seconds.value_or(-1);
  if (seconds > left / 1000) return {};
  const std::int64_t pause = seconds >= 0 ? seconds * 1000 : std::int64_t{100} << turn;
  if (pause >= left) return {};
  return std::chrono::milliseconds(pause);
}

Error Rpc::refused(const Answer& answer, const std::string& what) const {
  const Code code = code_of(answer);
  std::string said = answer.code.empty() ? format("status {}", answer.status) : shown(answer.code, {address_.api_key});
  if (!answer.message.empty()) said += ": " + shown(answer.message, {address_.api_key});
  return Error(code, what).reason("the AgentBay service answered with " + said).next(next_of(code));
}

http::Request Rpc::request(std::string_view action, const Fields& fields) const {
  http::Request request{.method = "POST",
                        .url = address_.url + "/" + query_of(action, clock_(), random_hex(16)),
                        .body = form_of(fields),
                        .most_reply = kMostRpcAnswer};
  request.headers = {"Content-Type: application/x-www-form-urlencoded", "x-acs-version: 2025-05-06",
                     format("x-acs-action: {}", action)};
  return request;
}

Result<Answer> Rpc::ask(std::string_view action, Fields fields, Repeat repeat) const {
  return ask(action, std::move(fields), repeat, patience_, -1);
}

Result<Answer> Rpc::ask(std::string_view action, Fields fields, Repeat repeat, std::chrono::milliseconds patience,
                        int cancel_fd) const {
  const auto deadline = Clock::now() + patience;
  fields["Authorization"] = "Bearer " + address_.api_key;  // in the body: a URL is written to logs
  for (int turn = 1;; ++turn) {
    http::Request asked = request(action, fields);
    asked.deadline = deadline;
    asked.only_once = repeat == Repeat::kOnlyRefused;
    const auto reply = http_.ask(std::move(asked), cancel_fd);
    if (!reply)
      return Error(code_unheard(reply.error()), "cannot reach the AgentBay service")
          .reason(reply.error().reason())
          .next("check the network and AGENTBAY_ENDPOINT");
    Answer answer = BELLJAR_TRY(parse_answer(reply->status, reply->body));
    if (!is_throttled(answer) && (repeat == Repeat::kOnlyRefused || answer.status != 503)) return answer;
    const auto pause = pause_before(turn, *reply, deadline);
    if (!pause) return answer;
    BELLJAR_CHECK(wait_for(*pause, cancel_fd));
  }
}

Result<Answer> Rpc::call(std::string_view action, Fields fields, Repeat repeat, const std::string& what, int cancel_fd) const {
  auto answer = BELLJAR_TRY(ask(action, std::move(fields), repeat, patience_, cancel_fd));
  if (!answer.success) return refused(answer, what);
  return answer;
}

}  // namespace belljar::remote::aliyun
