// Any bytes as what the clouds' control planes, gateways and our helpers inside answer: no crash, values within their bounds, and
// no secret in an error. The first byte says which status and secret go with them.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "http/client.h"
#include "remote/aliyun/tools.h"
#include "remote/aliyun/wire.h"
#include "remote/e2b/events.h"
#include "remote/json.h"
#include "remote/search.h"
#include "remote/shell/command_status.h"
#include "remote/volcengine/envelope.h"
#include "remote/volcengine/reply.h"

using namespace belljar;
using namespace belljar::remote;

namespace {

constexpr char kSecret[] = "s3cret-key";

void check(const Error& error) {
  if (error.line().find(kSecret) != std::string::npos) std::abort();
}

void look(std::string_view text) {
  for (const bool counted : {false, true}) {
    const auto looked = shell::parse_command_status(text, counted, counted);
    if (!looked) continue;
    if (looked->pid < 0 || (looked->status && (*looked->status < 0 || *looked->status > 255))) std::abort();
    if (counted && !(looked->out.bytes.empty() && looked->err.bytes.empty())) std::abort();
    if (!counted && (looked->out.count != looked->out.bytes.size() || looked->err.count != looked->err.bytes.size())) std::abort();
  }
}

void ask_volcengine(const http::Reply& reply, const std::vector<std::string>& secrets) {
  namespace cloud = volcengine;
  if (const auto refusal = cloud::find_refusal(reply)) {
    (void)cloud::code_of(reply.status, refusal->code);
    (void)cloud::asked_too_often(reply.status, refusal->code);
  }
  if (const auto result = cloud::parse_reply(reply, "cannot ask", secrets)) {
    (void)cloud::parse_description(*result);
    (void)cloud::find_upstream(*result);
    const std::string route = cloud::find_route(*result);
    if (!route.empty() && !route.starts_with("https://")) std::abort();
  } else {
    check(result.error());
  }
  (void)cloud::may_be_complaint(reply);
  const auto data = cloud::parse_envelope(reply, "cannot ask", secrets);
  if (!data) return check(data.error());
  for (const auto& progress : {cloud::parse_exec(*data), cloud::parse_output(*data)}) {
    if (progress && (progress->exit_code < 0 || progress->exit_code > 255)) std::abort();
  }
}

void ask_aliyun(const http::Reply& reply) {
  if (const auto answer = aliyun::parse_answer(reply.status, reply.body)) {
    (void)aliyun::code_of(*answer);
    (void)aliyun::is_throttled(*answer);
    (void)aliyun::is_gone(*answer);
    if (const auto content = aliyun::parse_content(answer->data)) (void)aliyun::parse_said(*content);
  }
  if (const auto content = aliyun::parse_direct(reply.body)) (void)aliyun::parse_said(*content);
  (void)aliyun::parse_said({.is_error = (reply.status & 1) != 0, .text = reply.body});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr long kStatus[] = {200, 204, 302, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 504, 599, 0};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const http::Reply reply{
      .status = kStatus[data[0] % std::size(kStatus)], .content_type = "application/json", .body = std::string(text)};
  look(text);
  ask_volcengine(reply, {kSecret});
  ask_aliyun(reply);
  GrepResult found;
  (void)take_found({.exit_code = data[0] & 3, .out = std::string(text), .err = {}, .complete = (data[0] & 4) == 0}, "/w", 100,
                   found);
  if (found.matches.size() > 100) std::abort();
  return 0;
}
