// A script as the list of simple commands it may run: what command rules are judged on.
//
// The text is parsed by tree-sitter with the grammar of bash (docs/design/guard.md says which and where it comes from), and then
// read by an allow-list of node kinds. Whatever the grammar could not parse, whatever this file does not know, and every place
// where grammar and shell are known to disagree becomes an `Unread`: never "safe", never dropped. Wrappers (`sh -c`, `env`,
// `xargs`, `find -exec`, `sudo`, `eval` of a literal, a here-document into a shell ...) are opened, and what they start is a
// command of its own.
//
// This guides asking. It is no boundary: a program can run other programs without any shell, and only the sandbox holds it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belljar::shell {

// Bytes [begin, end) of the script. A command inside an opened wrapper has the span of the word that it came from.
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool operator==(const Span&) const = default;
};

// Indexes [first, last) into Script::commands.
struct Range {
  std::size_t first = 0;
  std::size_t last = 0;
  bool empty() const noexcept { return first == last; }
  bool operator==(const Range&) const = default;
};

struct Word {
  std::string text;      // after quotes and escapes are taken away; what only the run decides is left out
  bool fixed = true;     // `text` is exactly what the program gets
  bool splits = false;   // not fixed, and may become no word or several (unquoted `$x`, a pattern, `{a,b}`)
  bool pattern = false;  // holds `*`, `?`, `[` or braces outside quotes; `text` has them as written
  bool expands = false;  // holds a variable or a substitution, which may add words of any kind
  bool opens = false;    // begins with such a variable or substitution
  // Of one that is not fixed: how many bytes of `text` come first whatever the run adds behind them; and whether all it adds is a
  // number (`$$`), the home or names of files that a pattern finds.
  std::size_t lead = 0;
  bool bounded = false;
  std::string written;  // of one that is not fixed: as it stands in the script; empty: it stands nowhere (`xargs`)
  Span span;
  Range from;  // the commands of substitutions inside the word
  bool operator==(const Word&) const = default;
};

struct Redirect {
  std::string op;  // ">", ">>", "<", "2>&1" has op ">&" and target "1", "<<" here-document, "<<<" here-string
  Word target;     // of a here-document: its body
  bool operator==(const Redirect&) const = default;
};

struct Assignment {
  std::string name;
  Word value;
  bool operator==(const Assignment&) const = default;
};

// One simple command. `argv` is empty for a bare assignment or a bare redirection.
struct SimpleCommand {
  std::vector<Word> argv;
  std::vector<Assignment> assignments;
  std::vector<Redirect> redirects;
  std::vector<Range> upstream;      // commands whose output this one's standard input may carry
  std::vector<std::string> inside;  // outermost first: "substitution", "function f", "loop", "sh -c", "sudo"
  Span span;
  // The working directory as far as fixed `cd` words before it tell, absolute or from a home. Empty: not known, or unchanged.
  std::string directory;
  // Of the system or vital: where it may run instead, because a `cd` away from there may not have run or may have failed, or one to
  // there stands in a branch or a loop.
  std::vector<std::string> possible_directories;
  bool starts_more = false;  // a wrapper: what it starts is the next command, or an Unread
  bool operator==(const SimpleCommand&) const = default;
};

// A piece of the text that could not be read. Whoever judges the script has to ask a person about it.
struct Unread {
  std::string reason;
  Span span;
  bool operator==(const Unread&) const = default;
};

struct Script {
  std::vector<SimpleCommand> commands;  // in the order they are written
  std::vector<Unread> unread;
};

// Far above what a person or a model writes; beyond, the text is unread as a whole or from there on.
// tree-sitter counts the children of a node in 16 bits and frees the wrong memory beyond: so many bytes cannot have more.
inline constexpr std::size_t kMaxScript = (64U << 10) - 1;
inline constexpr std::size_t kMaxCommands = 4096;
inline constexpr int kMaxDepth = 128;               // of the syntax tree
inline constexpr std::size_t kMaxChildren = 16384;  // of one node of the tree
inline constexpr std::size_t kMaxFields = 1024;     // where children are told apart by field, for example the words of `for`
inline constexpr std::chrono::milliseconds kMaxTime{1000};  // of the processor, for the text and all that it opens
inline constexpr int kMaxWrapperDepth = 8;                  // wrappers inside wrappers
inline constexpr std::size_t kMaxInput = 8U << 20;          // of standard input, for all commands that may read it together

// Owns the parser, which is worth keeping between calls. One thread at a time.
class ShellReader {
 public:
  ShellReader();
  ~ShellReader();
  ShellReader(ShellReader&&) noexcept;
  ShellReader& operator=(ShellReader&&) noexcept;

  // Never fails: what cannot be read is in `unread`.
  // `input`: what the text finds on its standard input, as a here-document for whatever may read it.
  Script read(std::string_view text, std::string_view input = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The last component of the program's name: "rm" for "/bin/rm". Empty when there is no program or its name is not fixed.
std::string_view program_name(const SimpleCommand& command) noexcept;
// The word for people: as the script has it if only the run completes it, and "..." if it stands in no script.
std::string shown(const Word& word);
// `>(...)` or `<(...)` and nothing else: a pipe of the shell's own. What runs in it are commands of their own.
bool is_process(const Word& word) noexcept;
// The command as one line for people, quoted like a shell would need it.
std::string to_line(const SimpleCommand& command);

}  // namespace belljar::shell
