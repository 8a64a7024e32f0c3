// DNS messages, RFC 1035: one question in, one answer out.
//
// Written out by hand because so little of the format is used: one question, one A record whose name is a
// pointer to the question, and an OPT record (RFC 6891) with the extended error "Prohibited" (RFC 8914).
// Whatever else a message holds is answered as malformed or not implemented; what is too short for a header
// or too long, and what is itself an answer, is dropped.
#include "egress/dns.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "policy/host.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kHeader = 12, kMostName = 255;
constexpr std::uint16_t kClassIn = 1, kTypeOpt = 41;
constexpr std::uint16_t kResponse = 0x8000, kOpcode = 0x7800, kRecursionDesired = 0x0100, kRecursionAvailable = 0x0080;
constexpr std::uint32_t kKeep = 60;  // seconds
constexpr std::uint16_t kExtendedError = 15, kProhibited = 18, kOurSize = 1232;

std::uint16_t number_at(std::string_view data, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(data[at]) << 8 | static_cast<unsigned char>(data[at + 1]));
}

void put16(std::string& out, std::size_t value) {
  out += static_cast<char>(value >> 8 & 0xFF);
  out += static_cast<char>(value & 0xFF);
}

void put32(std::string& out, std::uint32_t value) { put16(out, value >> 16), put16(out, value & 0xFFFF); }

// The labels from `at` on, joined by dots; `at` moves behind them. A question's name is never compressed: there is nothing before
// it that it could point to.
std::optional<std::string> read_name(std::string_view data, std::size_t& at) {
  std::string name;
  const std::size_t begin = at;
  for (;;) {
    if (at >= data.size() || at - begin >= kMostName) return std::nullopt;
    const std::size_t length = static_cast<unsigned char>(data[at++]);
    if (length == 0) return name;
    if (length > 63 || at + length > data.size()) return std::nullopt;
    if (!name.empty()) name += '.';
    name.append(data.substr(at, length));
    at += length;
  }
}

// A dot inside a label would make another name of it (RFC 1035 section 3.1 lets labels hold any byte).
bool has_odd_labels(std::string_view wire) {
  for (std::size_t at = 0; at < wire.size() && wire[at] != 0;) {
    const std::size_t length = static_cast<unsigned char>(wire[at]);
    if (wire.substr(at + 1, length).find('.') != std::string_view::npos) return true;
    at += 1 + length;
  }
  return false;
}

// Whether the one record behind the question is an OPT record.
bool has_opt(std::string_view data, std::size_t at) {
  return at + 11 <= data.size() && data[at] == 0 && number_at(data, at + 1) == kTypeOpt;
}

void put_opt(std::string& out, const std::string& why) {
  out += '\0';
  put16(out, kTypeOpt);
  put16(out, kOurSize);
  put32(out, 0);
  if (why.empty()) return put16(out, 0);
  put16(out, 6 + why.size());
  put16(out, kExtendedError);
  put16(out, 2 + why.size());
  put16(out, kProhibited);
  out += why;
}

}  // namespace

std::optional<DnsQuestion> read_dns_question(std::string_view message) {
  if (message.size() < kHeader || message.size() > kMaxDns) return std::nullopt;
  const std::uint16_t flags = number_at(message, 2);
  if ((flags & kResponse) != 0) return std::nullopt;
  DnsQuestion question;
  question.id = number_at(message, 0);
  question.opcode = flags & kOpcode;
  question.recursion_desired = (flags & kRecursionDesired) != 0;
  const auto faulty = [&question](DnsCode code) { return question.fault = code, question; };
  if (question.opcode != 0) return faulty(DnsCode::kNotImplemented);
  if (number_at(message, 4) != 1 || number_at(message, 6) != 0) return faulty(DnsCode::kMalformed);
  std::size_t at = kHeader;
  auto name = read_name(message, at);
  if (!name || at + 4 > message.size()) return faulty(DnsCode::kMalformed);
  if (number_at(message, at + 2) != kClassIn) return faulty(DnsCode::kNotImplemented);
  question.type = number_at(message, at);
  question.wire = message.substr(kHeader, at + 4 - kHeader);
  question.extended = number_at(message, 10) == 1 && has_opt(message, at + 4);
  if (!has_odd_labels(question.wire)) {
    if (auto host = policy::parse_host(*name); host && !host->ip) question.name = *std::move(host);
  }
  question.text = *std::move(name);
  return question;
}

std::string dns_answer(const DnsQuestion& question, const DnsAnswer& answer) {
  const bool record = answer.code == DnsCode::kNoError && answer.address && question.type == kTypeA;
  std::string out;
  put16(out, question.id);
  put16(out, static_cast<std::size_t>(kResponse | kRecursionAvailable | (question.recursion_desired ? kRecursionDesired : 0) |
                                      question.opcode | static_cast<int>(answer.code)));
  put16(out, question.wire.empty() ? 0 : 1);
  put16(out, record ? 1 : 0);
  put16(out, 0);
  put16(out, question.extended ? 1 : 0);
  out += question.wire;
  if (record) {
    put16(out, 0xC000 | kHeader);  // the name of the question
    put16(out, kTypeA);
    put16(out, kClassIn);
    put32(out, kKeep);
    put16(out, 4);
    put32(out, *answer.address);
  }
  if (question.extended) put_opt(out, answer.why);
  return out;
}

}  // namespace belljar::egress
