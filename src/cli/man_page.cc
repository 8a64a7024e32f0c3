#include "cli/man_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/unique_fd.h"
#include "cli/errors.h"
#include "cli/help.h"

namespace belljar::cli {
namespace {

// As text: backslashes and hyphens are themselves, and no line begins with a request (groff(7), "Escapes").
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (result.empty() && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') result += "\\e";
    else if (c == '-') result += "\\-";
    else if (c == '|') result += "|\\:";  // a line may break between alternatives
    else if (c == '~') result += "\\(ti";
    else if (c == '^') result += "\\(ha";
    else if (c == '`') result += "\\(ga";
    else if (c == '\'') result += "\\(aq";
    else if (c == '"') result += "\\(dq";
    else result += c;
  }
  return result;
}

std::string page_name(const CommandInfo& command) {
  std::string name = command.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

void put_usage(std::string& page, const CommandInfo& command) {
  const std::string usage = usage_of(command);
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t end = usage.find('\n', at);
    const std::string_view line = std::string_view(usage).substr(at, end - at);
    // A word in capitals stands for something else.
    page += format("{}.B {}\n", at == 0 ? "" : ".br\n", roff(line));
    at = end == std::string::npos ? end : end + 1;
  }
}

void put_option(std::string& page, const OptionInfo& option) {
  page += ".TP\n";
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (!option.argument && !option.value.empty()) names += " \\fI" + roff(option.value) + "\\fR";
  page += names + "\n" + roff(option.text) + "\n";
}

// `titled`: under their headings.
void put_options(std::string& page, const CommandInfo& command, bool titled) {
  std::string heading;
  for (const bool argument : {true, false}) {
    for (const OptionInfo& option : command.options) {
      if (option.argument != argument) continue;
      const std::string here = argument ? "Arguments" : option.heading.empty() ? "Options" : option.heading;
      if (here != heading && titled) page += format(".SH {}\n", roff(capitals(here)));
      heading = here;
      put_option(page, option);
    }
  }
}

// Sorted as put_options() wants it: one heading after the other.
CommandInfo by_heading(CommandInfo command) {
  std::ranges::stable_sort(command.options, {}, [](const OptionInfo& option) {
    return option.argument ? 0 : option.heading.empty() ? 1 : option.heading == "Policy" ? 3 : 2;
  });
  return command;
}

void put_command_list(std::string& page, const CommandInfo& command) {
  for (const CommandGroup& group : command_groups()) {
    bool first = true;
    for (const CommandInfo& sub : command.commands) {
      if (format(" {} ", group.commands).find(format(" {} ", sub.last_word())) == std::string::npos) continue;
      if (std::exchange(first, false)) page += format(".SS {}\n", roff(group.heading));
      page += format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(sub)), roff(sub.text));
    }
  }
}

// Below `policy`: each with its own options, since `belljar policy show` is no page of its own.
void put_commands(std::string& page, const CommandInfo& command) {
  page += ".SH COMMANDS\n";
  for (const CommandInfo& sub : command.commands) {
    page += format(".SS {}\n", roff(sub.name));
    put_usage(page, sub);
    page += ".PP\n" + roff(sub.text) + "\n";
    put_options(page, by_heading(sub), false);
  }
}

constexpr std::string_view kFiles =
    ".SH EXIT STATUS\n"
    "The program\\(aqs own where a command runs one; 124 it timed out; 125 belljar could not do it; 126 the program may not be "
    "executed;\n"
    "127 there is no such program; 128+n it was ended by signal n.\n"
    ".SH FILES\n"
    ".TP\n\\fI/etc/belljar/policy.toml\\fR, \\fI\\(ti/.config/belljar/policy.toml\\fR\n"
    "The policies of the machine and of the user, below the options of a command.\n";

}  // namespace

std::string manual_page(const CommandInfo& command) {
  std::string page = format(".TH {} 1 \"\" \"belljar\" \"User Commands\"\n.nh\n.ad l\n", roff(capitals(page_name(command))));
  page += format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", roff(page_name(command)), roff(first_sentence(command.text)));
  put_usage(page, command);
  page += format(".SH DESCRIPTION\n{}.\n",
                 roff(command.text.ends_with('.') ? command.text.substr(0, command.text.size() - 1) : command.text));
  const bool is_program = command.name.find(' ') == std::string::npos;
  if (is_program) put_command_list(page, command);
  put_options(page, by_heading(command), true);
  if (!is_program && !command.commands.empty()) put_commands(page, command);
  page += kFiles;
  page += is_program ? ".SH SEE ALSO\nThe manual page of each command, and its \\fB\\-\\-help\\fR.\n"
                     : ".SH SEE ALSO\n\\fBbelljar\\fR(1)\n";
  return page;
}

int show_manual(const CommandInfo& command) {
  const std::string page = manual_page(command);
  if (::isatty(STDOUT_FILENO) != 1) return print_result(page);
  // man(1) reads a file; this one has no name, and ends with it.
  const UniqueFd file(::memfd_create("belljar.1", MFD_CLOEXEC));
  if (file.valid() && ::fcntl(file.get(), F_SETFD, 0) == 0 &&
      ::write(file.get(), page.data(), page.size()) == static_cast<ssize_t>(page.size())) {
    const std::string path = format("/proc/self/fd/{}", file.get());
    ::execlp("man", "man", "-l", path.c_str(), nullptr);
  }
  return print_result(help_text(command, HelpAmount::kAll, style_of_stdout()));
}

}  // namespace belljar::cli
