// What a person answered to an agent inside (policy/answers.h) stays answered inside: STATE/agents/NAME.answers.
#pragma once

#include <string>
#include <string_view>

#include "backend/backend.h"
#include "belljar/result.h"
#include "cli/load.h"
#include "runtime/run.h"

namespace belljar::cli {

// Sets the files of the agent's state that a start puts into its layer (backend::Workplace::laid), made of the host's and of what
// was answered before. What the policy hides is not read. None: no agent, or one that asks nothing.
void lay_answers(const LoadedPolicy& loaded, backend::Workplace& workplace);

// Keeps what was answered in this run, and says so on stderr when it is more than before.
void keep_answers(const runtime::RunOutcome& ran, const LoadedPolicy& loaded);

// Whether the file `name` of the agent's state, which a run left as `after`, was `before` but for answers, or is one of ours.
bool differs_in_answers_alone(const LoadedPolicy& loaded, std::string_view name, const std::string* before, std::string_view after);

// Errors: kNotFound, no agent of that name; kPermissionDenied.
Result<void> forget_answers(std::string_view agent);

}  // namespace belljar::cli
