// Which variables hold an integer for sure.
//
// Arithmetic evaluates what a variable holds, again and again: with x='a[$(rm -r y)]', $((x)), ${y:x}, ${y[x]} and [[ x -eq 1 ]]
// run rm (bash(1), ARITHMETIC EVALUATION). So a name may stand in arithmetic only where the same text gives it nothing but
// integers.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shell/script.h"

namespace belljar::shell {

class IntegerVariables {
 public:
  // The text gives `name` a value; `integer` when that is an integer whatever happens.
  void assign(std::string_view name, bool integer);
  // `name` stands where its value is evaluated.
  void evaluate(std::string_view name, Span where);
  // Whatever is assigned, a text that is opened may assign otherwise.
  void doubt_all() noexcept { doubt_all_ = true; }

  // A place that evaluates what nobody can know before the run. `script`: all that was read, where `read x` and the like count.
  std::optional<Span> doubtful(const Script& script) const;

 private:
  std::map<std::string, bool, std::less<>> assigned_;
  std::map<std::string, Span, std::less<>> evaluated_;
  bool doubt_all_ = false;
};

// "12", "-3", "": what arithmetic takes for a number without looking further.
bool is_integer(std::string_view text) noexcept;
// A name of a variable, no subscript behind it.
bool is_name(std::string_view text) noexcept;
// A variable that the shell itself keeps as an integer: what it is given is evaluated at once (declare -pi).
bool is_integer_variable(std::string_view name) noexcept;
// The text of `$?`, `${#x}` and their kind: a number whatever happens.
bool is_count(std::string_view text) noexcept;
// `argv` of `test` or `[` may look up a variable by `-v`, whose subscript is evaluated too.
bool looks_up_subscript(std::span<const Word> argv) noexcept;

// `argv` of `printf` may set a variable: by -v, or by a %n in its format.
bool printf_sets(std::span<const Word> argv) noexcept;

}  // namespace belljar::shell
