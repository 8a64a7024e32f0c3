// Landlock rules and the system call filter for a planned tree.
#pragma once

#include "backend/native/view.h"

namespace belljar::backend {

// `prepared` has its rules and its network; its plan is filled in.
void confine(const Host& host, const Policy& policy, const Workplace& place, const Paths& paths, Prepared& prepared);

}  // namespace belljar::backend
