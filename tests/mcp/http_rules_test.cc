#include "mcp/http_rules.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

namespace belljar::mcp {
namespace {

const HttpRules kRules{.port = 8080,
                       .tokens = {"0123456789abcdef", "second-client-0123456"},
                       .hosts = {"box.example"},
                       .origins = {"https://ui.example"}};

HttpHead post() {
  return {.method = "POST",
          .target = "/mcp",
          .host = "127.0.0.1:8080",
          .authorization = "Bearer 0123456789abcdef",
          .accept = "application/json, text/event-stream",
          .content_type = "application/json"};
}

unsigned status(const std::function<void(HttpHead&)>& change, const HttpRules& rules = kRules) {
  HttpHead head = post();
  change(head);
  const auto refusal = check_head(rules, head);
  return refusal ? refusal->status : 200;
}

TEST(HttpRules, ABodyOfUnknownLengthIsRefusedBeforeAnythingElse) {
  for (const char* coding : {"gzip", "gzip, chunked", "identity", "several"}) {
    EXPECT_EQ(status([&](HttpHead& head) { head.transfer_encoding = coding; }), 501U) << coding;
    EXPECT_EQ(status([&](HttpHead& head) { head.transfer_encoding = coding, head.authorization.clear(); }), 501U) << coding;
  }
  for (const char* coding : {"", "chunked", "Chunked"})
    EXPECT_EQ(status([&](HttpHead& head) { head.transfer_encoding = coding; }), 200U) << coding;
}

TEST(HttpRules, AHostThatDnsCouldGiveToAnybodyIsNotOurs) {
  for (const char* host :
       {"127.0.0.1:8080", "localhost:8080", "LocalHost:8080", "[::1]:8080", "10.0.0.7:8080", "box.example", "BOX.example"})
    EXPECT_EQ(status([&](HttpHead& head) { head.host = host; }), 200U) << host;
  for (const char* host : {"", "evil.example:8080", "localhost", "localhost:80", "localhost:8080.evil.example", "localhost.:8080",
                           "127.0.0.1.evil.example:8080", "[::1", "[]:8080", ":8080", "[localhost]:8080", "::1:8080",
                           "127.0.0.1:8080:8080", "127.0.0.1:99999", "127.0.0.1: 8080", "0x7f.1:8080", "box.example:8080"})
    EXPECT_EQ(status([&](HttpHead& head) { head.host = host; }), 403U) << host;
  HttpRules http = kRules;
  http.port = 80;
  EXPECT_EQ(status([](HttpHead& head) { head.host = "localhost"; }, http), 200U);
}

TEST(HttpRules, AnOriginIsOursOrNamedOrAbsent) {
  for (const char* origin : {"", "http://127.0.0.1:8080", "https://ui.example", "HTTPS://UI.example"})
    EXPECT_EQ(status([&](HttpHead& head) { head.origin = origin; }), 200U) << origin;
  for (const char* origin : {"null", "http://localhost:8080", "https://127.0.0.1:8080", "http://127.0.0.1:80",
                             "https://ui.example.evil", "http://ui.example", "file://"})
    EXPECT_EQ(status([&](HttpHead& head) { head.origin = origin; }), 403U) << origin;
}

TEST(HttpRules, EachTokenTellsItsClient) {
  EXPECT_EQ(find_token(kRules, "Bearer 0123456789abcdef"), 0U);
  EXPECT_EQ(find_token(kRules, "bearer second-client-0123456"), 1U);
  EXPECT_FALSE(find_token(kRules, "Bearer third"));
  EXPECT_FALSE(find_token(kRules, "Bearer "));
  EXPECT_EQ(status([](HttpHead& head) { head.authorization = "Bearer second-client-0123456"; }), 200U);
  EXPECT_EQ(find_token({}, ""), 0U) << "none is asked for";
}

TEST(HttpRules, TheTokenIsNeededWholeAndAlone) {
  EXPECT_EQ(status([](HttpHead& head) { head.authorization = "bEARER 0123456789abcdef"; }), 200U);
  for (const char* given :
       {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Bearer 0123456789abcdeF",
        "Bearer  0123456789abcdef", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer 0123456789abcdef "})
    EXPECT_EQ(status([&](HttpHead& head) { head.authorization = given; }), 401U) << given;
  HttpRules open = kRules;
  open.tokens.clear();
  EXPECT_EQ(status([](HttpHead& head) { head.authorization.clear(); }, open), 200U);
  EXPECT_EQ(status([](HttpHead& head) { head.host = "evil.example:8080"; }, open), 403U);
}

TEST(HttpRules, WhatIsNoMessageIsToldWhy) {
  const struct {
    unsigned status;
    std::function<void(HttpHead&)> change;
  } kRows[] = {
      {404, [](HttpHead& head) { head.target = "/"; }},
      {404, [](HttpHead& head) { head.target = "/mcp/"; }},
      {405, [](HttpHead& head) { head.method = "PUT"; }},
      {415, [](HttpHead& head) { head.content_type = "text/json"; }},
      {200, [](HttpHead& head) { head.content_type = "Application/JSON;charset=utf-8"; }},
      {406, [](HttpHead& head) { head.accept = "text/event-stream"; }},
      {406, [](HttpHead& head) { head.accept = "application/json, text/event-streams"; }},
      {200, [](HttpHead& head) { head.accept = "text/event-stream;q=0.5 ,\tapplication/json;q=1"; }},
      {400, [](HttpHead& head) { head.protocol = "2025-06-19"; }},
      {200, [](HttpHead& head) { head.protocol = "2025-06-18"; }},
      {406, [](HttpHead& head) { head.method = "GET", head.accept = "application/json"; }},
      {200, [](HttpHead& head) { head.method = "GET", head.accept = "text/event-stream", head.content_type.clear(); }},
      {200, [](HttpHead& head) { head.method = "DELETE", head.accept.clear(), head.content_type.clear(); }},
  };
  for (const auto& row : kRows) EXPECT_EQ(status(row.change), row.status);
}

TEST(HttpRules, AddressesToListenAt) {
  const struct {
    const char* text;
    const char* address;
    std::uint16_t port;
    bool loopback;
  } kRows[] = {{"8080", "127.0.0.1", 8080, true},     {"0", "127.0.0.1", 0, true},
               {"localhost:1", "127.0.0.1", 1, true}, {"127.3.2.1:1", "127.3.2.1", 1, true},
               {"[::1]:65535", "::1", 65535, true},   {"0.0.0.0:80", "0.0.0.0", 80, false},
               {"[::]:80", "::", 80, false},          {"[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", 80, false}};
  for (const auto& row : kRows) {
    const auto address = parse_http_address(row.text);
    ASSERT_TRUE(address) << row.text;
    EXPECT_EQ(address->address, row.address);
    EXPECT_EQ(address->port, row.port);
    EXPECT_EQ(address->loopback, row.loopback);
  }
  for (const char* text : {"", "-1", "65536", "80x", "127.0.0.1", "127.0.0.1:", ":80", "host.example:80", "[::1]", "::1:80",
                           "[::1]80", "1.2.3:80", "127.1:80"})
    EXPECT_FALSE(parse_http_address(text)) << text;
}

}  // namespace
}  // namespace belljar::mcp
