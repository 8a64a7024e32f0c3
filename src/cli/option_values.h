// What CLI11 has to be told of an option's values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace belljar::cli {

// May be given again and again, with one value each time. A list of itself takes every word that follows and is no option: the ID
// of `belljar exec --env A=1 ID` too.
inline CLI::Option* repeatable(CLI::Option* option) {
  return option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Names a file, a host or a sandbox: "" is a variable of a script that was not set, and must not mean that nothing was given.
inline CLI::Option* not_empty(CLI::Option* option) {
  return option->check([](const std::string& value) { return std::string(value.empty() ? "its value is empty" : ""); });
}

// A count: 0 would mean that nothing is done at all.
inline CLI::Option* at_least_one(CLI::Option* option) {
  return option->check([](const std::string& value) {
    const bool count = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    return std::string(count && value.find_first_not_of('0') != std::string::npos ? "" : "give a whole number, at least 1");
  });
}

}  // namespace belljar::cli
