#include "backend/container/filter.h"

#include <linux/filter.h>

#include <vector>

#include "belljar/container.h"
#include "belljar/policy.h"
#include "kernel/seccomp.h"

namespace belljar::backend::container {

std::vector<sock_filter> filter_of(const Policy& policy, const ContainerOptions& options) {
  if (!options.capabilities.empty()) return {};
  // No broker sees a connect in there. Datagram ends can name any path in a send, so there are none unless every socket is allowed.
  const auto sockets = policy.network.allow_all_unix_sockets ? kernel::UnixSockets::kAll : kernel::UnixSockets::kStream;
  return kernel::build_filter({.unix_sockets = sockets});
}

}  // namespace belljar::backend::container
