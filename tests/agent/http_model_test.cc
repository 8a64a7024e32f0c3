#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/support_agent.h"
#include "belljar/agent_model.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "support/eventually.h"
#include "support/model_server.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kKey = "sk-very-secret-1";

struct Asked {
  Result<ModelReply> reply = Error(Code::kUnknown, "not asked");
  std::vector<std::string> retries;
  std::string streamed;
};

Asked ask(const ModelServer& server, ModelWire wire = ModelWire::kAnthropic, CancelToken cancel = {},
          std::chrono::milliseconds silence = 60s) {
  Asked asked;
  auto model = http_model({.wire = wire,
                           .url = server.url() + "/",
                           .model = "m1",
                           .key = kKey,
                           .attempts = 3,
                           .first_wait = 1ms,
                           .longest_wait = 2s,
                           .silence = silence});
  EXPECT_TRUE(model) << model.error().line();
  asked.reply =
      (*model)->ask({.messages = {{.text = "hello"}}},
                    {.cancel = std::move(cancel),
                     .on_text = [&](std::string_view piece) { asked.streamed += piece; },
                     .on_retry = [&](std::string_view reason, std::chrono::milliseconds) { asked.retries.emplace_back(reason); }});
  return asked;
}

TEST(HttpModel, EachWireIsAskedAtItsPlaceWithItsKey) {
  const struct {
    ModelWire wire;
    std::vector<std::string> stream;
    const char *place, *key;
  } kRows[] = {
      {ModelWire::kAnthropic, anthropic_stream("done"), "POST /v1/messages HTTP/1.1\r\n", "x-api-key: sk-very-secret-1\r\n"},
      {ModelWire::kOpenAiChat, chat_stream("done"), "POST /v1/chat/completions HTTP/1.1\r\n",
       "Authorization: Bearer sk-very-secret-1\r\n"},
      {ModelWire::kOpenAiResponses, responses_stream("done"), "POST /v1/responses HTTP/1.1\r\n",
       "Authorization: Bearer sk-very-secret-1\r\n"}};
  for (const auto& row : kRows) {
    for (const bool slow : {false, true}) {
      const ModelServer server({{.pieces = slow ? byte_by_byte(row.stream) : row.stream}});
      const Asked asked = ask(server, row.wire);
      ASSERT_TRUE(asked.reply) << asked.reply.error().line();
      EXPECT_EQ(asked.reply->message.text, "done");
      EXPECT_EQ(asked.streamed, "done");
      const std::string request = server.requests().at(0);
      EXPECT_TRUE(request.starts_with(row.place)) << request;
      EXPECT_TRUE(has(request, row.key)) << request;
      EXPECT_TRUE(has(request, R"("model":"m1")")) << request;
    }
  }
}

TEST(HttpModel, WhatMayPassIsAskedAgain) {
  const std::vector<std::string> good = anthropic_stream("done");
  std::vector<std::string> half(good.begin(), good.begin() + 4), malformed = good;
  malformed[3] = "event: content_block_delta\ndata: {\"type\":\"content_bl\n\n";
  const struct {
    const char* what;
    ModelAnswer answer;
    const char* words;
  } kRows[] = {{"too many",
                {.status = 429,
                 .headers = {"retry-after: 0"},
                 .pieces = {R"({"type":"error","error":{"type":"rate_limit_error","message":"slow down"}})"}},
                "slow down"},
               {"broken", {.status = 500}, "status 500"},
               {"overloaded", {.status = 529, .pieces = {"<html>"}}, "<html>"},
               {"cut in the middle of the connection", {.pieces = half, .cut = true}, ""},
               {"cut, and politely so", {.pieces = half}, "ended before"},
               {"malformed", {.pieces = malformed}, "no JSON"}};
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.what);
    const ModelServer once({row.answer, {.pieces = good}}), always({row.answer});
    const Asked mended = ask(once);
    ASSERT_TRUE(mended.reply) << mended.reply.error().line();
    EXPECT_EQ(mended.reply->message.text, "done") << "nothing of the first try";
    ASSERT_EQ(mended.retries.size(), 1U);
    EXPECT_TRUE(has(mended.retries[0], row.words)) << mended.retries[0];
    const Asked given_up = ask(always);
    ASSERT_FALSE(given_up.reply);
    EXPECT_TRUE(has(given_up.reply.error().line(), "asked 3 times")) << given_up.reply.error().line();
    EXPECT_EQ(always.requests().size(), 3U);
  }
}

// OPENAI_API_KEY=key is what people give a server of their own: it is in "[key]", too.
TEST(HttpModel, AKeyThatIsAnOrdinaryWordIsNoSecret) {
  for (const std::string key : {"k", "key", "[key]", "key-of-key"}) {
    const ModelServer server({{.status = 401, .pieces = {R"({"error":{"message":"no key )" + key + R"(, no cake"}})"}}});
    auto model = http_model({.url = server.url(), .model = "m1", .key = key, .attempts = 1});
    ASSERT_TRUE(model) << model.error().line();
    const auto reply = (*model)->ask({.messages = {{.text = "hello"}}}, {});
    ASSERT_FALSE(reply);
    const bool secret = key.size() > 5;
    EXPECT_TRUE(has(reply.error().line(), "no key " + (secret ? "[key]" : key) + ", no cake")) << reply.error().line();
  }
}

