// The system call filter of the commands.
#pragma once

#include <stddef.h>

#include "launch/inside/state.h"

namespace belljar::inside {

// Takes a program (sock_filter, as it lies in memory) for all commands from now on, once a child has shown that the kernel takes
// it. 0, or the errno, and nothing has changed.
int take_filter(Setup& setup, const char* program, size_t size);

// In a command's child, last before execve(2): the filter judges what is called after it. 0, also where there is none, or the
// errno.
int install_filter(const Setup& setup);

}  // namespace belljar::inside
