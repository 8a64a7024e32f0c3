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
#include "shell/numbers.h"
#include "shell/places.h"
#include "shell/reader.h"
#include "shell/script.h"
#include "shell/whereabouts.h"

namespace belljar::shell {

// `exit 1`, `return`: what comes behind `a || exit` runs only where a went well. With a redirection, more words or in a pipe it may
// fail or leave another shell, and `return` leaves nothing but a function.
bool Reader::ends_shell(TSNode node) const noexcept {
  if (!own_exit || kind(node) != Kind::kCommand) return false;
  const std::string_view text = raw(node);
  const std::size_t blank = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view name = text.substr(0, blank);
  const std::string_view status = text.substr(std::min(text.find_first_not_of(" \t", blank), text.size()));
  const bool plain = status == "$?" || status.find_first_not_of("0123456789") == std::string_view::npos;
  return plain && (name == "exit" || (name == "return" && returns != nullptr));
}

// A `return` stands here, or behind the `||` that comes.
void Reader::returned() {
  if (returns == nullptr) return;
  Whereabouts here = place;
  add_places(here.perhaps, std::exchange(here.failed, {}));
  if (std::ranges::find(*returns, here) == returns->end()) returns->push_back(std::move(here));
}

// What a list, a subshell ... assigns is known behind it only where it surely ran in this shell.
void Reader::branches(TSNode node) {
  const std::string_view type = ts_node_type(node);
  if (type == "list") {
    std::vector<TSNode> doubtful;
    chain(node, doubtful);
    for (const TSNode maybe : doubtful) variables_.forget(maybe);
    return;
  }
  if (type == "if_statement") return conditional(node);
  if (type == "case_statement") return cases(node);
  constexpr std::string_view kSure[] = {"program", "compound_statement", "do_group", "negated_command", "variable_assignments"};
  const bool sure = std::ranges::find(kSure, type) != std::end(kSure);
  std::optional<Restored> restored;
  if (!sure) restored.emplace(place);
  (void)sequence(children(node));
  if (!sure) variables_.forget(node);
}

// One after the other. False when the last of them surely leaves the shell: nothing comes behind it.
bool Reader::sequence(const std::vector<Child>& kids) {
  bool goes_on = true;
  for (std::size_t i = 0; i < kids.size(); ++i) {
    const bool background = i + 1 < kids.size() && raw(kids[i + 1].node) == "&";
    std::optional<Restored> restored;
    if (background) restored.emplace(place);
    statement(kids[i].node);
    if (kind(kids[i].node) == Kind::kToken) continue;
    goes_on = background || !ends_shell(kids[i].node);
    settle();
  }
  return goes_on;
}

// if, elif, else: each branch begins where the tests before it ended, and one of them runs, or none.
void Reader::conditional(TSNode node) {
  std::vector<Whereabouts> ends;
  const bool otherwise = branch(node, ends);
  if (!otherwise || ends.empty()) ends.push_back(place);
  place = joined(ends);
  settle();
  variables_.forget(node);
}

// Of an `if_statement` or a clause of it. `place` ends where its tests ended; true when one of its branches runs for sure.
bool Reader::branch(TSNode node, std::vector<Whereabouts>& ends) {
  const Deeper deeper(depth_);
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
  Whereabouts tested = place;
  const bool goes_on = sequence({is_else ? kids.begin() : then, clauses});
  if (goes_on) ends.push_back(place);
  bool otherwise = is_else;
  for (auto clause = clauses; clause != kids.end(); ++clause) {
    place = tested;
    variables_.forget(node);
    if (!is_clause(*clause)) {
      statement(clause->node);
      continue;
    }
    otherwise = branch(clause->node, ends) || otherwise;
    variables_.forget(clause->node);
    tested = place;
  }
  place = std::move(tested);
  return otherwise;
}

// Each item begins where `case` did, or goes on from the one before, behind `;&` and `;;&`.
void Reader::cases(TSNode node) {
  std::vector<Whereabouts> ends;
  const Whereabouts begin = place;
  Whereabouts next = begin;
  bool otherwise = false;
  for (const Child& child : children(node)) {
    if (std::string_view(ts_node_type(child.node)) != "case_item") {
      statement(child.node);
      continue;
    }
    const Deeper deeper(depth_);
    if (full(child.node)) return;
    variables_.forget(node);
    place = next;
    const auto kids = children(child.node);
    const bool goes_on = sequence(kids);
    const std::string_view end = kids.empty() ? std::string_view() : raw(kids.back().node);
    if (goes_on) ends.push_back(place);
    next = goes_on && (end == ";&" || end == ";;&") ? joined({begin, place}) : begin;
    otherwise = otherwise || raw(child.node).starts_with("*)");
  }
  if (!otherwise || ends.empty()) ends.push_back(begin);
  place = joined(ends);
  settle();
  variables_.forget(node);
}

// `a && b && c`: where c runs, b has run; behind the chain, or behind `||`, nobody knows.
void Reader::chain(TSNode node, std::vector<TSNode>& doubtful) {
  const Deeper deeper(depth_);
  if (full(node)) return;
  const auto kids = children(node);
  const bool all = std::ranges::none_of(kids, [&](const Child& child) { return raw(child.node) == "||"; });
  const bool ends = !kids.empty() && ends_shell(kids.back().node);
  const bool returns_there = ends && raw(kids.back().node).starts_with("return");
  const Whereabouts begin = place;
  bool first = true;
  for (const Child& child : kids) {
    if (!first && !all) {  // behind `||`
      if (returns_there) {
        returned();
        if (std::ranges::find(*returns, begin) == returns->end()) returns->push_back(begin);
      }
      if (ends) place.failed.clear();
      else settle();
    }
    const Whereabouts before = place;
    if (first && all && std::string_view(ts_node_type(child.node)) == "list") chain(child.node, doubtful);
    else statement(child.node);
    const bool may_run = !first && kind(child.node) != Kind::kToken;
    if (may_run) left(before);
    if (may_run && all) doubtful.push_back(child.node);
    else if (may_run) variables_.forget(node);  // behind `a || b`, also in `a || b && c`
    first = false;
  }
}

// `for i in 1 2 {3..5}`
bool Reader::loops_over_numbers(const std::vector<Child>& kids) const noexcept {
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
void Reader::loop(TSNode node) {
  const Inside label(inside, "loop");
  const auto kids = children(node);
  const bool counts = std::ranges::any_of(kids, [&](const Child& child) { return raw(child.node) == "(("; });
  std::string_view name;
  std::vector<Word> values;
  const Whereabouts begin = place;
  exits_.emplace_back();
  bool again = true;
  variables_.forget(node);
  for (const Child& child : kids) {
    if (counts && (is_word(kind(child.node)) || kind(child.node) == Kind::kAssignment)) evaluated(child.node);
    if (child.field == "variable") {  // `for PATH in ...` sets it like any assignment
      name = raw(child.node);
      numbers_.assign(name, loops_over_numbers(kids));
      if (is_integer_variable(name) && !loops_over_numbers(kids)) doubt(child.node);
      Part part{.inside = inside, .span = span(child.node)};
      part.assignments.push_back({std::string(name), {.fixed = false, .span = span(child.node)}});
      emit(std::move(part));
    } else if (!name.empty() && is_word(kind(child.node))) {
      values.push_back(word(child.node));
      if (is_number_range(raw(child.node))) values.back().bounded = true;  // a number, whichever
    } else if (child.field == "body") {
      again = !rounds(child.node, name, values);
    } else {
      statement(child.node);
    }
  }
  if (again && place != begin) second_turn(node, kids);
  std::vector<Whereabouts> ends = std::move(exits_.back());
  exits_.pop_back();
  ends.push_back(place);
  place = joined(ends);
  settle();
  variables_.forget(node);
}

// A turn began elsewhere than the next will: what it does is judged from there, too.
void Reader::second_turn(TSNode node, const std::vector<Child>& kids) {
  if (++rounds_ > kMaxRounds) return unread(span(node), "the text may run in more directories than are judged");
  std::vector<Whereabouts> ends = exits_.back();  // a `continue` among them
  ends.push_back(place);
  place = joined(ends);
  const std::string first = place.directory;
  for (const Child& child : kids) {
    const bool runs = child.field == "body" || child.field == "condition";
    if (child.field == "body") exits_.back().push_back(place);
    if (runs) statement(child.node);
    if (runs) settle();
  }
  // `cd ..` in each turn comes to / in the end.
  const bool higher = !place.directory.empty() && place.directory != first;
  if (higher && is_below(first, place.directory == "/" ? "" : place.directory))
    unread(span(node), "a loop leads further up with each turn");
}

// The body once for each value that is known, as if it were written out: true. Otherwise once for whatever the run gives.
bool Reader::rounds(TSNode body, std::string_view name, const std::vector<Word>& values) {
  constexpr std::size_t kMaxValues = 16;
  const bool known = !values.empty() && values.size() <= kMaxValues && variables_.follows(name) &&
                     rounds_ + static_cast<int>(values.size()) <= kMaxRounds && std::ranges::all_of(values, [](const Word& value) {
                       return value.fixed || (value.pattern && !value.expands) || (value.bounded && value.text.empty());
                     });
  if (!known) {
    exits_.back().push_back(place);
    statement(body);
    settle();
    return false;
  }
  for (const Word& value : values) {
    ++rounds_;
    variables_.assign(name, value);
    statement(body);
    settle();
    variables_.forget(body);
  }
  return true;
}

void Reader::pipeline(TSNode node) {
  const auto before = upstream;
  const std::size_t first = out_.parts.size();
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kToken) continue;
    const Restored outside_place(place);
    statement(child.node);
    variables_.forget(child.node);
    // One range for all that came before: parts are written in order.
    upstream.resize(before.size());
    if (out_.parts.size() > first) upstream.push_back({first, out_.parts.size()});
  }
  upstream = before;
}

}  // namespace belljar::shell
