// Programs that start what their arguments name: where the inner command begins. Option tables are those of coreutils 9, findutils,
// util-linux, sudo(8) and bash(1); an option that is not in the table makes the rest unread, since it might take the next word.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shell/script.h"

namespace belljar::shell {

// A command, or a script, that a simple command starts.
struct InnerCommand {
  enum class Kind {
    kCommand,  // `argv`, with `assignments` before it
    kScript,   // `script` is text for a shell
    kUnread,   // `label` says why it cannot be told
  };
  Kind kind = Kind::kCommand;
  std::string label;  // "sudo", "sh -c", "find -exec"
  std::vector<Word> argv;
  std::vector<Assignment> assignments;
  Word script;
  std::optional<Word> directory;  // `env -C`: where the command runs
  bool operator==(const InnerCommand&) const = default;
};

InnerCommand inner_script(std::string label, Word text);
InnerCommand inner_unread(std::string reason);

// What a wrapper starts.
struct Unwrapped {
  std::vector<InnerCommand> commands;  // empty: not a wrapper
  // The wrapper does nothing of its own: only what it starts is to be judged.
  bool transparent = false;
};

// A shell by name: sh, bash, dash, zsh, ksh, ash, mksh, busybox sh is opened as a wrapper first.
bool is_shell(std::string_view program) noexcept;
// A word that the shell's own grammar gives a meaning where a command's name stands: `if`, `{`, `coproc` ... but `time`.
bool is_reserved(std::string_view word) noexcept;
// The name of a program that is called by it or lies directly in /bin, /usr/bin or /usr/local/bin; of any other `program` itself.
std::string_view system_name(std::string_view program) noexcept;
// Whether `command` is a shell, or `.`, that reads its script from standard input.
bool reads_script_from_stdin(const SimpleCommand& command) noexcept;

Unwrapped unwrap(const SimpleCommand& command);

}  // namespace belljar::shell
