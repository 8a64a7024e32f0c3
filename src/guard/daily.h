// What developers run every day in every project, and is no question: builds, tests, their products. And what of a command may have
// been taken from a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guard/call.h"

namespace belljar::guard {

// As seen from the workspace; a path elsewhere stays as it is.
std::string_view inside(std::string_view path, std::string_view workspace) noexcept;

// What is built, tested and formatted every day, with the targets that projects have. `npx jest` and `python3 -m pytest` count as
// `jest` and `pytest`.
bool is_development(const Act& act);

// What a build makes anew: `make clean` and its like delete it every day.
bool is_product(const Atom& atom, std::string_view workspace);

// Installs what the project itself lists: `pip install -r requirements.txt`, `npm ci`; no package is named.
bool installs_what_is_listed(const Act& act);

// What would stand in a text that a model took this command from, normalised like one.
struct CommandWords {
  // Program and arguments, if these have eight characters and more; else empty. `npm test` and `ls -la` are nobody's idea.
  std::vector<std::string> all;
  // The workspace's file that is run, by itself (`./bootstrap.sh`) or by an interpreter; else empty. Not what a build makes or a
  // build system brings (`./configure`, `./gradlew`).
  std::string script;
};
CommandWords command_words(const Act& act, std::string_view workspace);

}  // namespace belljar::guard
