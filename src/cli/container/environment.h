// What the environment says of containers, for every program that has the backend.
#pragma once

#include "belljar/container.h"
#include "policy/merge.h"

namespace belljar::cli {

// SANDBOX_COMMANDS=true, where it is what chose the backend: each command in a container of its own, the workspace at /workspace.
// BELLJAR_IMAGE and BELLJAR_ENGINE, as for sandbox_config_from(); options and policies come before them.
ContainerOptions container_of_environment(const policy::Effective& effective);

}  // namespace belljar::cli
