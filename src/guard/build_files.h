// What the files of build tools and task runners run: the part of them that a call asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace belljar::guard {

// The recipes of a Makefile that `make` with these words runs: of the targets that are named, or of the first, and of all that
// these need; every recipe where variables decide. Besides what `$(shell ...)` runs, whatever is made.
std::string recipes_of(std::string_view text, const std::vector<std::string>& words);
// The texts under `scripts` of a package.json that npm and its kin run for these words, with those before and after them; all of
// them where no table knows.
std::string scripts_of(std::string_view text, const std::vector<std::string>& words);
// RUN, CMD and ENTRYPOINT of a Dockerfile, where they are shell; of a justfile and its kin the lines that stand further in.
std::string steps_of(std::string_view text, bool docker);

// What stands between quotes in code, a line each.
std::string literals_of(std::string_view code);
// What code hands to a shell or starts as a program, a command a line, as far as it stands in quotes: `os.system("x y")`,
// `spawn("x", ["y"])`, `cmd = "x y"; run(cmd)`.
std::vector<std::string> commands_in(std::string_view code);

// The files that a file's text has run, imported or included with it, in the languages that name them in words: relative to the
// directory of `path` or to where the program is started. Guesses: some are not there.
std::vector<std::string> files_named_in(std::string_view path, std::string_view text);

}  // namespace belljar::guard
