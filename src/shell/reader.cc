#include "shell/reader.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "shell/grammar.h"
#include "shell/letters.h"
#include "shell/numbers.h"
#include "shell/script.h"
#include "shell/whereabouts.h"
#include "shell/wrappers.h"

namespace belljar::shell {

void Reader::unread(Span where, std::string reason) {
  Unread found{std::move(reason), where};
  // A loop that is written out meets each place again.
  if (rounds_ > 0 && std::ranges::find(out_.unread, found) != out_.unread.end()) return;
  out_.unread.push_back(std::move(found));
}

namespace {

// As a function or an alias: what its name means then, nobody knows.
bool defines(std::string_view text, std::string_view name) noexcept {
  constexpr std::string_view kBlank = " \t\r\n\\";
  constexpr std::string_view kFunction = "function";
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t before = text.substr(0, at).find_last_not_of(kBlank);
    if (before != std::string_view::npos && before + 1 < at && text.substr(0, before + 1).ends_with(kFunction)) return true;
    const std::size_t next = std::min(text.find_first_not_of(kBlank, at + name.size()), text.size());
    if (text.substr(next).starts_with('=')) return true;
    if (!text.substr(next).starts_with('(')) continue;
    const std::size_t close = text.find_first_not_of(kBlank, next + 1);
    if (close != std::string_view::npos && text[close] == ')') return true;
  }
  return false;
}

}  // namespace

void Reader::read() {
  if (defines(text_, "exit") || defines(text_, "return")) own_exit = false;
  if (const char* reason = unreadable(text_)) {
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(text_.size(), UINT32_MAX));
    unread(outer != nullptr ? *outer : Span{0, end}, reason);
    return;
  }
  const bool late = processor_time() > deadline;
  TSTree* tree = late ? nullptr : grammar_.parse(text_);
  if (tree == nullptr) {
    unread(outer != nullptr ? *outer : Span{0, static_cast<std::uint32_t>(text_.size())}, "the text takes too long to parse");
    return;
  }
  const TSNode root = ts_tree_root_node(tree);
  // The root spans what it holds; what lies around it must be blank too.
  const bool placed = kind(root) == Kind::kGroup && is_blank(between(0, ts_node_start_byte(root))) &&
                      is_blank(between(ts_node_end_byte(root), text_.size()));
  if (!placed) {
    unread(span(root), "the shell's grammar does not cover this");
  } else {
    const Letters letters = read_letters(grammar_, root, text_, dialect);
    variables_.of(root);
    if (!follows_variables || letters.hidden) variables_.stop();
    statements(root);
    check(letters);
  }
  ts_tree_delete(tree);
}

// Nothing that the shell may run is left: not as letters, not in a node that this file passed by, not in a variable.
void Reader::check(const Letters& letters) {
  const auto shown_at = [&](Span inside_text) { return outer != nullptr ? *outer : inside_text; };
  if (letters.hidden) unread(shown_at(*letters.hidden), "the shell may run what the grammar takes for letters");
  std::ranges::sort(substitutions_);
  for (const std::uint32_t begin : letters.substitutions) {
    if (std::ranges::binary_search(substitutions_, begin)) continue;
    unread(shown_at({begin, begin + 1}), "a substitution stands where none is read");
    break;
  }
  if (outer != nullptr) numbers_.doubt_all();  // the text around it may have assigned something else
  if (const auto where = numbers_.doubtful(out_))
    unread(*where, "arithmetic evaluates what a variable holds, and only the run decides that");
}

bool Reader::full(TSNode node) {
  const bool deep = depth_ > kMaxDepth;
  const bool late = processor_time() > deadline;
  if (!deep && !late && out_.parts.size() < kMaxParts) return false;
  if (out_.unread.size() < kMaxParts)
    unread(span(node), deep   ? "the text nests deeper than is judged"
                       : late ? "the text takes too long to judge"
                              : "the text has more commands than are judged");
  return true;
}

namespace {

// The kinds whose children are told apart by field: the tree finds a field by counting, so the time grows with the square.
bool has_fields(Kind kind) noexcept {
  return kind == Kind::kLoop || kind == Kind::kFunction || kind == Kind::kAssignment || kind == Kind::kFileRedirect ||
         kind == Kind::kHereDoc || kind == Kind::kHereString;
}

}  // namespace

