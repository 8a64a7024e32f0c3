#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"
#include "shell/numbers.h"
#include "shell/reader.h"
#include "shell/script.h"
#include "shell/whereabouts.h"
#include "shell/wrappers.h"

namespace belljar::shell {

void Reader::statement(TSNode node) {
  const Deeper deeper(depth_);
  if (full(node)) return;
  switch (kind(node)) {
    case Kind::kToken:
      return;
    case Kind::kComment:
      // A `#` inside a word is a letter to the shell.
      if (const std::size_t at = ts_node_start_byte(node);
          at > 0 && std::string_view(" \t\n;&|()").find(text_[at - 1]) == std::string_view::npos)
        unread(span(node), "shell and grammar disagree where a comment begins");
      return;
    case Kind::kGroup:
      if (raw(node).starts_with("((")) doubt(node);  // arithmetic to the shell
      return branches(node);
    case Kind::kLoop:
      return loop(node);
    case Kind::kPipeline:
      return pipeline(node);
    case Kind::kCommand:
      return command(node, {}, {});
    case Kind::kRedirected:
      return redirected(node);
    case Kind::kFunction:
      return function(node);
    case Kind::kDeclaration:
      return declaration(node);
    case Kind::kAssignment: {
      Part part{.inside = inside, .span = span(node)};
      part.assignments.push_back(assignment(node));
      variables_.assign(part.assignments[0].name, part.assignments[0].value);
      return emit(std::move(part));
    }
    case Kind::kTest:
      return test(node);
    case Kind::kName:
      return expression(node);
    default:
      // `for x in WORDS`, `case WORD in`: only their substitutions run anything
      if (is_word(kind(node))) return expression(node);
      unread(span(node), "the shell's grammar does not cover this");
  }
}

void Reader::statements(TSNode node) {
  const auto kids = children(node);
  for (std::size_t i = 0; i < kids.size(); ++i) {
    std::optional<Restored> background;
    if (i + 1 < kids.size() && raw(kids[i + 1].node) == "&") background.emplace(place);
    statement(kids[i].node);
    if (kind(kids[i].node) != Kind::kToken) settle();
  }
}

// Behind `;` a statement may have failed.
void Reader::settle() {
  add_places(place.perhaps, std::exchange(place.failed, {}));
  constexpr std::size_t kMaxPlaces = 8;
  if (place.perhaps.size() <= kMaxPlaces) return;
  place.perhaps.resize(kMaxPlaces);
  const auto end = static_cast<std::uint32_t>(text_.size());
  unread(outer != nullptr ? *outer : Span{0, end}, "the text may run in more directories than are judged");
}

// What began at `before` may not have run.
void Reader::left(const Whereabouts& before) {
  if (before.directory != place.directory || before.perhaps != place.perhaps) add_places(place.failed, all_of(before));
}

void Reader::move(const Part& part) {
  if (!is_cd(part)) return;
  const Whereabouts before = place;
  place.directory = directory_after(part, before.directory);
  place.perhaps.clear();
  std::vector<std::string> moved;
  for (const std::string& each : before.perhaps) moved.push_back(directory_after(part, each));
  std::erase(moved, place.directory);
  add_places(place.perhaps, moved);
  // It does not run where a redirection fails.
  const bool opens = std::ranges::any_of(part.redirects, [](const Redirect& each) {
    return each.target.text != "/dev/null" && each.target.text != "1" && each.target.text != "2";
  });
  if (opens || !surely_exists(place.directory)) add_places(place.failed, all_of(before));
}

void Reader::redirected(TSNode node) {
  std::vector<Redirect> redirects;
  std::vector<Word> more;  // words of the command that stand behind a redirection
  std::vector<TSNode> behind;
  const TSNode* body = nullptr;
  const auto kids = children(node);
  for (const Child& child : kids) {
    switch (kind(child.node)) {
      case Kind::kFileRedirect:
        redirect(child.node, redirects, more);
        break;
      case Kind::kHereDoc:
        here_document(child.node, redirects, more, behind);
        break;
      case Kind::kHereString:
        here_string(child.node, redirects);
        break;
      default:
        if (body != nullptr) unread(span(child.node), "the shell's grammar does not cover this");
        body = &child.node;
    }
  }
  const std::size_t first = out_.parts.size();
  const bool simple = body != nullptr && kind(*body) == Kind::kCommand;
  if (simple) {
    command(*body, std::move(redirects), std::move(more));
  } else {
    // The redirections of a group: a part of their own, before what they hold.
    Part part{
        .argv = std::move(more), .redirects = std::move(redirects), .upstream = upstream, .inside = inside, .span = span(node)};
    emit(std::move(part));
    const auto before = upstream;
    upstream.push_back({first, out_.parts.size()});
    if (body != nullptr) statement(*body);
    upstream = before;
  }
  // What the grammar hangs on a here-document: `cat <<E | sh`, `cat <<E && x`.
  const auto before = upstream;
  for (const TSNode next : behind) {
    upstream.push_back({first, out_.parts.size()});
    statement(next);
    variables_.forget(next);
  }
  upstream = before;
}

// Of a function, from `place`, which ends where it or a `return` in it does.
void Reader::body(TSNode node) {
  std::vector<Whereabouts> returned;
  auto values = variables_.suspend();
  auto outside = std::exchange(exits_, {});
  auto* const caller = std::exchange(returns, &returned);
  statement(node);
  settle();
  returns = caller;
  exits_ = std::move(outside);
  variables_.resume(std::move(values));
  returned.insert(returned.begin(), place);
  place = joined(returned);
  settle();
}

void Reader::function(TSNode node) {
  const Whereabouts outside = place;
  place.failed.clear();
  const Whereabouts before = place;
  const int defined_before = defined_;
  std::string name;
  std::optional<TSNode> defined;
  std::vector<Redirect> redirects;
  std::vector<Word> more;
  for (const Child& child : children(node)) {
    if (child.field == "name") {
      name = raw(child.node);
    } else if (child.field == "redirect" && kind(child.node) == Kind::kFileRedirect) {
      redirect(child.node, redirects, more);
      emit({.redirects = std::move(redirects), .inside = inside, .span = span(child.node)});
      redirects.clear();
    } else if (kind(child.node) != Kind::kToken) {
      const Inside label(inside, "function " + name);
      body(child.node);
      defined = child.node;
    }
  }
  if (defined) define(name, *defined, before, defined_before);
  place = outside;
}

// `body` was read from `before`, when there were `defined_before`, and led to `place`.
void Reader::define(const std::string& name, TSNode body, const Whereabouts& before, int defined_before) {
  Function& function = functions_[name];
  function.moves = function.moves || place != before;
  if (std::ranges::any_of(function.bodies, [&](TSNode each) { return ts_node_eq(each, body); })) return;
  const bool complete = defined_ == defined_before && function.bodies.empty();
  ++defined_;
  for (auto& [other, known] : functions_) known.read.clear();  // they may call it
  function.bodies.push_back(body);
  if (complete) function.read.emplace_back(before, place);
}

// A function is read where it is defined; once more where it is called from another place, or reads what a pipe brings. The text
// does not say that it was defined, and not `unset` since: where it leads is no sure place.
void Reader::call(const Part& part) {
  const auto words = words_called(part);
  const auto found = words.empty() || !words[0].fixed ? functions_.end() : functions_.find(words[0].text);
  if (found == functions_.end() || found->second.open) return;
  Function& function = found->second;
  const std::vector<std::string> failed = std::exchange(place.failed, {});
  const Whereabouts before = place;
  const auto known = std::ranges::find(function.read, place, &std::pair<Whereabouts, Whereabouts>::first);
  if (part.upstream.empty() && known != function.read.end()) {
    if (function.moves) place = known->second;
  } else {
    if (++rounds_ > kMaxRounds) return unread(part.span, "the text calls its functions from more places than are judged");
    function.open = true;
    const Inside label(inside, "call of " + found->first);
    const int defined_before = defined_;
    std::vector<Whereabouts> ends;
    for (const TSNode each : std::vector(function.bodies)) {
      place = before;
      body(each);
      ends.push_back(place);
    }
    place = joined(ends);
    function.moves = function.moves || place != before;
    if (defined_ == defined_before) function.read.emplace_back(before, place);
    function.open = false;
  }
  add_places(place.failed, failed);
  if (place != before) add_places(place.failed, all_of(before));
}

// export A=1 B: a command whose arguments may be assignments.
void Reader::declaration(TSNode node) {
  Part part{.upstream = upstream, .inside = inside, .span = span(node)};
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kAssignment) {
      part.assignments.push_back(assignment(child.node));
    } else if (kind(child.node) == Kind::kToken || kind(child.node) == Kind::kName) {
      part.argv.push_back({.text = std::string(raw(child.node)), .span = span(child.node)});
    } else {
      part.argv.push_back(word(child.node));
    }
  }
  const bool options = std::any_of(part.argv.begin() + !part.argv.empty(), part.argv.end(),
                                   [](const Word& word) { return !word.fixed || word.text.starts_with('-'); });
  for (const Assignment& assignment : part.assignments) {
    if (options) numbers_.assign(assignment.name, false);  // `declare -n i=x`: another variable's value
    variables_.assign(assignment.name, assignment.value);
  }
  emit(std::move(part));
}

