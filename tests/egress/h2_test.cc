// HTTP/2 over memory: what a stream's request is as text, what never becomes one, what a flood comes to, and who waits for whom.
// Servers: h2_server_test.cc.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "egress/h2/client_side.h"
#include "egress/h2/fields.h"
#include "egress/streams.h"
#include "egress/support_h2.h"

namespace belljar::egress {
namespace {

using h2::Fields;
using namespace belljar::test;

// --- messages as text

std::string text_of(const Fields& fields, bool whole = true) {
  HttpFault fault;
  const auto head = h2::request_head(fields, whole, fault);
  return head ? head->text : "fault: " + fault.reason;
}

TEST(Http2Fields, ARequestIsTheTextThatHttp1WouldSend) {
  EXPECT_EQ(text_of(get_fields("/a?b", {{"x-key", "v"}})), "GET /a?b HTTP/1.1\r\nHost: web.test\r\nx-key: v\r\n\r\n");
  EXPECT_EQ(text_of(get_fields("/", {{"host", "WEB.test"}})), "GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
  EXPECT_EQ(text_of(get_fields("/", {{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}})),
            "GET / HTTP/1.1\r\nHost: web.test\r\nx: y\r\ncookie: a=1; b=2\r\n\r\n");
  EXPECT_EQ(text_of(get_fields("/", {{"te", "trailers"}})),
            "GET / HTTP/1.1\r\nHost: web.test\r\nConnection: TE\r\nte: trailers\r\n\r\n");
  EXPECT_EQ(text_of(get_fields("/", {{"content-length", "3"}}), false),
            "GET / HTTP/1.1\r\nHost: web.test\r\ncontent-length: 3\r\n\r\n");
  EXPECT_EQ(text_of(get_fields(), false), "GET / HTTP/1.1\r\nHost: web.test\r\ntransfer-encoding: chunked\r\n\r\n");
  EXPECT_EQ(text_of(get_fields("/", {{"content-length", "3"}, {"trailer", "x"}}), false),
            "GET / HTTP/1.1\r\nHost: web.test\r\ntrailer: x\r\ntransfer-encoding: chunked\r\n\r\n")
      << "a length would leave no place for them";
}

TEST(Http2Fields, WhatHttp1CouldReadInAnotherWayIsRefused) {
  const auto changed = [](std::string name, std::string value) {
    Fields fields = get_fields();
    for (HttpField& field : fields) {
      if (field.name == name) field.value = value;
    }
    return fields;
  };
  const std::pair<Fields, const char*> cases[] = {
      {changed(":method", "GET / HTTP/1.1\r\nX: y"), "the method is none"},
      {changed(":method", ""), "the method is none"},
      {changed(":method", "CONNECT"), "CONNECT in a tunnel that is looked into"},
      {changed(":scheme", "http"), "the scheme is not https"},
      {changed(":path", "/a HTTP/1.1\r\nX: y"), "the target must be a path"},
      {changed(":path", "http://other.test/"), "the target must be a path"},
      {changed(":path", "*"), "the target must be a path"},
      {changed(":path", ""), "the target must be a path"},
      {changed(":authority", "web.test\r\nX: y"), "there is no :authority, or Host is another one"},
      {get_fields("/", {{"host", "other.test"}}), "there is no :authority, or Host is another one"},
      {{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}}, "there is no :authority, or Host is another one"},
      {get_fields("/", {{"x", "a\r\nY: b"}}), "a control character in a field"},
      {get_fields("/", {{"x", std::string("a\0b", 3)}}), "a control character in a field"},
      {get_fields("/", {{"X-Key", "v"}}), "a field whose name is none"},
      {get_fields("/", {{"x key", "v"}}), "a field whose name is none"},
      {get_fields("/", {{"", "v"}}), "a field whose name is none"},
      {get_fields("/", {{"connection", "close"}}), "a field of the connection, which HTTP/2 does not have"},
      {get_fields("/", {{"transfer-encoding", "chunked"}}), "a field of the connection, which HTTP/2 does not have"},
      {get_fields("/", {{"upgrade", "websocket"}}), "a field of the connection, which HTTP/2 does not have"},
      {get_fields("/", {{"te", "gzip"}}), "te is something else than trailers"},
      {get_fields("/", {{"content-length", "3"}, {"content-length", "3"}}),
       "the length of the message is no number, or given twice"},
      {get_fields("/", {{"content-length", "3, 3"}}), "the length of the message is no number, or given twice"},
      {get_fields("/", {{"content-length", "3"}}), "there is less of a body than its length"},
      {get_fields("/", {{":protocol", "websocket"}}), "an unknown pseudo-field"},
      {get_fields("/", {{":path", "/b"}}), "a pseudo-field is given twice"},
      {get_fields("/", {{"x", "y"}, {":extra", "z"}}), "a pseudo-field after another field"},
  };
  for (const auto& [fields, reason] : cases) EXPECT_EQ(text_of(fields), std::string("fault: ") + reason);
}

TEST(Http2Fields, AnAnswerIsTextWithItsFraming) {
  const auto answer = [](const Fields& fields, bool whole, bool bodyless = false) {
    HttpFault fault;
    const auto head = h2::answer_head(fields, whole, bodyless, fault);
    return head ? head->text : "fault: " + fault.reason;
  };
  const Fields ok{{":status", "200"}};
  EXPECT_EQ(answer(ok, false), "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n");
  EXPECT_EQ(answer(ok, true), "HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n");
  EXPECT_EQ(answer({{":status", "200"}, {"content-length", "9"}}, false), "HTTP/1.1 200 \r\ncontent-length: 9\r\n\r\n");
  EXPECT_EQ(answer({{":status", "200"}, {"content-length", "9"}, {"content-type", "application/grpc+proto"}}, false),
            "HTTP/1.1 200 \r\ncontent-type: application/grpc+proto\r\ntransfer-encoding: chunked\r\n\r\n");
  EXPECT_EQ(answer({{":status", "200"}, {"content-length", "9"}}, true, true), "HTTP/1.1 200 \r\ncontent-length: 9\r\n\r\n");
  EXPECT_EQ(answer({{":status", "103"}, {"link", "x"}}, false), "HTTP/1.1 103 \r\nlink: x\r\n\r\n");
  EXPECT_EQ(answer({{":status", "2000"}}, true), "fault: an answer without a status");
  EXPECT_EQ(answer({{":status", "200"}, {"upgrade", "x"}}, true), "fault: a field of the connection, which HTTP/2 does not have");
}

TEST(Http2Fields, TrailersAreNoSecondHead) {
  EXPECT_EQ(h2::trailer_lines({{"grpc-status", "0"}, {"x", "y"}}), "grpc-status: 0\r\nx: y\r\n");
  for (const char* name : {"host", "content-length", "transfer-encoding", "authorization", ":path", "X"})
    EXPECT_EQ(h2::trailer_lines({{name, "0"}}), std::nullopt) << name;
}

TEST(MessageText, ABodyIsTakenInPiecesAndFramedThen) {
  MessageText chunked;
  chunked.begin("HEAD\r\n\r\n", MessageText::Body::kChunked);
  chunked.add("hello");
  std::string text;
  EXPECT_EQ(chunked.take(text, 10), 2U);
  EXPECT_EQ(text, "HEAD\r\n\r\n2\r\nhe\r\n");
  EXPECT_EQ(chunked.take(text, 10), 0U) << "there is as much as was asked for";
  chunked.end("a: b\r\n");
  text.clear();
  EXPECT_EQ(chunked.take(text, 100), 3U);
  EXPECT_EQ(text, "3\r\nllo\r\n0\r\na: b\r\n\r\n");
  EXPECT_TRUE(chunked.empty());
  MessageText plain;
  plain.begin("HEAD\r\n\r\n", MessageText::Body::kLength);
  plain.add("hello");
  plain.end();
  text.clear();
  EXPECT_EQ(plain.take(text, 100), 5U);
  EXPECT_EQ(text, "HEAD\r\n\r\nhello");
}

// --- with a client

class WithClient : public testing::Test {
 protected:
  // What comes back for `bytes`.
  std::vector<Frame> say(const std::string& bytes) {
    side_->put(std::exchange(first_, {}) + bytes);
    for (auto& stream : side_->take_opened()) streams_.push_back(std::move(stream));
    return hear();
  }
  std::vector<Frame> hear() {
    std::vector<Frame> frames;
    for (std::string bytes = side_->take(1 << 20); !bytes.empty(); bytes = side_->take(1 << 20)) {
      for (Frame& one : client_.hear(bytes)) frames.push_back(std::move(one));
    }
    return frames;
  }
  // Code of the first frame of that type; -1: none.
  static long code_of(const std::vector<Frame>& frames, std::uint8_t type) {
    for (const Frame& one : frames) {
      if (one.type == type) return one.code();
    }
    return -1;
  }
  static std::string body_of(const std::vector<Frame>& frames) {
    std::string body;
    for (const Frame& one : frames) body += one.type == kData ? one.payload : "";
    return body;
  }
  // The end that serves a stream.
  StreamEnd& end(std::size_t stream) {
    if (ends_.size() <= stream) ends_.resize(stream + 1);
    if (!ends_[stream]) ends_[stream] = std::make_unique<StreamEnd>(streams_.at(stream));
    return *ends_[stream];
  }
  std::string text(std::size_t stream, std::size_t most = 1 << 20) {
    std::string plain;
    (void)end(stream).open(plain, most);
    return plain;
  }
  std::vector<Frame> answer(std::size_t stream, std::string_view text) {
    end(stream).seal(text);
    return hear();
  }

