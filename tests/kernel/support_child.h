// One forked child per probe, which reports through a pipe: what a filter or a Landlock domain does, it does for good.
#pragma once

#include <cerrno>
#include <functional>
#include <iosfwd>
#include <string>

#include "kernel/seccomp.h"

namespace belljar::kernel {

// What came of a probe in a child: the value it returned (a raw call's result, -errno), or the signal that ended it.
struct Probe {
  long value = 0;
  int signal = 0;
};
std::ostream& operator<<(std::ostream& stream, const Probe& probe);

// Runs `body` in a child with no_new_privs.
Probe in_child(const std::function<long()>& body);
// The same below the filter of `spec`. Fails the test when the filter cannot be installed.
Probe filtered(const SeccompSpec& spec, const std::function<long()>& body);
// A raw call: its value, or -errno.
long raw(long number, long a0 = 0, long a1 = 0, long a2 = 0, long a3 = 0, long a4 = 0, long a5 = 0);

// The kernel's own verdict on a call without making it. An outer filter, older than the one under test, answers kReached to
// everything that the inner one allows; where both answer with an errno the newer filter's wins (seccomp(2): the first of equal
// actions, newest first). kReached stands for allow and for notify: an errno outranks both.
inline constexpr int kReached = 3777;
// Installs that outer filter in the calling process. Calls with kPass as their sixth argument go through it.
inline constexpr long kPass = 0x5ec0de;
int install_catch_all() noexcept;

}  // namespace belljar::kernel
