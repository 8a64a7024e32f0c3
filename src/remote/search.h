// The command line of grep inside and the reader of its output, for every cloud whose daemon or shell runs it.
#pragma once

#include <string>
#include <vector>

#include "belljar/files.h"
#include "belljar/result.h"

namespace belljar::remote {

inline constexpr std::size_t kMostNames = 96U << 10;    // of the arguments of one grep: the kernel takes 128 KiB at least
inline constexpr std::uint64_t kMostFound = 32U << 20;  // bytes of what it says

// The result of a helper inside.
struct HelperResult {
  int exit_code = 0;
  std::string out, err;
  bool complete = true;  // false: more was said than asked for
};

// Errors: kInvalidArgument.
Result<void> check_walk(const WalkOptions& options);
Result<void> check_text(const std::string& text);

// The names of `files` follow.
std::vector<std::string> grep_words(const std::string& text, Case letters);
// False: not all could be searched, or it is enough. Errors: kFailedPrecondition, it is not GNU grep, or failed.
Result<bool> add_matches(const HelperResult& helped, const std::string& top, std::size_t most, GrepResult& result);

}  // namespace belljar::remote
