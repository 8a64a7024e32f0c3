// The inside of a sandbox's own network: which sockets lie there and what leads to them. docs/design/egress.md.
#pragma once

#include <vector>

#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "launch/plan.h"

namespace belljar::backend {

// What lies in the network of a sandbox of ours. Where nothing redirects, what is caught is caught by the kDirect ones.
std::vector<launch::InnerSocket> inner_sockets(const Network& network);

// Adds sockets, routes and the redirect to `plan`, and to `view` a resolv.conf that names our resolver, or without one lets
// look-ups fail at once. A host without /etc/resolv.conf needs none: resolvers then ask 127.0.0.1, where ours listens too
// (resolv.conf(5)).
void plan_network(const Host& host, const Network& network, launch::Plan& plan, View& view);

}  // namespace belljar::backend
