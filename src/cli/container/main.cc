// belljar-container: `belljar run --backend container`, handed over by `belljar` (cli/hand_over.cc), so that a plain run links no
// HTTP.
#include <memory>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "cli/container/flags.h"
#include "cli/container/sandboxed.h"
#include "cli/load.h"
#include "policy/merge.h"
#include "runtime/run.h"

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

// --image with the backend of another name would be two wishes.
Result<void> check_backend(const policy::Effective& effective) {
  constexpr std::string_view kOurs = "container";
  const auto said = effective.origins.find("backend");
  if (said == effective.origins.end() || kOurs == effective.policy.backend) return {};
  return Error(Code::kInvalidArgument, format("cannot use an image with the backend {}", belljar::quoted(effective.policy.backend)))
      .reason(format("backend comes from {}", to_string(said->second)))
      .next("say --backend container, or drop --image and --engine");
}

}  // namespace
}  // namespace belljar::cli

int main(int argc, char** argv) {
  using namespace belljar::cli;
  ContainerFlags flags;
  return run_sandboxed(argc, argv,
                       {.name = "container",
                        .summary = "run a program in a container of an engine",
                        .usage = "belljar run --backend container --image NAME -- PROGRAM ARGUMENTS",
                        .add_options = [&](CLI::App& run) { add_container_options(run, flags); },
                        .make = [&](const LoadedPolicy& loaded,
                                    belljar::SandboxConfig config) -> belljar::Result<std::shared_ptr<belljar::Sandbox>> {
                          BELLJAR_CHECK(check_backend(loaded.effective));
                          config.workspace = loaded.context.workspace;
                          config.container = BELLJAR_TRY(container_options(flags));
                          return belljar::make_sandbox(config);
                        },
                        .find_cwd =
                            [](const std::string& asked, const LoadedPolicy& loaded, const belljar::Sandbox& sandbox) {
                              return inside(cwd_of(asked, loaded.context), loaded.context, sandbox.workspace());
                            }});
}
