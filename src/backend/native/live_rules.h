// What the broker is to hold while the command runs, made from the policy and the paths that were planned.
#pragma once

#include <memory>
#include <optional>

#include "backend/native/view.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/seccomp.h"

namespace belljar::backend {

// None when no rule of the policy needs it: then no file call is intercepted and nothing is slower. `held`: no mount holds the
// paths (second tier), so all of them are the broker's; without it names, patterns and contents are.
std::shared_ptr<const broker::FileRules> make_file_rules(const Policy& policy, const Paths& paths,
                                                         std::optional<broker::HeldPaths> held = std::nullopt);

// The calls that the filter sends to the broker for these rules.
kernel::FileCalls file_calls(const broker::FileRules* rules) noexcept;

}  // namespace belljar::backend
