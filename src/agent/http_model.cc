// A model behind HTTP: one request, its stream of events, and what is asked again.
//
// Asking again is for failures that time may mend: the status codes 408, 409, 429 and 5xx, a connection that
// broke, a stream that ended early. A refusal that will not change (401, 400) is returned at once. The pause
// doubles from try to try, with some randomness, so that several agents that met the same limit do not come
// back together; a service's own Retry-After counts if it is longer. If it asks for more patience than the
// caller has, the error says when to come again.
//
// Text that was already shown to the user when a stream broke is shown again by the next attempt. That is
// told by on_retry; the reply itself is always from one attempt.
//
// The key is a secret. It stands in one header only, redirects are not followed (src/http), and error texts
// of a service that repeat it are cleaned, since such texts end up in logs (without_key).
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/json.h"
#include "agent/sse.h"
#include "agent/wire.h"
#include "base/format.h"
#include "belljar/agent_model.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "http/post.h"

namespace belljar {
namespace agent {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostAnswer = std::size_t{64} << 20;
constexpr std::size_t kMostEvent = std::size_t{8} << 20;

struct Failure {
  Error error;
  bool again = false;
  milliseconds at_least{0};
};
using Attempt = std::pair<std::optional<ModelReply>, std::optional<Failure>>;

bool may_help(long status) noexcept { return status == 408 || status == 409 || status == 429 || status >= 500; }

// RFC 9110, 10.2.3: seconds, or a date, which libcurl reads. A number that is too large is a long time, and not none.
milliseconds retry_after_of(const http::Reply& reply) noexcept {
  constexpr unsigned kMost = 86'400;
  const std::string_view text = reply.retry_after;
  unsigned seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec == std::errc::result_out_of_range) seconds = kMost;
  if (read.ec == std::errc::invalid_argument)
    seconds = static_cast<unsigned>(std::clamp<long>(reply.retry_seconds.value_or(0), 0, kMost));
  return std::chrono::seconds(std::min(seconds, kMost));
}

class HttpModel final : public ModelProvider {
 public:
  explicit HttpModel(HttpModelOptions options) : options_(std::move(options)), wire_(wire_of(options_.wire)) {}
  Result<ModelReply> ask(const ModelRequest& request, const ModelContext& context) override;

 private:
  Attempt attempt(const std::string& body, const ModelContext& context) const;
  http::Post post_of(const std::string& body, const CancelToken& cancel) const;
  Failure refused(const http::Reply& reply) const;
  Failure without_key(Failure failure) const;
  // False: cancelled.
  bool wait(milliseconds time, const CancelToken& cancel) const;

