#include <tree_sitter/api.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "shell/grammar.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/variables.h"

namespace belljar::shell {

void Statements::read(TSNode node) {
  const DepthScope deeper(in_.depth);
  if (full(node)) return;
  switch (kind(node)) {
    case Kind::kToken:
      return;
    case Kind::kComment:
      // A `#` inside a word is a letter to the shell.
      if (const std::size_t at = ts_node_start_byte(node);
          at > 0 && std::string_view(" \t\n;&|()").find(in_.text[at - 1]) == std::string_view::npos)
        unread(span(node), "shell and grammar disagree where a comment begins");
      return;
    case Kind::kGroup:
      if (raw(node).starts_with("((")) doubt(node);  // arithmetic to the shell
      return with_.flow.branches(node);
    case Kind::kLoop:
      return with_.flow.loop(node);
    case Kind::kPipeline:
      return with_.flow.pipeline(node);
    case Kind::kCommand:
      return with_.commands.command(node, {}, {});
    case Kind::kRedirected:
      return with_.commands.redirected(node);
    case Kind::kFunction:
      return with_.functions.function(node);
    case Kind::kDeclaration:
      return with_.commands.declaration(node);
    case Kind::kAssignment: {
      SimpleCommand command{.inside = in_.inside, .span = span(node)};
      command.assignments.push_back(with_.redirections.assignment(node));
      in_.variables.assign(command.assignments[0].name, command.assignments[0].value);
      return with_.starts.emit(std::move(command));
    }
    case Kind::kTest:
      return with_.expressions.test(node);
    case Kind::kName:
      return with_.expressions.read(node);
    default:
      // `for x in WORDS`, `case WORD in`: only their substitutions run anything
      if (is_word(kind(node))) return with_.expressions.read(node);
      unread(span(node), "the shell's grammar does not cover this");
  }
}

// One after the other, as a text or a substitution holds them.
void Statements::read_all(TSNode node) { (void)with_.flow.sequence(children(node)); }

}  // namespace belljar::shell
