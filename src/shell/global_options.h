// Options that stand between a program and its sub-command: `git -C DIR push`. A rule's prefix looks past them.
#pragma once

#include <string_view>

namespace belljar::shell {

enum class TakesWord { kNo, kYes, kUnknown };

// Whether `option` of `program` takes its value from the next word. kUnknown: no table knows, so the next word may be either.
TakesWord takes_word(std::string_view program, std::string_view option) noexcept;

}  // namespace belljar::shell