  const HttpModelOptions options_;
  const Wire& wire_;
};

http::Post HttpModel::post_of(const std::string& body, const CancelToken& cancel) const {
  http::Post post{.url = options_.url + std::string(wire_.path),
                  .headers = {"Content-Type: application/json", "Accept: text/event-stream"},
                  .body = body,
                  .silence = options_.silence,
                  .most_bytes = kMostAnswer,
                  .cancel_fd = cancel.fd()};
  const bool anthropic = options_.wire == ModelWire::kAnthropic;
  if (anthropic) post.headers.emplace_back("anthropic-version: 2023-06-01");
  if (!options_.key.empty()) post.headers.push_back((anthropic ? "x-api-key: " : "Authorization: Bearer ") + options_.key);
  return post;
}

// Services like to repeat a key that they do not know. One of a few letters is no secret (local servers take any), and stands in
// ordinary words.
Failure HttpModel::without_key(Failure failure) const {
  constexpr std::string_view kInstead = "[key]";
  constexpr std::size_t kShortestKey = 6;
  std::string reason = failure.error.reason();
  if (options_.key.size() >= kShortestKey) {
    for (std::size_t at = 0; (at = reason.find(options_.key, at)) != std::string::npos; at += kInstead.size())
      reason.replace(at, options_.key.size(), kInstead);
  }
  std::string next = failure.error.next();
  failure.error = Error(failure.error.code(), failure.error.what()).reason(std::move(reason)).next(std::move(next));
  return failure;
}

Failure HttpModel::refused(const http::Reply& reply) const {
  const auto body = parse_json(reply.body);
  const Json& error = body ? member(*body, "error") : Json();
  const std::string words = error.is_null() ? shortened(reply.body) : endpoint_error(error).reason();
  const std::string reason = format("status {}{}{}", reply.status, words.empty() ? "" : ": ", words);
  const Code code = reply.status == 401 || reply.status == 403 ? Code::kUnauthenticated
                    : may_help(reply.status)                   ? Code::kUnavailable
                                                               : Code::kInvalidArgument;
  const milliseconds asked_wait = retry_after_of(reply);
  const bool too_long = asked_wait > options_.longest_wait;
  std::string next;
  if (code == Code::kUnauthenticated) next = "check the key and what it may use";
  if (may_help(reply.status) && too_long) next = format("ask again in {} s", asked_wait.count() / 1000);
  Error told = Error(code, format("{} does not answer", belljar::quoted(options_.model))).reason(reason).next(std::move(next));
  return {std::move(told), may_help(reply.status) && !too_long, asked_wait};
}

Attempt HttpModel::attempt(const std::string& body, const ModelContext& context) const {
  const auto decoder = wire_.decoder(context.on_text);
  std::optional<Error> broken;
  SseReader reader(kMostEvent, [&](const SseEvent& event) {
    const auto handled = decoder->handle(event);
    if (!handled) broken = handled.error();
    return handled.has_value();
  });
  const auto reply = http::post(post_of(body, context.cancel), [&](std::string_view piece) { return reader.feed(piece); });
  const auto failure = [](const Error& error) {
    const bool again =
        error.code() == Code::kUnavailable || error.code() == Code::kDataLoss || error.code() == Code::kDeadlineExceeded;
    return Attempt{std::nullopt, Failure{error, again}};
  };
  if (broken) return failure(*broken);
  if (!reply && reply.error().code() == Code::kAborted) return failure(malformed("an event is too large"));
  if (!reply) return failure(reply.error());
  if (reply->status != 200) return {std::nullopt, refused(*reply)};
  auto answer = decoder->finish();
  if (!answer && reply->content_type.find("event-stream") == std::string::npos)
    return {std::nullopt, Failure{malformed(format("it is {}, and no stream of events", belljar::quoted(reply->content_type)))}};
  if (!answer) return failure(answer.error());
  return {std::move(*answer), std::nullopt};
}

bool HttpModel::wait(milliseconds time, const CancelToken& cancel) const {
  pollfd cancelled{cancel.fd(), POLLIN, 0};
  return ::poll(&cancelled, 1, static_cast<int>(time.count())) <= 0;
}

Result<ModelReply> HttpModel::ask(const ModelRequest& request, const ModelContext& context) {
  const std::string body = dump(wire_.body(options_.model, request));
  std::minstd_rand random(std::random_device{}());
  milliseconds pause = options_.first_wait;
  for (unsigned tries = 1;; ++tries) {
    auto [reply, failure] = attempt(body, context);
    if (reply) return std::move(*reply);
    if (context.cancel.cancelled()) return Error(Code::kCanceled, "the question to the model was cancelled");
    const Failure told = without_key(std::move(*failure));
    if (!told.again) return told.error;
    if (tries >= std::max(options_.attempts, 1U))
      return Error(told.error.code(), told.error.what())
          .reason(format("{} (asked {} times)", told.error.reason(), tries))
          .next(told.error.next());
    // Somebody else waits for the same service, too: not all at the same moment.
    const auto jitter = milliseconds(random() % static_cast<unsigned long>(pause.count() / 4 + 1));
    const milliseconds time = std::min(std::max(pause + jitter, told.at_least), options_.longest_wait);
    if (context.on_retry) context.on_retry(told.error.reason().empty() ? told.error.what() : told.error.reason(), time);
    if (!wait(time, context.cancel)) return Error(Code::kCanceled, "the question to the model was cancelled");
    pause = std::min(pause * 2, options_.longest_wait);
  }
}

}  // namespace
}  // namespace agent

Result<std::shared_ptr<ModelProvider>> http_model(HttpModelOptions options) {
  while (options.url.ends_with('/')) options.url.pop_back();
  BELLJAR_CHECK(http::check_endpoint(options.url, "a model"));
  const auto bad = [](std::string what) { return Error(Code::kInvalidArgument, std::move(what)); };
  if (options.model.empty()) return bad("the name of the model is missing");
  if (options.key.find_first_of("\r\n") != std::string::npos) return bad("the key of the model holds a line end");
  if (options.first_wait.count() < 0 || options.longest_wait < options.first_wait || options.silence.count() <= 0)
    return bad("the times of the model make no sense");
  return std::shared_ptr<ModelProvider>(std::make_shared<agent::HttpModel>(std::move(options)));
}

}  // namespace belljar
