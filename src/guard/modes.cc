// Modes that open files to everybody or make them run as their owner, in each spelling that chmod(1) takes.
//
// Octal (`777`, `04755`) and symbolic (`a+w`, `o=g`, `u+s`, and clauses with an octal end such as `+4755`)
// mean the same thing, and the same modes are set by umask, install -m, mkdir -m and setfacl(1). Write
// permission for others with the sticky bit is left alone, as /tmp has it. If the mode is only known at run
// time, that is reported as a doubt, so that the check asks and does not forbid.
#include "guard/modes.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "shell/operands.h"
#include "shell/script.h"

namespace belljar::guard {

using shell::Arguments;
using shell::SimpleCommand;
using shell::ValueOptions;
using shell::Word;

namespace {

bool is_octal(std::string_view mode) noexcept {
  return !mode.empty() && mode.find_first_not_of("01234567") == std::string_view::npos;
}

bool octal_opens_to_all(std::string_view mode) noexcept {
  const int others = mode.back() - '0';
  const bool sticky = mode.size() >= 4 && ((mode[mode.size() - 4] - '0') & 1) != 0;
  return (others & 2) != 0 && !sticky;
}
bool octal_sets_id(std::string_view mode) noexcept { return mode.size() >= 4 && ((mode[mode.size() - 4] - '0') & 6) != 0; }

// `+4755`, `=002`, `-w+2`: the octal end of a clause that is set, "" without one.
std::string_view octal_of(std::string_view clause) noexcept {
  const std::size_t sign = clause.find_last_of("+=");
  if (sign == std::string_view::npos || !is_octal(clause.substr(sign + 1))) return {};
  return clause.substr(sign + 1);
}

// Gives everybody the right to write: chmod(1), octal and symbolic. With the sticky bit it is what /tmp has.
bool opens_to_all(std::string_view mode) noexcept {
  if (is_octal(mode)) return octal_opens_to_all(mode);
  while (!mode.empty()) {
    const std::size_t comma = std::min(mode.find(','), mode.size());
    const std::string_view clause = mode.substr(0, comma);
    if (const auto octal = octal_of(clause); !octal.empty() && octal_opens_to_all(octal)) return true;
    const std::size_t sign = clause.find_first_of("+=");
    if (sign != std::string_view::npos && clause.substr(0, sign).find_first_of("oa") != std::string_view::npos &&
        clause.find('w', sign) != std::string_view::npos)
      return true;
    mode.remove_prefix(std::min(comma + 1, mode.size()));
  }
  return false;
}

// `o=g`, `a+u`: everybody gets what the group or the owner may.
bool copies_to_all(std::string_view mode) noexcept {
  while (!mode.empty()) {
    const std::size_t comma = std::min(mode.find(','), mode.size());
    const std::string_view clause = mode.substr(0, comma);
    const std::size_t sign = clause.find_first_of("+=");
    if (sign != std::string_view::npos && clause.substr(0, sign).find_first_of("oa") != std::string_view::npos &&
        clause.find_first_of("ug", sign) != std::string_view::npos)
      return true;
    mode.remove_prefix(std::min(comma + 1, mode.size()));
  }
  return false;
}

// umask of bash(1): octal what is taken away, symbolic what is left; no one named is everybody.
bool mask_opens_to_all(std::string_view mask) {
  if (is_octal(mask)) return ((mask.back() - '0') & 2) == 0;
  std::string mode;
  for (const char c : mask) {
    if ((c == '=' || c == '+') && (mode.empty() || mode.back() == ',')) mode += 'a';
    mode += c;
  }
  return opens_to_all(mode);
}

bool sets_id(std::string_view mode) noexcept {
  if (is_octal(mode)) return octal_sets_id(mode);
  while (!mode.empty()) {
    const std::size_t comma = std::min(mode.find(','), mode.size());
    const std::string_view clause = mode.substr(0, comma);
    if (const auto octal = octal_of(clause); !octal.empty() && octal_sets_id(octal)) return true;
    const std::size_t sign = clause.find_first_of("+=");
    if (sign != std::string_view::npos && clause.find('s', sign) != std::string_view::npos) return true;
    mode.remove_prefix(std::min(comma + 1, mode.size()));
  }
  return false;
}

// acl(5): `o::rwx`, `default:other::7`.
bool acl_opens_to_all(std::string_view acl) noexcept {
  while (!acl.empty()) {
    const std::size_t comma = std::min(acl.find(','), acl.size());
    std::string_view entry = acl.substr(0, comma);
    acl.remove_prefix(std::min(comma + 1, acl.size()));
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    for (const std::string_view front : {"default:", "d:"}) {
      if (entry.starts_with(front)) entry.remove_prefix(front.size());
    }
    const std::size_t rights = entry.rfind(':');
    if (entry.starts_with('o') && rights != std::string_view::npos &&
        entry.find_first_of("w2367", rights) != std::string_view::npos)
      return true;
  }
  return false;
}

// `chmod -x f`: a mode that looks like an option, and only takes away.
const Word* mode_like_an_option(const SimpleCommand& command) noexcept {
  for (std::size_t i = 1; i < command.argv.size() && command.argv[i].text != "--"; ++i) {
    const Word& word = command.argv[i];
    const std::string_view text = word.text;
    if (word.fixed && text.size() > 1 && text[0] == '-' && text.find_first_of("rwxXst") != std::string_view::npos &&
        text.find_first_not_of("-rwxXstugoa,+=") == std::string_view::npos)
      return &word;
  }
  return nullptr;
}

// Of `name` the words that are modes.
std::vector<Word> modes_of(const SimpleCommand& command, std::string_view name) {
  std::vector<Word> modes;
  if (name == "chmod") {
    const auto words = operands(command);
    if (const Word* const taken_away = mode_like_an_option(command)) modes.push_back(*taken_away);
    else if (!words.empty() && !has_option(command, "", "reference")) modes.push_back(*words[0]);
    return modes;
  }
  const bool makes = name == "mkfifo" || name == "mknod" || name == "mkdir";
  if (name != "install" && !makes) return modes;
  const Arguments given =
      arguments(command, makes ? ValueOptions{"m", "mode"}
                               : ValueOptions{"tSmgo", "target-directory suffix mode owner group strip-program", "strip"});
  for (const auto& option : given.options) {
    if (option.name == "m" || option.name == "mode") modes.push_back(option.value);
  }
  return modes;
}

std::optional<ModeDoubt> open_mask(const SimpleCommand& command) {
  for (const Word* word : operands(command)) {
    if (!word->fixed) return ModeDoubt{false, format("the mask is only known at run time: {}", quoted(shown(*word)))};
    if (mask_opens_to_all(word->text))
      return ModeDoubt{true, format("umask {} lets everybody write to what is made from now on", quoted(word->text))};
  }
  return std::nullopt;
}

std::optional<ModeDoubt> open_acl(const SimpleCommand& command) {
  const Arguments given = arguments(command, {"mxM", "modify remove modify-file remove-file set set-file restore"});
  std::optional<ModeDoubt> doubt;
  for (const auto& option : given.options) {
    if (option.name == "M" || option.name == "modify-file" || option.name == "set-file" || option.name == "restore")
      doubt = ModeDoubt{false, "a file says what setfacl allows"};
    if (option.name != "m" && option.name != "modify" && option.name != "set") continue;
    if (acl_opens_to_all(option.value.text))
      return ModeDoubt{true, format("the acl {} lets everybody write", quoted(option.value.text))};
    if (!option.value.fixed) doubt = ModeDoubt{false, format("the acl is only known at run time: {}", quoted(shown(option.value)))};
  }
  return doubt;
}

}  // namespace

std::optional<ModeDoubt> open_mode(const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  if (name == "umask") return open_mask(command);
  if (name == "setfacl") return open_acl(command);
  if (name == "chmod" && has_option(command, "", "reference")) return ModeDoubt{false, "chmod takes the mode of another file"};
  std::optional<ModeDoubt> doubt;
  for (const Word& mode : modes_of(command, name)) {
    if (mode.fixed && opens_to_all(mode.text)) return ModeDoubt{true, format("mode {} lets everybody write", quoted(mode.text))};
    if (mode.fixed && copies_to_all(mode.text))
      doubt = ModeDoubt{false, format("mode {} gives everybody what others may", quoted(mode.text))};
    if (!mode.fixed)
      doubt = ModeDoubt{false, format("the mode is only known at run time, and may let everybody write: {}", quoted(shown(mode)))};
  }
  return doubt;
}

std::optional<std::string> setuid_mode(const SimpleCommand& command) {
  for (const Word& mode : modes_of(command, program_name(command))) {
    if (mode.fixed && sets_id(mode.text)) return format("mode {} makes a program run as its owner or group", quoted(mode.text));
  }
  return std::nullopt;
}

}  // namespace belljar::guard
