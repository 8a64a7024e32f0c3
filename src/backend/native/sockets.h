// network.allow_unix_sockets: which sockets of the host the broker is to open.
#pragma once

#include <string>
#include <vector>

#include "backend/paths/host.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "broker/broker.h"

namespace belljar::backend {

// One for each path of the policy, there or not. Errors: kInvalidArgument, something that is no socket, or an absent one in a place
// of `writable`, where the command could put a link to any other; kUnimplemented, a datagram socket.
Result<std::vector<broker::ListedSocket>> list_sockets(const Host& host, const Policy& policy,
                                                       const std::vector<std::string>& writable);

// What speaks for itself (docker, D-Bus) is as good as the user or root: a sentence each for the caller of the run.
void warn_of_sockets(const std::vector<broker::ListedSocket>& sockets, std::vector<std::string>& warnings);

}  // namespace belljar::backend