  Talker client_;
  std::string first_ = Talker::preface();
  std::unique_ptr<Streams> side_ = h2::make_streams();
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<StreamEnd>> ends_;
};

constexpr long kNoError = 0, kProtocolError = 1, kInternalError = 2, kEnhanceYourCalm = 11;

TEST_F(WithClient, ARequestAndItsAnswerPassAsText) {
  say(client_.headers(1, get_fields("/a", {{"content-length", "5"}}), kEndHeaders) + frame(kData, kEndStream, 1, "hello"));
  ASSERT_EQ(streams_.size(), 1U);
  EXPECT_EQ(text(0), "GET /a HTTP/1.1\r\nHost: web.test\r\ncontent-length: 5\r\n\r\nhello");
  const auto frames = answer(0,
                             "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nX-Key: v\r\nConnection: close\r\n"
                             "Content-Length: 2\r\n\r\nok");
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].find(":status") + frames[0].find("link"), "103x");
  EXPECT_EQ(frames[1].find(":status") + frames[1].find("x-key") + frames[1].find("content-length"), "200v2");
  EXPECT_EQ(frames[1].find("connection"), "");
  EXPECT_EQ(frames[2].payload, "ok");
  EXPECT_EQ(frames[2].flags, kEndStream);
}

TEST_F(WithClient, TrailersPassBothWays) {
  say(client_.headers(1, get_fields("/"), kEndHeaders) + frame(kData, 0, 1, "ab"));
  say(client_.headers(1, {{"x-said", "last"}}));
  EXPECT_TRUE(text(0).ends_with("2\r\nab\r\n0\r\nx-said: last\r\n\r\n"));
  auto frames = answer(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
  EXPECT_EQ(body_of(frames), "ok") << "before the end is there";
  frames = answer(0, "0\r\nGrpc-Status: 0\r\n\r\n");
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames.back().find("grpc-status"), "0");
  EXPECT_EQ(frames.back().flags, kEndStream | kEndHeaders);
  say(client_.headers(3, get_fields("/"), kEndHeaders));
  EXPECT_EQ(code_of(say(client_.headers(3, {{"host", "other.test"}})), kReset), kProtocolError);
  EXPECT_TRUE(streams_[1]->gone);
}

