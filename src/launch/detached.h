// Programs of ours that outlive the process that starts them.
#pragma once

#include <string>
#include <vector>

#include "belljar/result.h"

namespace belljar::launch {

// The descriptor at which a detached program finds `channel`.
inline constexpr int kDetachedChannel = 3;

// Starts `program` in a session of its own: no terminal, /dev/null as 0, 1 and 2, `channel` (-1: none) as kDetachedChannel, no
// other descriptor of ours, no signal blocked or, with kNone, ignored, `env` as its environment. It keeps our working directory,
// umask and limits. The caller is not told of its end: it is meant to end first. Errors: kUnavailable, kResourceExhausted.
enum class Ignored { kNone, kKept };
Result<void> start_detached(const std::string& program, const std::vector<std::string>& argv, const std::vector<std::string>& env,
                            int channel, Ignored ignored = Ignored::kNone);

}  // namespace belljar::launch
