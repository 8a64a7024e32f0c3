// Refusals that this room sees itself, and what a run's list of violations is made of.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"

namespace belljar::runtime {

// By key name, as policy::Effective has them.
using Origins = std::map<std::string, Origin>;

// The place where `key` got its value; {"built-in"} when nobody set it or `origins` is null.
Origin origin_of(const Origins* origins, const std::string& key);

// Adds to `result` one violation for each limit that it says was reached (limits_hit, and the timeouts that are its reason), as far
// as `policy` asked for it. `program` is what was run: a limit is the whole tree's. Times are now; sequences go on from those
// there. `timeout`: the one in force, empty where that is the policy's; one that is neither its own nor its cap is the caller's,
// and no rule's. The bytes of egress have their violations from the proxy: here limits_hit gets their name.
void add_limit_violations(ExecResult& result, const Policy& policy, const Origins* origins, const std::string& program,
                          std::optional<std::chrono::milliseconds> timeout);

}  // namespace belljar::runtime
