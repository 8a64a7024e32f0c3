// `--help`, as text for people.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cli/command_info.h"

namespace belljar::cli {

// One of the headings that `belljar --help` shows its commands under.
struct CommandGroup {
  std::string_view heading, commands;  // "diff commit ..."
};
std::span<const CommandGroup> command_groups() noexcept;
// The lines of how a command is called: `belljar run [OPTIONS] -- PROGRAM ARG...`.
std::string usage_of(const CommandInfo& command);
// The first sentence of what a command does, without its full stop.
std::string_view first_sentence(std::string_view text) noexcept;

enum class HelpAmount {
  kFirst,  // what people use first, where a command has many options
  kAll,
};
struct HelpStyle {
  std::size_t columns = 80;
  bool bold = false;  // headings
};
// The width of the terminal that stdout is. Without a terminal 80 columns and no bold.
HelpStyle style_of_stdout() noexcept;

std::string help_text(const CommandInfo& command, HelpAmount amount, const HelpStyle& style);

}  // namespace belljar::cli
