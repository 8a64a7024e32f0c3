// Which backend a run uses where several may: the policy's `backend`, then its `fallback`. Each program of ours serves some of
// them; what is left to try goes to the next one, with what was tried before.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "policy/choice.h"
#include "policy/merge.h"

namespace belljar::cli {

// Must outlive the parsing of the App it is registered on.
struct ChooseFlags {
  std::vector<std::string> tried;       // --tried, of one program of ours to the next, "NAME: WHY" each
  std::vector<std::string> ignored;     // values of options that only other backends have
  std::vector<std::string_view> given;  // names of backends' options that were given, see note_given()
};

// The options of other backends' programs as far as `words` have them: the one that serves the backend reads them, this one only
// knows that they are right. After the program's own options.
void add_choose_options(const OptionParser& run, ChooseFlags& flags, std::span<const char* const> words);
// After the parsing.
void note_given(const OptionParser& run, ChooseFlags& flags);

// Whether --tried is among `words`, or --fallback: then the policy decides which program serves the run, not the words.
bool policy_chooses(std::span<const char* const> words) noexcept;

// `ours`: the backend whose program this is; empty: `belljar`. Errors: kInvalidArgument, an option of a backend that is not among
// those to try.
Result<policy::Choice> make_choice(const ChooseFlags& flags, const policy::Effective& effective, std::string_view ours);

// Replaces this process by the one that serves `backend`, with what was tried before. `words`: ours from `run` on, without `--` and
// what follows, which is `program`. Returns only when that fails.
Error exec_backend_program(const policy::Choice& choice, const std::string& backend, std::span<const char* const> words,
                           std::span<const std::string> program);

}  // namespace belljar::cli
