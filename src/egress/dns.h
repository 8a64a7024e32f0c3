// DNS messages (RFC 1035) as far as the resolver inside speaks them: one question in, an answer of our own out. Pure: bytes in,
// what they say out. Nothing of a question is ever passed on; only its name, judged and in its one spelling, is looked up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/host.h"

namespace belljar::egress {

inline constexpr std::size_t kMaxDns = 4096;  // bytes of a question; longer ones are none

enum class DnsCode : std::uint8_t { kNoError = 0, kMalformed = 1, kServerFailure = 2, kNoSuchName = 3, kNotImplemented = 4 };

struct DnsQuestion {
  std::uint16_t id = 0;
  std::uint16_t opcode = 0;  // as it stands in the flags, to be repeated
  bool recursion_desired = false;
  bool extended = false;  // has an OPT record (RFC 6891)
  std::uint16_t type = 0;
  std::optional<DnsCode> fault;      // it cannot be answered otherwise: nothing below is known then, and `wire` is empty
  std::string wire;                  // the question section as it came, to be repeated
  std::optional<policy::Host> name;  // nullopt: a name that no host has
  std::string text;                  // the name as it came, for records; raw bytes
};

inline constexpr std::uint16_t kTypeA = 1, kTypeAaaa = 28;

// nullopt: no question at all, which gets no answer (an answer to an answer could be bounced between resolvers).
std::optional<DnsQuestion> read_dns_question(std::string_view message);

struct DnsAnswer {
  DnsCode code = DnsCode::kNoError;
  std::optional<std::uint32_t> address;  // for a question of type A
  std::string why;                       // told as an extended error "Prohibited" (RFC 8914) to who can read one
};
std::string dns_answer(const DnsQuestion& question, const DnsAnswer& answer);

}  // namespace belljar::egress
