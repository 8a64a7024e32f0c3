// Lists, branches, loops and pipelines: which statements surely run, and what is known behind them.
//
// The question is never which branch the shell takes, but what holds afterwards whichever it took. Two things
// are followed through the tree, the values of variables (variables.h) and the working directory
// (working_directory.h), and at the end of each construct both are narrowed to what every way through it has
// in common:
//
// - `a && b`: b runs only where a did, so b sees what a assigned. Behind the chain b may not have run, and
//   its assignments are forgotten. `||`, `if` and `case` forget all that was assigned in them.
// - `if` and `case`: each branch begins where the tests before it ended, and the ends of all branches are
//   joined. Without `else` or `*)` the way around all of them is one more end.
// - Loops: the body is read once for each value of a list that is known (`for f in a b`), as if it were
//   written out. Otherwise it is read once, and once more when it ended in another directory than it began
//   in, since the next turn begins there. A body that climbs with each turn (`cd ..`) is unread, because
//   nobody knows how often it runs.
// - Pipelines, subshells and `&`: a shell of their own, so neither variables nor `cd` survive them.
//
// `exit` and `return` close a way: in `a || exit 1; b`, b runs only where a went well. That counts only where
// the name surely means the builtin (ReaderContext::own_exit) and nothing stands around it that could make it
// fail.
//
// Reading a body again is preferred to joining abstract states in a lattice: texts are short, the second
// reading passes the same checks, and kMaxRounds bounds it. Beyond that a loop's variable is unknown, or the
// text unread.
#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/grammar.h"
#include "shell/integer_variables.h"
#include "shell/reader.h"
#include "shell/reader_state.h"
#include "shell/script.h"
#include "shell/system_paths.h"
#include "shell/variables.h"
#include "shell/working_directory.h"

