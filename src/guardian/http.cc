#include <memory>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "http/post.h"

namespace belljar {
namespace {

class HttpGuardian final : public Guardian {
 public:
  explicit HttpGuardian(GuardianOptions options) : options_(std::move(options)) {
    while (options_.url.ends_with('/')) options_.url.pop_back();
    options_.url += options_.wire == GuardianWire::kOpenAi ? "/v1/chat/completions" : "/v1/messages";
  }
  Advice on_failure() const noexcept override { return options_.on_failure; }
  Result<GuardianVerdict> review(const GuardianQuestion& question) override;

 private:
  GuardianOptions options_;
};

Result<GuardianVerdict> HttpGuardian::review(const GuardianQuestion& question) {
  const bool anthropic = options_.wire == GuardianWire::kAnthropic;
  http::Post post{.url = options_.url,
                  .headers = {"Content-Type: application/json"},
                  .body = guardian_request(options_, question),
                  .timeout = options_.timeout};
  if (anthropic) post.headers.emplace_back("anthropic-version: 2023-06-01");
  if (!options_.key.empty()) post.headers.push_back((anthropic ? "x-api-key: " : "Authorization: Bearer ") + options_.key);
  const auto reply = http::post(post);
  if (!reply) return Error(reply.error().code(), "the guardian gave no verdict").reason(reply.error().reason());
  if (reply->status != 200)
    return Error(Code::kUnavailable, "the guardian gave no verdict")
        .reason(format("the endpoint answered with status {}", reply->status));
  return parse_guardian_reply(options_.wire, reply->body);
}

}  // namespace

Result<std::unique_ptr<Guardian>> http_guardian(GuardianOptions options) {
  BELLJAR_CHECK(http::check_endpoint(options.url, "a guardian"));
  const auto bad = [](std::string what) { return Error(Code::kInvalidArgument, std::move(what)); };
  if (options.model.empty()) return bad("a guardian needs the name of a model");
  if (options.key.find_first_of("\r\n") != std::string::npos) return bad("the key of the guardian holds a line end");
  if (options.on_failure == Advice::kAllow)
    return bad("a guardian that fails cannot allow").next("choose ask or block for on_failure");
  if (options.timeout.count() <= 0) return bad("the guardian's timeout must be positive");
  return std::unique_ptr<Guardian>(std::make_unique<HttpGuardian>(std::move(options)));
}

}  // namespace belljar
