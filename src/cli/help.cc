// The words of a command line are read off the parser; what is written here besides is their order: under which heading a command
// stands, and which dozen of an option list that is longer than a screen a newcomer needs.
#include "cli/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kMany = 30;  // options that are more than a screen

constexpr CommandGroup kGroups[] = {
    {"Run a command", "run learn bwrap"},
    {"Keep a sandbox", "create exec ls kill logs stats network"},
    {"Undo", "diff commit rollback snapshot fork recover"},
    {"Look", "explain policy audit caches"},
    {"Agents", "agent agents mcp serve rules scan review"},
    {"This machine", "doctor setup warm bench man completion"},
};

struct Usage {
  std::string_view command, lines;
};
// Of commands whose words are not all the parser's.
constexpr Usage kUsages[] = {
    {"belljar", "belljar COMMAND [OPTIONS]"},
    {"belljar run", "belljar run [OPTIONS] -- PROGRAM ARG...\nbelljar run [OPTIONS] -c 'shell text'"},
    {"belljar learn", "belljar learn [OPTIONS] -- PROGRAM ARG..."},
    {"belljar exec", "belljar exec ID [OPTIONS] -- PROGRAM ARG...\nbelljar exec ID [OPTIONS] -c 'shell text'"},
};

// The options that people use first. The texts are shorter than those of the whole list.
struct FirstOption {
  std::string_view heading, name, text;
};
constexpr FirstOption kFirst[] = {
    {"Files", "--workspace", "Where it works and may write (default: here)"},
    {"Files", "--write", "May be written as well"},
    {"Files", "--read", "May be read although it is hidden"},
    {"Files", "--hide", "May not be read, as ~/.ssh, ~/.aws ... never may"},
    {"Network", "--net", "Nothing (default), the allowed hosts, everything"},
    {"Network", "--allow-domain", "May be reached; `*.example.com`: all below it"},
    {"Network", "--host-port", "A port here that may be reached: a database"},
    {"Environment", "--env", "Set a variable"},
    {"Environment", "--pass-env", "Pass one that is kept back as a secret"},
    {"Limits", "--timeout", "End it after 30s, 10m, 1h"},
    {"Limits", "--memory", "Of all its processes together: 512MiB, 4GiB"},
    {"Undo", "--txn", "Keep its changes apart until you look at them"},
    {"Policy", "--policy", "All of this by name or from a file: read-only, agent-claude, my.toml"},
    {"Result", "--json", "One JSON object in the place of its output"},
    {"Result", "--verbose", "What holds each rule, what was refused by which"},
};
struct Example {
  std::string_view heading, line;
};
constexpr Example kExamples[] = {
    {"Files", "belljar run --write ../lib --hide .env -- make"},
    {"Network", "belljar run --allow-domain github.com -- git fetch"},
    {"Environment", "belljar run --env CI=1 -- npm test"},
    {"Limits", "belljar run --timeout 10m --memory 2GiB -- make test"},
    {"Undo", "belljar run --txn -c 'npm install && npm run build'"},
    {"Policy", "belljar run --policy ci-strict -- make test"},
    {"Result", "belljar run --json -- make test | jq .exit_code"},
};

// Apart at the spaces.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

const OptionInfo* find_option(const CommandInfo& command, std::string_view name) {
  const auto found = std::ranges::find_if(
      command.options, [&](const OptionInfo& option) { return std::ranges::find(option.names, name) != option.names.end(); });
  return found == command.options.end() ? nullptr : &*found;
}

// Columns as a terminal has them, of text that is ASCII or UTF-8 without wide characters.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; }));
}

class Page {
 public:
  explicit Page(const HelpStyle& style) : style_(style) {}

  void heading(std::string_view text) {
    if (!text_.empty()) text_ += '\n';
    text_ += style_.bold ? format("\x1b[1m{}\x1b[0m\n", text) : format("{}\n", text);
  }
  void line(std::string_view text) { (text_ += text) += '\n'; }
  void paragraph(std::string_view text) { flow("", 0, text); }
  // "  LEFT   text", the text from column `at` on.
  void row(std::string_view left, std::string_view text, std::size_t at) { flow("  " + std::string(left), at, text); }

  std::string take() { return std::move(text_); }

 private:
  void flow(std::string line, std::size_t at, std::string_view text) {
    if (!line.empty() && width_of(line) + 2 > at) {
      text_ += line + '\n';
      line.clear();
    }
    bool begun = false;
    line.resize(line.size() + (at - width_of(line)), ' ');
    for (const std::string_view word : words_of(text)) {
      if (begun && width_of(line) + 1 + width_of(word) > style_.columns) {
        text_ += line + '\n';
        line.assign(at, ' ');
        begun = false;
      }
      if (begun) line += ' ';
      line += word;
      begun = true;
    }
    text_ += line + '\n';
  }

  HelpStyle style_;
  std::string text_;
};

std::string left_of(const OptionInfo& option) {
  std::string left;
  for (const std::string& name : option.names) left += (left.empty() ? "" : ", ") + name;
  if (option.argument) return left + (option.repeatable ? "..." : "");
  return option.value.empty() ? left : left + " " + option.value;
}

void put_options(Page& page, const std::vector<const OptionInfo*>& options) {
  std::size_t widest = 0;
  for (const OptionInfo* option : options) widest = std::max(widest, left_of(*option).size());
  for (const OptionInfo* option : options) page.row(left_of(*option), option->text, std::min<std::size_t>(widest + 4, 28));
}

