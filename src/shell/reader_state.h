// What all parts of a Reader (reader.h) share while one text is read: the tree, where its commands run, what is known of its
// variables, and the limits.
#pragma once

#include <tree_sitter/api.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/processor_time.h"
#include "shell/grammar.h"
#include "shell/grammar_check.h"
#include "shell/integer_variables.h"
#include "shell/script.h"
#include "shell/variables.h"
#include "shell/working_directory.h"

namespace belljar::shell {

struct Child {
  TSNode node;
  std::string_view field;
};

// What surrounds a text: nothing for the script itself; for a text that a command of another one runs, that command.
struct ReaderContext {
  std::vector<std::string> inside;  // SimpleCommand::inside of what comes next
  std::vector<Range> upstream;      // SimpleCommand::upstream of what comes next
  const Span* outer = nullptr;      // the word of the outermost text that this one stands in; none: this is it
  int wrapper_depth = 0;            // wrappers around
  std::string_view input;           // standard input
  ShellDialect dialect = ShellDialect::kBash;
  bool follows_variables = true;
  WorkingDirectory cwd;  // where the next command runs
  // Of the function that is read: where a `return` stands. None: there it does not leave.
  std::vector<WorkingDirectory>* returns = nullptr;
  std::vector<std::vector<WorkingDirectory>> exits;  // of the loops around: where a `break` or `continue` stands
  bool own_exit = true;  // `exit` and `return` are the shell's own: no function of the text has their name
  std::chrono::nanoseconds deadline = processor_time() + kMaxTime;
};

struct ReaderState : ReaderContext {
  static constexpr int kMaxRounds = 64;

  ReaderState(Grammar& its_grammar, Script& script, std::string_view its_text, ReaderContext around)
      : ReaderContext(std::move(around)), grammar(its_grammar), out(script), text(its_text), variables(its_grammar, its_text) {}

  Kind kind(TSNode node) const noexcept { return grammar.kind(node); }
  std::string_view between(std::size_t begin, std::size_t end) const noexcept { return text.substr(begin, end - begin); }
  std::string_view raw(TSNode node) const noexcept { return between(ts_node_start_byte(node), ts_node_end_byte(node)); }
  // For people: bytes of this text as a place of the outermost one.
  Span shown_at(Span bytes) const noexcept { return outer != nullptr ? *outer : bytes; }
  Span span(TSNode node) const noexcept { return shown_at({ts_node_start_byte(node), ts_node_end_byte(node)}); }
  Span whole() const noexcept;

  void unread(Span where, std::string reason);
  // A limit is reached, which is noted: `node` is not read.
  bool full(TSNode node);
  // In the order written; what stands between them must be blank, and what the grammar could not place is unread.
  std::vector<Child> children(TSNode node, bool blank_between = true);

  // A statement has ended. Behind `;` nobody knows whether it succeeded.
  void settle();
  // The statement that began in the directory `before` may not have run.
  void left(const WorkingDirectory& before);
  // `command` has run in this shell.
  void move(const SimpleCommand& command);

  Grammar& grammar;
  Script& out;
  std::string_view text;
  int depth = 0;   // in the tree
  int rounds = 0;  // of loops that were written out, and calls of functions
  IntegerVariables numbers;
  Variables variables;
};

// Puts `value` back at the end of the scope: for statements that run in a shell of their own, or perhaps not at all.
class RestoreOnExit {
 public:
  explicit RestoreOnExit(WorkingDirectory& value) : value_(value), before_(value) {}
  RestoreOnExit(const RestoreOnExit&) = delete;
  RestoreOnExit& operator=(const RestoreOnExit&) = delete;
  ~RestoreOnExit() { value_ = std::move(before_); }

 private:
  WorkingDirectory& value_;
  WorkingDirectory before_;
};

// A label around what is read in this scope.
class LabelScope {
 public:
  LabelScope(std::vector<std::string>& labels, std::string label) : labels_(labels) { labels_.push_back(std::move(label)); }
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;
  ~LabelScope() { labels_.pop_back(); }

 private:
  std::vector<std::string>& labels_;
};

class DepthScope {
 public:
  explicit DepthScope(int& depth) : depth_(depth) { ++depth_; }
  DepthScope(const DepthScope&) = delete;
  DepthScope& operator=(const DepthScope&) = delete;
  ~DepthScope() { --depth_; }

 private:
  int& depth_;
};

}  // namespace belljar::shell
