// What a single run and a session make alike from a policy and its plan.
#pragma once

#include <string>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "broker/broker.h"
#include "runtime/limits.h"
#include "runtime/violations.h"

namespace belljar::runtime {

LimitContext limit_context(const backend::Prepared& prepared, const Policy& policy, const std::string& workspace);

// `origins` may be null. The result refers to `policy`.
broker::BrokerOptions broker_options(const backend::Prepared& prepared, const Policy& policy, const Origins* origins);

// Layers of transactions are nobody's business inside, of this one or another: their directory is hidden wherever it is.
void hide_state(Policy& policy, const std::string& state_dir);

}  // namespace belljar::runtime
