#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"
#include "shell/integer_variables.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/variables.h"
#include "shell/wrappers.h"

namespace belljar::shell {

void Commands::command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more) {
  const auto kids = children(node);
  if (kids.size() == 1 && redirects.empty() && more.empty() && raw(node).starts_with("((")) {  // `if ((i < 3))`
    for (const Child& name : children(kids[0].node)) with_.expressions.read(name.node);
    return;
  }
  SimpleCommand command{.upstream = in_.upstream, .inside = in_.inside, .span = span(node)};
  std::vector<Redirect> own;
  std::vector<Word> late;
  std::vector<Word> tested{{}};  // `test` and its arguments
  bool is_test = false;
  for (const Child& child : kids) {
    switch (kind(child.node)) {
      case Kind::kAssignment:
        command.assignments.push_back(with_.redirections.assignment(child.node));
        break;
      case Kind::kFileRedirect:
        with_.redirections.redirect(child.node, own, late);
        break;
      case Kind::kHereString:
        with_.redirections.here_string(child.node, own);
        break;
      case Kind::kCommandName:
        if (is_reserved(raw(child.node)))
          unread(span(child.node), "the grammar takes a word of the shell's own grammar for a command");
        for (const Child& name : children(child.node)) command.argv.push_back(with_.words.read(name.node));
        is_test = program_name(command) == "test" || program_name(command) == "[";
        break;
      case Kind::kToken:  // a lone `$`, `==`
        command.argv.push_back({.text = std::string(raw(child.node)), .span = span(child.node)});
        break;
      case Kind::kComment:
        break;
      default:
        if (is_word(kind(child.node))) {
          command.argv.push_back(with_.words.read(child.node));
          if (is_test) tested.push_back(with_.expressions.test_word(child.node, command.argv.back()));
          break;
        }
        unread(span(child.node), "the shell's grammar does not cover this");
    }
  }
  if (looks_up_subscript(tested)) doubt(node);
  if (!late.empty()) unread(command.span, "words stand between a redirection and the command");
  command.redirects = std::move(own);
  std::ranges::move(redirects, std::back_inserter(command.redirects));
  std::ranges::move(more, std::back_inserter(command.argv));
  const SimpleCommand run = command;
  with_.starts.emit(std::move(command));
  with_.functions.leaves_by(run);
  in_.move(run);
  with_.functions.call(run);
}

// export A=1 B: a command whose arguments may be assignments.
void Commands::declaration(TSNode node) {
  SimpleCommand command{.upstream = in_.upstream, .inside = in_.inside, .span = span(node)};
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kAssignment) {
      command.assignments.push_back(with_.redirections.assignment(child.node));
    } else if (kind(child.node) == Kind::kToken || kind(child.node) == Kind::kName) {
      command.argv.push_back({.text = std::string(raw(child.node)), .span = span(child.node)});
    } else {
      command.argv.push_back(with_.words.read(child.node));
    }
  }
  const bool options = std::any_of(command.argv.begin() + !command.argv.empty(), command.argv.end(),
                                   [](const Word& word) { return !word.fixed || word.text.starts_with('-'); });
  for (const Assignment& assignment : command.assignments) {
    if (options) in_.numbers.assign(assignment.name, false);  // `declare -n i=x`: another variable's value
    in_.variables.assign(assignment.name, assignment.value);
  }
  with_.starts.emit(std::move(command));
}

void Commands::redirected(TSNode node) {
  std::vector<Redirect> redirects;
  std::vector<Word> more;  // words of the command that stand behind a redirection
  std::vector<TSNode> behind;
  const TSNode* body = nullptr;
  const auto kids = children(node);
  for (const Child& child : kids) {
    switch (kind(child.node)) {
      case Kind::kFileRedirect:
        with_.redirections.redirect(child.node, redirects, more);
        break;
      case Kind::kHereDoc:
        with_.redirections.here_document(child.node, redirects, more, behind);
        break;
      case Kind::kHereString:
        with_.redirections.here_string(child.node, redirects);
        break;
      default:
        if (body != nullptr) unread(span(child.node), "the shell's grammar does not cover this");
        body = &child.node;
    }
  }
  const std::size_t first = in_.out.commands.size();
  const bool simple = body != nullptr && kind(*body) == Kind::kCommand;
  if (simple) {
    command(*body, std::move(redirects), std::move(more));
  } else {
    // The redirections of a group: a command of their own, before what they hold.
    SimpleCommand command{.argv = std::move(more),
                          .redirects = std::move(redirects),
                          .upstream = in_.upstream,
                          .inside = in_.inside,
                          .span = span(node)};
    with_.starts.emit(std::move(command));
    const auto before = in_.upstream;
    in_.upstream.push_back({first, in_.out.commands.size()});
    if (body != nullptr) with_.statements.read(*body);
    in_.upstream = before;
  }
  // What the grammar hangs on a here-document: `cat <<E | sh`, `cat <<E && x`.
  const auto before = in_.upstream;
  for (const TSNode next : behind) {
    in_.upstream.push_back({first, in_.out.commands.size()});
    with_.statements.read(next);
    in_.variables.forget(next);
  }
  in_.upstream = before;
}

}  // namespace belljar::shell