// Under their own headings, in the order in which these come first.
void put_all(Page& page, const CommandInfo& command) {
  std::vector<std::string> headings;
  for (const OptionInfo& option : command.options) {
    const std::string heading = option.argument ? "Arguments" : option.heading.empty() ? "Options" : option.heading;
    if (std::ranges::find(headings, heading) == headings.end()) headings.push_back(heading);
  }
  // Arguments before options, and the policy's last: it is the longest.
  std::ranges::stable_sort(headings, {}, [](const std::string& heading) {
    return heading == "Arguments" ? 0 : heading == "Options" ? 1 : heading == "Policy" ? 3 : 2;
  });
  for (const std::string& heading : headings) {
    std::vector<const OptionInfo*> options;
    for (const OptionInfo& option : command.options) {
      if ((option.argument ? "Arguments" : option.heading.empty() ? "Options" : option.heading) == heading)
        options.push_back(&option);
    }
    page.heading(heading + ":");
    put_options(page, options);
  }
}

// What only this command has stands there whole; of what all that run something have, the first.
std::size_t put_first(Page& page, const CommandInfo& command) {
  const bool is_run = command.last_word() == "run";
  const bool has_own_heading =
      std::ranges::any_of(command.options, [](const OptionInfo& one) { return !one.heading.empty() && one.heading != "Policy"; });
  std::vector<OptionInfo> chosen;
  CommandInfo own = command;
  std::erase_if(own.options, [&](const OptionInfo& option) {
    // In `run` of a backend its own options have a heading of their own, and examples would have to name it.
    return option.heading == "Policy" || (is_run && option.heading.empty() && option.names.front() != "-c");
  });
  put_all(page, own);
  std::size_t shown = own.options.size();
  std::string_view heading;
  for (const FirstOption& first : kFirst) {
    const OptionInfo* const option = find_option(command, first.name);
    if (option == nullptr || find_option(own, first.name) != nullptr) continue;
    if (first.heading != heading) {
      heading = first.heading;
      page.heading(format("{}:", heading));
      const Example* const example = std::ranges::find(kExamples, heading, &Example::heading);
      if (is_run && !has_own_heading && example != std::end(kExamples)) page.line(format("  $ {}", example->line));
    }
    page.row(left_of(*option), first.text, 26);
    ++shown;
  }
  return command.options.size() - shown;
}

void put_commands(Page& page, const CommandInfo& command) {
  std::size_t widest = 0;
  for (const CommandInfo& sub : command.commands) widest = std::max(widest, sub.last_word().size());
  const auto put = [&](const CommandInfo& sub) { page.row(sub.last_word(), first_sentence(sub.text), widest + 4); };
  if (command.name.find(' ') != std::string::npos || command.commands.size() < 10) {
    page.heading("Commands:");
    std::ranges::for_each(command.commands, put);
    return;
  }
  std::vector<const CommandInfo*> rest;
  for (const CommandInfo& sub : command.commands) rest.push_back(&sub);
  for (const CommandGroup& group : kGroups) {
    bool first = true;
    for (const std::string_view word : words_of(group.commands)) {
      const auto found = std::ranges::find(rest, word, [](const CommandInfo* sub) { return sub->last_word(); });
      if (found == rest.end()) continue;
      if (std::exchange(first, false)) page.heading(format("{}:", group.heading));
      put(**found);
      rest.erase(found);
    }
  }
  if (!rest.empty()) page.heading("More:");
  for (const CommandInfo* sub : rest) put(*sub);
}

}  // namespace

std::span<const CommandGroup> command_groups() noexcept { return kGroups; }

std::string usage_of(const CommandInfo& command) {
  for (const Usage& usage : kUsages) {
    if (usage.command == command.name) return std::string(usage.lines);
  }
  std::string line = command.name;
  if (!command.commands.empty()) line += command.options.empty() ? " COMMAND" : " [COMMAND]";
  for (const OptionInfo& option : command.options) {
    if (!option.argument) continue;
    const std::string word = left_of(option);
    line += option.required ? " " + word : " [" + word + "]";
  }
  const bool has_options = std::ranges::any_of(command.options, [](const OptionInfo& option) { return !option.argument; });
  return has_options ? line + " [OPTIONS]" : line;
}

std::string_view first_sentence(std::string_view text) noexcept {
  text = text.substr(0, text.find(". "));
  if (text.ends_with('.')) text.remove_suffix(1);
  return text;
}

HelpStyle style_of_stdout() noexcept {
  HelpStyle style;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1) return style;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.columns = std::clamp<std::size_t>(size.ws_col, 40, 110);
  const std::string term = own_variable("TERM");
  style.bold = own_variable("NO_COLOR").empty() && !term.empty() && term != "dumb";
  return style;
}

std::string help_text(const CommandInfo& command, HelpAmount amount, const HelpStyle& style) {
  Page page(style);
  page.paragraph(command.text);
  page.heading("Usage:");
  std::string usage = usage_of(command);
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t end = usage.find('\n', at);
    page.line("  " + usage.substr(at, end - at));
    at = end == std::string::npos ? end : end + 1;
  }
  if (!command.commands.empty()) put_commands(page, command);
  std::size_t more = 0;
  if (amount == HelpAmount::kFirst && command.options.size() > kMany) more = put_first(page, command);
  else put_all(page, command);
  if (more > 0) page.line(format("\n{} more options: {} --help all", more, command.name));
  else if (!command.commands.empty()) page.line(format("\nMore of one of them: {} COMMAND --help", command.name));
  return page.take();
}

}  // namespace belljar::cli
