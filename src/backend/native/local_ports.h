// network.allow_local_binding = false: what holds it, and what the report says of that.
#pragma once

#include "belljar/exec_result.h"
#include "kernel/seccomp.h"

namespace belljar::backend {

// `listener`: there is a broker to judge.
kernel::LocalPorts hold_local_ports(bool listener, kernel::UnixSockets unix_sockets) noexcept;

// The clause network.local_binding. `abi`: of Landlock, which holds bind(2) from 4 on and not listen(2).
EnforcementClause local_binding_clause(kernel::LocalPorts ports, int abi);

}  // namespace belljar::backend