namespace belljar::shell {

bool Flow::sequence(const std::vector<Child>& kids) {
  bool goes_on = true;
  for (std::size_t i = 0; i < kids.size(); ++i) {
    const bool background = i + 1 < kids.size() && raw(kids[i + 1].node) == "&";
    std::optional<RestoreOnExit> restored;
    if (background) restored.emplace(in_.cwd);
    with_.statements.read(kids[i].node);
    if (kind(kids[i].node) == Kind::kToken) continue;
    goes_on = background || !ends_shell(kids[i].node);
    in_.settle();
  }
  return goes_on;
}

// `exit 1`, `return`: what comes behind `a || exit` runs only where a went well. With a redirection, more words or in a pipe it may
// fail or leave another shell, and `return` leaves nothing but a function.
bool Flow::ends_shell(TSNode node) const noexcept {
  if (!in_.own_exit || kind(node) != Kind::kCommand) return false;
  const std::string_view text = raw(node);
  const std::size_t blank = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view name = text.substr(0, blank);
  const std::string_view status = text.substr(std::min(text.find_first_not_of(" \t", blank), text.size()));
  const bool plain = status == "$?" || status.find_first_not_of("0123456789") == std::string_view::npos;
  return plain && (name == "exit" || (name == "return" && in_.returns != nullptr));
}

// What a list, a subshell ... assigns is known behind it only where it surely ran in this shell.
void Flow::branches(TSNode node) {
  const std::string_view type = ts_node_type(node);
  if (type == "list") {
    std::vector<TSNode> doubtful;
    chain(node, doubtful);
    for (const TSNode maybe : doubtful) in_.variables.forget(maybe);
    return;
  }
  if (type == "if_statement") return conditional(node);
  if (type == "case_statement") return cases(node);
  constexpr std::string_view kSure[] = {"program", "compound_statement", "do_group", "negated_command", "variable_assignments"};
  const bool sure = std::ranges::find(kSure, type) != std::end(kSure);
  std::optional<RestoreOnExit> restored;
  if (!sure) restored.emplace(in_.cwd);
  (void)sequence(children(node));
  if (!sure) in_.variables.forget(node);
}

// if, elif, else: each branch begins where the tests before it ended, and one of them runs, or none.
void Flow::conditional(TSNode node) {
  std::vector<WorkingDirectory> ends;
  const bool otherwise = branch(node, ends);
  if (!otherwise || ends.empty()) ends.push_back(in_.cwd);
  in_.cwd = joined(ends);
  in_.settle();
  in_.variables.forget(node);
}

// Of an `if_statement` or a clause of it. `place` ends where its tests ended; true when one of its branches runs for sure.
bool Flow::branch(TSNode node, std::vector<WorkingDirectory>& ends) {
  const DepthScope deeper(in_.depth);
  if (full(node)) return false;
  const auto kids = children(node);
  const auto is_clause = [](const Child& child) {
    const std::string_view type = ts_node_type(child.node);
    return type == "elif_clause" || type == "else_clause";
  };
  const auto then = std::ranges::find_if(kids, [&](const Child& child) { return raw(child.node) == "then"; });
  const auto clauses = std::ranges::find_if(kids, is_clause);
  const bool is_else = then == kids.end();
  if (!is_else) (void)sequence({kids.begin(), then});
  WorkingDirectory tested = in_.cwd;
  const bool goes_on = sequence({is_else ? kids.begin() : then, clauses});
  if (goes_on) ends.push_back(in_.cwd);
  bool otherwise = is_else;
  for (auto clause = clauses; clause != kids.end(); ++clause) {
    in_.cwd = tested;
    in_.variables.forget(node);
    if (!is_clause(*clause)) {
      with_.statements.read(clause->node);
      continue;
    }
    otherwise = branch(clause->node, ends) || otherwise;
    in_.variables.forget(clause->node);
    tested = in_.cwd;
  }
  in_.cwd = std::move(tested);
  return otherwise;
}

// Each item begins where `case` did, or goes on from the one before, behind `;&` and `;;&`.
void Flow::cases(TSNode node) {
  std::vector<WorkingDirectory> ends;
  const WorkingDirectory begin = in_.cwd;
  WorkingDirectory next = begin;
  bool otherwise = false;
  for (const Child& child : children(node)) {
    if (std::string_view(ts_node_type(child.node)) != "case_item") {
      with_.statements.read(child.node);
      continue;
    }
    const DepthScope deeper(in_.depth);
    if (full(child.node)) return;
    in_.variables.forget(node);
    in_.cwd = next;
    const auto kids = children(child.node);
    const bool goes_on = sequence(kids);
    const std::string_view end = kids.empty() ? std::string_view() : raw(kids.back().node);
    if (goes_on) ends.push_back(in_.cwd);
    next = goes_on && (end == ";&" || end == ";;&") ? joined({begin, in_.cwd}) : begin;
    otherwise = otherwise || raw(child.node).starts_with("*)");
  }
  if (!otherwise || ends.empty()) ends.push_back(begin);
  in_.cwd = joined(ends);
  in_.settle();
  in_.variables.forget(node);
}

// `a && b && c`: where c runs, b has run; behind the chain, or behind `||`, nobody knows.
void Flow::chain(TSNode node, std::vector<TSNode>& doubtful) {
  const DepthScope deeper(in_.depth);
  if (full(node)) return;
  const auto kids = children(node);
  const bool all = std::ranges::none_of(kids, [&](const Child& child) { return raw(child.node) == "||"; });
  const bool ends = !kids.empty() && ends_shell(kids.back().node);
  const bool returns_there = ends && raw(kids.back().node).starts_with("return");
  const WorkingDirectory begin = in_.cwd;
  bool first = true;
  for (const Child& child : kids) {
    if (!first && !all) {  // behind `||`
      if (returns_there) {
        with_.functions.returned();
        if (std::ranges::find(*in_.returns, begin) == in_.returns->end()) in_.returns->push_back(begin);
      }
      if (ends) in_.cwd.failed.clear();
      else in_.settle();
    }
    const WorkingDirectory before = in_.cwd;
    if (first && all && std::string_view(ts_node_type(child.node)) == "list") chain(child.node, doubtful);
    else with_.statements.read(child.node);
    const bool may_run = !first && kind(child.node) != Kind::kToken;
    if (may_run) in_.left(before);
    if (may_run && all) doubtful.push_back(child.node);
    else if (may_run) in_.variables.forget(node);  // behind `a || b`, also in `a || b && c`
    first = false;
  }
}

// `for i in 1 2 {3..5}`
bool Flow::loops_over_numbers(const std::vector<Child>& kids) const noexcept {
  const auto is_value = [&](const Child& child) { return is_word(kind(child.node)); };
  constexpr std::string_view kNumbers = "0123456789{}.,";
  return std::ranges::any_of(kids, is_value) && std::ranges::all_of(kids, [&](const Child& child) {
           return !is_value(child) || raw(child.node).find_first_not_of(kNumbers) == std::string_view::npos;
         });
}

namespace {

// {1..3}
bool is_number_range(std::string_view text) noexcept {
  const std::size_t dots = text.find("..");
  return text.size() > 5 && text.starts_with('{') && text.ends_with('}') && dots != std::string_view::npos && dots > 1 &&
         text.find_first_not_of("0123456789.{}") == std::string_view::npos && text.rfind('{') == 0;
}

}  // namespace

// Where the shell may be behind it: where it is before a turn, after one, and at a `break`.
void Flow::loop(TSNode node) {
  const LabelScope label(in_.inside, "loop");
  const auto kids = children(node);
  const bool counts = std::ranges::any_of(kids, [&](const Child& child) { return raw(child.node) == "(("; });
  std::string_view name;
  std::vector<Word> values;
  const WorkingDirectory begin = in_.cwd;
  in_.exits.emplace_back();
  bool again = true;
  in_.variables.forget(node);
  for (const Child& child : kids) {
    if (counts && (is_word(kind(child.node)) || kind(child.node) == Kind::kAssignment)) with_.expressions.evaluated(child.node);
    if (child.field == "variable") {  // `for PATH in ...` sets it like any assignment
      name = raw(child.node);
      in_.numbers.assign(name, loops_over_numbers(kids));
      if (is_integer_variable(name) && !loops_over_numbers(kids)) doubt(child.node);
      SimpleCommand command{.inside = in_.inside, .span = span(child.node)};
      command.assignments.push_back({std::string(name), {.fixed = false, .span = span(child.node)}});
      with_.starts.emit(std::move(command));
    } else if (!name.empty() && is_word(kind(child.node))) {
      values.push_back(with_.words.read(child.node));
      if (is_number_range(raw(child.node))) values.back().bounded = true;  // a number, whichever
    } else if (child.field == "body") {
      again = !rounds(child.node, name, values);
    } else {
      with_.statements.read(child.node);
    }
  }
  if (again && in_.cwd != begin) second_turn(node, kids);
  std::vector<WorkingDirectory> ends = std::move(in_.exits.back());
  in_.exits.pop_back();
  ends.push_back(in_.cwd);
  in_.cwd = joined(ends);
  in_.settle();
  in_.variables.forget(node);
}

// A turn began elsewhere than the next will: what it does is judged from there, too.
void Flow::second_turn(TSNode node, const std::vector<Child>& kids) {
  if (++in_.rounds > ReaderState::kMaxRounds) return unread(span(node), "the text may run in more directories than are judged");
  std::vector<WorkingDirectory> ends = in_.exits.back();  // a `continue` among them
  ends.push_back(in_.cwd);
  in_.cwd = joined(ends);
  const std::string first = in_.cwd.directory;
  for (const Child& child : kids) {
    const bool runs = child.field == "body" || child.field == "condition";
    if (child.field == "body") in_.exits.back().push_back(in_.cwd);
    if (runs) with_.statements.read(child.node);
    if (runs) in_.settle();
  }
  // `cd ..` in each turn comes to / in the end.
  const bool higher = !in_.cwd.directory.empty() && in_.cwd.directory != first;
  if (higher && is_below(first, in_.cwd.directory == "/" ? "" : in_.cwd.directory))
    unread(span(node), "a loop leads further up with each turn");
}

// The body once for each value that is known, as if it were written out: true. Otherwise once for whatever the run gives.
bool Flow::rounds(TSNode body, std::string_view name, const std::vector<Word>& values) {
  constexpr std::size_t kMaxValues = 16;
  const bool known = !values.empty() && values.size() <= kMaxValues && in_.variables.follows(name) &&
                     in_.rounds + static_cast<int>(values.size()) <= ReaderState::kMaxRounds &&
                     std::ranges::all_of(values, [](const Word& value) {
                       return value.fixed || (value.pattern && !value.expands) || (value.bounded && value.text.empty());
                     });
  if (!known) {
    in_.exits.back().push_back(in_.cwd);
    with_.statements.read(body);
    in_.settle();
    return false;
  }
  for (const Word& value : values) {
    ++in_.rounds;
    in_.variables.assign(name, value);
    with_.statements.read(body);
    in_.settle();
    in_.variables.forget(body);
  }
  return true;
}

void Flow::pipeline(TSNode node) {
  const auto before = in_.upstream;
  const std::size_t first = in_.out.commands.size();
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kToken) continue;
    const RestoreOnExit outside_cwd(in_.cwd);
    with_.statements.read(child.node);
    in_.variables.forget(child.node);
    // One range for all that came before: commands are written in order.
    in_.upstream.resize(before.size());
    if (in_.out.commands.size() > first) in_.upstream.push_back({first, in_.out.commands.size()});
  }
  in_.upstream = before;
}

}  // namespace belljar::shell
