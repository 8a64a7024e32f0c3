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
void Starts::give_input(Part& part) {
  if (in_.input.empty() || !part.upstream.empty()) return;
  if (std::ranges::any_of(part.redirects, [](const Redirect& redirect) { return redirect.op.starts_with("<"); })) return;
  if (in_.input.size() > kMaxInput / (in_.out.parts.size() + 1))
    return unread(part.span, "its standard input is larger than is judged");
  part.redirects.push_back({.op = "<<", .target = {.text = std::string(in_.input), .span = part.span}});
}

void Starts::emit(Part part) {
  if (in_.out.parts.size() >= kMaxParts) {
    if (in_.out.unread.size() < kMaxParts) unread(part.span, "the text has more commands than are judged");
    return;
  }
  give_input(part);
  part.directory = in_.place.directory;
  part.perhaps = in_.place.perhaps;
  // Substitutions of the part's words come before it: they run first.
  in_.out.parts.push_back(std::move(part));
  const Part copy = in_.out.parts.back();
  open(copy, in_.opened);
}

void Starts::open(const Part& part, int level) {
  const std::size_t index = in_.out.parts.size() - 1;
  Opening opening = open_wrapper(part);
  if (reads_script_from_stdin(part)) {
    for (const Redirect& redirect : part.redirects) {
      if (redirect.op.starts_with("<<"))
        opening.opened.push_back(
            {.kind = Opened::Kind::kScript, .label = std::string(program_name(part)) + " <<", .script = redirect.target});
    }
  }
  if (opening.opened.empty()) return;
  if (level >= kMaxOpened) return unread(part.span, "commands start commands deeper than is judged");
  in_.out.parts[index].starts_more = opening.transparent;
  for (Opened& what : opening.opened) {
    if (in_.out.parts.size() >= kMaxParts) return unread(part.span, "the text has more commands than are judged");
    if (what.kind == Opened::Kind::kUnread) {
      unread(part.span, what.label);
    } else if (what.kind == Opened::Kind::kScript) {
      open_script(what.script, part, what.label, level + 1);
    } else {
      open_command(std::move(what), part, level + 1);
    }
  }
}

void Starts::open_command(Opened what, const Part& part, int level) {
  Part inner{.argv = std::move(what.argv),
             .assignments = std::move(what.assignments),
             .upstream = part.upstream,
             .inside = part.inside,
             .span = part.span,
             .directory = what.directory ? directory_behind(part.directory, *what.directory) : part.directory};
  for (const std::string& each : part.perhaps)
    add_places(inner.perhaps, {what.directory ? directory_behind(each, *what.directory) : each});
  inner.inside.push_back(what.label);
  const std::string_view name = program_name(inner);
  if ((name == "test" || name == "[") && looks_up_subscript(inner.argv))
    unread(inner.span, "the shell evaluates a text that only the run decides");
  for (const Redirect& redirect : part.redirects) {
    if (redirect.op.starts_with("<<")) inner.redirects.push_back(redirect);
  }
  in_.out.parts.push_back(inner);
  open(inner, level);
}

namespace {

// Of the text that `part` runs.
ShellDialect dialect_of(const Part& part, ShellDialect here) noexcept {
  constexpr std::string_view kHere[] = {"eval", "trap", "alias", ".", "source"};
  const std::string_view name = program_name(part);
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

void Starts::open_script(const Word& script, const Part& part, const std::string& label, int level) {
  if (!script.fixed) return unread(script.span, format("`{}` gets a text that only the run decides", label));
  // `eval` and `trap` run in this shell and may assign what they like.
  if (!is_shell(program_name(part)) && !label.ends_with("-c")) in_.numbers.doubt_all();
  Around around{.inside = part.inside,
                .upstream = part.upstream,
                .outer = &script.span,
                .opened = level,
                .dialect = dialect_of(part, in_.dialect),
                // Only a shell of its own, which inherits no function.
                .follows_variables = in_.follows_variables && is_shell(program_name(part)) && !may_have_functions(in_.text),
                .place = {.directory = part.directory, .perhaps = part.perhaps, .failed = {}},
                .own_exit = in_.own_exit,
                .deadline = in_.deadline};
  around.inside.push_back(label);
  // A shell that takes its text from there leaves what it starts the rest of it: nothing that can be told apart.
  if (!label.ends_with(" <<")) around.input = in_.input;
  // What stands before `eval` runs it here, or another program (`env`, `timeout`), which moves nothing.
  const auto first = part.inside.begin() + static_cast<std::ptrdiff_t>(std::min(in_.inside.size(), part.inside.size()));
  const bool here = label == "eval" && std::all_of(first, part.inside.end(), stays_here);
  if (here) {
    around.returns = in_.returns;
    around.exits = std::move(in_.exits);
  }
  Reader reader(in_.grammar, in_.out, script.text, std::move(around));
  reader.read();
  if (!here) return;
  in_.exits = std::move(reader.in.exits);
  in_.own_exit = reader.in.own_exit;
  const std::vector<std::string> failed = std::move(in_.place.failed);
  in_.place = std::move(reader.in.place);
  add_places(in_.place.failed, failed);
}

}  // namespace belljar::shell