TEST_F(WithClient, AnAnswerWithoutABodyEndsWithItsHead) {
  say(client_.headers(1, get_fields()));
  const auto frames = answer(0, "HTTP/1.1 200 OK\r\nGrpc-Status: 5\r\nContent-Length: 0\r\n\r\n");
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].flags, kEndStream | kEndHeaders);
}

// They are under no window: what waits for a client that reads slowly has to have another bound.
TEST_F(WithClient, InterimAnswersHaveAnEnd) {
  const auto interim = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n";
    return text;
  };
  say(client_.headers(1, get_fields()));
  say(client_.headers(3, get_fields()));
  const auto some = answer(0, interim(10) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(some.size(), 12U);
  EXPECT_EQ(body_of(some), "ok");
  const auto many = answer(1, interim(1000));
  EXPECT_EQ(code_of(many, kReset), kInternalError);
  EXPECT_LT(many.size(), 30U);
}

TEST_F(WithClient, TrailersOfAnHttp1ServerAreNoSecondHead) {
  say(client_.headers(1, get_fields()));
  const auto frames = answer(0,
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "0\r\nContent-Encoding: gzip\r\nSet-Cookie: a=b\r\nX-Sum: 1\r\n\r\n");
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames.back().find("x-sum") + frames.back().find("content-encoding") + frames.back().find("set-cookie"), "1");
}