void Reader::command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more) {
  const auto kids = children(node);
  if (kids.size() == 1 && redirects.empty() && more.empty() && raw(node).starts_with("((")) {  // `if ((i < 3))`
    for (const Child& name : children(kids[0].node)) expression(name.node);
    return;
  }
  Part part{.upstream = upstream, .inside = inside, .span = span(node)};
  std::vector<Redirect> own;
  std::vector<Word> late;
  std::vector<Word> tested{{}};  // `test` and its arguments
  bool is_test = false;
  for (const Child& child : kids) {
    switch (kind(child.node)) {
      case Kind::kAssignment:
        part.assignments.push_back(assignment(child.node));
        break;
      case Kind::kFileRedirect:
        redirect(child.node, own, late);
        break;
      case Kind::kHereString:
        here_string(child.node, own);
        break;
      case Kind::kCommandName:
        if (is_reserved(raw(child.node)))
          unread(span(child.node), "the grammar takes a word of the shell's own grammar for a command");
        for (const Child& name : children(child.node)) part.argv.push_back(word(name.node));
        is_test = program_name(part) == "test" || program_name(part) == "[";
        break;
      case Kind::kToken:  // a lone `$`, `==`
        part.argv.push_back({.text = std::string(raw(child.node)), .span = span(child.node)});
        break;
      case Kind::kComment:
        break;
      default:
        if (is_word(kind(child.node))) {
          part.argv.push_back(word(child.node));
          if (is_test) tested.push_back(test_word(child.node, part.argv.back()));
          break;
        }
        unread(span(child.node), "the shell's grammar does not cover this");
    }
  }
  if (looks_up_subscript(tested)) doubt(node);
  if (!late.empty()) unread(part.span, "words stand between a redirection and the command");
  part.redirects = std::move(own);
  std::ranges::move(redirects, std::back_inserter(part.redirects));
  std::ranges::move(more, std::back_inserter(part.argv));
  const Part run = part;
  emit(std::move(part));
  leaves_by(run);
  move(run);
  call(run);
}

// Of a loop or a function: where `break`, `continue` and `return` stand.
void Reader::leaves_by(const Part& part) {
  const auto words = words_here(part);
  const std::string_view name = words.empty() || !words[0].fixed ? std::string_view() : std::string_view(words[0].text);
  if (name == "return") returned();
  if ((name != "break" && name != "continue") || exits_.empty()) return;
  const std::size_t levels = words.size() > 1 ? exits_.size() : 1;
  for (std::size_t i = exits_.size() - levels; i < exits_.size(); ++i) exits_[i].push_back(place);
}

}  // namespace belljar::shell
