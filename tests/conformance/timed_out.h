// Commands that are ended by their timeout, once they have got far enough.
#pragma once

#include <chrono>
#include <functional>

#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"

namespace belljar::test {

// `command`, ended by a timeout that doubles until the command is `ready` by then: a busy machine needs its time.
inline Result<ExecResult> timed_out(Sandbox& sandbox, const Command& command, const std::function<bool()>& ready,
                                    std::chrono::milliseconds timeout = std::chrono::milliseconds(500)) {
  for (;; timeout *= 2) {
    auto ended = sandbox.exec(command, {.timeout = timeout});
    if (!ended || ready() || timeout > std::chrono::seconds(30)) return ended;
  }
}

}  // namespace belljar::test