TEST_F(WithClient, AnAnswerThatIsCutIsReset) {
  for (const char* part : {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "HTTP/1.1 200 OK\r\nX"}) {
    const auto stream = static_cast<std::uint32_t>(streams_.size() * 2 + 1);
    say(client_.headers(stream, get_fields()));
    end(streams_.size() - 1).seal(part);
    end(streams_.size() - 1).end();
    EXPECT_EQ(code_of(hear(), kReset), kInternalError) << part;
  }
  say(client_.headers(9, get_fields()));
  end(streams_.size() - 1).seal("HTTP/1.1 200 OK\r\n\r\nwhole");
  end(streams_.size() - 1).end();
  const auto frames = hear();
  EXPECT_EQ(body_of(frames), "whole") << "the end of the connection ends this one";
  EXPECT_EQ(code_of(frames, kReset), -1);
}

TEST_F(WithClient, WhatIsNoHttpIsResetAndNeverARequest) {
  const Fields no_path{{":method", "GET"}, {":scheme", "https"}, {":authority", "web.test"}};
  const std::pair<const char*, Fields> cases[] = {
      {"upper case", get_fields("/", {{"X-Key", "v"}})},
      {"a field of the connection", get_fields("/", {{"connection", "close"}})},
      {"another", get_fields("/", {{"transfer-encoding", "chunked"}})},
      {"an upgrade", get_fields("/", {{"upgrade", "websocket"}})},
      {"te", get_fields("/", {{"te", "gzip"}})},
      {"a control character", get_fields("/", {{"x", "a\nb"}})},
      {"an unknown pseudo-field", get_fields("/", {{":what", "x"}})},
      {"extended CONNECT", get_fields("/", {{":protocol", "websocket"}})},
      {"a pseudo-field after another field", get_fields("/", {{"x", "y"}, {":path", "/b"}})},
      {"two paths", get_fields("/", {{":path", "/b"}})},
      {"no path", no_path},
      {"a length without a body", get_fields("/", {{"content-length", "3"}})},
      {"two lengths", get_fields("/", {{"content-length", "0"}, {"content-length", "0"}})},
  };
  std::uint32_t stream = 1;
  for (const auto& [what, fields] : cases) {
    EXPECT_EQ(code_of(say(client_.headers(stream, fields)), kReset), kProtocolError) << what;
    EXPECT_TRUE(streams_.empty()) << what;
    EXPECT_EQ(side_->take_malformed(), 1U) << what;
    stream += 2;
  }
  EXPECT_EQ(code_of(say(client_.headers(stream, get_fields("/", {{"x", "y"}}))), kReset), -1) << "the twin";
  EXPECT_EQ(streams_.size(), 1U);
}

TEST_F(WithClient, MoreOrLessThanTheLengthEndsTheStream) {
  const auto post = [&](std::uint32_t stream, const std::string& body) {
    const auto frames = say(client_.headers(stream, get_fields("/", {{"content-length", "3"}}), kEndHeaders) +
                            frame(kData, kEndStream, stream, body));
    return code_of(frames, kReset);
  };
  EXPECT_EQ(post(1, "four"), kProtocolError);
  EXPECT_TRUE(streams_[0]->gone);
  EXPECT_EQ(text(0).find("four"), std::string::npos);
  EXPECT_EQ(post(3, "2"), kProtocolError);
  EXPECT_TRUE(streams_[1]->gone);
  EXPECT_EQ(post(5, "aye"), -1);
  EXPECT_FALSE(streams_[2]->gone);
}

TEST_F(WithClient, ConnectAndAnotherHostAreAnsweredNotForwarded) {
  say(client_.headers(1, {{":method", "CONNECT"}, {":authority", "web.test:443"}}));
  ASSERT_EQ(streams_.size(), 1U);
  ASSERT_TRUE(streams_[0]->fault);
  EXPECT_EQ(streams_[0]->fault->status, 501);
  EXPECT_EQ(text(0), "");
  say(client_.headers(3, get_fields("/", {{"host", "other.test"}})));
  ASSERT_TRUE(streams_[1]->fault);
  EXPECT_EQ(streams_[1]->fault->status, 400);
  say(client_.headers(5, get_fields("/", {{"host", "web.test"}})));
  EXPECT_FALSE(streams_[2]->fault);
}

