// What the broker is to hold while the command runs, made from the policy and the paths that were planned.
#pragma once

#include <memory>

#include "backend/native/view.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/seccomp.h"

namespace belljar::backend {

enum class Holds {
  kLive,   // names, patterns and contents; mounts hold plain paths
  kPaths,  // plain paths too: nobody else does (second tier)
};

// None when no rule of the policy needs it: then no file call is intercepted and nothing is slower.
std::shared_ptr<const broker::FileRules> make_file_rules(const Policy& policy, const Paths& paths, Holds holds);

// The calls that the filter sends to the broker for these rules.
kernel::FileCalls file_calls(const broker::FileRules* rules) noexcept;

}  // namespace belljar::backend
