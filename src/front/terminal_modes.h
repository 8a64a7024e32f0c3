// The modes that a program on a pty switched on in the user's terminal by escape sequences: the alternate screen, the mouse,
// pasting in brackets, another way to send keys. A program that ends by itself switches it off. One that was killed cannot, and
// then the shell would get every movement of the mouse as text.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace belljar::front {

class TerminalModes {
 public:
  // The program's output, in pieces as they come.
  void read(std::string_view output);
  // The bytes that switch off all that is on; empty: nothing is on.
  std::string undo() const;

 private:
  void end_sequence(char final);
  void set_modes(bool on);

  enum class In { kText, kEscape, kSequence };
  static constexpr std::size_t kLongest = 64;  // of a sequence's parameters; a longer one is none of ours
  static constexpr unsigned kMostPushed = 99;

  In in_ = In::kText;
  std::string parameters_;
  std::set<int> on_;
  unsigned keyboards_ = 0;   // kitty's stack of keyboard modes
  bool other_keys_ = false;  // xterm's modifyOtherKeys
};

}  // namespace belljar::front
