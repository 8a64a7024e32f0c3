#include "shell/script.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/paths.h"
#include "shell/grammar.h"
#include "shell/reader.h"

namespace belljar::shell {

struct ShellReader::State {
  Grammar grammar;
};

ShellReader::ShellReader() : state_(std::make_unique<State>()) {}
ShellReader::~ShellReader() = default;
ShellReader::ShellReader(ShellReader&&) noexcept = default;
ShellReader& ShellReader::operator=(ShellReader&&) noexcept = default;

Script ShellReader::read(std::string_view text, std::string_view input) {
  Script script;
  ReaderContext around;
  around.input = input;
  Reader reader(state_->grammar, script, text, std::move(around));
  reader.read();
  return script;
}

std::string_view program_name(const SimpleCommand& command) noexcept {
  if (command.argv.empty() || !command.argv[0].fixed) return {};
  return file_name(command.argv[0].text);
}

std::string shown(const Word& word) {
  if (word.fixed) return word.text;
  return word.written.empty() ? word.text + "..." : word.written;
}

bool is_process(const Word& word) noexcept {
  const std::string_view text = word.written;
  if (!word.text.empty() || !(text.starts_with(">(") || text.starts_with("<("))) return false;
  int depth = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    else if (text[i] == ')' && --depth == 0) return i + 1 == text.size();
  }
  return false;
}

std::string to_line(const SimpleCommand& command) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^~*?[]{}";
  std::string line;
  for (const Assignment& assignment : command.assignments) line += assignment.name + "=" + shown(assignment.value) + " ";
  for (const Word& word : command.argv) {
    const bool plain = !word.fixed || (!word.text.empty() && word.text.find_first_not_of(kPlain) == std::string::npos);
    line += (plain ? shown(word) : "'" + word.text + "'") + " ";
  }
  for (const Redirect& redirect : command.redirects)
    line += redirect.op + (is_process(redirect.target) ? " " : "") + (redirect.op == "<<" ? "..." : shown(redirect.target)) + " ";
  if (!line.empty()) line.pop_back();
  return line;
}

}  // namespace belljar::shell
