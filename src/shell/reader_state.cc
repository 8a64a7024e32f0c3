#include "shell/reader_state.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/processor_time.h"
#include "shell/grammar.h"
#include "shell/grammar_check.h"
#include "shell/script.h"
#include "shell/working_directory.h"

namespace belljar::shell {

Span ReaderState::whole() const noexcept {
  return shown_at({0, static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), UINT32_MAX))});
}

void ReaderState::unread(Span where, std::string reason) {
  Unread found{std::move(reason), where};
  // A loop that is written out meets each place again.
  if (rounds > 0 && std::ranges::find(out.unread, found) != out.unread.end()) return;
  out.unread.push_back(std::move(found));
}

bool ReaderState::full(TSNode node) {
  const bool deep = depth > kMaxDepth;
  const bool late = processor_time() > deadline;
  if (!deep && !late && out.commands.size() < kMaxCommands) return false;
  if (out.unread.size() < kMaxCommands)
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

std::vector<Child> ReaderState::children(TSNode node, bool blank_between) {
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
    if (blank_between && begin > end && (!is_blank(between(end, begin)) || (!one_word && is_glued(text, end, begin))))
      unread(span(child), "shell and grammar read the blanks here differently");
    end = std::max(end, ts_node_end_byte(child));
    const bool error = ts_node_symbol(child) == static_cast<TSSymbol>(-1) || ts_node_is_missing(child);
    if (error) unread(span(child), "the shell's grammar does not cover this");
    else found.push_back({child, field == nullptr ? std::string_view() : field});
  }
  ts_tree_cursor_delete(&cursor);
  return found;
}

void ReaderState::settle() {
  add_directories(cwd.possible_directories, std::exchange(cwd.failed, {}));
  constexpr std::size_t kMaxPlaces = 8;
  if (cwd.possible_directories.size() <= kMaxPlaces) return;
  cwd.possible_directories.resize(kMaxPlaces);
  unread(whole(), "the text may run in more directories than are judged");
}

void ReaderState::left(const WorkingDirectory& before) {
  if (before.directory != cwd.directory || before.possible_directories != cwd.possible_directories)
    add_directories(cwd.failed, all_of(before));
}

void ReaderState::move(const SimpleCommand& command) {
  if (!is_cd(command)) return;
  const WorkingDirectory before = cwd;
  cwd.directory = directory_after(command, before.directory);
  cwd.possible_directories.clear();
  std::vector<std::string> moved;
  for (const std::string& each : before.possible_directories) moved.push_back(directory_after(command, each));
  std::erase(moved, cwd.directory);
  add_directories(cwd.possible_directories, moved);
  // It does not run where a redirection fails.
  const bool opens = std::ranges::any_of(command.redirects, [](const Redirect& each) {
    return each.target.text != "/dev/null" && each.target.text != "1" && each.target.text != "2";
  });
  if (opens || !surely_exists(cwd.directory)) add_directories(cwd.failed, all_of(before));
}

}  // namespace belljar::shell
