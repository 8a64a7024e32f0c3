// Placeholders and values: where one becomes the other, where it does not, and what comes back.
#include "egress/credentials.h"

#include <gtest/gtest.h>

#include "base/encoding.h"

namespace belljar::egress {
namespace {

constexpr char kValue[] = "s3cr3t/+value==&\"x";

Credential make(const std::string& text, const std::string& value = kValue) {
  return {policy::parse_credential(text).value(), make_placeholder(value, "0123456789abcdefghij"), value};
}

ProxyRequest request_to(const char* place, const std::string& path = "/", bool secure = true) {
  ProxyRequest request;
  request.destination = policy::parse_destination(place, 443).value();
  request.path = path;
  request.secure = secure;
  return request;
}

TEST(Placeholder, HasTheLengthAndTheWellKnownBeginningOfItsValue) {
  const std::string token = make_placeholder("ghp_0123456789012345678901234567890123456", "abcdefgh");
  EXPECT_EQ(token.substr(0, 11), "ghp_belljar");
  EXPECT_EQ(token.size(), 41U);
  EXPECT_EQ(make_placeholder("12345678", "abcdefgh").size(), 8U);
  EXPECT_EQ(make_placeholder("12345678", "abcdefgh").find("1234"), std::string::npos);
}

TEST(Credentials, ArePutIntoHeaderBasicAndQueryOfTheirHostOnly) {
  const Credential key = make("KEY for api.test");
  const Credentials credentials({key});
  HttpHead head;
  head.method = "GET";
  head.fields = {{"Host", "api.test"},
                 {"Authorization", "Bearer " + key.placeholder},
                 {"X-Two", key.placeholder + "," + key.placeholder},
                 {"Range", "bytes=0-1"},
                 {"Request-Range", "bytes=0-1"},
                 {"Accept-Encoding", "gzip"}};
  ProxyRequest request = request_to("api.test", "/" + key.placeholder + "?a=" + key.placeholder);
  EXPECT_EQ(credentials.find_misplaced(head, request), nullptr);
  EXPECT_EQ(credentials.put_in(head, request), std::vector<std::string>{"KEY"});
  EXPECT_EQ(head.fields[1].value, std::string("Bearer ") + kValue);
  EXPECT_EQ(head.fields[2].value, std::string(kValue) + "," + kValue);
  EXPECT_EQ(head.fields.size(), 4U) << "no range, and no encoding but identity";
  EXPECT_EQ(head.fields[3].value, "identity");
  EXPECT_EQ(request.path, "/" + key.placeholder + "?a=s3cr3t%2F%2Bvalue%3D%3D%26%22x") << "a path is left alone";

  HttpHead basic;
  basic.fields = {{"Authorization", "Basic " + to_base64("me:" + key.placeholder)}};
  request = request_to("api.test");
  EXPECT_EQ(credentials.put_in(basic, request).size(), 1U);
  EXPECT_EQ(basic_credential(basic.fields[0].value), std::string("me:") + kValue);

  for (const char* place : {"other.test", "sub.api.test", "api.test.other.test"}) {
    HttpHead elsewhere;
    elsewhere.fields = {{"Authorization", "Bearer " + key.placeholder}};
    request = request_to(place);
    EXPECT_EQ(credentials.find_misplaced(elsewhere, request)->rule.name, "KEY") << place;
    EXPECT_TRUE(credentials.put_in(elsewhere, request).empty());
    EXPECT_EQ(elsewhere.fields[0].value, "Bearer " + key.placeholder);
  }
  HttpHead clear;
  clear.fields = {{"Authorization", "Basic " + to_base64("me:" + key.placeholder)}};
  EXPECT_NE(credentials.find_misplaced(clear, request_to("api.test", "/", false)), nullptr) << "never in the clear";
}

// The host may say its value whichever way it is asked: the answer must stay readable.
TEST(Credentials, WhoKnowsAValueIsAskedForAReadableAnswerInTheClearToo) {
  const Credential key = make("KEY for api.test:443");
  const Credentials credentials({key});
  HttpHead head;
  head.fields = {{"X-Key", key.placeholder}, {"Accept-Encoding", "gzip"}};
  ProxyRequest request = request_to("api.test:9000", "/", false);
  EXPECT_TRUE(credentials.put_in(head, request).empty());
  ASSERT_EQ(head.fields.size(), 2U);
  EXPECT_EQ(head.fields[0].value, key.placeholder);
  EXPECT_EQ(head.fields[1].value, "identity");
  EXPECT_EQ(credentials.known_to(policy::parse_host("api.test").value()).size(), 1U);
  EXPECT_TRUE(credentials.known_to(policy::parse_host("other.test").value()).empty());
  head.fields = {{"Accept-Encoding", "gzip"}};
  request = request_to("other.test", "/", false);
  EXPECT_TRUE(credentials.put_in(head, request).empty());
  EXPECT_EQ(head.fields[0].value, "gzip") << "the twin";
}

TEST(Credentials, APlaceThatIsNotNamedStaysAsItIs) {
  const Credential key = make("KEY=env:OTHER for api.test in basic");
  const Credentials credentials({key});
  HttpHead head;
  head.fields = {{"X-Key", key.placeholder}};
  ProxyRequest request = request_to("api.test", "/?k=" + key.placeholder);
  EXPECT_TRUE(credentials.put_in(head, request).empty());
  EXPECT_EQ(head.fields[0].value, key.placeholder);
  EXPECT_EQ(request.path, "/?k=" + key.placeholder);
}

TEST(Restorer, FindsAValueAcrossEveryBorderOfPieces) {
  const Credential key = make("KEY for api.test");
  const std::string text = std::string("before ") + kValue + " s3cr3t/ between " + kValue + kValue + " s3cr3t/+valu";
  const std::string wanted =
      "before " + key.placeholder + " s3cr3t/ between " + key.placeholder + key.placeholder + " s3cr3t/+valu";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); second += 7) {
      Restorer restorer({&key});
      std::string out = restorer.feed(text.substr(0, first), false);
      EXPECT_EQ(out.find(kValue), std::string::npos);
      out += restorer.feed(text.substr(first, second - first), false);
      out += restorer.feed(text.substr(second), true);
      ASSERT_EQ(out, wanted) << first << " " << second;
    }
  }
}

