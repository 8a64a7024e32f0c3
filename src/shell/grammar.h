// tree-sitter-bash as this room uses it: node kinds by number, and what text it may be given at all.
#pragma once

#include <tree_sitter/api.h>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

namespace belljar::shell {

// The node kinds of the grammar that the reader knows. Everything else is unread.
enum class Kind : std::uint8_t {
  kOther,
  kToken,  // punctuation and keywords
  kComment,
  kGroup,  // holds statements: list, subshell, { }, if, for ... do, case
  kLoop,
  kPipeline,
  kCommand,
  kRedirected,
  kFunction,
  kTest,         // [ ], [[ ]], (( )): expressions, whose substitutions run
  kDeclaration,  // export, declare, local, readonly, typeset, unset
  kAssignment,
  kFileRedirect,
  kHereDoc,
  kHereString,
  kWord,
  kString,
  kRawString,
  kAnsiC,
  kConcatenation,
  kExpansion,
  kParameter,   // ${...}
  kArithmetic,  // $((...)), $[...]
  kSubscript,   // a[...]
  kArray,       // (a b c)
  kOperation,   // of arithmetic and of tests
  kSubstitution,
  kName,
  kCommandName,
};

// Whether such a node can be a word of a command.
constexpr bool is_word(Kind kind) noexcept {
  switch (kind) {
    case Kind::kWord:
    case Kind::kString:
    case Kind::kRawString:
    case Kind::kAnsiC:
    case Kind::kConcatenation:
    case Kind::kExpansion:
    case Kind::kParameter:
    case Kind::kArithmetic:
    case Kind::kSubscript:
    case Kind::kArray:
    case Kind::kOperation:
    case Kind::kSubstitution:
      return true;
    default:
      return false;
  }
}

inline constexpr std::chrono::milliseconds kMaxParse{200};  // of the processor

// A parser and the kind of each of the grammar's symbols. One thread at a time.
class Grammar {
 public:
  Grammar();
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  // nullptr after kMaxParse of this thread's processor time (a net below the size limit).
  TSTree* parse(std::string_view text);
  Kind kind(TSNode node) const noexcept;

 private:
  TSParser* parser_;
  std::vector<Kind> kinds_;
};

bool is_blank(std::string_view gap) noexcept;
// An expansion without the blanks before it, which the grammar counts to it inside "...".
std::string_view without_blanks(std::string_view expansion) noexcept;
// Why `text` must not be read at all; nullptr when it may.
const char* unreadable(std::string_view text) noexcept;

}  // namespace belljar::shell
