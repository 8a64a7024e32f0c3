#include "backend/native/local_ports.h"

#include <string>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "kernel/seccomp.h"

namespace belljar::backend {

kernel::LocalPorts hold_local_ports(bool listener, kernel::UnixSockets unix_sockets) noexcept {
  if (listener) return kernel::LocalPorts::kJudged;
  return unix_sockets == kernel::UnixSockets::kPairs ? kernel::LocalPorts::kRefused : kernel::LocalPorts::kOpen;
}

EnforcementClause local_binding_clause(kernel::LocalPorts ports, int abi) {
  EnforcementClause clause{"network.local_binding", "no listening sockets", "", Enforced::kPartial,
                           "TCP only: UDP ports can be bound"};
  const std::string second = abi >= 4 ? ", bind by Landlock too" : "";
  if (ports == kernel::LocalPorts::kJudged) {
    clause.mechanism = "broker" + second;
  } else if (ports == kernel::LocalPorts::kRefused) {
    clause.mechanism = "seccomp: no listen" + second;
  } else if (abi >= 4) {
    clause.mechanism = "Landlock";
    clause.detail =
        "bind of TCP only: listen without it takes a port of the kernel's choice (needs the broker); UDP ports can be bound";
  } else {
    clause.enforced = Enforced::kNone;
    clause.detail = format("needs the broker, or Landlock ABI 4 for bind alone, kernel has {}", abi);
  }
  return clause;
}

}  // namespace belljar::backend