TEST_F(WithClient, AHeadBeyondTheBoundIsRefusedByItsStatus) {
  say(client_.headers(1, get_fields("/", {{"x", std::string(60'000, 'a')}})));
  EXPECT_FALSE(streams_.at(0)->fault);
  // Small on the wire, large as fields: the second and further ones are references to the first.
  Fields many;
  for (int i = 0; i < 40; ++i) many.push_back({"x", std::string(3000, 'a')});
  say(client_.headers(3, get_fields("/", many)));
  ASSERT_TRUE(streams_.at(1)->fault);
  EXPECT_EQ(streams_[1]->fault->status, 431);
  EXPECT_FALSE(side_->over()) << "one stream's affair";
}

TEST_F(WithClient, FloodsEndTheConnection) {
  const auto flood = [&](const std::function<std::string(std::uint32_t)>& one, int count) {
    side_ = h2::make_streams();
    Talker fresh;
    side_->put(Talker::preface());
    for (int i = 0; i < count && !side_->over(); ++i) side_->put(one(static_cast<std::uint32_t>(i)));
    std::string said;
    for (std::string part = side_->take(1 << 20); !part.empty(); part = side_->take(1 << 20)) said += part;
    EXPECT_LT(said.size(), 1U << 20);
    return code_of(fresh.hear(said), kGoaway);
  };
  const auto reset_by = [](Talker& talker) {
    return [&talker](std::uint32_t i) { return talker.headers(i * 2 + 1, get_fields()) + frame(kReset, 0, i * 2 + 1, number(8)); };
  };
  Talker some, many, other, another;
  EXPECT_EQ(flood(reset_by(some), 150), -1);
  EXPECT_EQ(flood(reset_by(many), 2000), kEnhanceYourCalm) << "CVE-2023-44487";
  const auto ping = [](std::uint32_t) { return frame(kPing, 0, 0, "12345678"); };
  EXPECT_EQ(flood(ping, 200), -1);
  (void)flood(ping, 20'000);
  EXPECT_TRUE(side_->over()) << "their answers wait";
  const auto settings = [](std::uint32_t) { return frame(kSettings, 0, 0, ""); };
  EXPECT_EQ(flood(settings, 200), -1);
  (void)flood(settings, 20'000);
  EXPECT_TRUE(side_->over());
  const auto priority = [](std::uint32_t i) { return frame(kPriority, 0, i * 2 + 1, number(0) + "x"); };
  EXPECT_EQ(flood(priority, 200), -1);
  EXPECT_EQ(flood(priority, 20'000), kEnhanceYourCalm);
  const auto continue_by = [](Talker& talker) {
    return [&talker](std::uint32_t i) {
      return i == 0 ? frame(kHeaders, 0, 1, talker.block(get_fields())) : frame(kContinuation, 0, 1, "");
    };
  };
  EXPECT_EQ(flood(continue_by(other), 4), -1);
  EXPECT_FALSE(side_->over());
  (void)flood(continue_by(another), 20'000);
  EXPECT_TRUE(side_->over()) << "CVE-2024-28182";
}

// A client can have us reset streams, too ("MadeYouReset", CVE-2025-8671): that costs what its own resets cost.
TEST_F(WithClient, ResetsThatItBringsAboutCountAsItsOwn) {
  const auto provoke = [this](std::uint32_t count) {
    side_ = h2::make_streams();
    Talker talker, ear;
    side_->put(Talker::preface());
    std::string said;
    for (std::uint32_t i = 0; i < count && !side_->over(); ++i) {
      const std::uint32_t id = i * 2 + 1;
      side_->put(talker.headers(id, get_fields()) + frame(kWindow, 0, id, number(0x7FFFFFFF)));
      (void)side_->take_opened();
      said += side_->take(1 << 20);
    }
    return code_of(ear.hear(said), kGoaway);
  };
  EXPECT_EQ(provoke(150), -1);
  EXPECT_FALSE(side_->over());
  EXPECT_EQ(provoke(2000), kEnhanceYourCalm);
}

TEST_F(WithClient, NoMoreThanTheStreamsThatWereOfferedAreOpen) {
  for (std::uint32_t i = 0; i < 100; ++i) say(client_.headers(i * 2 + 1, get_fields()));
  EXPECT_EQ(side_->count(), 100U);
  say(frame(kSettings, 1, 0, "") + client_.headers(201, get_fields()));
  EXPECT_LE(side_->count(), 100U);
  EXPECT_EQ(streams_.size(), 100U);
}

TEST_F(WithClient, ABodyComesAsFarAsItIsServed) {
  say(client_.headers(1, get_fields("/"), kEndHeaders));
  const auto window_of = [](const std::vector<Frame>& frames) {
    std::uint32_t opened = 0;
    for (const Frame& one : frames)
      opened += one.type == kWindow && one.stream == 1 ? Frame{kReset, 0, 1, one.payload, {}}.code() : 0;
    return opened;
  };
  std::uint32_t opened = 0;
  for (int i = 0; i < 3; ++i) opened += window_of(say(frame(kData, 0, 1, std::string(16'384, 'x'))));
  EXPECT_EQ(opened, 0U) << "nobody has taken any";
  EXPECT_GT(text(0).size(), 3U * 16'384);
  EXPECT_EQ(window_of(hear()), 3U * 16'384);
  // Who goes on without a window breaks the protocol.
  long code = -1;
  for (int i = 0; i < 8 && code == -1; ++i) code = code_of(say(frame(kData, 0, 1, std::string(16'384, 'x'))), kReset);
  EXPECT_NE(code, -1);
}

TEST_F(WithClient, AnAnswerWaitsForTheClientAndItsServerForThat) {
  say(client_.headers(1, get_fields()));
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::size_t sent = body_of(answer(0, head)).size(), given = 0;
  while (end(0).room() > 5000 && given < 10'000'000) {
    sent += body_of(answer(0, "1000\r\n" + std::string(4096, 'x') + "\r\n")).size();
    given += 4096;
  }
  EXPECT_EQ(sent, 65'535U) << "the client's window";
  EXPECT_LT(given, 300'000U) << "what waits is bounded";
  const std::size_t before = end(0).room();
  sent = body_of(say(frame(kWindow, 0, 0, number(50'000)) + frame(kWindow, 0, 1, number(50'000)))).size();
  EXPECT_EQ(sent, 50'000U);
  EXPECT_GE(end(0).room(), before + 49'000);
}

TEST_F(WithClient, AnAnswerBeforeTheRequestsEndLetsTheClientFinish) {
  const std::string whole = "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno";
  say(client_.headers(1, get_fields("/"), kEndHeaders));
  EXPECT_EQ(code_of(answer(0, whole), kReset), -1);
  EXPECT_EQ(code_of(say(frame(kData, kEndStream, 1, "late")), kReset), -1);
  EXPECT_EQ(side_->count(), 0U);
  say(client_.headers(3, get_fields("/"), kEndHeaders));
  EXPECT_EQ(code_of(answer(1, whole), kReset), -1);
  long code = -1;
  for (int i = 0; i < 4 && code == -1; ++i)
    code = code_of(say(frame(kData, 0, 3, std::string(i == 3 ? 16'383 : 16'384, 'x'))), kReset);
  EXPECT_EQ(code, kNoError) << "more than the window is not waited for";
}

TEST_F(WithClient, EverybodyHearsWhenAClientLeaves) {
  int woken = 0;
  say(client_.headers(1, get_fields()));
  say(client_.headers(3, get_fields()));
  streams_[0]->wake_server = streams_[1]->wake_server = [&woken] { ++woken; };
  say(frame(kReset, 0, 1, number(8)));
  EXPECT_TRUE(streams_[0]->gone);
  EXPECT_FALSE(streams_[1]->gone);
  EXPECT_EQ(woken, 1);
  side_.reset();
  EXPECT_TRUE(streams_[1]->gone);
  EXPECT_EQ(woken, 2);
}

TEST_F(WithClient, TheEndIsSaidToTheClient) {
  say("");
  side_->end();
  EXPECT_EQ(code_of(hear(), kGoaway), kNoError);
  EXPECT_TRUE(side_->over());
}

}  // namespace
}  // namespace belljar::egress
