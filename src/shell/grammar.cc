// tree-sitter and its bash grammar: node kinds as an enumeration, the parser's limits, and texts that it must
// not be given.
//
// Node kinds are compared as numbers, found once by name in the grammar's table. A kind that is not in the
// table below is kOther, and the reader leaves what it covers unread; a new version of the grammar can make
// texts unread, never safe.
//
// The parser itself is C code with known weaknesses, so some texts are refused before it sees them: those of
// 64 KiB and more (it counts the children of a node in 16 bits), here-documents with very long lines (their
// scanner takes time quadratic in a line's length, and its time limit is not asked there), control
// characters, and what is no UTF-8. The last two have another reason besides: the shell, the grammar and the
// person who is asked have to see the same text.
#include "shell/grammar.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/processor_time.h"
#include "shell/script.h"

extern "C" const TSLanguage* tree_sitter_bash(void);

namespace belljar::shell {
namespace {

struct NamedKind {
  std::string_view name;
  Kind kind;
};

constexpr NamedKind kKinds[] = {
    {"comment", Kind::kComment},
    {"program", Kind::kGroup},
    {"list", Kind::kGroup},
    {"subshell", Kind::kGroup},
    {"compound_statement", Kind::kGroup},
    {"if_statement", Kind::kGroup},
    {"elif_clause", Kind::kGroup},
    {"else_clause", Kind::kGroup},
    {"do_group", Kind::kGroup},
    {"negated_command", Kind::kGroup},
    {"case_statement", Kind::kGroup},
    {"case_item", Kind::kGroup},
    {"variable_assignments", Kind::kGroup},
    {"for_statement", Kind::kLoop},
    {"c_style_for_statement", Kind::kLoop},
    {"while_statement", Kind::kLoop},
    {"pipeline", Kind::kPipeline},
    {"command", Kind::kCommand},
    {"redirected_statement", Kind::kRedirected},
    {"function_definition", Kind::kFunction},
    {"test_command", Kind::kTest},
    {"declaration_command", Kind::kDeclaration},
    {"unset_command", Kind::kDeclaration},
    {"variable_assignment", Kind::kAssignment},
    {"file_redirect", Kind::kFileRedirect},
    {"heredoc_redirect", Kind::kHereDoc},
    {"herestring_redirect", Kind::kHereString},
    {"word", Kind::kWord},
    {"number", Kind::kWord},
    {"variable_name", Kind::kName},
    {"special_variable_name", Kind::kName},
    {"string", Kind::kString},
    {"raw_string", Kind::kRawString},
    {"ansi_c_string", Kind::kAnsiC},
    {"concatenation", Kind::kConcatenation},
    {"brace_expression", Kind::kExpansion},
    {"simple_expansion", Kind::kExpansion},
    {"expansion", Kind::kParameter},
    {"arithmetic_expansion", Kind::kArithmetic},
    {"extglob_pattern", Kind::kExpansion},
    {"regex", Kind::kExpansion},
    {"array", Kind::kArray},
    {"subscript", Kind::kSubscript},
    {"binary_expression", Kind::kOperation},
    {"unary_expression", Kind::kOperation},
    {"postfix_expression", Kind::kOperation},
    {"ternary_expression", Kind::kOperation},
    {"parenthesized_expression", Kind::kOperation},
    {"command_substitution", Kind::kSubstitution},
    {"process_substitution", Kind::kSubstitution},
    {"command_name", Kind::kCommandName},
};

std::vector<Kind> kinds_of(const TSLanguage* language) {
  std::vector<Kind> kinds(ts_language_symbol_count(language), Kind::kOther);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto symbol = static_cast<TSSymbol>(i);
    if (ts_language_symbol_type(language, symbol) == TSSymbolTypeAnonymous) kinds[i] = Kind::kToken;
    const std::string_view name = ts_language_symbol_name(language, symbol);
    const auto* found = std::ranges::find(kKinds, name, &NamedKind::name);
    if (found != std::end(kKinds) && kinds[i] != Kind::kToken) kinds[i] = found->kind;
  }
  return kinds;
}

}  // namespace

Grammar::Grammar() : parser_(ts_parser_new()), kinds_(kinds_of(tree_sitter_bash())) {
  ts_parser_set_language(parser_, tree_sitter_bash());  // both are ABI 14
  ts_parser_set_timeout_micros(parser_, std::chrono::microseconds(kMaxParse).count());
}

Grammar::~Grammar() { ts_parser_delete(parser_); }

// The parser counts time that passes, which on a busy machine others have used: parsing goes on until this thread has had its
// share.
TSTree* Grammar::parse(std::string_view text) {
  const auto deadline = processor_time() + kMaxParse;
  TSTree* tree = nullptr;
  while (tree == nullptr && processor_time() < deadline)
    tree = ts_parser_parse_string(parser_, nullptr, text.data(), static_cast<std::uint32_t>(text.size()));
  if (tree == nullptr) ts_parser_reset(parser_);
  return tree;
}

Kind Grammar::kind(TSNode node) const noexcept {
  const TSSymbol symbol = ts_node_symbol(node);
  return symbol < kinds_.size() ? kinds_[symbol] : Kind::kOther;  // an error node has the number 65535
}

// Between two nodes there may be blanks and escaped newlines. Carriage returns, form feeds and other spaces are letters to a shell
// and blanks to the grammar.
bool is_blank(std::string_view gap) noexcept {
  for (std::size_t i = 0; i < gap.size(); ++i) {
    if (gap[i] == '\\' && i + 1 < gap.size() && gap[i + 1] == '\n') ++i;
    else if (gap[i] != ' ' && gap[i] != '\t' && gap[i] != '\n') return false;
  }
  return true;
}

std::string_view without_blanks(std::string_view expansion) noexcept {
  return expansion.substr(std::min(expansion.find_first_not_of(" \t\n"), expansion.size()));
}

// The grammar's scanner counts the columns of a here-document's line anew for each letter, and no time limit reaches it there.
bool has_slow_lines(std::string_view text) noexcept {
  constexpr std::size_t kMost = 50'000'000;  // about 200 ms
  if (text.find("<<") == std::string_view::npos) return false;
  std::size_t steps = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    steps += length * length;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return steps > kMost;
}

// No control characters but tab and newline, and valid UTF-8: the shell, the grammar and the person who is asked see the same text.
const char* unreadable(std::string_view text) noexcept {
  if (text.size() > kMaxScript) return "the text is 64 KiB long or longer";
  if (has_slow_lines(text)) return "the text has a here-document and lines too long to parse";
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7F) return "the text holds a control character";
    const std::size_t length = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return "the text is not UTF-8";
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0U) != 0x80) return "the text is not UTF-8";
    }
    i += length;
  }
  return nullptr;
}

}  // namespace belljar::shell
