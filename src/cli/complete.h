// What fits where somebody pressed Tab. The shells' scripts (`belljar completion SHELL`) are a dozen lines that call
// `belljar __complete WORD...` with the words up to the cursor, the last of them unfinished; so whatever is parsed is completed, in
// each of our programs, and there is no second list to keep.
//
// The answer has a line for each: "WORD\tWHAT IT DOES", or one of these, which leave the rest to the shell:
//   :files  :directories  names of them     :program  from here on the words are those of another program
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command_info.h"

namespace belljar::cli {

inline constexpr std::string_view kCompleteWord = "__complete";

// `words`: those behind the command's own, the last of them unfinished.
std::string completions(const CommandInfo& command, std::span<const std::string> words, const Offers& offers = {});

}  // namespace belljar::cli
