#include "egress/dns.h"

#include <gtest/gtest.h>

#include "egress/fake_addresses.h"

namespace belljar::egress {
namespace {

using namespace std::string_literals;

// A question for `labels` ("\3web\4test"), type and class IN.
std::string ask(const std::string& labels, char type, const std::string& counts = "\0\1\0\0\0\0\0\0"s,
                const std::string& more = "") {
  return "\x12\x34\x01\x00"s + counts + labels + "\0\0"s + type + "\0\1"s + more;
}

TEST(Dns, AQuestionIsReadAndItsNameSpelledOneWay) {
  const auto question = read_dns_question(ask("\3WeB\4teST", kTypeA));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->id, 0x1234);
  EXPECT_TRUE(question->recursion_desired);
  EXPECT_FALSE(question->extended);
  EXPECT_EQ(question->type, kTypeA);
  EXPECT_EQ(question->name->name, "web.test");
}

TEST(Dns, WhatNoHostCanBeCalledHasNoName) {
  EXPECT_FALSE(read_dns_question(ask("\5a.web\4test", kTypeA))->name) << "a dot inside a label";
  EXPECT_FALSE(read_dns_question(ask("\5web\0x\4test"s, kTypeA))->name) << "NUL";
  EXPECT_FALSE(read_dns_question(ask("\3w%b\4test", kTypeA))->name);
  EXPECT_FALSE(read_dns_question(ask("", kTypeA))->name) << "the root";
  EXPECT_FALSE(read_dns_question(ask("\3"
                                     "127\1"
                                     "0\1"
                                     "0\1"
                                     "1",
                                     kTypeA))
                   ->name)
      << "an address";
  EXPECT_TRUE(read_dns_question(ask("\3web\4test", kTypeA))->name) << "the twin";
}

TEST(Dns, NonsenseGetsNoAnswer) {
  EXPECT_FALSE(read_dns_question(""));
  EXPECT_FALSE(read_dns_question("\x12\x34\x81\x00\0\1\0\0\0\0\0\0\3web\0\0\1\0\1"s)) << "an answer";
  EXPECT_FALSE(read_dns_question(std::string(kMaxDns + 1, '\0')));
}

// So that a client need not wait for its time to be over.
TEST(Dns, WhatCannotBeAnsweredIsToldSo) {
  const auto code = [](const std::string& message) {
    const auto question = read_dns_question(message);
    if (!question || !question->fault) return std::string("no fault");
    const std::string answer = dns_answer(*question, {.code = *question->fault, .address = {}, .why = {}});
    EXPECT_EQ(answer.substr(0, 2), "\x12\x34");
    EXPECT_EQ(answer.substr(4), std::string(8, '\0')) << "no question is repeated";
    EXPECT_EQ(answer[2] & 0x78, message[2] & 0x78) << "the opcode is";
    return std::to_string(answer[3] & 15);
  };
  EXPECT_EQ(code(ask("\3web\4test", kTypeA, "\0\2\0\0\0\0\0\0"s)), "1") << "two questions";
  EXPECT_EQ(code(ask("\3web\4test", kTypeA, "\0\0\0\0\0\0\0\0"s)), "1") << "none";
  EXPECT_EQ(code("\x12\x34\x01\x00\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1"s), "1") << "a name that points to itself";
  EXPECT_EQ(code(ask("\77web", kTypeA)), "1") << "cut short";
  std::string longest;
  for (int i = 0; i < 5; ++i) longest += "\77" + std::string(63, 'a');
  EXPECT_EQ(code(ask(longest, kTypeA)), "1") << "over 255 bytes";
  EXPECT_EQ(code("\x12\x34\x01\x00\0\1\0\0\0\0\0\0\3web\0\0\1\0\3"s), "4") << "class CH";
  EXPECT_EQ(code("\x12\x34\x11\x00\0\1\0\0\0\0\0\0\3web\0\0\1\0\1"s), "4") << "a status request";
  EXPECT_EQ(code(ask("\3web\4test", kTypeA)), "no fault") << "the twin";
}

TEST(Dns, AnAnswerRepeatsTheQuestionAndHoldsTheAddress) {
  const auto question = read_dns_question(ask("\3web\4test", kTypeA));
  EXPECT_EQ(dns_answer(*question, {.address = 0xC6130001, .why = {}}),
            "\x12\x34\x81\x80\0\1\0\1\0\0\0\0\3web\4test\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x13\0\1"s);
  const auto other = read_dns_question(ask("\3web\4test", kTypeAaaa));
  EXPECT_EQ(dns_answer(*other, {}), "\x12\x34\x81\x80\0\1\0\0\0\0\0\0\3web\4test\0\0\x1c\0\1"s) << "no address of that kind";
}

TEST(Dns, ARefusalTellsWhyToWhoCanReadIt) {
  const std::string opt = "\0\0\x29\x04\xd0\0\0\0\0\0\0"s;
  const auto question = read_dns_question(ask("\3web\4test", kTypeA, "\0\1\0\0\0\0\0\1"s, opt));
  ASSERT_TRUE(question->extended);
  const std::string answer = dns_answer(*question, {.code = DnsCode::kNoSuchName, .address = {}, .why = "no"});
  EXPECT_EQ(answer, "\x12\x34\x81\x83\0\1\0\0\0\0\0\1\3web\4test\0\0\1\0\1\0\0\x29\x04\xd0\0\0\0\0\0\x08\0\x0f\0\4\0\x12no"s);
  const auto plain = read_dns_question(ask("\3web\4test", kTypeA));
  EXPECT_EQ(dns_answer(*plain, {.code = DnsCode::kNoSuchName, .address = {}, .why = "no"}).size(), plain->wire.size() + 12);
}

TEST(FakeAddresses, ANameKeepsItsAddressAndNobodyElseGetsIt) {
  FakeAddresses fakes;
  const auto web = fakes.address_of("web.test"), other = fakes.address_of("other.test");
  ASSERT_TRUE(web && other);
  EXPECT_NE(*web, *other);
  EXPECT_EQ(fakes.address_of("web.test"), web);
  EXPECT_EQ(*fakes.find_name(*other), "other.test");
  EXPECT_TRUE(FakeAddresses::is_fake(*web));
  EXPECT_EQ(fakes.find_name(0x01020304), nullptr);
  EXPECT_EQ(fakes.find_name(*other + 1), nullptr) << "not given yet";
  for (int i = 0; i < 20000; ++i) (void)fakes.address_of("n" + std::to_string(i));
  EXPECT_FALSE(fakes.address_of("one-more.test")) << "names that a program makes up fill no memory";
  EXPECT_EQ(fakes.address_of("web.test"), web);
}

}  // namespace
}  // namespace belljar::egress
