// What goes to Aliyun and what is made of what comes back; addresses and keys. No network.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "belljar/aliyun.h"
#include "belljar/error.h"
#include "remote/address.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/gateway.h"
#include "remote/aliyun/session.h"
#include "remote/aliyun/tools.h"
#include "remote/aliyun/wire.h"

namespace belljar::remote::aliyun {
namespace {

// --- what is sent

TEST(AliyunForm, IsSortedAndPercentEncodedAndLeavesOutWhatIsEmpty) {
  EXPECT_EQ(form_of({{"b", "my key~/+&=\n\"{}"}, {"a", ""}, {"Authorization", "Bearer akm-1"}, {"ü", "\xc3\xa4"}}),
            "Authorization=Bearer%20akm-1&b=my%20key~%2F%2B%26%3D%0A%22%7B%7D&%C3%BC=%C3%A4");
  EXPECT_EQ(form_of({}), "");
}

TEST(AliyunForm, TheQuerySaysActionVersionTimeAndNonce) {
  const auto time = std::chrono::system_clock::from_time_t(1767323045) + std::chrono::milliseconds(999);
  EXPECT_EQ(
      query_of("CreateMcpSession", time, "0123456789abcdef"),
      "?Action=CreateMcpSession&Format=json&Version=2025-05-06&Timestamp=2026-01-02T03%3A04%3A05Z&SignatureNonce=0123456789abcdef");
}

// --- what comes back

Answer answer_of(long status, const std::string& body) {
  auto answer = parse_answer(status, body);
  EXPECT_TRUE(answer) << body << answer.error().line();
  return answer ? *answer : Answer{};
}

TEST(AliyunAnswer, DataIsAnObjectAListOrTheSameInAString) {
  EXPECT_EQ(answer_of(200, R"({"Success":true,"Code":"ok","Data":{"a":1}})").data, Json({{"a", 1}}));
  EXPECT_EQ(answer_of(200, R"({"Success":true,"Data":"{\"a\":1}"})").data, Json({{"a", 1}}));
  EXPECT_EQ(answer_of(200, R"({"Data":"[1]"})").data, Json::array({1}));
  EXPECT_EQ(answer_of(200, R"({"Data":"plain"})").data, Json("plain"));
  EXPECT_EQ(answer_of(200, R"({"Data":"7"})").data, Json("7")) << "a number is no structure";
  EXPECT_TRUE(answer_of(200, R"({"Success":true,"Code":"ok"})").data.is_null());
  EXPECT_TRUE(answer_of(200, R"({"RequestId":"x"})").success);
}

TEST(AliyunAnswer, EachShapeOfAFailureIsOne) {
  const std::vector<std::pair<long, const char*>> failures = {
      {400, R"({"RequestId":"r","Code":"Told","Message":"no","HostId":"h"})"},
      {503, "<html>a proxy's page</html>"},
      {500, ""},
      {302, "{}"},
      {200, R"({"Success":false,"Code":"Told","Message":"no"})"},
      {200, R"({"Success":true,"Code":"ok","Data":{"Success":false,"ErrMsg":"no"}})"},
      {200, R"({"Success":true,"Data":"{\"Success\":false,\"ErrMsg\":\"no\"}"})"},
      {200, R"({"Code":"Told","Message":"no"})"},
  };
  for (const auto& [status, body] : failures) EXPECT_FALSE(answer_of(status, body).success) << status << body;
  const Answer told = answer_of(200, R"({"Success":true,"Code":"ok","Message":"","Data":{"Success":false,"ErrMsg":"why not"}})");
  EXPECT_EQ(told.message, "why not");
  EXPECT_EQ(told.code, "");
  EXPECT_EQ(answer_of(200, R"({"Success":false,"HttpStatusCode":403,"Code":"X"})").status, 403);
  EXPECT_EQ(answer_of(200, R"({"Success":false,"HttpStatusCode":7})").status, 200);
}

TEST(AliyunAnswer, WhatIsNoAnswerOfTheServiceIsDataLoss) {
  for (const char* body : {"", "<html>a portal</html>", "[1,2]", "\"text\"", "{\"a\":", "\xff\xfe", "null"}) {
    const auto answer = parse_answer(200, body);
    ASSERT_FALSE(answer) << body;
    EXPECT_EQ(answer.error().code(), Code::kDataLoss) << body;
  }
  EXPECT_TRUE(parse_answer(200, "{}"));
  EXPECT_TRUE(answer_of(200, R"({"Success":"no","Code":7,"Message":[],"Data":null,"HttpStatusCode":"x"})").success)
      << "members of other types are as missing";
  EXPECT_FALSE(answer_of(200, R"({"Success":false,"Code":{},"Message":1,"HttpStatusCode":"x"})").success);
}

TEST(AliyunAnswer, CodesAreMapped) {
  const auto code = [](long status, const std::string& name, const std::string& message = "") {
    return code_of({.status = status, .success = false, .code = name, .message = message, .data = {}});
  };
  EXPECT_EQ(code(400, "InvalidMcpSession.NotFound"), Code::kNotFound);
  EXPECT_EQ(code(400, "", "Resource [McpSession] is not found."), Code::kNotFound);
  EXPECT_EQ(code(400, "InvalidParameter", "Resource [McpSession] is not found."), Code::kNotFound);
  EXPECT_EQ(code(400, "InvalidImageId.NotFound"), Code::kNotFound);
  EXPECT_EQ(code(400, "InvalidAction.NotFound"), Code::kUnimplemented);
  EXPECT_EQ(code(400, "NOT_LOGIN"), Code::kUnauthenticated);
  EXPECT_EQ(code(401, ""), Code::kUnauthenticated);
  EXPECT_EQ(code(403, ""), Code::kPermissionDenied);
  EXPECT_EQ(code(400, "Throttling.User"), Code::kResourceExhausted);
  EXPECT_EQ(code(429, ""), Code::kResourceExhausted);
  EXPECT_EQ(code(200, "", "the account exceed limit"), Code::kResourceExhausted);
  EXPECT_EQ(code(200, "", "Concurrency Limit reached"), Code::kResourceExhausted);
  EXPECT_EQ(code(400, "InvalidParameter"), Code::kInvalidArgument);
  EXPECT_EQ(code(504, ""), Code::kUnavailable);
  EXPECT_FALSE(is_gone({.status = 400, .success = false, .code = "InvalidImageId", .message = "image not found", .data = {}}));
  EXPECT_FALSE(is_throttled({.status = 200, .success = true, .code = "Throttling", .message = {}, .data = {}}));
}

// --- sessions and tools

TEST(AliyunSession, IsReadWithEveryShapeOfItsTools) {
  const Json tools = {{{"name", "shell"}, {"server", "wuying_shell"}}, {{"Name", "read_file"}, {"Server", "fs"}}, 7, {{"name", 1}}};
  const Json data = {{"SessionId", "session-04x.1"}, {"Token", "t"}, {"LinkUrl", "https://a.example/x/"}};
  for (const Json& list : {tools, Json(tools.dump())}) {
    Json given = data;
    given["ToolList"] = list;
    const auto granted = parse_session_access(given);
    ASSERT_TRUE(granted) << granted.error().line();
    EXPECT_EQ(granted->link_url, "https://a.example/x");
    EXPECT_EQ(granted->servers.at("shell"), "wuying_shell");
    EXPECT_EQ(granted->servers.at("read_file"), "fs");
    EXPECT_EQ(granted->servers.size(), 2U);
  }
  for (const Json& list : {Json(), Json("no list"), Json(7), Json::object()}) {
    Json given = data;
    given["ToolList"] = list;
    EXPECT_TRUE(parse_session_access(given)->servers.empty()) << list;
  }
}

TEST(AliyunSession, AnAddressThatIsNotSafeIsAsNone) {
  const auto link = [](const char* url, const char* token) {
    return parse_session_access({{"SessionId", "s"}, {"Token", token}, {"LinkUrl", url}})->link_url;
  };
  EXPECT_EQ(link("https://a.example", "t"), "https://a.example");
  EXPECT_EQ(link("http://127.0.0.1:1/x", "t"), "http://127.0.0.1:1/x");
  for (const char* url : {"http://a.example", "ftp://a.example", "https://user:pw@a.example", "", "a.example"})
    EXPECT_EQ(link(url, "t"), "") << url;
  EXPECT_EQ(link("https://a.example", ""), "") << "nor one without a token";
}

TEST(AliyunSession, AnIdOrATokenThatIsNoneIsDataLoss) {
  for (const Json& data :
       {Json({{"SessionId", "../x"}}), Json({{"SessionId", ""}}), Json({{"SessionId", 7}}), Json::object(), Json(), Json("text"),
        Json({{"SessionId", "s"}, {"Token", "a\r\nX: y"}}), Json({{"SessionId", "s"}, {"Token", "\xc3\xa4"}})}) {
    const auto granted = parse_session_access(data);
    ASSERT_FALSE(granted) << data;
    EXPECT_EQ(granted.error().code(), Code::kDataLoss);
  }
}

TEST(AliyunTools, ContentIsTextBlobOrData) {
  const auto text = [](const char* json) { return parse_content(Json::parse(json))->text; };
  EXPECT_EQ(text(R"({"content":[{"type":"text","text":"a"},{"text":"b"}]})"), "a");
  EXPECT_EQ(text(R"({"content":[{"blob":"YQ=="}]})"), "YQ==");
  EXPECT_EQ(text(R"({"content":[{"data":"d"}]})"), "d");
  EXPECT_EQ(text(R"({"content":["s"]})"), "s");
  EXPECT_EQ(text(R"({"content":[]})"), "");
  EXPECT_EQ(text(R"({"content":[7]})"), "");
  EXPECT_TRUE(parse_content(Json::parse(R"({"content":[{"text":"x"}],"isError":true})"))->is_error);
  EXPECT_FALSE(parse_content(Json::parse(R"({"content":[{"text":"x"}],"isError":"yes"})"))->is_error);
  for (const char* json : {"null", "7", "\"text\"", "[]", "{}", R"({"content":{}})", R"({"content":"x"})"})
    EXPECT_EQ(parse_content(Json::parse(json)).error().code(), Code::kDataLoss) << json;
}

TEST(AliyunTools, ADirectReplyHasDataAndResult) {
  const std::string result = R"({"result":{"content":[{"text":"a"}]}})";
  EXPECT_EQ(parse_direct(R"({"data":)" + result + "}")->text, "a");
  EXPECT_EQ(parse_direct(R"({"data":)" + Json(result).dump() + "}")->text, "a");
  for (const char* body : {"", "x", "{}", R"({"data":null})", R"({"data":7})", R"({"data":{}})", R"({"data":"{"})",
                           R"({"data":[]})", R"({"data":{"result":7}})", "\xff"})
    EXPECT_EQ(parse_direct(body).error().code(), Code::kDataLoss) << body;
}

TEST(AliyunTools, ShellSaysHowACommandEnded) {
  const auto said = [](const char* text, bool is_error) { return parse_script_output({.is_error = is_error, .text = text}); };
  const auto fine = said(R"({"stdout":"o","stderr":"e","exit_code":3,"traceId":"t"})", false);
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->exit_code, 3);
  EXPECT_EQ(fine->out, "o");
  EXPECT_EQ(fine->err, "e");
  EXPECT_EQ(said(R"({"stdout":"o"})", false)->exit_code, 0);
  EXPECT_EQ(said(R"({"exit_code":2})", true)->exit_code, 2);
  EXPECT_EQ(said(R"({"stderr":"e","errorCode":126})", true)->exit_code, 126);
  EXPECT_EQ(said(R"({"exit_code":0,"errorCode":5})", true)->exit_code, 5);
  for (const char* text :
       {"", "text of an old image", "{}", R"({"stdout":"o","exit_code":"3"})", R"({"stdout":"o","exit_code":1.5})",
        R"({"stdout":"o","exit_code":99999999999})", "[]", "7", R"({"errorCode":5})"})
    EXPECT_EQ(said(text, false).error().code(), Code::kDataLoss) << text;
  for (const char* text : {"", "on fire \x1b[31m", "{}", R"({"exit_code":0})"}) {
    const Error error = said(text, true).error();
    EXPECT_EQ(error.code(), Code::kUnavailable) << text;
    EXPECT_EQ(error.line().find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(said("command timed out", true).error().code(), Code::kDeadlineExceeded);
}

TEST(AliyunGateway, RepliesAreResultsOrErrorsOfTheirKind) {
  const GatewayAddress address{.url = "https://g.example", .key_id = "LTAI-1", .key_secret = "hush-hush", .token = ""};
  EXPECT_EQ(*parse_rpc(200, R"({"result":{"a":1}})", address), Json({{"a", 1}}));
  const Error http = parse_rpc(500, "it broke, hush-hush", address).error();
  EXPECT_EQ(http.code(), Code::kUnavailable);
  EXPECT_EQ(http.reason(), "http error: 500 - it broke, [redacted]");
  EXPECT_EQ(parse_rpc(401, "", address).error().code(), Code::kUnauthenticated);
  EXPECT_EQ(parse_rpc(200, R"({"error":{"code":-32601,"message":"no such tool"}})", address).error().reason(),
            "mcp error: no such tool (code: -32601)");
  for (const char* body : {"", "[]", "{}", "text", "\xff"})
    EXPECT_EQ(parse_rpc(200, body, address).error().code(), Code::kDataLoss) << body;
  EXPECT_EQ(parse_rpc(200, R"({"error":{}})", address).error().reason(), "mcp error:  (code: 0)");
}

// --- whom to ask

TEST(AliyunAddress, RegionsChooseTheService) {
  const auto url = [](const AliyunOptions& options, const Variables& variables) {
    const auto address = find_address(options, variables);
    return address ? address->url : address.error().line();
  };
  const AliyunOptions keyed{.api_key = "akm-1"};
  EXPECT_EQ(url(keyed, {}), "https://wuyingai.cn-shanghai.aliyuncs.com");
  EXPECT_EQ(url(keyed, {{"ALIYUN_REGION", "cn-hangzhou"}}), "https://wuyingai.cn-shanghai.aliyuncs.com");
  EXPECT_EQ(find_address(keyed, {{"ALIYUN_REGION", "cn-hangzhou"}})->region, "cn-hangzhou");
  EXPECT_EQ(url(keyed, {{"AGENTBAY_REGION_ID", "ap-southeast-1"}, {"ALIYUN_REGION", "cn-hangzhou"}}),
            "https://wuyingai.ap-southeast-1.aliyuncs.com");
  EXPECT_EQ(url(keyed, {{"AGENTBAY_ENDPOINT", "own.example"}}), "https://own.example");
  EXPECT_EQ(url(keyed, {{"AGENTBAY_ENDPOINT", "https://own.example/"}}), "https://own.example");
  EXPECT_EQ(url({.api_key = "akm-1", .endpoint = "first.example"}, {{"AGENTBAY_ENDPOINT", "own.example"}}),
            "https://first.example");
  EXPECT_EQ(url(keyed, {{"AGENTBAY_ENDPOINT", "http://127.0.0.1:1"}}), "http://127.0.0.1:1");
  for (const char* wrong : {"http://own.example", "https://me:hush@own.example", "ftp://x", "https://"}) {
    const auto address = find_address(keyed, {{"AGENTBAY_ENDPOINT", wrong}});
    ASSERT_FALSE(address) << wrong;
    EXPECT_EQ(address.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(address.error().line().find("hush"), std::string::npos);
  }
  EXPECT_EQ(find_address(keyed, {{"ALIYUN_REGION", "cn hangzhou"}}).error().code(), Code::kInvalidArgument);
}

TEST(AliyunAddress, KeysDecideTheRoute) {
  const auto route = [](const Variables& variables, const AliyunOptions& options = {}) { return find_route(options, variables); };
  EXPECT_EQ(*route({{"AGENTBAY_API_KEY", "akm-1"}}), AliyunRoute::kAgentBay);
  EXPECT_EQ(*route({{"ALIYUN_MCP_ENDPOINT", "https://g.example"}}), AliyunRoute::kGateway);
  const Variables both = {{"AGENTBAY_API_KEY", "akm-1"}, {"ALIYUN_MCP_ENDPOINT", "https://g.example"}};
  EXPECT_EQ(route(both).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(*route(both, {.route = AliyunRoute::kGateway}), AliyunRoute::kGateway);
  EXPECT_EQ(route({}).error().code(), Code::kUnauthenticated);
  const Error keys = route({{"ALIYUN_ACCESS_KEY_ID", "LTAI-1"}, {"ALIYUN_ACCESS_KEY_SECRET", "hush"}}).error();
  EXPECT_NE(keys.reason().find("takes no access keys"), std::string::npos) << keys.line();
  EXPECT_NE(keys.next().find("ALIYUN_MCP_ENDPOINT"), std::string::npos);
}

TEST(AliyunAddress, AGatewayNeedsAnEndpointAndCredentials) {
  const Variables all = {{"ALIYUN_MCP_ENDPOINT", "https://g.example/mcp"},
                         {"ALIYUN_ACCESS_KEY_ID", "LTAI-1"},
                         {"ALIYUN_ACCESS_KEY_SECRET", "hush"},
                         {"ALIYUN_SECURITY_TOKEN", "sts"}};
  const auto found = find_gateway({}, all);
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->url, "https://g.example/mcp");
  EXPECT_EQ(found->token, "sts");
  EXPECT_EQ(find_gateway({}, {}).error().reason(), "MCP endpoint is required");
  for (const char* name : {"ALIYUN_ACCESS_KEY_ID", "ALIYUN_ACCESS_KEY_SECRET"}) {
    Variables some = all;
    some.erase(name);
    EXPECT_EQ(find_gateway({}, some).error().reason(), "access credentials are required") << name;
  }
  Variables plain = all;
  plain["ALIYUN_MCP_ENDPOINT"] = "http://g.example/mcp";
  EXPECT_EQ(find_gateway({}, plain).error().code(), Code::kInvalidArgument);
}

TEST(AliyunAddress, NoMessageHoldsAKey) {
  const Error error = find_address({.api_key = "akm-hush\r\nX: y"}, {}).error();
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_EQ(error.line().find("hush"), std::string::npos);
  EXPECT_EQ(shown("before akm-hush after \x1b[31m", {"akm-hush"}), "before [redacted] after \\x1b[31m");
  EXPECT_LT(shown(std::string(100'000, 'x'), {}).size(), 400U);
}

}  // namespace
}  // namespace belljar::remote::aliyun
