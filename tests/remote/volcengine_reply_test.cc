// What services answer, as values: the control plane's and the AIO server's, right and wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "belljar/error.h"
#include "http/client.h"
#include "remote/json.h"
#include "remote/volcengine/envelope.h"
#include "remote/volcengine/reply.h"

namespace belljar::remote::volcengine {
namespace {

using Json = nlohmann::json;

http::Reply reply(long status, std::string body) {
  return {.status = status, .content_type = "application/json", .body = std::move(body)};
}
Code code(long status, const char* name) {
  const std::string body = Json{{"ResponseMetadata", {{"Error", {{"Code", name}, {"Message", "why"}}}}}}.dump();
  const auto parsed = parse_reply(reply(status, body), "cannot", {});
  return parsed ? Code::kUnknown : parsed.error().code();
}

TEST(VolcengineReply, ASuccessHasAResult) {
  const auto parsed =
      parse_reply(reply(200, R"({"ResponseMetadata":{"RequestId":"r"},"Result":{"SandboxId":"sb-1"}})"), "cannot", {});
  ASSERT_TRUE(parsed) << parsed.error().line();
  EXPECT_EQ(text_in(*parsed, "SandboxId"), "sb-1");
  EXPECT_EQ(text_in(*parsed, "Other"), "");
}

TEST(VolcengineReply, ErrorsAreToldApart) {
  for (const char* name :
       {"InvalidCredential", "InvalidAccessKeyId", "AccessKeyNotExist", "SignatureDoesNotMatch", "InvalidSecurityToken"})
    EXPECT_EQ(code(400, name), Code::kUnauthenticated) << name;
  EXPECT_EQ(code(403, "AccessDenied.Action"), Code::kPermissionDenied);
  EXPECT_EQ(code(404, "ResourceNotFound"), Code::kNotFound);
  EXPECT_EQ(code(400, "ResourceNotFound"), Code::kNotFound);
  EXPECT_EQ(code(429, "FlowLimitExceeded"), Code::kResourceExhausted);
  EXPECT_EQ(code(400, "QuotaExceeded.Sandbox"), Code::kResourceExhausted);
  EXPECT_EQ(code(500, "ServiceFailure"), Code::kUnavailable);
  EXPECT_EQ(code(200, "ServiceFailure"), Code::kUnavailable) << "an error is one, whatever the status says";
  EXPECT_EQ(code(400, "InvalidParameter"), Code::kInvalidArgument);
  EXPECT_EQ(code(418, "Teapot"), Code::kUnknown);
}

TEST(VolcengineReply, WhatStandsBeforeTheServiceSpeaksOtherwise) {
  const auto other =
      parse_reply(reply(400, R"({"HTTPCode":400,"errorcode":"X","message":"Command is empty"})"), "cannot create", {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(other.error().reason(), "Volcengine answered with status 400 X: Command is empty");
  EXPECT_EQ(parse_reply(reply(502, "<html>"), "cannot", {}).error().code(), Code::kUnavailable);
}

TEST(VolcengineReply, NonsenseIsDataLoss) {
  for (const char* body :
       {"", "<html>", "[]", "null", "1", R"({"Result":{}})", R"({"ResponseMetadata":[]})", "{\"ResponseMetadata\":"}) {
    const auto parsed = parse_reply(reply(200, body), "cannot", {});
    ASSERT_FALSE(parsed) << body;
    EXPECT_EQ(parsed.error().code(), Code::kDataLoss) << body;
  }
}

TEST(VolcengineReply, NoErrorRepeatsAKey) {
  const auto parsed =
      parse_reply(reply(401, R"({"ResponseMetadata":{"Error":{"Code":"InvalidAccessKeyId","Message":"AKLT1 \u001b[31m"}}})"),
                  "cannot", {"AKLT1"});
  EXPECT_EQ(parsed.error().reason(), "Volcengine answered with status 401 InvalidAccessKeyId: [redacted] \\x1b[31m");
}

TEST(VolcengineReply, ADescriptionIsRead) {
  const Description ready = parse_description(
      Json::parse(R"({"Status":"Ready","CpuMilli":1000,"MemoryMB":2048,"NetworkRules":{"AllowEgressAccess":false}})"));
  EXPECT_EQ(ready.state, Description::State::kReady);
  EXPECT_EQ(ready.egress, false);
  EXPECT_EQ(ready.cpu_milli, 1000);
  EXPECT_EQ(ready.memory_mb, 2048);
  const Description failed = parse_description(
      Json::parse(R"({"Status":"Failed","ErrorCode":"function_initialize_failed","ErrorMessage":"no such file"})"));
  EXPECT_EQ(failed.state, Description::State::kFailed);
  EXPECT_EQ(failed.error, "function_initialize_failed: no such file");
  EXPECT_EQ(failed.egress, std::nullopt);
  EXPECT_EQ(parse_description(Json::parse(R"({"Status":"Starting"})")).state, Description::State::kStarting);
  EXPECT_EQ(parse_description(Json::parse(R"({"Status":"Paused"})")).state, Description::State::kPaused);
  EXPECT_EQ(parse_description(Json::parse(R"({"Status":"Stopped","PausedAt":"2026-01-02"})")).state, Description::State::kPaused);
  for (const char* gone : {"Terminating", "Terminated", "Deleted"})
    EXPECT_EQ(parse_description(Json{{"Status", gone}}).state, Description::State::kGone);
  EXPECT_EQ(parse_description(Json::parse("[]")).state, Description::State::kStarting);
}

TEST(VolcengineReply, TheGatewayIsFound) {
  EXPECT_EQ(
      find_upstream(Json::parse(R"({"Items":[{"Type":"timer"},{"Type":"apig","DetailedConfig":"{\"UpstreamId\":\"up-1\"}"}]})")),
      "up-1");
  EXPECT_EQ(find_upstream(Json::parse(R"({"Items":[{"Type":"apig","DetailedConfig":"{"}, 7]})")), "");
  EXPECT_EQ(find_upstream(Json::parse("{}")), "");
  const char* const routes = R"({"Items":[{"MatchRule":{"Path":{"MatchContent":"/box/*"}},
      "Domains":[{"Domain":"in.example.com","Type":"private"},{"Domain":"out.example.com","Type":"Public"}]}]})";
  EXPECT_EQ(find_route(Json::parse(routes)), "https://out.example.com/box");
  EXPECT_EQ(find_route(Json::parse(R"({"Items":[{"Domains":[{"Domain":"https://in.example.com"}]}]})")), "https://in.example.com");
  EXPECT_EQ(find_route(Json::parse(R"({"Items":[{"Domains":"none"}]})")), "");
}

// --- AIO

TEST(AioEnvelope, DataIsWhatASuccessHas) {
  const auto parsed = parse_envelope(reply(200, R"({"success":true,"message":"ok","data":{"a":"b"},"hint":null})"), "cannot", {});
  ASSERT_TRUE(parsed) << parsed.error().line();
  EXPECT_EQ(text_in(*parsed, "a"), "b");
  EXPECT_TRUE(parse_envelope(reply(200, R"({"success":true,"home_dir":"/home/gem"})"), "cannot", {}));
}

TEST(AioEnvelope, FileErrorsComeWithStatus200) {
  const auto code_of = [](const char* type) {
    const Json body = {{"success", false}, {"message", "m"}, {"data", {{"error_type", type}, {"message", "no such file"}}}};
    return parse_envelope(reply(200, body.dump()), "cannot read `x`", {}).error();
  };
  EXPECT_EQ(code_of("not_found").code(), Code::kNotFound);
  EXPECT_EQ(code_of("not_found").reason(), "no such file");
  EXPECT_EQ(code_of("permission_denied").code(), Code::kPermissionDenied);
  EXPECT_EQ(code_of("read_only_filesystem").code(), Code::kPermissionDenied);
  EXPECT_EQ(code_of("already_exists").code(), Code::kAlreadyExists);
  EXPECT_EQ(code_of("invalid_path").code(), Code::kInvalidArgument);
  EXPECT_EQ(code_of("no_space_left").code(), Code::kResourceExhausted);
  EXPECT_EQ(code_of("invalid_target").code(), Code::kFailedPrecondition);
  EXPECT_EQ(code_of("io_error").code(), Code::kUnavailable);
  const auto plain = parse_envelope(reply(200, R"({"success":false,"message":"busy","data":null})"), "cannot", {});
  EXPECT_EQ(plain.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(plain.error().reason(), "busy");
}

TEST(AioEnvelope, StatusesAreErrors) {
  const auto error = [](long status, const char* body) { return parse_envelope(reply(status, body), "cannot", {"key-1"}).error(); };
  EXPECT_EQ(error(401, R"({"detail":"Invalid key key-1"})").code(), Code::kUnauthenticated);
  EXPECT_EQ(error(401, R"({"detail":"Invalid key key-1"})").reason(),
            "the sandbox's endpoint answered with status 401: Invalid key [redacted]");
  EXPECT_EQ(error(404, "").code(), Code::kNotFound);
  EXPECT_EQ(error(422, R"({"detail":[{"loc":["body","command"],"msg":"Field required","type":"missing"}]})").reason(),
            "the sandbox's endpoint answered with status 422: Field required");
  EXPECT_EQ(error(422, "{}").code(), Code::kInvalidArgument);
  EXPECT_EQ(error(429, "").code(), Code::kResourceExhausted);
  EXPECT_EQ(error(504, "").code(), Code::kUnavailable);
  for (const char* body : {"", "<html>", "[]", R"({"success":"yes"})", R"({"data":{}})"})
    EXPECT_EQ(error(200, body).code(), Code::kDataLoss) << body;
}

TEST(AioEnvelope, ACommandIsRead) {
  const auto done = parse_exec(Json::parse(
      R"({"session_id":"s","command_id":"c","status":"completed","stdout":"o","stderr":null,"exit_code":3,"offset":1,"stderr_offset":0})"));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->state, Progress::State::kEnded);
  EXPECT_EQ(done->exit_code, 3);
  EXPECT_EQ(done->out, "o");
  EXPECT_EQ(done->err, "");
  const auto more = parse_output(Json::parse(
      R"({"session_id":"s","stdout":"o","stderr":"e","offset":7,"stderr_offset":2,"command":{"command_id":"c","status":"running"}})"));
  ASSERT_TRUE(more);
  EXPECT_EQ(more->state, Progress::State::kRunning);
  EXPECT_EQ(more->out_offset, 7);
  EXPECT_EQ(more->err_offset, 2);
  EXPECT_EQ(parse_exec(Json::parse(R"({"session_id":"s","status":"timed_out","exit_code":null})"))->state,
            Progress::State::kTimedOut);
  EXPECT_EQ(parse_exec(Json::parse(R"({"session_id":"s","status":"killed"})"))->state, Progress::State::kKilled);
}

TEST(AioEnvelope, ACommandThatMakesNoSenseIsDataLoss) {
  for (const char* data : {"null", "[]", "{}", R"({"status":"completed"})", R"({"status":"completed","exit_code":"0"})",
                           R"({"status":"dreaming","exit_code":0})", R"({"status":"running"})",
                           R"({"status":"running","offset":-1,"stderr_offset":0})"}) {
    const auto parsed = parse_exec(Json::parse(data));
    ASSERT_FALSE(parsed) << data;
    EXPECT_EQ(parsed.error().code(), Code::kDataLoss) << data;
  }
  EXPECT_FALSE(parse_output(Json::parse(R"({"offset":0,"stderr_offset":0,"command":null})")));
}

TEST(AioEnvelope, AFileMayLookLikeAComplaint) {
  EXPECT_TRUE(may_be_complaint(reply(200, R"({"success": false, "data": {}})")));
  EXPECT_FALSE(may_be_complaint(reply(200, R"({"success": true})")));
  EXPECT_FALSE(may_be_complaint(reply(200, "text")));
  EXPECT_FALSE(may_be_complaint(reply(200, "")));
}

}  // namespace
}  // namespace belljar::remote::volcengine
