// Which words of a command name the system, a whole home or the whole workspace: by their spelling alone, no file is looked at.
#pragma once

#include <string>
#include <string_view>

#include "shell/script.h"

namespace belljar::shell {

// "." and ".." and doubled slashes taken away. Of a relative path the ".." that lead out stay in front, and "." is what it comes to
// when nothing is left.
std::string normal_path(std::string_view path);
bool is_below(std::string_view path, std::string_view directory) noexcept;

// The whole machine, a whole home, or a directory the system lives in; also "all that is in it".
bool is_vital(std::string_view path);
bool is_system(std::string_view path);
// The directory a command is called in, one above it, or all that git knows of it.
bool is_own_tree(std::string_view path);

// `word` as a name of a file, seen from where `command` runs: behind `cd /etc`, `x` is `/etc/x`.
Word resolved_word(const SimpleCommand& command, const Word& word);

enum class Reach { kNo, kMaybe, kYes };
// Whether the word names a place of the system. `one_word`: where several could not stand, as behind a redirection.
Reach reaches_system(const Word& word, bool one_word);

}  // namespace belljar::shell