// Lengths are kept, so what a spelling is longer than the placeholder is filled with stars.
TEST(Restorer, FindsAnEscapedValueAcrossEveryBorderOfPieces) {
  const Credential key = make("KEY for api.test", "p@ss&word<1>quo'te");
  for (const std::string spelled :
       {"p@ss&word%3C1%3Equo'te", "p%40ss%26word%3C1%3Equo%27te", "p@ss\\u0026word\\u003c1\\u003equo'te",
        "p@ss&amp;word&lt;1&gt;quo&#x27;te", "p@ss&amp;word&lt;1&gt;quo&#39;te"}) {
    const std::string text = "\"" + spelled + "\" p@ss&amp;word%3C2 &";
    const std::string wanted =
        "\"" + key.placeholder + std::string(spelled.size() - key.value.size(), '*') + "\" p@ss&amp;word%3C2 &";
    for (std::size_t first = 0; first <= text.size(); ++first) {
      Restorer restorer({&key});
      std::string out = restorer.feed(text.substr(0, first), false);
      out += restorer.feed(text.substr(first), true);
      ASSERT_EQ(out, wanted) << first;
    }
  }
}

TEST(Restorer, KnowsTheEncodedFormsWithLettersEscaped) {
  const Credential key = make("KEY for api.test", "AKbase64/Value+withABC??");
  const Restorer restorer({&key});
  EXPECT_EQ(restorer.restore("/AKbase64/Value%2BwithABC%3F%3F").find("AKbase64"), std::string::npos) << "as Python quotes a path";
  EXPECT_EQ(restorer.restore("QUtiYXNlNjQvVmFsdWUrd2l0aEFCQz8%2F").find("QUti"), std::string::npos) << "base64 in a query";
  EXPECT_EQ(restorer.restore("QUtiYXNlNjQvVmFsdWUrd2l0aEFCQz8\\/").find("QUti"), std::string::npos) << "base64 in JSON";
  EXPECT_EQ(restorer.restore("/AKbase64/Value%2Bwith%3F%3F"), "/AKbase64/Value%2Bwith%3F%3F") << "not all of it";
}

TEST(Restorer, KeepsBackNoMoreThanWhatFollowsABeginning) {
  const Credential key = make("KEY for api.test");
  Restorer restorer({&key});
  EXPECT_EQ(restorer.feed("data: 1\n\n", false), "data: 1\n\n") << "a stream of events is not held up";
  EXPECT_EQ(restorer.feed("x s3c", false), "x ");
  EXPECT_EQ(restorer.feed("urity", false), "s3curity");
  for (const char* event : {"data: Q&A\n\n", "data: 5%\n\n", "data: {\"a\":\"b\\n\"}\n\n", "data: {\"a\":\"s3cr3t/+val\"}\n\n",
                            "2probe", "42[1]", "two wor", "ld"})
    EXPECT_EQ(restorer.feed(event, false), event);
  // A token has no quote in it: so it ends there.
  const Credential token = make("KEY for api.test", "ghp_R7kQz2mWx9Lp4Vt8Yb3Nc6Hd1Fg5Js0AeUoI");
  Restorer of_token({&token});
  EXPECT_EQ(of_token.feed("{\"a\":\"ghp_R7kQz2\"}", false), "{\"a\":\"ghp_R7kQz2\"}");
  EXPECT_EQ(of_token.feed("a ghp_R7kQz2", false), "a ");
  const std::string much(40 * 60 - 10, 'x');
  EXPECT_EQ(of_token.feed(much, false), "") << "any letters";
  EXPECT_EQ(of_token.feed("x", false), "ghp_R7kQz2" + much + "x") << "longer than any spelling";
}

