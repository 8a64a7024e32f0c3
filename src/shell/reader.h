// How shell.h reads: one Reader for each text. Statements, branches and loops, expressions, redirections and words: `reader_*.cc`;
// what a command starts and all else in `reader.cc`.
#pragma once

#include <tree_sitter/api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/processor_time.h"
#include "shell/grammar.h"
#include "shell/letters.h"
#include "shell/numbers.h"
#include "shell/script.h"
#include "shell/variables.h"
#include "shell/whereabouts.h"

namespace belljar::shell {

struct Child {
  TSNode node;
  std::string_view field;
};

// What a text defines; all bodies it gives the name.
struct Function {
  std::vector<TSNode> bodies;
  bool moves = false;                                     // leaves its caller elsewhere
  std::vector<std::pair<Whereabouts, Whereabouts>> read;  // where it was read from, and where that led
  bool open = false;                                      // is being read
};

// Reads one text; a wrapper with a script of its own makes another Reader that writes to the same Script.
class Reader {
  static constexpr int kMaxRounds = 64;

 public:
  Reader(Grammar& grammar, Script& out, std::string_view text)
      : grammar_(grammar), out_(out), text_(text), variables_(grammar, text) {}

  void read();

  std::vector<std::string> inside;
  std::vector<Range> upstream;
  const Span* outer = nullptr;
  int opened = 0;
  std::string_view input;
  ShellDialect dialect = ShellDialect::kBash;
  bool follows_variables = true;
  Whereabouts place;
  // Of the function that is read: where a `return` stands. None: there it does not leave.
  std::vector<Whereabouts>* returns = nullptr;
  bool own_exit = true;  // `exit` and `return` are the shell's own: no function of the text has their name
  std::chrono::nanoseconds deadline = processor_time() + kMaxTime;

 private:
  Kind kind(TSNode node) const noexcept { return grammar_.kind(node); }
  Span span(TSNode node) const noexcept {
    return outer != nullptr ? *outer : Span{ts_node_start_byte(node), ts_node_end_byte(node)};
  }
  std::string_view raw(TSNode node) const noexcept { return between(ts_node_start_byte(node), ts_node_end_byte(node)); }
  std::string_view between(std::size_t begin, std::size_t end) const noexcept { return text_.substr(begin, end - begin); }
  void unread(Span where, std::string reason);
  void check(const Letters& letters);
  bool full(TSNode node);
  std::vector<Child> children(TSNode node, bool blank_between = true);

  void statement(TSNode node);
  void statements(TSNode node);
  void branches(TSNode node);
  bool sequence(const std::vector<Child>& kids);
  void conditional(TSNode node);
  bool branch(TSNode node, std::vector<Whereabouts>& ends);
  void cases(TSNode node);
  void settle();
  void left(const Whereabouts& before);
  void move(const Part& part);
  void chain(TSNode node, std::vector<TSNode>& doubtful);
  void loop(TSNode node);
  bool rounds(TSNode body, std::string_view name, const std::vector<Word>& values);
  void second_turn(TSNode node, const std::vector<Child>& kids);
  bool loops_over_numbers(const std::vector<Child>& kids) const noexcept;
  void pipeline(TSNode node);
  void redirected(TSNode node);
  bool ends_shell(TSNode node) const noexcept;
  void returned();
  void leaves_by(const Part& part);
  void function(TSNode node);
  void define(const std::string& name, TSNode body, const Whereabouts& before, int defined_before);
  void body(TSNode node);
  void call(const Part& part);
  void declaration(TSNode node);
  void command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more);
  void expression(TSNode node);
  void parameter(TSNode node);
  void test(TSNode node);
  void test_pieces(TSNode node, std::vector<TSNode>& pieces);
  void evaluated(TSNode node);
  void evaluated_letters(TSNode node);
  Word test_word(TSNode node, const Word& word);
  bool is_number(TSNode node) const noexcept { return kind(node) == Kind::kArithmetic || is_count(without_blanks(raw(node))); }
  void doubt(TSNode node) { unread(span(node), "the shell evaluates a text that only the run decides"); }

  Assignment assignment(TSNode node);
  void array(TSNode node);
  void redirect(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more);
  void here_document(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more, std::vector<TSNode>& behind);
  Word here_body(TSNode node, bool literal, bool strip);
  void here_string(TSNode node, std::vector<Redirect>& redirects);

  Word word(TSNode node);
  void add_word(Word& word, TSNode node);
  void add_string(Word& word, TSNode node);
  void add_expansion(Word& word, TSNode node, bool quoted);
  bool add_value(Word& word, std::string_view expansion, bool quoted);
  void add_concatenation(Word& word, TSNode node);

  void give_input(Part& part);
  void emit(Part part);
  void open(const Part& part, int level);
  void open_script(const Word& script, const Part& part, const std::string& label, int level);

  Grammar& grammar_;
  Script& out_;
  std::string_view text_;
  int depth_ = 0;
  Numbers numbers_;
  Variables variables_;
  int rounds_ = 0;                               // of loops that were written out, and calls of functions
  std::vector<std::vector<Whereabouts>> exits_;  // of the loops around: where a `break` or `continue` stands
  std::map<std::string, Function, std::less<>> functions_;
  int defined_ = 0;                           // how many bodies they have
  std::optional<Range> borrowed_;             // what made the value of a variable in the word that is read
  std::vector<std::uint32_t> substitutions_;  // where those that were read begin
};

// What runs in a shell of its own, or perhaps not, leaves `value` as it was.
class Restored {
 public:
  explicit Restored(Whereabouts& value) : value_(value), before_(value) {}
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  ~Restored() { value_ = std::move(before_); }

 private:
  Whereabouts& value_;
  Whereabouts before_;
};

// A label around what is read in this scope.
class Inside {
 public:
  Inside(std::vector<std::string>& labels, std::string label) : labels_(labels) { labels_.push_back(std::move(label)); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { labels_.pop_back(); }

 private:
  std::vector<std::string>& labels_;
};

class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --depth_; }

 private:
  int& depth_;
};

}  // namespace belljar::shell
