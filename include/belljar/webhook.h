// Posts alerts (or anything else) to a URL in the background.
//
//   auto webhook = BELLJAR_TRY(Webhook::create({.url = "https://alerts.example.com/webhook", .secret = secret}));
//   with_events(sandbox, bus, {.sample_every = 1s, .on_alert = [webhook](const Event& event) { webhook->send("alert",
//   to_json(event)); }});
//
// Link belljar::webhook (it needs libcurl). The receiver checks X-Belljar-Signature, which is "sha256=" and the hexadecimal
// HMAC-SHA256, with the secret, of X-Belljar-Timestamp (Unix seconds), a dot, and the body; a timestamp that is old is a replay.
// X-Belljar-Delivery is the same in all attempts of one delivery.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar {

struct WebhookOptions {
  std::string url;     // http:// or https://, certificates are verified, redirects are not followed
  std::string secret;  // empty: no signature header
  int attempts = 5;    // of one delivery: on no answer, 408, 429 and 5xx. Other answers that are no 2xx end it at once
  std::chrono::milliseconds first_pause{1000};  // before the second attempt; doubles each time
  std::chrono::milliseconds timeout{10'000};    // of one attempt
  std::size_t capacity = 100;                   // deliveries that wait; beyond it the oldest goes
};

struct WebhookCounts {
  std::uint64_t delivered = 0;
  std::uint64_t failed = 0;   // given up
  std::uint64_t dropped = 0;  // never tried, or not yet when the object went
};

// Safe from any thread. The destructor ends deliveries under way at once: call wait_idle() first if they matter.
class Webhook {
 public:
  // Errors: kInvalidArgument, no such URL can be posted to; kResourceExhausted, no thread.
  static Result<std::shared_ptr<Webhook>> create(WebhookOptions options);
  ~Webhook();
  // Takes it over and returns. `kind` comes as X-Belljar-Event: letters, digits, ".", "-" and "_"; other bytes are left out.
  void send(std::string_view kind, std::string body);
  // True: nothing waits or is under way any more.
  bool wait_idle(std::chrono::milliseconds patience);
  WebhookCounts counts() const;

 private:
  struct State;
  explicit Webhook(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace belljar
