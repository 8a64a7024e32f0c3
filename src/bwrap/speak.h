// The program `bwrap`: from its words to its exit code.
#pragma once

#include <span>
#include <string>

namespace belljar::bwrap {

// `name`: what we were called. Messages go to stderr, help and version to stdout. Does not return before the command's end, and
// gives up this process's other descriptors and its privileges: nothing but exiting is left to do.
int speak(const std::string& name, std::span<const std::string> words);

}  // namespace belljar::bwrap
