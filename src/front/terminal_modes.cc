// A small parser of the output that goes to a terminal. It notes which private modes a program
// switched on, so that they can be switched off again when the program was killed and could not do
// it. It follows escape sequences across reads, keeps no text, and knows only the listed modes;
// everything else in the output passes unseen. A sequence longer than kLongest is skipped, so no
// output makes it grow.
//
// A full reset (RIS) would be simpler, and would also clear the user's screen; this
// undoes only what was seen to be on.
#include "front/terminal_modes.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "base/format.h"

namespace belljar::front {
namespace {

// invisible-island.net/xterm/ctlseqs, DEC private modes; the cursor's (25) is on in a terminal as it should be. The alternate
// screen goes last: each screen has a stack of keyboard modes of its own (sw.kovidgoyal.net/kitty/keyboard-protocol).
constexpr int kCursor = 25;
constexpr int kModes[] = {1,    9,    1000, 1001, 1002, 1003, 1004,    1005, 1006, 1007, 1015,
                          1016, 2004, 2026, 2027, 2031, 2048, kCursor, 47,   1047, 1049};
constexpr int kAlternate[] = {47, 1047, 1049};

bool is_alternate(int mode) { return std::ranges::find(kAlternate, mode) != std::end(kAlternate); }

unsigned number_of(std::string_view text, unsigned otherwise) {
  unsigned number = otherwise;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

void TerminalModes::read(std::string_view output) {
  while (!output.empty()) {
    if (in_ == In::kText) {
      const std::size_t escape = output.find('\033');
      if (escape == std::string_view::npos) return;
      output.remove_prefix(escape + 1);
      in_ = In::kEscape;
      continue;
    }
    const char c = output.front();
    output.remove_prefix(1);
    if (c == '\033') {
      in_ = In::kEscape;
    } else if (in_ == In::kEscape) {
      in_ = c == '[' ? In::kSequence : In::kText;
      parameters_.clear();
    } else if (c >= ' ' && c <= '?') {
      if (parameters_.size() <= kLongest) parameters_.push_back(c);
    } else {
      in_ = In::kText;
      if (c >= '@' && c <= '~' && parameters_.size() <= kLongest) end_sequence(c);
    }
  }
}

void TerminalModes::end_sequence(char final) {
  const std::string_view parameters = parameters_;
  if (parameters.empty()) return;
  const std::string_view rest = parameters.substr(1);
  if (parameters.front() == '?' && (final == 'h' || final == 'l')) set_modes(final == 'h');
  else if (parameters.front() == '>' && final == 'u') keyboards_ = std::min(keyboards_ + 1, kMostPushed);
  else if (parameters.front() == '<' && final == 'u') keyboards_ -= std::min(keyboards_, number_of(rest, 1));
  else if (final == 'm' && (parameters == ">4" || parameters.starts_with(">4;")))
    other_keys_ = parameters.size() > 3 && number_of(parameters.substr(3), 0) != 0;
}

void TerminalModes::set_modes(bool on) {
  std::string_view list = std::string_view(parameters_).substr(1);
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(';'), list.size());
    const int mode = static_cast<int>(number_of(list.substr(0, end), 0));
    list.remove_prefix(std::min(end + 1, list.size()));
    if (std::ranges::find(kModes, mode) == std::end(kModes)) continue;
    if (on != (mode == kCursor)) on_.insert(mode);
    else on_.erase(mode);
  }
}

std::string TerminalModes::undo() const {
  std::string text;
  if (keyboards_ > 0) text += format("\033[<{}u", keyboards_);
  if (other_keys_) text += "\033[>4;0m";
  for (const int mode : on_) {
    if (!is_alternate(mode)) text += format("\033[?{}{}", mode, mode == kCursor ? 'h' : 'l');
  }
  for (const int mode : on_) {
    if (is_alternate(mode)) text += format("\033[?{}l", mode);
  }
  return text.empty() ? text : "\033[0m" + text;
}

}  // namespace belljar::front