// Slow servers do not get a value through letter by letter.
TEST(Restorer, GivesABeginningEarlyAndStillFindsTheValue) {
  const Credential key = make("KEY for api.test");
  Restorer restorer({&key});
  EXPECT_EQ(restorer.feed("say s", false), "say ");
  ASSERT_TRUE(restorer.holds_little());
  EXPECT_EQ(restorer.give_early(), "s");
  EXPECT_FALSE(restorer.holds_little()) << "it is out";
  EXPECT_EQ(restorer.give_early(), "");
  EXPECT_EQ(restorer.feed("3c", false), "");
  EXPECT_EQ(restorer.give_early(), "3c");
  EXPECT_EQ(restorer.feed("r3", false), "");
  EXPECT_FALSE(restorer.holds_little()) << "five letters are more than its beginning";
  EXPECT_EQ(restorer.give_early(), "");
  EXPECT_EQ(restorer.feed("t/+value==&\"x s3", false), key.placeholder.substr(3) + " ");
  EXPECT_EQ(restorer.give_early(), "s3");
  EXPECT_EQ(restorer.feed("quel", true), "quel") << "it was none";
  Restorer quiet({&key});
  EXPECT_EQ(quiet.feed("s3", false), "");
  EXPECT_EQ(quiet.give_early(), "s3");
  EXPECT_EQ(quiet.feed("", true), "") << "nothing comes twice";
}

// How much of each piece goes on: when it comes, when the stream falls silent, with the next piece, at the end.
std::string sizes_of(Restorer restorer, const std::string& first, const std::string& next) {
  std::string sizes = std::to_string(restorer.feed(first, false).size());
  for (const std::string& out : {restorer.give_early(), restorer.feed(next, false), restorer.give_early(), restorer.feed("", true)})
    sizes += " " + std::to_string(out.size());
  return sizes;
}

// An oracle: a command that has the host say guesses sees what is held back of them.
TEST(Restorer, WhatIsHeldBackDoesNotTellWhichLettersAreRight) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=%&;#\\";
  for (const std::string value :
       {"ghp_R7kQz2mWx9Lp4Vt8Yb3Nc6Hd1Fg5Js0AeUoI", "sk-ant-api03-R7kQz2mWx9Lp4Vt8", "d41d8cd98f00b204", "hunter22"}) {
    const Credential key = make("KEY for api.test", value);
    const Restorer restorer({&key});
    const std::size_t told = value.size() == 40 ? 4 : value.size() == 29 ? 13 : value.size() / 4;
    for (std::size_t size = told; size < value.size(); ++size) {
      for (const std::string next : {" y", "R7kQ"}) {
        const std::string right = "x " + value.substr(0, size), wanted = sizes_of(restorer, right + '.', next);
        for (const char letter : kLetters) {
          if (size + 1 == value.size() && letter == value[size]) continue;  // the whole value: that is told
          ASSERT_EQ(sizes_of(restorer, right + letter, next), wanted) << right << letter << next;
        }
      }
    }
  }
}

TEST(Restorer, NorInOtherSpellings) {
  const std::string value = "ghp_R7kQz2mWx9Lp4Vt8Yb3Nc6Hd1Fg5Js0AeUoI";
  const Credential key = make("KEY for api.test", value);
  const Restorer restorer({&key});
  for (const std::string& spelled : {to_base64(value), to_base64("x" + value), to_base64("xx" + value),
                                     std::string("6768705f52376b517a326d577839"), std::string("&#103;hp_R%37k\\u0051z2mWx9")}) {
    for (std::size_t size = 26; size > 12; --size) {
      const std::string right = spelled.substr(0, size);
      for (const char letter : {'A', 'z', '0', '%', '_'}) {
        const std::string guess = right.substr(0, size - 1) + letter;
        EXPECT_EQ(sizes_of(restorer, "x " + guess, ""), sizes_of(restorer, "x " + right, "")) << guess;
      }
    }
  }
}

TEST(Restorer, KnowsTheSpellingsThatServersMakeOfAValue) {
  const Credential key = make("KEY for api.test");
  Restorer restorer({&key});
  for (const std::string& spelled :
       {std::string("s3cr3t%2F%2Bvalue%3D%3D%26%22x"), std::string("s3cr3t%2f%2bvalue%3d%3d%26%22x"),
        std::string("s3cr3t/+value==&\\\"x"), std::string("s3cr3t\\/+value==&\\\"x"), std::string("s3cr3t/+value==&amp;&quot;x")}) {
    const std::string out = restorer.restore("<" + spelled + ">");
    EXPECT_EQ(out.find(spelled), std::string::npos);
    EXPECT_EQ(out.size(), spelled.size() + 2) << "lengths stay";
  }
  for (const std::string before : {"", "m", "me", "me:"}) {
    const std::string out = restorer.restore(to_base64(before + kValue));
    const auto text = basic_credential("Basic " + out);
    ASSERT_TRUE(text);
    EXPECT_EQ(text->find("cr3t/+value==&"), std::string::npos) << before;
    EXPECT_EQ(text->size(), before.size() + sizeof kValue - 1);
  }
}

}  // namespace
}  // namespace belljar::egress
