// A simple command goes into the script, followed by everything that it starts.
//
// The order in Script::commands is the order in which a person would tell it: what the substitutions of its
// words run, the command, what a wrapper starts. Inner commands are opened in turn, so `sudo env sh -c 'rm
// x'` becomes four entries; kMaxWrapperDepth ends the nesting. Shell text (`sh -c`, `eval`, a here-document
// into a shell) is read by a Reader of its own that writes to the same Script; all its spans are that of the
// word it came from, the only thing that a person can see in the original.
//
// Three rules keep this on the safe side:
//
// - Text that only the run decides is unread, whatever its fixed part says.
// - A shell other than bash may be dash under the name `sh`. Its text is checked for what the two read
//   differently (ShellDialect).
// - `eval` runs in this shell: the reader inside takes over the working directory, the exits of loops and the
//   place of `return`, and hands them back. Text that runs in this shell (`eval`, `trap`) may assign what it
//   likes, so arithmetic is doubted from then on.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "shell/grammar_check.h"
#include "shell/integer_variables.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/working_directory.h"
#include "shell/wrappers.h"

namespace belljar::shell {

// Of several that could read it, the run decides which does.
void Starts::give_input(SimpleCommand& command) {
  if (in_.input.empty() || !command.upstream.empty()) return;
  if (std::ranges::any_of(command.redirects, [](const Redirect& redirect) { return redirect.op.starts_with("<"); })) return;
  if (in_.input.size() > kMaxInput / (in_.out.commands.size() + 1))
    return unread(command.span, "its standard input is larger than is judged");
  command.redirects.push_back({.op = "<<", .target = {.text = std::string(in_.input), .span = command.span}});
}

void Starts::emit(SimpleCommand command) {
  if (in_.out.commands.size() >= kMaxCommands) {
    if (in_.out.unread.size() < kMaxCommands) unread(command.span, "the text has more commands than are judged");
    return;
  }
  give_input(command);
  command.directory = in_.cwd.directory;
  command.possible_directories = in_.cwd.possible_directories;
  // Substitutions of the command's words come before it: they run first.
  in_.out.commands.push_back(std::move(command));
  const SimpleCommand copy = in_.out.commands.back();
  open(copy, in_.wrapper_depth);
}

void Starts::open(const SimpleCommand& command, int level) {
  const std::size_t index = in_.out.commands.size() - 1;
  Unwrapped unwrapped = unwrap(command);
  if (reads_script_from_stdin(command)) {
    for (const Redirect& redirect : command.redirects) {
      if (redirect.op.starts_with("<<"))
        unwrapped.commands.push_back(
            {.kind = InnerCommand::Kind::kScript, .label = std::string(program_name(command)) + " <<", .script = redirect.target});
    }
  }
  if (unwrapped.commands.empty()) return;
  if (level >= kMaxWrapperDepth) return unread(command.span, "commands start commands deeper than is judged");
  in_.out.commands[index].starts_more = unwrapped.transparent;
  for (InnerCommand& what : unwrapped.commands) {
    if (in_.out.commands.size() >= kMaxCommands) return unread(command.span, "the text has more commands than are judged");
    if (what.kind == InnerCommand::Kind::kUnread) {
      unread(command.span, what.label);
    } else if (what.kind == InnerCommand::Kind::kScript) {
      open_script(what.script, command, what.label, level + 1);
    } else {
      open_command(std::move(what), command, level + 1);
    }
  }
}

void Starts::open_command(InnerCommand what, const SimpleCommand& command, int level) {
  SimpleCommand inner{.argv = std::move(what.argv),
                      .assignments = std::move(what.assignments),
                      .upstream = command.upstream,
                      .inside = command.inside,
                      .span = command.span,
                      .directory = what.directory ? directory_behind(command.directory, *what.directory) : command.directory};
  for (const std::string& each : command.possible_directories)
    add_directories(inner.possible_directories, {what.directory ? directory_behind(each, *what.directory) : each});
  inner.inside.push_back(what.label);
  const std::string_view name = program_name(inner);
  if ((name == "test" || name == "[") && looks_up_subscript(inner.argv))
    unread(inner.span, "the shell evaluates a text that only the run decides");
  for (const Redirect& redirect : command.redirects) {
    if (redirect.op.starts_with("<<")) inner.redirects.push_back(redirect);
  }
  in_.out.commands.push_back(inner);
  open(inner, level);
}

namespace {

// Of the text that `command` runs.
ShellDialect dialect_of(const SimpleCommand& command, ShellDialect here) noexcept {
  constexpr std::string_view kHere[] = {"eval", "trap", "alias", ".", "source"};
  const std::string_view name = program_name(command);
  if (std::ranges::find(kHere, name) != std::end(kHere)) return here;
  return name == "bash" || name == "rbash" ? ShellDialect::kBash : ShellDialect::kAnyShell;
}

bool may_have_functions(std::string_view text) noexcept {
  if (text.find("function") != std::string_view::npos) return true;
  for (std::size_t at = text.find('('); at != std::string_view::npos; at = text.find('(', at + 1)) {
    const std::size_t next = text.find_first_not_of(" \t", at + 1);
    if (next == std::string_view::npos || text[next] == ')') return true;
  }
  return false;
}

}  // namespace

void Starts::open_script(const Word& script, const SimpleCommand& command, const std::string& label, int level) {
  if (!script.fixed) return unread(script.span, format("`{}` gets a text that only the run decides", label));
  // `eval` and `trap` run in this shell and may assign what they like.
  if (!is_shell(program_name(command)) && !label.ends_with("-c")) in_.numbers.doubt_all();
  ReaderContext around{
      .inside = command.inside,
      .upstream = command.upstream,
      .outer = &script.span,
      .wrapper_depth = level,
      .dialect = dialect_of(command, in_.dialect),
      // Only a shell of its own, which inherits no function.
      .follows_variables = in_.follows_variables && is_shell(program_name(command)) && !may_have_functions(in_.text),
      .cwd = {.directory = command.directory, .possible_directories = command.possible_directories, .failed = {}},
      .own_exit = in_.own_exit,
      .deadline = in_.deadline};
  around.inside.push_back(label);
  // A shell that takes its text from there leaves what it starts the rest of it: nothing that can be told apart.
  if (!label.ends_with(" <<")) around.input = in_.input;
  // What stands before `eval` runs it here, or another program (`env`, `timeout`), which moves nothing.
  const auto first = command.inside.begin() + static_cast<std::ptrdiff_t>(std::min(in_.inside.size(), command.inside.size()));
  const bool here = label == "eval" && std::all_of(first, command.inside.end(), stays_here);
  if (here) {
    around.returns = in_.returns;
    around.exits = std::move(in_.exits);
  }
  Reader reader(in_.grammar, in_.out, script.text, std::move(around));
  reader.read();
  if (!here) return;
  in_.exits = std::move(reader.in.exits);
  in_.own_exit = reader.in.own_exit;
  const std::vector<std::string> failed = std::move(in_.cwd.failed);
  in_.cwd = std::move(reader.in.cwd);
  add_directories(in_.cwd.failed, failed);
}

}  // namespace belljar::shell
