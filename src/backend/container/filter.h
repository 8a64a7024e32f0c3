// The policy's system call filter, as commands in a container get it from their pid 1, on top of the engine's own profile.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "belljar/container.h"
#include "belljar/policy.h"

namespace belljar::backend::container {

// Empty where capabilities are given back: it would refuse what they are for.
std::vector<sock_filter> filter_of(const Policy& policy, const ContainerOptions& options);

}  // namespace belljar::backend::container