TEST(HttpModel, WhatWillNotPassIsNotAskedAgainAndNoErrorHoldsTheKey) {
  for (const int status : {400, 401, 403, 404, 413, 302}) {
    const ModelServer server(
        {{.status = status, .pieces = {std::string(R"({"error":{"type":"t","message":"wrong key )") + kKey + "\"}}"}}});
    const Asked asked = ask(server);
    ASSERT_FALSE(asked.reply) << status;
    EXPECT_EQ(server.requests().size(), 1U) << status;
    EXPECT_FALSE(has(asked.reply.error().line(), kKey)) << asked.reply.error().line();
    EXPECT_TRUE(has(asked.reply.error().line(), "[key]")) << asked.reply.error().line();
    EXPECT_EQ(asked.reply.error().code() == Code::kUnauthenticated, status == 401 || status == 403);
  }
  const ModelServer whole(std::vector<ModelAnswer>{{.pieces = {"{}"}, .type = "application/json"}});
  const Asked no_stream = ask(whole);
  EXPECT_EQ(whole.requests().size(), 1U);
  EXPECT_TRUE(has(no_stream.reply.error().line(), "no stream of events")) << no_stream.reply.error().line();
  const ModelServer patient({{.status = 429, .headers = {"retry-after: 3600"}}});
  const Asked asked = ask(patient);
  EXPECT_EQ(patient.requests().size(), 1U);
  EXPECT_TRUE(has(asked.reply.error().line(), "in 3600 s")) << asked.reply.error().line();
}

TEST(HttpModel, AWishIsUnderstoodInBothItsForms) {
  for (const char* wish : {"99999999999999999999", "4294967296", "86401", "Fri, 31 Dec 2100 23:59:59 GMT"}) {
    const ModelServer patient({{.status = 429, .headers = {std::string("retry-after: ") + wish}}});
    const Asked asked = ask(patient);
    EXPECT_EQ(patient.requests().size(), 1U) << wish;
    EXPECT_TRUE(has(asked.reply.error().line(), "in 86400 s")) << asked.reply.error().line();
  }
  for (const char* wish : {"0", "soon", "-5", "Sun, 06 Nov 1994 08:49:37 GMT"}) {
    const ModelServer quick({{.status = 429, .headers = {std::string("retry-after: ") + wish}}, {.pieces = anthropic_stream("x")}});
    EXPECT_TRUE(ask(quick).reply) << wish;
  }
}

TEST(HttpModel, NobodyThereIsAnError) {
  std::string url;
  {
    const ModelServer gone(std::vector<ModelAnswer>(1));
    url = gone.url();
  }
  auto model = http_model({.url = url, .model = "m", .attempts = 2, .first_wait = 1ms});
  const auto reply = (*model)->ask({.messages = {{.text = "x"}}}, {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code(), Code::kUnavailable);
}

TEST(HttpModel, SilenceAndCancellingEndIt) {
  const std::vector<std::string> good = anthropic_stream("done");
  const ModelServer silent({{.pieces = {good[0]}, .hang = true}});
  const Asked waited = ask(silent, ModelWire::kAnthropic, {}, 50ms);
  ASSERT_FALSE(waited.reply);
  EXPECT_EQ(waited.reply.error().code(), Code::kDeadlineExceeded) << waited.reply.error().line();
  const auto cancel = CancelToken::create();
  ASSERT_TRUE(cancel);
  const ModelServer hanging({{.pieces = {good[0]}, .hang = true}});
  std::thread ends([&] {
    EXPECT_TRUE(eventually([&] { return !hanging.requests().empty(); }));
    cancel->cancel();
  });
  const Asked cancelled = ask(hanging, ModelWire::kAnthropic, *cancel);
  ends.join();
  ASSERT_FALSE(cancelled.reply);
  EXPECT_EQ(cancelled.reply.error().code(), Code::kCanceled);
  EXPECT_EQ(hanging.requests().size(), 1U);
}

TEST(HttpModel, WrongOptionsAreRefused) {
  EXPECT_FALSE(http_model({.url = "http://api.example", .model = "m", .key = "k"})) << "plain http to another machine";
  EXPECT_TRUE(http_model({.url = "https://api.example", .model = "m", .key = "k"}));
  EXPECT_FALSE(http_model({.url = "ftp://api.example", .model = "m"}));
  EXPECT_FALSE(http_model({.url = "https://user:word@api.example", .model = "m"}));
  EXPECT_FALSE(http_model({.url = "https://api.example"}));
  EXPECT_FALSE(http_model({.url = "https://api.example", .model = "m", .key = "a\r\nb"}));
}

}  // namespace
}  // namespace belljar::test
