// Options of ordinary programs whose value another program is: `tar --to-command=TEXT`, `git -c core.pager=TEXT`.
#pragma once

#include <vector>

#include "guard/shell.h"
#include "guard/wrappers.h"

namespace belljar::guard {

// What the program starts because its words say so; the part itself is judged, too.
std::vector<Opened> started_by_options(const Part& part);

}  // namespace belljar::guard
