// `belljar run --backend container`.
#include "runtime/run.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "cli/command_line.h"
#include "cli/container/environment.h"
#include "cli/container/flags.h"
#include "cli/container/probe.h"
#include "cli/container/sandboxed.h"
#include "cli/full/components.h"
#include "cli/load.h"
#include "policy/merge.h"

namespace belljar::cli {
namespace {

// As `run` everywhere: where the caller is, if that is inside the workspace.
std::string cwd_of(const std::string& cwd, const policy::MergeContext& context) {
  if (!cwd.empty()) return cwd.starts_with('/') ? cwd : context.cwd + "/" + cwd;
  return runtime::find_cwd(context.workspace, context.cwd) ? context.cwd : std::string();
}

// A path of the host as the sandbox calls it.
std::string inside(std::string cwd, const policy::MergeContext& context, const std::string& shown_at) {
  if (cwd.starts_with(context.workspace)) return shown_at + cwd.substr(context.workspace.size());
  return cwd;
}

}  // namespace

int run_in_container(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  if (words.size() > 1 && std::string_view(words[1]) == "probe") return probe_engines(words.subspan(2));
  ContainerFlags flags;
  return run_sandboxed(argc, argv,
                       {.name = "container",
                        .summary = "Run a program in a container of an engine",
                        .usage = "belljar run --backend container --image NAME -- PROGRAM ARGUMENTS",
                        .add_options = [&](const OptionParser& run) { add_container_options(run, flags); },
                        .make = [&](const LoadedPolicy& loaded, SandboxConfig config) -> Result<std::shared_ptr<Sandbox>> {
                          config.workspace = loaded.context.workspace;
                          config.container = BELLJAR_TRY(container_options(flags, container_of_environment(loaded.effective)));
                          // What the command line says comes before a file.
                          if (!flags.image.empty()) config.policy.container.image.reset();
                          if (!flags.pull.empty()) config.policy.container.pull.reset();
                          return make_sandbox(config);
                        },
                        .find_cwd =
                            [](const std::string& asked, const LoadedPolicy& loaded, const Sandbox& sandbox) {
                              return inside(cwd_of(asked, loaded.context), loaded.context, sandbox.workspace());
                            }});
}

}  // namespace belljar::cli
