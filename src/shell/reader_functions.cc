// Functions: where they are defined, what a call of one does to the working directory, and where `return`
// leads.
//
// A body is read where it is defined, so that its commands are judged even if nobody calls it. It is read
// once more for each call from another directory, or behind a pipe, because the same words can mean another
// file there. The pairs of "read from" and "led to" are kept, so a second call from the same place costs
// nothing; a new definition clears them all, since any function may call the one that has changed. A function
// that is being read is not entered again: recursion would add nothing that the first reading does not have.
//
// What the variables hold is unknown in a body: it runs at the time of its calls. What it does to the working
// directory is never sure either. The text does not prove that the definition ran, nor that nothing has
// `unset` it since, so the directory before a call stays possible behind it (WorkingDirectory::failed).
#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/variables.h"
#include "shell/working_directory.h"

namespace belljar::shell {

void Functions::function(TSNode node) {
  const WorkingDirectory outside = in_.cwd;
  in_.cwd.failed.clear();
  const WorkingDirectory before = in_.cwd;
  const int defined_before = defined_;
  std::string name;
  std::optional<TSNode> defined;
  std::vector<Redirect> redirects;
  std::vector<Word> more;
  for (const Child& child : children(node)) {
    if (child.field == "name") {
      name = raw(child.node);
    } else if (child.field == "redirect" && kind(child.node) == Kind::kFileRedirect) {
      with_.redirections.redirect(child.node, redirects, more);
      with_.starts.emit({.redirects = std::move(redirects), .inside = in_.inside, .span = span(child.node)});
      redirects.clear();
    } else if (kind(child.node) != Kind::kToken) {
      const LabelScope label(in_.inside, "function " + name);
      body(child.node);
      defined = child.node;
    }
  }
  if (defined) define(name, *defined, before, defined_before);
  in_.cwd = outside;
}

// `body` was read from `before`, when there were `defined_before`, and led to `place`.
void Functions::define(const std::string& name, TSNode body, const WorkingDirectory& before, int defined_before) {
  Function& function = functions_[name];
  function.moves = function.moves || in_.cwd != before;
  if (std::ranges::any_of(function.bodies, [&](TSNode each) { return ts_node_eq(each, body); })) return;
  const bool complete = defined_ == defined_before && function.bodies.empty();
  ++defined_;
  for (auto& [other, known] : functions_) known.read.clear();  // they may call it
  function.bodies.push_back(body);
  if (complete) function.read.emplace_back(before, in_.cwd);
}

// Of a function, from `place`, which ends where it or a `return` in it does.
void Functions::body(TSNode node) {
  std::vector<WorkingDirectory> returned;
  auto values = in_.variables.suspend();
  auto outside = std::exchange(in_.exits, {});
  auto* const caller = std::exchange(in_.returns, &returned);
  with_.statements.read(node);
  in_.settle();
  in_.returns = caller;
  in_.exits = std::move(outside);
  in_.variables.resume(std::move(values));
  returned.insert(returned.begin(), in_.cwd);
  in_.cwd = joined(returned);
  in_.settle();
}

// A function is read where it is defined; once more where it is called from another place, or reads what a pipe brings. The text
// does not say that it was defined, and not `unset` since: where it leads is no sure place.
void Functions::call(const SimpleCommand& command) {
  const auto words = words_called(command);
  const auto found = words.empty() || !words[0].fixed ? functions_.end() : functions_.find(words[0].text);
  if (found == functions_.end() || found->second.open) return;
  Function& function = found->second;
  const std::vector<std::string> failed = std::exchange(in_.cwd.failed, {});
  const WorkingDirectory before = in_.cwd;
  const auto known = std::ranges::find(function.read, in_.cwd, &std::pair<WorkingDirectory, WorkingDirectory>::first);
  if (command.upstream.empty() && known != function.read.end()) {
    if (function.moves) in_.cwd = known->second;
  } else {
    if (++in_.rounds > ReaderState::kMaxRounds)
      return unread(command.span, "the text calls its functions from more places than are judged");
    function.open = true;
    const LabelScope label(in_.inside, "call of " + found->first);
    const int defined_before = defined_;
    std::vector<WorkingDirectory> ends;
    for (const TSNode each : std::vector(function.bodies)) {
      in_.cwd = before;
      body(each);
      ends.push_back(in_.cwd);
    }
    in_.cwd = joined(ends);
    function.moves = function.moves || in_.cwd != before;
    if (defined_ == defined_before) function.read.emplace_back(before, in_.cwd);
    function.open = false;
  }
  add_directories(in_.cwd.failed, failed);
  if (in_.cwd != before) add_directories(in_.cwd.failed, all_of(before));
}

// A `return` stands here, or behind the `||` that comes.
void Functions::returned() {
  if (in_.returns == nullptr) return;
  WorkingDirectory here = in_.cwd;
  add_directories(here.possible_directories, std::exchange(here.failed, {}));
  if (std::ranges::find(*in_.returns, here) == in_.returns->end()) in_.returns->push_back(std::move(here));
}

// Of a loop or a function: where `break`, `continue` and `return` stand.
void Functions::leaves_by(const SimpleCommand& command) {
  const auto words = words_here(command);
  const std::string_view name = words.empty() || !words[0].fixed ? std::string_view() : std::string_view(words[0].text);
  if (name == "return") returned();
  if ((name != "break" && name != "continue") || in_.exits.empty()) return;
  const std::size_t levels = words.size() > 1 ? in_.exits.size() : 1;
  for (std::size_t i = in_.exits.size() - levels; i < in_.exits.size(); ++i) in_.exits[i].push_back(in_.cwd);
}

}  // namespace belljar::shell
