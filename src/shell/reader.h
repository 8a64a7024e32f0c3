// How script.h reads: one Reader for each text, made of parts that call each other as the grammar nests. A statement holds words, a
// word substitutions, a substitution statements. Each part is a class with a file of its own (reader_*.cc) and keeps what no other
// needs; what all need is the Reading.
//
// The tree is walked once, in the order a shell would run it, and a node is read only where its kind is known: all else is unread.
// On the way three things are known as far as the text says them, and each is forgotten at the end of whatever may not have run
// (variables.h, working_directory.h, integer_variables.h): what variables hold, where the shell is, and which of its names are
// numbers. A loop over words that are known, a second turn of a loop that moves, and a function that is called from elsewhere are
// read again instead of being joined in a lattice: the texts are short, what is read again is judged by the same checks, and
// kMaxRounds ends it.
//
// A command goes into the script when its words were read, so what its substitutions run stands before it; what it starts
// (wrappers.h) follows it, and a text that it hands to a shell is read by a Reader of its own, which writes to the same Script.
#pragma once

#include <tree_sitter/api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"
#include "shell/grammar_check.h"
#include "shell/integer_variables.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/working_directory.h"
#include "shell/wrappers.h"

namespace belljar::shell {

struct Reader;

class ReaderPart {
 public:
  ReaderPart(ReaderState& in, Reader& with) : in_(in), with_(with) {}
  ReaderPart(const ReaderPart&) = delete;
  ReaderPart& operator=(const ReaderPart&) = delete;

 protected:
  ~ReaderPart() = default;
  Kind kind(TSNode node) const noexcept { return in_.kind(node); }
  Span span(TSNode node) const noexcept { return in_.span(node); }
  std::string_view raw(TSNode node) const noexcept { return in_.raw(node); }
  std::string_view between(std::size_t begin, std::size_t end) const noexcept { return in_.between(begin, end); }
  void unread(Span where, std::string reason) { in_.unread(where, std::move(reason)); }
  void doubt(TSNode node) { unread(span(node), "the shell evaluates a text that only the run decides"); }
  bool full(TSNode node) { return in_.full(node); }
  std::vector<Child> children(TSNode node, bool blank_between = true) { return in_.children(node, blank_between); }

  ReaderState& in_;
  Reader& with_;
};

// Which part reads a statement.
class Statements : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  void read(TSNode node);
  void read_all(TSNode node);
};

// Lists, branches, loops and pipelines: what surely runs, what perhaps, and where the shell is behind it.
class Flow : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  // One after the other. False when the last of them surely leaves the shell: nothing comes behind it.
  bool sequence(const std::vector<Child>& kids);
  void branches(TSNode node);
  void loop(TSNode node);
  void pipeline(TSNode node);

 private:
  bool ends_shell(TSNode node) const noexcept;
  void conditional(TSNode node);
  bool branch(TSNode node, std::vector<WorkingDirectory>& ends);
  void cases(TSNode node);
  void chain(TSNode node, std::vector<TSNode>& doubtful);
  bool loops_over_numbers(const std::vector<Child>& kids) const noexcept;
  bool rounds(TSNode body, std::string_view name, const std::vector<Word>& values);
  void second_turn(TSNode node, const std::vector<Child>& kids);
};

// Functions of the text: their definitions, and where calls of them and `return` lead.
class Functions : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  void function(TSNode node);
  void call(const SimpleCommand& command);
  void returned();
  void leaves_by(const SimpleCommand& command);

 private:
  // All bodies that a text gives a name.
  struct Function {
    std::vector<TSNode> bodies;
    bool moves = false;                                               // leaves its caller elsewhere
    std::vector<std::pair<WorkingDirectory, WorkingDirectory>> read;  // where it was read from, and where that led
    bool open = false;                                                // is being read
  };
  void define(const std::string& name, TSNode body, const WorkingDirectory& before, int defined_before);
  void body(TSNode node);

  std::map<std::string, Function, std::less<>> functions_;
  int defined_ = 0;  // how many bodies they have
};

// Simple commands, `export` and its kind, and what redirections stand around.
class Commands : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  void command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more);
  void declaration(TSNode node);
  void redirected(TSNode node);
};

// A command goes into the script, and with it what it starts.
class Starts : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  void emit(SimpleCommand command);

 private:
  void give_input(SimpleCommand& command);
  void open(const SimpleCommand& command, int level);
  void open_command(InnerCommand what, const SimpleCommand& command, int level);
  void open_script(const Word& script, const SimpleCommand& command, const std::string& label, int level);
};

class Redirections : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  Assignment assignment(TSNode node);
  void redirect(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more);
  void here_string(TSNode node, std::vector<Redirect>& redirects);
  void here_document(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more, std::vector<TSNode>& behind);

 private:
  void array(TSNode node);
  Word here_body(TSNode node, bool literal, bool strip);
};

// Code inside of words: substitutions that run, and texts that the shell evaluates (arithmetic, tests,
// subscripts).
class Expressions : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  void read(TSNode node);
  void evaluated(TSNode node);
  void test(TSNode node);
  Word test_word(TSNode node, const Word& word);
  bool is_number(TSNode node) const noexcept { return kind(node) == Kind::kArithmetic || is_count(without_blanks(raw(node))); }
  // Where the substitutions begin that were read, in order.
  std::vector<std::uint32_t> substitutions() const;

 private:
  void parameter(TSNode node);
  void test_pieces(TSNode node, std::vector<TSNode>& pieces);
  void evaluated_letters(TSNode node);

  std::vector<std::uint32_t> substitutions_;
};

class Words : public ReaderPart {
 public:
  using ReaderPart::ReaderPart;
  Word read(TSNode node);
  void add_expansion(Word& word, TSNode node, bool quoted);

 private:
  void add_word(Word& word, TSNode node);
  void add_string(Word& word, TSNode node);
  bool add_value(Word& word, std::string_view expansion, bool quoted);
  void add_concatenation(Word& word, TSNode node);

  std::optional<Range> borrowed_;  // what made the value of a variable in the word that is read
};

// One text. A wrapper with a script of its own makes another Reader that writes to the same Script.
struct Reader {
  Reader(Grammar& grammar, Script& out, std::string_view text, ReaderContext around) : in(grammar, out, text, std::move(around)) {}

  void read();

  ReaderState in;
  Statements statements{in, *this};
  Flow flow{in, *this};
  Functions functions{in, *this};
  Commands commands{in, *this};
  Starts starts{in, *this};
  Redirections redirections{in, *this};
  Expressions expressions{in, *this};
  Words words{in, *this};

 private:
  void check(const GrammarCheck& letters);
};

}  // namespace belljar::shell
