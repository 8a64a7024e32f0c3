// The difference between the two programs `belljar` and `belljar-full`: the second holds TLS, and `run` hands
// over to it when a policy needs that (docs/design/egress.md).
#pragma once

#include "belljar/policy.h"
#include "belljar/result.h"
#include "egress/intercept.h"
#include "policy/layer.h"

namespace belljar::cli {

// nullptr in `belljar`.
egress::MakeInterceptor interceptor_of_this_program() noexcept;

// Refuses what `commands.allow` or `commands.deny` of a policy file cannot hold; nullptr in `belljar`, which has no parser of
// shell.
using CheckCommands = Result<void> (*)(const policy::Layer& layer);
CheckCommands command_check_of_this_program() noexcept;

// Replaces this process by belljar-full with the same words, when `policy` needs TLS and this program holds none. Returns
// otherwise, or with the reason that it could not. Before anything was opened or written.
Result<void> exec_tls_program(const Policy& policy);

}  // namespace belljar::cli
