// A command that was never started, since its caller had cancelled it already.
#pragma once

#include <memory>

#include "belljar/exec_result.h"
#include "belljar/process.h"

namespace belljar::session {

ExecResult cancelled_before_start();
// Its handle: it has ended.
std::unique_ptr<Process> make_cancelled_process();

}  // namespace belljar::session
