// Belljar's own words to people: stderr, prefixed "belljar:", what / reason / next on a line each.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "belljar/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace belljar::cli {

// The lines as they are printed, with a newline at the end of each.
std::string error_text(const Error& error);
// Prints them to stderr in one write and returns the exit code of the error.
int print_error(const Error& error);
// To stdout, at once. 0, or the exit code of the error that it printed.
int print_result(const std::string& text);
// "belljar: text", one line on stderr.
void print_note(std::string_view text);

// What the parser of the command line refused, as an Error with the nearest right option or command.
Error usage_error(const CLI::App& app, const CLI::ParseError& refused);

// What main() returns: runs `parse`, whose callbacks set `exit_code`, and turns what it throws into words. The one place where
// exceptions end. `on_usage_error` is told of what was printed of the command line, too.
int parse_and_run(const CLI::App& app, const std::function<void()>& parse, const int& exit_code,
                  const std::function<void(const Error&)>& on_usage_error = {});

}  // namespace belljar::cli
