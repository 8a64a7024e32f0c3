#include "front/terminal_modes.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace belljar::front {
namespace {

std::string undo_of(std::string_view output) {
  TerminalModes whole;
  whole.read(output);
  TerminalModes pieces;
  for (const char c : output) pieces.read({&c, 1});
  EXPECT_EQ(whole.undo(), pieces.undo());
  return whole.undo();
}

TEST(TerminalModes, WhatIsOnIsSwitchedOffTheAlternateScreenLast) {
  EXPECT_EQ(undo_of("\033[?1049h\033[?25l\033[?1000;1006h\033[?2004htext"),
            "\033[0m\033[?25h\033[?1000l\033[?1006l\033[?2004l\033[?1049l");
  EXPECT_EQ(undo_of("\033[>1u\033[>7u\033[<u\033[>4;2m"), "\033[0m\033[<1u\033[>4;0m");
}

TEST(TerminalModes, WhatIsOffAgainOrNoModeIsLeft) {
  for (const std::string_view output :
       {"", "text", "\033[?1049h\033[?1049l", "\033[?25l\033[?25h", "\033[31m\033[2J\033[6n\033[?u\033[>q", "\033]0;[?1049h\007",
        "\033[?7777h", "\033[>1u\033[<1u", "\033[>4;1m\033[>4m", "\033[<9u", "\033[?1049", "\033[?10\n49h", "\033[?"})
    EXPECT_EQ(undo_of(output), "") << output;
  EXPECT_EQ(undo_of("\033[?" + std::string(100, '1') + ";1049h"), "") << "too long";
}

}  // namespace
}  // namespace belljar::front
