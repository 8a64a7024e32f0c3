// The least a sandbox of this kind can be, without any of our code: what the kernel of this machine asks for the namespaces, the
// tree, the locks and their end. A start is compared with it, so that a slow machine is not taken for a slow program.
#pragma once

#include <string>

#include "bench/rows.h"

namespace belljar::bench {

// Clones a child into seven new namespaces, maps its ids, builds a root of /usr, /etc, five device nodes, /proc and `workspace`,
// brings loopback up, sets no_new_privs, restricts it with Landlock, loads a seccomp filter of one rule, runs /bin/true as a child
// of the namespace's first process, and reaps both. No policy, no hidden or protected name, no control group, no answer to anyone.
bool plain_probe(const std::string& workspace);

// The row of plain_probe() in `group`, and `name` compared with it: 1.5 ms were promised for a whole life where the
// probe took as long, so the promise is 1.0 x. Says so where the kernel refused the probe, and promises 1.5 ms there.
void add_plain_probe(Report& report, const std::string& group, std::string name, const Samples& probe);

}  // namespace belljar::bench
