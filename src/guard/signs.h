// The words and phrases of the detector, by language. Adding one is a row here; tests/guard/corpus measures what it does.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace belljar::guard {

// What a word can be in a sign; a word may be several.
enum Role : std::uint32_t {
  kDrop = 1U << 0,     // ignore, disregard, forget
  kEarlier = 1U << 1,  // previous, all, your, above
  kOrders = 1U << 2,   // instructions, rules, prompt
  kSend = 1U << 3,     // send, upload, post
  kSecret = 1U << 4,   // password, token, key, credentials
  kReveal = 1U << 5,   // reveal, print, repeat
  kPrompt = 1U << 6,   // prompt
  kModel = 1U << 7,    // assistant, ai, llm, model, agent
  kHide = 1U << 8,     // mention, tell, inform: after a negation
  kNot = 1U << 9,      // not, never, without
  kPerson = 1U << 10,  // user, anyone, human
  kAct = 1U << 11,     // run, execute, delete
  kTarget = 1U << 12,  // command, files, repository
  kMust = 1U << 13,    // must, should, now, immediately
  kTalk = 1U << 14,    // attack, injection, vulnerability: the text talks about it
};

struct Lexeme {
  std::string_view word;  // normalised; a trailing `*` takes any ending
  std::uint32_t roles;
};
std::span<const Lexeme> lexemes() noexcept;

struct Phrase {
  std::string_view text;  // normalised
  std::string_view sign;
  int weight;
};
// Found anywhere, as they stand.
std::span<const Phrase> phrases() noexcept;

}  // namespace belljar::guard
