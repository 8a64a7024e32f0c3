// Everyday commands of developers, in every project the same: builds, tests, their products. Provenance alone is
// no reason to ask about those. Also the words by which a command would be found in a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guard/call.h"

namespace belljar::guard {

// As seen from the workspace; a path elsewhere stays as it is.
std::string_view inside(std::string_view path, std::string_view workspace) noexcept;

// Builds, tests and formatters with the targets that projects have. `npx jest` and `python3 -m pytest` count
// as `jest` and `pytest`.
bool is_development(const Act& act);

// Products of a build, which `make clean` and its like delete every day.
bool is_product(const Atom& atom, std::string_view workspace);

// Installs what the project itself lists: `pip install -r requirements.txt`, `npm ci`; no package is named.
bool installs(const Act& act);
bool installs_what_is_listed(const Act& act);

// The words that a text would have from which a model took this command, normalised like the text.
struct CommandWords {
  // Program and arguments, if these have eight characters and more; else empty. `npm test` and `ls -la` are nobody's idea.
  std::vector<std::string> all;
  // The workspace's file that is run, by itself (`./bootstrap.sh`) or by an interpreter; else empty. Not what a build makes or a
  // build system brings (`./configure`, `./gradlew`).
  std::string script;
};
CommandWords command_words(const Act& act, std::string_view workspace);

}  // namespace belljar::guard
