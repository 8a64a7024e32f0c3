#include "egress/dns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "egress/context.h"
#include "egress/dns_server.h"
#include "egress/fake_addresses.h"
#include "policy/domains.h"
#include "policy/ip.h"

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
  EXPECT_TRUE(fakes.is_fake(*web));
  EXPECT_EQ(fakes.find_name(0x01020304), nullptr);
  EXPECT_EQ(fakes.find_name(*other + 1), nullptr) << "not given yet";
  for (std::uint32_t i = 2; i < kMostNames; ++i) {
    const auto address = fakes.address_of("n" + std::to_string(i));
    ASSERT_TRUE(address && fakes.is_fake(*address)) << i;
  }
  EXPECT_FALSE(fakes.address_of("one-more.test")) << "names that a program makes up fill no memory";
  EXPECT_EQ(fakes.address_of("web.test"), web) << "and drive nobody out";
  EXPECT_EQ(*fakes.find_name(*web), "web.test");
}

TEST(FakeAddresses, LieInTheRangeTheyWereGiven) {
  FakeAddresses fakes(0x7F130000);
  EXPECT_EQ(fakes.address_of("web.test"), 0x7F130001U);
  EXPECT_EQ(*fakes.find_name(0x7F130001), "web.test");
  EXPECT_EQ(fakes.find_name(policy::kFakeAddresses + 1), nullptr);
  EXPECT_TRUE(fakes.is_fake(0x7F13FFFF));
  EXPECT_FALSE(fakes.is_fake(0x7F140000));
  EXPECT_FALSE(fakes.is_fake(policy::kFakeAddresses + 1));
}

// The resolver inside, without its sockets.
class Names : public testing::Test {
 protected:
  void SetUp() override {
    Network network;
    network.allowed_domains = {"**.web.test"};
    context_.options.rules = policy::make_host_rules(network).value();
  }
  // The address of `name`, or the code of the answer.
  std::string lookup(const std::string& name, std::uint16_t type = kTypeA, bool exists = true) {
    DnsQuestion question;
    question.type = type;
    question.text = name;
    if (auto host = policy::parse_host(name)) question.name = *std::move(host);
    const auto asker = [this] { return Culprit{.pid = pid_, .program = "/bin/p"}; };
    Resolved resolved;
    resolved.missing = !exists;
    if (exists) resolved.addresses = {policy::ipv4(0x5DB80001)};
    const auto judged = judge_question(context_, question, asker);
    const DnsAnswer answer = judged ? *judged : answer_question(context_, question, resolved, asker);
    return answer.address ? policy::to_string(policy::ipv4(*answer.address)) : std::to_string(static_cast<int>(answer.code));
  }
  Context context_;
  int pid_ = 7;
};

TEST_F(Names, OnlyAllowedNamesThatExistUseAnAddress) {
  EXPECT_EQ(lookup("other.test"), "3");
  EXPECT_EQ(lookup("a b"), "3");
  EXPECT_EQ(lookup("none.web.test", kTypeA, false), "3");
  EXPECT_EQ(lookup("web.test", kTypeAaaa), "0");
  EXPECT_EQ(lookup("web.test"), "198.19.0.1") << "the first of all";
  EXPECT_EQ(lookup("a.web.test"), "198.19.0.2");
  EXPECT_EQ(lookup("web.test"), "198.19.0.1");
}

TEST_F(Names, NothingIsLookedUpWhenTheBytesAreUsedUp) {
  context_.options.max_bytes = 100;
  EXPECT_EQ(lookup("a.web.test"), "198.19.0.1");
  context_.passed = 101;
  EXPECT_EQ(lookup("b.web.test"), "2");
  EXPECT_EQ(lookup("other.test"), "3") << "as ever";
  ASSERT_FALSE(context_.log.violations.empty());
  EXPECT_EQ(context_.log.violations[0].rule, "limits.egress_bytes");
  EXPECT_EQ(context_.log.records[0].reason, "egress_bytes");
}

TEST_F(Names, LimitedCountsWhatNamesSay) {
  context_.options.methods = Methods::kLimited;
  context_.options.max_heads = 190;
  const auto name = [](int number) { return std::string(50, 'x') + std::to_string(number) + ".web.test"; };
  EXPECT_EQ(lookup(name(1)), "198.19.0.1");
  EXPECT_EQ(lookup(name(2)), "198.19.0.2");
  EXPECT_EQ(lookup(name(3)), "2");
  EXPECT_EQ(lookup(name(1)), "198.19.0.1") << "it was said before";
  EXPECT_EQ(context_.log.violations.back().rule, "limits.egress_heads");
}

TEST_F(Names, ANameWithoutAnAddressIsNoFailure) {
  DnsQuestion question;
  question.type = kTypeA;
  question.text = "web.test";
  question.name = policy::Host{.name = "web.test", .ip = {}};
  const auto asker = [] { return Culprit{}; };
  Resolved resolved;
  EXPECT_EQ(answer_question(context_, question, resolved, asker).code, DnsCode::kServerFailure);
  resolved.empty = true;
  const DnsAnswer answer = answer_question(context_, question, resolved, asker);
  EXPECT_EQ(answer.code, DnsCode::kNoError);
  EXPECT_FALSE(answer.address.has_value());
}

TEST_F(Names, AFullTableIsTold) {
  for (std::uint32_t i = 0; i < kMostNames; ++i) ASSERT_NE(lookup("n" + std::to_string(i) + ".web.test"), "2");
  EXPECT_TRUE(context_.log.violations.empty()) << "the twin";
  EXPECT_EQ(lookup("late.web.test"), "2");
  EXPECT_EQ(lookup("n0.web.test"), "198.19.0.1") << "those that are in it go on";
  ASSERT_EQ(context_.log.records.size(), 1U);
  EXPECT_EQ(context_.log.records[0].host, "late.web.test");
  EXPECT_EQ(context_.log.records[0].reason, "names-full");
  EXPECT_FALSE(context_.log.records[0].allowed);
  ASSERT_EQ(context_.log.violations.size(), 1U);
  const Violation& violation = context_.log.violations[0];
  EXPECT_EQ(violation.rule, "network.transparent");
  EXPECT_EQ(violation.target, "late.web.test");
  EXPECT_EQ(violation.program, "/bin/p");
  EXPECT_NE(violation.allowed.find("the table of names is full"), std::string::npos) << violation.allowed;
  EXPECT_NE(violation.allowed.find("HTTPS_PROXY"), std::string::npos) << violation.allowed;
}

TEST_F(Names, BothHalvesOfALookupAreOneAct) {
  (void)lookup("other.test"), (void)lookup("other.test", kTypeAaaa);
  ASSERT_EQ(context_.log.violations.size(), 1U);
  EXPECT_EQ(context_.log.violations[0].count, 1U);
  EXPECT_EQ(context_.log.records.size(), 2U);
  (void)lookup("other.test", kTypeAaaa), (void)lookup("other.test");
  EXPECT_EQ(context_.log.violations[0].count, 2U) << "asked once more";
  (void)lookup("other.test"), (void)lookup("other.test");
  EXPECT_EQ(context_.log.violations[0].count, 4U) << "twice the same is twice";
  (void)lookup("third.test"), pid_ = 8, (void)lookup("third.test", kTypeAaaa);
  EXPECT_EQ(context_.log.violations.size(), 3U) << "of two programs";
}

}  // namespace
}  // namespace belljar::egress
