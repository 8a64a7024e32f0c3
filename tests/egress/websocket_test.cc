#include "egress/websocket.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "egress/credentials.h"
#include "policy/tls_interception.h"

namespace belljar::egress {
namespace {

const std::string kValue = "ghp_0realSecretValue0123456789abcdef", kPlaceholder = "ghp_belljarABCDEFGHIJKLMNOPQRSTUVWXY";

Restorer restorer() {
  static const Credential credential{policy::parse_credential("KEY for web.example").value(), kPlaceholder, kValue};
  return Restorer({&credential});
}

constexpr int kText = 1, kContinued = 0, kClose = 8, kPing = 9;

std::string frame(int kind, std::string_view payload, bool fin = true) {
  std::string bytes(1, static_cast<char>((fin ? 0x80 : 0) | kind));
  if (payload.size() < 126) bytes += static_cast<char>(payload.size());
  else if (payload.size() < 65536)
    bytes += {'\x7E', static_cast<char>(payload.size() >> 8), static_cast<char>(payload.size() & 0xFF)};
  else {
    bytes += '\x7F';
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(payload.size() >> shift & 0xFF);
  }
  return bytes.append(payload);
}

// What comes out when `size` bytes come at a time.
std::string through(const std::string& stream, std::size_t size) {
  WebSocketRestorer guard(restorer());
  std::string out;
  for (std::size_t at = 0; at < stream.size(); at += size) out += guard.feed(std::string_view(stream).substr(at, size), false);
  return out + guard.feed({}, true);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST(WebSocket, AValueInFragmentsIsTakenOut) {
  const std::string hidden = kPlaceholder;
  for (std::size_t cut = 1; cut < kValue.size(); ++cut) {
    const auto stream = [&](const std::string& value) {
      return frame(kText, "a" + value.substr(0, cut), false) + frame(kPing, "still there?") + frame(kContinued, "", false) +
             frame(kContinued, value.substr(cut) + "z");
    };
    for (const std::size_t size : {1U, 3U, 4096U}) EXPECT_EQ(through(stream(kValue), size), stream(hidden)) << cut << " " << size;
  }
  std::string letters, expected;
  for (std::size_t i = 0; i < kValue.size(); ++i) {
    letters += frame(kText, kValue.substr(i, 1)), expected += frame(kText, hidden.substr(i, 1));
  }
  EXPECT_EQ(through(letters, 7), expected) << "a letter a message";
}

TEST(WebSocket, AControlFrameBringsNoValueBack) {
  EXPECT_EQ(through(frame(kPing, kValue) + frame(kClose, "\x03\xE8" + kValue), 5),
            frame(kPing, kPlaceholder) + frame(kClose, "\x03\xE8" + kPlaceholder));
}

// The twin: messages of every length, as they are, and each out as soon as it is there.
TEST(WebSocket, OtherMessagesPassAsTheyAre) {
  std::string all;
  WebSocketRestorer guard(restorer());
  for (const std::size_t size : {0U, 1U, 125U, 126U, 65535U, 65536U, 300'000U}) {
    const std::string one = frame(kText, std::string(size, 'x')) + frame(kPing, "p");
    EXPECT_EQ(guard.feed(one, false), one) << size;
    all += one;
  }
  EXPECT_EQ(through(all, 1000), all);
  EXPECT_FALSE(guard.broken());
  const std::string inside = frame(kText, "x" + kValue + std::string(70'000, 'y') + kValue);
  EXPECT_EQ(through(inside, 999), replaced(inside, kValue, kPlaceholder));
}

TEST(WebSocket, TheLastLettersOfAMessageAreGivenEarly) {
  WebSocketRestorer guard(restorer());
  EXPECT_EQ(guard.feed(frame(kText, "hi gh") + frame(kPing, ""), false), frame(kText, "hi gh").substr(0, 5));
  ASSERT_TRUE(guard.holds_little());
  EXPECT_EQ(guard.give_early(), "gh" + frame(kPing, ""));
  EXPECT_EQ(guard.feed(frame(kText, kValue.substr(2)), false), frame(kText, kPlaceholder.substr(2))) << "and remembered";
}

TEST(WebSocket, WhatNoClientMayGetEndsIt) {
  const std::string good = frame(kText, "good");
  const std::vector<std::string> bad = {
      std::string("\x81\x81", 2) + "keyk" + "x",  // masked
      "\xC1" + good.substr(1),                    // compressed
      frame(3, "x"),
      frame(11, "x"),
      frame(kPing, "x", false),
      frame(kPing, std::string(126, 'x')),
      std::string("\x81\x7F\x80", 3) + std::string(7, '\0'),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    WebSocketRestorer guard(restorer());
    EXPECT_EQ(guard.feed(good + bad[i] + good, false), good) << i;
    EXPECT_TRUE(guard.broken()) << i;
    EXPECT_EQ(guard.feed(good, false) + guard.feed({}, true), "") << i;
  }
}

}  // namespace
}  // namespace belljar::egress
