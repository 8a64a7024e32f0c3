// A command that could not be executed, as a sentence with a reason and a next step, and the exit code that shells give it.
#pragma once

#include <string>
#include <string_view>

#include "belljar/exec_result.h"

namespace belljar::runtime {

// `errnum` and `call` as init reported them, `program` as it was asked for, `cwd` as the command's directory.
// 127: there is no such program inside. 126: there is, and it cannot be executed. 125: something of ours failed.
Error explain_start_failure(int errnum, std::string_view call, const std::string& program, const std::string& cwd);

}  // namespace belljar::runtime
