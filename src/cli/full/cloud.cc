// `belljar run` on a machine of a service: what all services have in common.
//
// The program is that of containers (container/sandboxed.cc), with another sandbox. Differences between the
// services are values of Cloud: options, how a sandbox is made, what one is called. A machine of a service
// outlives a run if --on-stop says so, and then its id is told, since without it nobody could enter or end it
// again. There is no option for a key, here or in a service's own file: words of a command line are
// everybody's to read in /proc.
#include "cli/full/cloud.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "cli/command_line.h"
#include "cli/container/sandboxed.h"
#include "cli/errors.h"
#include "cli/load.h"

namespace belljar::cli {
namespace {

// At the start: whatever comes then, it is known which one lives on.
void tell_id(const CloudFlags& flags, const Cloud& cloud, const Sandbox& sandbox) {
  if ((flags.on_stop != "pause" && flags.on_stop != "leave") || (cloud.address != nullptr && !cloud.address->empty())) return;
  if (const auto* const there = dynamic_cast<const CloudSandbox*>(&sandbox))
    print_note(format("the {} is {} ({} enters it again)", cloud.machine, escaped(there->sandbox_id()), cloud.entering));
}

}  // namespace

Error wrong_option(std::string_view option, std::string_view text, std::string next) {
  return Error(Code::kInvalidArgument, format("{}: cannot use {}", option, belljar::quoted(text))).next(std::move(next));
}

Result<void> set_on_stop(const CloudFlags& flags, std::optional<CloudOnStop>& to) {
  if (flags.on_stop == "kill") to = CloudOnStop::kKill;
  else if (flags.on_stop == "pause") to = CloudOnStop::kPause;
  else if (flags.on_stop == "leave") to = CloudOnStop::kLeave;
  else if (!flags.on_stop.empty()) return wrong_option("--on-stop", flags.on_stop, "use kill, pause or leave");
  return {};
}

int run_in_cloud(int argc, char** argv, const CloudFlags& flags, const Cloud& cloud) {
  return run_sandboxed(argc, argv,
                       {.name = cloud.name,
                        .summary = cloud.summary,
                        .usage = cloud.usage,
                        .add_options = cloud.add_options,
                        .make = [&](const LoadedPolicy&, SandboxConfig config) -> Result<std::shared_ptr<Sandbox>> {
                          config.workspace = flags.workspace_at;
                          config.factory = BELLJAR_TRY(cloud.make());
                          return make_sandbox(config);
                        },
                        .find_cwd = [](const std::string& asked, const LoadedPolicy&, const Sandbox&) { return asked; },
                        .started = [&](const Sandbox& sandbox) { tell_id(flags, cloud, sandbox); }});
}

}  // namespace belljar::cli
