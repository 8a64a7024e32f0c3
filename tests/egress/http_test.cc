#include "egress/http.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <string_view>

namespace belljar::egress {
namespace {

// The status that `text` is refused with; 0 when it is taken.
int status_of(std::string_view text, ProxyRequest* request = nullptr) {
  HttpReader reader(HttpReader::Kind::kRequest);
  std::string rest(text);
  while (!reader.done() && !reader.fault()) {
    const std::size_t taken = reader.feed(rest);
    rest.erase(0, taken);
    if (taken == 0) break;
  }
  if (reader.fault()) return reader.fault()->status;
  if (!reader.head_done()) return -1;
  HttpFault fault;
  const auto read = read_request(reader.head(), reader.keeps_alive(), fault);
  if (!read) return fault.status;
  if (!reader.done()) return -1;
  if (request != nullptr) *request = *read;
  return 0;
}

TEST(Http, AnOrdinaryRequestIsTaken) {
  ProxyRequest request;
  EXPECT_EQ(status_of("GET http://Example.COM:8080/a?b=c HTTP/1.1\r\nHost: example.com:8080\r\n\r\n", &request), 0);
  EXPECT_EQ(to_string(request.destination), "example.com:8080");
  EXPECT_EQ(request.path, "/a?b=c");
  EXPECT_TRUE(request.keep_alive);
  EXPECT_EQ(status_of("GET http://example.com HTTP/1.1\r\nHost: example.com\r\n\r\n", &request), 0);
  EXPECT_EQ(request.path, "/");
  EXPECT_EQ(status_of("GET http://example.com?q HTTP/1.1\r\nHost: example.com\r\n\r\n", &request), 0);
  EXPECT_EQ(request.path, "/?q");
  EXPECT_EQ(status_of("GET http://example.com/ HTTP/1.0\r\n\r\n", &request), 0);
  EXPECT_FALSE(request.keep_alive);
  EXPECT_EQ(status_of("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", &request), 0);
  EXPECT_TRUE(request.connect);
  EXPECT_EQ(status_of("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n", &request), 0);
}

TEST(Http, BodiesEndWhereTheySay) {
  EXPECT_EQ(status_of("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc"), 0);
  EXPECT_EQ(status_of("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nabc"), -1)
      << "one byte is missing";
  EXPECT_EQ(
      status_of("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
      0);
}

// Each with the twin above that lacks the one fault.
TEST(Http, WhatTwoReadersWouldReadDifferentlyIsRefused) {
  const std::string head = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n";
  constexpr std::string_view kNul("\0", 1);
  EXPECT_EQ(status_of(head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: 3, 3\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: +3\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: 0x3\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: identity\r\n\r\n"), 501);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n"), 400) << "trailers";
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n"), 400);
  EXPECT_EQ(status_of(head + "X: a\r\n b\r\n\r\n"), 400) << "folded";
  EXPECT_EQ(status_of(head + "X: a\nY: b\r\n\r\n"), 400) << "bare LF";
  EXPECT_EQ(status_of(head + "X: a\rY: b\r\n\r\n"), 400) << "bare CR";
  EXPECT_EQ(status_of(head + "X: a" + std::string(kNul) + "b\r\n\r\n"), 400) << "NUL";
  EXPECT_EQ(status_of(head + "X : a\r\n\r\n"), 400) << "space before the colon";
  EXPECT_EQ(status_of("GET http://a.example/ HTTP/1.1\nHost: a.example\n\n"), 400);
  for (const char* body : {"3\nabc\n0\n\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabc\r\n0\n\n"})
    EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n" + body), 400) << "bare LF around a chunk: " << body;
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n4\r\na\n\nb\r\n0\r\n\r\n"), 0) << "the twin: LF inside of one";
  for (const char* line : {"3;x=\"\n\"", "3;x=\"\r\"", "3;x=\"\\\n\"", "3;x=\"\x01\""}) {
    const std::string body = std::string(line) + "\r\nabc\r\n0\r\n\r\n", last = std::string("0") + (line + 1) + "\r\n\r\n";
    EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n" + body), 400) << "a line may end there for others: " << body;
    EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n" + last), 400) << last;
  }
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n3;x=\"a b\";y=z\r\nabc\r\n0\r\n\r\n"), 0) << "the twin";
  EXPECT_EQ(status_of("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n" + std::string(kMaxHead, 'a')), 431);
}

TEST(Http, TheTargetIsTheOnePlace) {
  EXPECT_EQ(status_of("GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n"), 421);
  EXPECT_EQ(status_of("GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n"), 421);
  EXPECT_EQ(status_of("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a.example/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://u:p@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a.example/#f HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a.exam%70le/ HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400);
  EXPECT_EQ(status_of("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"), 501);
  EXPECT_EQ(status_of("TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"), 405);
  EXPECT_EQ(status_of("CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400) << "no port";
  EXPECT_EQ(status_of("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n"), 421);
  EXPECT_EQ(status_of("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\n\r\nx"), 400);
  EXPECT_EQ(status_of("CONNECT a.example:443/x HTTP/1.1\r\nHost: a.example\r\n\r\n"), 400);
}

HttpHead head_of(std::string_view text, HttpReader::Kind kind) {
  HttpReader reader(kind);
  reader.feed(text);
  EXPECT_TRUE(reader.head_done());
  return reader.head();
}

TEST(Http, EveryCodingOfAnAnswerIsSeen) {
  const auto encoded = [](const std::string& fields) {
    return is_encoded(head_of("HTTP/1.1 200 OK\r\n" + fields + "\r\n", HttpReader::Kind::kResponse));
  };
  for (const char* fields : {"", "Content-Length: 3\r\n", "Content-Encoding: identity\r\n", "Content-Encoding: \r\n",
                             "Content-Encoding: Identity\r\nContent-Encoding: ,identity\r\n", "Transfer-Encoding: Chunked \r\n"})
    EXPECT_FALSE(encoded(fields)) << fields;
  for (const char* fields :
       {"Content-Encoding: gzip\r\n", "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n",
        "content-encoding:\r\nContent-Encoding: br\r\n", "Content-Encoding: identity, gzip\r\n",
        "Content-Encoding: identity\r\n gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Encoding: x\r\n"})
    EXPECT_TRUE(encoded(fields)) << fields;
}

TEST(Http, WhereThePlaceIsKnownAHostNeedsNoPort) {
  const policy::Destination place = policy::parse_destination("git.example:8443").value();
  HttpFault fault;
  const auto taken = [&](const std::string& host, bool secure) {
    const HttpHead head = head_of("GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n", HttpReader::Kind::kRequest);
    return read_request(head, true, fault, &place, secure).has_value();
  };
  for (const bool secure : {true, false}) {
    EXPECT_TRUE(taken("git.example", secure));
    EXPECT_TRUE(taken("git.example:8443", secure));
    for (const char* other : {"git.example:443", "git.example:80", "other.example", "other.example:8443"})
      EXPECT_FALSE(taken(other, secure)) << other;
  }
}

TEST(Http, FieldsOfTheConnectionStay) {
  const HttpHead head = head_of(
      "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: "
      "keep-alive\r\nConnection: X-Mine, keep-alive\r\n"
      "X-Mine: 1\r\nTE: trailers\r\nKeep-Alive: 3\r\nUpgrade: h2c\r\nAccept: */*\r\n\r\n",
      HttpReader::Kind::kRequest);
  HttpFault fault;
  const auto request = read_request(head, true, fault);
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->upgrade);
  EXPECT_EQ(forwarded_head(head, *request), "GET /x HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(basic_credential(request->authorization), "x:y");
}

TEST(Http, OnlyAWebsocketIsUpgradedTo) {
  const HttpHead head = head_of(
      "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: "
      "k\r\n\r\n",
      HttpReader::Kind::kRequest);
  HttpFault fault;
  const auto request = read_request(head, true, fault);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->upgrade);
  EXPECT_EQ(forwarded_head(head, *request),
            "GET / HTTP/1.1\r\nHost: a.example\r\nSec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

TEST(Http, ConnectionFieldsAreOneList) {
  const HttpHead head = head_of(
      "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive\r\nConnection: X-Mine, Upgrade\r\n"
      "Upgrade: websocket\r\nX-Mine: 1\r\n\r\n",
      HttpReader::Kind::kRequest);
  HttpFault fault;
  const auto request = read_request(head, true, fault);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->upgrade);
  EXPECT_EQ(forwarded_head(head, *request),
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

TEST(Http, AnAnswersConnectionIsOurs) {
  const HttpHead head =
      head_of("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\nX: y\r\n\r\n", HttpReader::Kind::kResponse);
  EXPECT_EQ(returned_head(head, true, false), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: y\r\nConnection: keep-alive\r\n\r\n");
}

TEST(Http, AnAnswerEndsByLengthChunksOrTheConnection) {
  HttpReader length(HttpReader::Kind::kResponse);
  std::string text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
  text.erase(0, length.feed(text));
  EXPECT_EQ(length.feed(text), 2U);
  EXPECT_TRUE(length.done());
  HttpReader open(HttpReader::Kind::kResponse);
  text = "HTTP/1.0 200 OK\r\n\r\nabc";
  text.erase(0, open.feed(text));
  EXPECT_EQ(open.feed(text), 3U);
  EXPECT_TRUE(open.needs_end());
  EXPECT_FALSE(open.done());
  EXPECT_TRUE(open.end());
  HttpReader cut(HttpReader::Kind::kResponse);
  cut.feed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
  EXPECT_FALSE(cut.end());
  HttpReader none(HttpReader::Kind::kResponse, true);
  none.feed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
  EXPECT_TRUE(none.done()) << "the answer to HEAD has no body";
}

TEST(Http, AnAnswerWhoseEndIsNotCertainIsNone) {
  const auto taken = [](const std::string& text) {
    HttpReader reader(HttpReader::Kind::kResponse);
    std::string rest = "HTTP/1.1 200 OK\r\n" + text;
    for (std::size_t size = reader.feed(rest); size != 0; size = reader.feed(rest)) rest.erase(0, size);
    return reader.done() && !reader.fault();
  };
  EXPECT_FALSE(taken("Transfer-Encoding: chunked\r\n\r\n3;x=\"\n\"\r\nabc\r\n0\r\n\r\n"))
      << "an answer to the next request may follow";
  EXPECT_FALSE(taken("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
  EXPECT_FALSE(taken("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
  EXPECT_FALSE(taken("Content-Length: 3\r\nContent-Length: 2\r\n\r\nabc"));
  EXPECT_FALSE(taken("Content-Length: 3, 2\r\n\r\nabc"));
  EXPECT_TRUE(taken("Transfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\n\r\n")) << "the twin";
}

// What every client reads; it goes on in one spelling.
TEST(Http, AnAnswersHeadIsReadAsClientsReadIt) {
  const auto passed_on = [](const std::string& text) {
    HttpReader reader(HttpReader::Kind::kResponse);
    const std::size_t taken = reader.feed(text);
    return reader.head_done() && !reader.fault() ? returned_head(reader.head(), true, false) + text.substr(taken) : "refused";
  };
  const std::string plain = "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc";
  EXPECT_EQ(passed_on("HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 3\r\n\r\nabc"), plain);
  EXPECT_EQ(passed_on("HTTP/1.1 200 OK\nX: y\nContent-Length: 3\n\nabc"), plain);
  EXPECT_EQ(passed_on("HTTP/1.1 200 OK\r\nX: y\nContent-Length: 3\n\r\nabc"), plain);
  EXPECT_EQ(passed_on("HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 3\r\n\r\nabc"), plain);
  EXPECT_EQ(passed_on("HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), plain);
  EXPECT_EQ(passed_on("HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 3, 3\r\n\r\nabc"), plain);
  EXPECT_EQ(passed_on("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
            "HTTP/1.1 200 \r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(passed_on("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n"),
            "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
  for (const char* text : {"HTTP/1.1 200 OK\r\nX Y: z\r\n\r\n", "HTTP/1.1 200 OK\r\n: z\r\n\r\n", "HTTP/1.1 200 OK\r\nX\r\n\r\n",
                           "HTTP/1.1 200 OK\r\n : z\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "\n\n",
                           "HTTP/1.1 200 OK\nContent-Length: 3\nTransfer-Encoding : chunked\n\nabc"})
    EXPECT_EQ(passed_on(text), "refused") << text;
}

TEST(Http, ARefusalSaysWhyInEveryPlace) {
  const std::string text = refusal_text(
      {403, "http_request_denied", "x.example:443 is not on the list", "--allow-domain x.example opens it"}, false, false);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 403 x.example:443 is not on the list\r\n")) << text;
  EXPECT_NE(text.find("\r\nProxy-Status: belljar; error=http_request_denied\r\n"), std::string::npos);
  EXPECT_NE(text.find("\r\n\r\nbelljar: x.example:443 is not on the list\n  next: --allow-domain x.example opens it\n"),
            std::string::npos);
  EXPECT_TRUE(refusal_text({403, "e", "r", ""}, true, false).ends_with("\r\n\r\n"));
}

TEST(Http, AnotherProtocolIsKnownByItsFirstLine) {
  for (const char* other : {"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-x", "EHLO me\r\n", "GET /\r\n"})
    EXPECT_TRUE(begins_other(other)) << other;
  for (const char* request : {"S", "SSH", "EHLO me", "GET / HTTP/1.1\r\n", "SSH / HTTP/1.0\n"})
    EXPECT_FALSE(begins_other(request)) << request;
}

TEST(Http, AnAnswersHeadThatDripsIsReadOnce) {
  std::string text = "HTTP/1.1 200 OK\r\n";
  while (text.size() < 60'000) text += "a:\r\n";
  text += "\r\n";
  HttpReader reader(HttpReader::Kind::kResponse);
  const std::clock_t before = std::clock();
  for (std::size_t size = 1; size < text.size(); ++size) ASSERT_EQ(reader.feed(std::string_view(text).substr(0, size)), 0U);
  EXPECT_EQ(reader.feed(text), text.size());
  EXPECT_TRUE(reader.head_done());
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace belljar::egress
