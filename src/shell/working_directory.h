// Which directory a shell is in while its text is read: what `cd`, `pushd` and `popd` with a fixed place make of it, and where it
// may be instead when one of them may not have run or may have failed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shell/script.h"

namespace belljar::shell {

// The working directory of the shell that reads.
struct WorkingDirectory {
  std::string directory;                          // SimpleCommand::directory of what comes next
  std::vector<std::string> possible_directories;  // SimpleCommand::possible_directories of what comes next
  std::vector<std::string> failed;                // as `perhaps`, where the statement before failed: not behind its `&&`
  bool operator==(const WorkingDirectory&) const = default;
};

// To `places`, without those that matter to no check.
void add_directories(std::vector<std::string>& directories, const std::vector<std::string>& more);
// All that `place` may be.
std::vector<std::string> all_of(const WorkingDirectory& cwd);

// The working directory where several ways through a text meet again.
WorkingDirectory joined(const std::vector<WorkingDirectory>& ends);

// The directory to which `cd WORD` leads from `here`; "" if it is not known.
std::string directory_behind(const std::string& here, const Word& word);
// What `command` makes of it in its own shell: cd, pushd and popd of bash(1), also behind `command` and `builtin`.
std::string directory_after(const SimpleCommand& command, const std::string& here);
bool is_cd(const SimpleCommand& command) noexcept;
// The words of `command` behind `command`, `builtin` and `time`, which run a builtin in this shell.
std::span<const Word> words_here(const SimpleCommand& command) noexcept;
// The same behind `time` alone: `command f` runs no function.
std::span<const Word> words_called(const SimpleCommand& command) noexcept;
// A word that runs a builtin in this shell.
bool stays_here(std::string_view word) noexcept;
// Whether a `cd` to it cannot fail on an ordinary system.
bool surely_exists(std::string_view directory);

}  // namespace belljar::shell
