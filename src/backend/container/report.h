// The enforcement report of a container: what the engine was asked for, and what nothing there holds.
#pragma once

#include "backend/container/spec.h"
#include "backend/native/view.h"

namespace belljar::backend::container {

EnforcementReport report_container(const Policy& policy, const ContainerOptions& options, const Paths& paths, const User& user,
                                   bool rootless);

// Limits that the engine says it cannot hold become `none`.
void report_limits(const Policy& policy, bool memory, bool cpu, bool pids, EnforcementReport& report);

// An engine that is not asked by a socket of this machine: what it leaves running when it dies is out of reach.
void report_remote_engine(EnforcementReport& report);

}  // namespace belljar::backend::container
