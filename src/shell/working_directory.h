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
struct Whereabouts {
  std::string directory;             // Part::directory of what comes next
  std::vector<std::string> perhaps;  // Part::perhaps of what comes next
  std::vector<std::string> failed;   // as `perhaps`, where the statement before failed: not behind its `&&`
  bool operator==(const Whereabouts&) const = default;
};

// To `places`, without those that matter to no check.
void add_places(std::vector<std::string>& places, const std::vector<std::string>& more);
// All that `place` may be.
std::vector<std::string> all_of(const Whereabouts& place);

// Where several ways through a text meet again.
Whereabouts joined(const std::vector<Whereabouts>& ends);

// Where `cd WORD` leads from `here`; "" when nobody knows.
std::string directory_behind(const std::string& here, const Word& word);
// What `part` makes of it in its own shell: cd, pushd and popd of bash(1), also behind `command` and `builtin`.
std::string directory_after(const Part& part, const std::string& here);
bool is_cd(const Part& part) noexcept;
// The words of `part` behind `command`, `builtin` and `time`, which run a builtin in this shell.
std::span<const Word> words_here(const Part& part) noexcept;
// The same behind `time` alone: `command f` runs no function.
std::span<const Word> words_called(const Part& part) noexcept;
// A word that runs a builtin in this shell.
bool stays_here(std::string_view word) noexcept;
// Where a `cd` cannot fail on an ordinary system.
bool surely_exists(std::string_view directory);

}  // namespace belljar::shell