// In the order written; what stands between them must be blank, and what the grammar could not place is unread.
std::vector<Child> Reader::children(TSNode node, bool blank_between) {
  std::vector<Child> found;
  TSTreeCursor cursor = ts_tree_cursor_new(node);
  std::uint32_t end = ts_node_start_byte(node);
  const bool fields = has_fields(kind(node));
  const bool one_word = kind(node) == Kind::kConcatenation || kind(node) == Kind::kString;
  bool more = ts_tree_cursor_goto_first_child(&cursor);
  for (; more; more = ts_tree_cursor_goto_next_sibling(&cursor)) {
    if (found.size() >= (fields ? kMaxFields : kMaxChildren)) {
      unread(span(node), "the text has more words than are judged");
      break;
    }
    const TSNode child = ts_tree_cursor_current_node(&cursor);
    const char* field = fields ? ts_tree_cursor_current_field_name(&cursor) : nullptr;
    const std::uint32_t begin = ts_node_start_byte(child);
    if (blank_between && begin > end && (!is_blank(between(end, begin)) || (!one_word && is_glued(text_, end, begin))))
      unread(span(child), "shell and grammar read the blanks here differently");
    end = std::max(end, ts_node_end_byte(child));
    const bool error = ts_node_symbol(child) == static_cast<TSSymbol>(-1) || ts_node_is_missing(child);
    if (error) unread(span(child), "the shell's grammar does not cover this");
    else found.push_back({child, field == nullptr ? std::string_view() : field});
  }
  ts_tree_cursor_delete(&cursor);
  return found;
}
// --- parts and what they start ---------------------------------------------------------------------------------------------------

// Of several that could read it, the run decides which does.
void Reader::give_input(Part& part) {
  if (input.empty() || !part.upstream.empty()) return;
  if (std::ranges::any_of(part.redirects, [](const Redirect& redirect) { return redirect.op.starts_with("<"); })) return;
  if (input.size() > kMaxInput / (out_.parts.size() + 1)) return unread(part.span, "its standard input is larger than is judged");
  part.redirects.push_back({.op = "<<", .target = {.text = std::string(input), .span = part.span}});
}

void Reader::emit(Part part) {
  if (out_.parts.size() >= kMaxParts) {
    if (out_.unread.size() < kMaxParts) unread(part.span, "the text has more commands than are judged");
    return;
  }
  give_input(part);
  part.directory = place.directory;
  part.perhaps = place.perhaps;
  // Substitutions of the part's words come before it: they run first.
  out_.parts.push_back(std::move(part));
  const Part copy = out_.parts.back();
  open(copy, opened);
}

void Reader::open(const Part& part, int level) {
  const std::size_t index = out_.parts.size() - 1;
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
  out_.parts[index].starts_more = opening.transparent;
  for (Opened& what : opening.opened) {
    if (out_.parts.size() >= kMaxParts) return unread(part.span, "the text has more commands than are judged");
    if (what.kind == Opened::Kind::kUnread) {
      unread(part.span, what.label);
    } else if (what.kind == Opened::Kind::kScript) {
      open_script(what.script, part, what.label, level + 1);
    } else {
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
      out_.parts.push_back(inner);
      open(inner, level + 1);
    }
  }
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

void Reader::open_script(const Word& script, const Part& part, const std::string& label, int level) {
  if (!script.fixed) return unread(script.span, format("`{}` gets a text that only the run decides", label));
  // `eval` and `trap` run in this shell and may assign what they like.
  if (!is_shell(program_name(part)) && !label.ends_with("-c")) numbers_.doubt_all();
  Reader reader(grammar_, out_, script.text);
  reader.deadline = deadline;
  reader.inside = part.inside;
  reader.inside.push_back(label);
  reader.place = {.directory = part.directory, .perhaps = part.perhaps, .failed = {}};
  reader.upstream = part.upstream;
  reader.outer = &script.span;
  reader.opened = level;
  reader.dialect = dialect_of(part, dialect);
  // Only a shell of its own, which inherits no function.
  reader.follows_variables = follows_variables && is_shell(program_name(part)) && !may_have_functions(text_);
  // A shell that takes its text from there leaves what it starts the rest of it: nothing that can be told apart.
  if (!label.ends_with(" <<")) reader.input = input;
  reader.own_exit = own_exit;
  // What stands before `eval` runs it here, or another program (`env`, `timeout`), which moves nothing.
  const auto first = part.inside.begin() + static_cast<std::ptrdiff_t>(std::min(inside.size(), part.inside.size()));
  const bool here = label == "eval" && std::all_of(first, part.inside.end(), stays_here);
  if (here) {
    reader.returns = returns;
    reader.exits_ = std::move(exits_);
  }
  reader.read();
  if (!here) return;
  exits_ = std::move(reader.exits_);
  own_exit = reader.own_exit;
  const std::vector<std::string> failed = std::move(place.failed);
  place = std::move(reader.place);
  add_places(place.failed, failed);
}

}  // namespace belljar::shell
