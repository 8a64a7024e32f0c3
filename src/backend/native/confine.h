// Landlock rules and the system call filter for a planned tree.
#pragma once

#include "backend/native/view.h"

namespace belljar::backend {

void confine(const Host& host, const Policy& policy, const Paths& paths, bool own_network, launch::Plan& plan);

}  // namespace belljar::backend
