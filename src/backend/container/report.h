// The enforcement report of a container: what the engine was asked for, and what nothing there holds.
#pragma once

#include <string>
#include <vector>

#include "backend/container/mounted.h"
#include "backend/container/spec.h"
#include "backend/paths/plan.h"

namespace belljar::backend::container {

// The gap of a hidden link; those of names with nothing behind them are the view's.
inline constexpr char kHiddenLink[] = "filesystem.hidden_link";

EnforcementReport report_container(const Policy& policy, const ContainerOptions& options, const PathPlan& paths, const User& user,
                                   bool rootless, const Spec& spec);

// Limits that the engine says it cannot hold become `none`.
void report_limits(const Policy& policy, bool memory, bool cpu, bool pids, EnforcementReport& report);

// Adds what the engine's own settings change: it maps ids (not those of this container), it has a seccomp profile.
void report_engine(bool maps_ids, bool seccomp, EnforcementReport& report);

// The engine shows more than it was asked for, at these points.
void lower_root(const std::vector<std::string>& unasked, EnforcementReport& report);

// A tmpfs at these points takes more than was asked for (find_larger).
void lower_tmp(const std::vector<std::string>& larger, EnforcementReport& report);

// Compares pid 1's own status with what `spec` asked for and lowers identity, processes, kill, privileges, terminal.
void lower_status(const InsideStatus& status, const Spec& spec, EnforcementReport& report);

// pid 1 could not install the policy's filter.
void lower_filter(EnforcementReport& report);

// Its pid 1 is out of our reach: what an engine leaves running when it dies stays.
void report_unheld(EnforcementReport& report);

// The clause of programs that know nothing of the proxy, where nothing can be redirected: only what is asked for by name and at
// these ports is caught. `errnum`: 0, or why not even that.
void lower_transparent(EnforcementReport& report, int errnum);

}  // namespace belljar::backend::container
