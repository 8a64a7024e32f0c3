// What variables hold where the text itself says it: `f=out.txt; echo x > "$f"` is judged as if it were written out.
//
// A value is followed from an assignment on, along the statements that surely run behind it in the same shell. It is forgotten at
// the end of whatever may not run, runs again or runs in a shell of its own (if, case, loops, &&, pipelines, subshells,
// substitutions, functions), when it was assigned in there. A variable that anything but a plain assignment, an `export` or a loop
// over words may set is never followed; and none is, in a text with what may set any (`eval`, `trap`, `.`, `&`, a program whose
// name is not plain ...). So a doubt makes a word one that only the run decides, never a safe one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"
#include "shell/script.h"

namespace belljar::shell {

class Variables {
 public:
  Variables(const Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {}

  // Of the tree that is read next. The tree is looked through once, at the first assignment.
  void of(TSNode root) noexcept { root_ = root; }
  // Nothing is followed in this text.
  void stop() noexcept { stopped_ = true; }

  void assign(std::string_view name, const Word& value);
  // nullptr when only the run decides.
  const Word* find(std::string_view name) const;
  bool follows(std::string_view name);
  // What the bytes of `node` assign.
  void forget(TSNode node);
  // What runs at a time of its own knows nothing: a function's body. `resume` takes what `suspend` gave.
  using Values = std::map<std::string, Word, std::less<>>;
  Values suspend() { return std::exchange(values_, {}); }
  void resume(Values values) { values_ = std::move(values); }
  // An unquoted value is one word as it stands: no text says where words end.
  bool splits_as_usual() const noexcept { return text_.find("IFS") == std::string_view::npos; }

 private:
  void scan();
  void inspect(TSNode node, TSNode parent);
  void inspect_command(TSNode node);
  void inspect_declaration(TSNode node);
  std::string_view raw(TSNode node) const noexcept;
  void doubt_names(std::string_view letters);
  void doubt_changed(std::string_view letters);
  void doubt_between(std::string_view open, std::string_view close);

  const Grammar& grammar_;
  std::string_view text_;
  TSNode root_{};
  bool scanned_ = false;
  bool stopped_ = false;
  std::uint32_t function_end_ = 0;  // of the functions met so far
  Values values_;
  std::set<std::string, std::less<>> doubted_;
  std::vector<std::pair<std::uint32_t, std::string_view>> assigned_;  // where, in order
};

}  // namespace belljar::shell
