// Belljar's own words to people: stderr, prefixed "belljar:", what / reason / next on a line each.
#pragma once

#include <string>
#include <string_view>

#include "belljar/error.h"

namespace belljar::cli {

// The lines as they are printed, with a newline at the end of each.
std::string error_text(const Error& error);
// Prints them to stderr in one write and returns the exit code of the error.
int print_error(const Error& error);
// To stdout, at once. 0, or the exit code of the error that it printed.
int print_result(const std::string& text);
// "belljar: text", one line on stderr.
void print_note(std::string_view text);

}  // namespace belljar::cli
