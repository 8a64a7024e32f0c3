// Seeing which files a command asks for, for `belljar learn`. Nothing is decided here, so that a
// path can change between our look and the kernel's costs a line in a list and no more.
//
// What is seen: opens, looks (stat, access, readlink) and every call that makes, moves, removes or changes a name, with the path
// resolved in the caller's view as it was just before; and with each of them what the caller executes. Not seen: what the kernel
// opens itself (an ELF interpreter), calls on open descriptors, owner and time changes, a program that uses no file at all, and
// whether the call then succeeded.
#pragma once

#include "broker/context.h"

namespace belljar::broker {

// Tells the observer, where there is one, and answers nothing. True when `call` is one of these.
bool observe(Context& context, const Call& call);

}  // namespace belljar::broker
