// A second model that looks at a proposed call before a person does, through any endpoint that speaks as OpenAI's chat completions
// or Anthropic's messages do.
//
//   auto guardian = BELLJAR_TRY(http_guardian({.wire = GuardianWire::kAnthropic, .url = "https://api.anthropic.com", .model = m,
//   .key = k})); Judgement judgement = turn.judge(call); judgement = guarded(*guardian, {.user = task, .call = call, .judgement =
//   judgement});
//
// It can only make a judgement stricter: what the validator asks about is never allowed by a model, which reads the same poisoned
// text. No answer in time, an answer that is no verdict, an error: `on_failure`. Link belljar::guardian (it needs libcurl).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "belljar/result.h"
#include "belljar/turn.h"

namespace belljar {

struct GuardianQuestion {
  std::string user;  // what the user asked for
  ProposedCall call;
  Judgement judgement;  // what the validator found; its evidence is shown as data
};

struct GuardianVerdict {
  Advice advice = Advice::kBlock;
  std::string reason;
};

class Guardian {
 public:
  virtual ~Guardian() = default;
  // Errors: every reason why there is no verdict.
  virtual Result<GuardianVerdict> review(const GuardianQuestion& question) = 0;
  // What stands when there is none: kAsk or kBlock.
  virtual Advice on_failure() const noexcept = 0;
};

// The stricter of the judgement and the verdict, with the guardian's reason when it is the stricter one.
Judgement guarded(Guardian& guardian, const GuardianQuestion& question);

enum class GuardianWire { kOpenAi, kAnthropic };

struct GuardianOptions {
  GuardianWire wire = GuardianWire::kOpenAi;
  // Up to, and without, /v1/chat/completions or /v1/messages. http:// only to this machine: the key and the call would be readable.
  std::string url;
  std::string model;
  std::string key;                            // empty: no header
  std::chrono::milliseconds timeout{10'000};  // of the whole exchange
  Advice on_failure = Advice::kBlock;
};

// One thread at a time. Certificates are verified, redirects are not followed, at most 1 MiB is read.
// Errors: kInvalidArgument, the URL, the model or `on_failure` = kAllow.
Result<std::unique_ptr<Guardian>> http_guardian(GuardianOptions options);

// For who brings a transport: the request's body, and the verdict in a reply's body. A verdict is one JSON object with `decision`
// (allow, ask, block) and `reason`, and nothing beside it. Errors: kDataLoss, the reply is no such thing.
std::string guardian_request(const GuardianOptions& options, const GuardianQuestion& question);
Result<GuardianVerdict> parse_guardian_reply(GuardianWire wire, std::string_view body);

}  // namespace belljar
