// Inputs of a start that a single run and a session make alike from a policy and its plan.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "broker/broker.h"
#include "runtime/limits.h"
#include "runtime/violations.h"

namespace belljar::runtime {

LimitContext limit_context(const backend::Prepared& prepared, const Policy& policy, const std::string& workspace);

// `origins` may be null. The result refers to `policy`.
broker::BrokerOptions broker_options(const backend::Prepared& prepared, const Policy& policy, const Origins* origins);

// Where mounts hold a rule the kernel's errno does not say which: BrokerOptions::explain, which refers to `complete`.
std::function<std::optional<broker::Explanation>(broker::Act, std::string_view path, int errnum)> explainer(
    const Filesystem& complete, const Origins* origins);

// Switches off, in `place`, the feature that a start failed for and can do without. False: the error names none.
bool drop_unavailable(const Error& error, backend::Workplace& place);

}  // namespace belljar::runtime
