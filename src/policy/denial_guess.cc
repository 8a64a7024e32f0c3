#include "belljar/denial_guess.h"

#include <signal.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/ascii.h"
#include "belljar/exec_result.h"

namespace belljar {
namespace {

constexpr std::string_view kWords[] = {
    "operation not permitted", "permission denied", "read-only file system", "seccomp", "sandbox", "landlock",
    "failed to write file"};

bool contains(std::string_view text, std::string_view lower_case_word) {
  return !std::ranges::search(text, lower_case_word, {}, to_lower).empty();
}

}  // namespace

bool is_likely_sandbox_denied(HeldBy held_by, const ExecResult& result) {
  if (held_by != HeldBy::kRemote || result.exit_code == 0) return false;
  if (result.exit_code == 128 + SIGSYS || result.signal == SIGSYS) return true;
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return contains(result.out.bytes, word) || contains(result.err.bytes, word); });
}

}  // namespace belljar
