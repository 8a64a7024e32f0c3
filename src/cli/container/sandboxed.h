// `belljar run` with a backend that is a Sandbox and not a plan for our launcher: one program each, the same options and the same
// end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "cli/audited.h"
#include "cli/choose.h"
#include "cli/command_line.h"
#include "cli/load.h"
#include "cli/policy_flags.h"

namespace belljar::cli {

struct SandboxedBackend {
  std::string_view name;  // "container"
  const char* summary;    // of the program, and of `run`
  const char* usage;
  std::function<void(const OptionParser&)> add_options;
  // Its own options against the policy's backend, and the sandbox, not started.
  std::function<Result<std::shared_ptr<Sandbox>>(const LoadedPolicy&, SandboxConfig)> make;
  // Where the command works, as the sandbox calls it; empty: its workspace.
  std::function<std::string(const std::string& asked, const LoadedPolicy&, const Sandbox&)> find_cwd;
  std::function<void(const Sandbox&)> started = {};  // unset: nothing is to be said
};

// The whole of main().
int run_sandboxed(int argc, char** argv, const SandboxedBackend& backend);

}  // namespace belljar::cli
