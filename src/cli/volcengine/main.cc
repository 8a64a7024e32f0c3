// belljar-volcengine: `belljar run --backend volcengine`, handed over by `belljar` (cli/hand_over.cc), so that `belljar` links no
// libcurl.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "belljar/volcengine.h"
#include "cli/command_line.h"
#include "cli/container/sandboxed.h"
#include "cli/errors.h"
#include "cli/load.h"

namespace belljar::cli {
namespace {

// No flag for a key: words of a command line are everybody's to read.
struct VolcengineFlags {
  std::string region, function, endpoint, hosts, instance, image, sandbox, aio_url, lifetime, workspace_at, on_stop;
};

void add_volcengine_options(const OptionParser& app, VolcengineFlags& flags) {
  const auto option = [&](const char* name, std::string& to, const char* doc, const char* type) {
    app.add_option(name, to, doc)
        .not_empty()
        .type_name(type)
        .group("Volcengine (the key comes from $VOLC_ACCESS_KEY_ID and $VOLC_SECRET_ACCESS_KEY)");
  };
  option("--volcengine-region", flags.region, "Region (default: $VEFAAS_REGION, then cn-beijing)", "NAME");
  option("--volcengine-function", flags.function, "The sandbox application (default: $SANDBOX_APP_ID)", "ID");
  option("--volcengine-endpoint", flags.endpoint, "Where its sandboxes answer (default: $SANDBOX_ENDPOINT, then asked for)", "URL");
  option("--volcengine-hosts", flags.hosts, "central (default), regional or dual-stack", "WHICH");
  option("--instance-type", flags.instance,
         "standard (1 CPU, 2 GiB) or performance (4 CPUs, 8 GiB); --cpus and --memory win over it", "TYPE");
  option("--volcengine-image", flags.image, "Image of the sandbox (default: the application's)", "NAME");
  option("--volcengine-sandbox", flags.sandbox, "An existing sandbox, running or paused; it is left alive", "ID");
  option("--aio-url", flags.aio_url, "An AIO container that runs already, without an account; its key comes from $SANDBOX_API_KEY",
         "URL");
  option("--lifetime", flags.lifetime, "The service ends the sandbox then, used or not: 3m to 24h (default: 10m)", "TIME");
  option("--workspace-at", flags.workspace_at, "The workspace there (default: /home/gem)", "PATH");
  option("--on-stop", flags.on_stop, "kill (default), pause or leave; the last two say which sandbox it was", "WHAT");
}

Error wrong(std::string_view option, std::string_view text, std::string next) {
  return Error(Code::kInvalidArgument, format("{}: cannot use {}", option, belljar::quoted(text))).next(std::move(next));
}

Result<VolcengineOptions> volcengine_options(const VolcengineFlags& flags) {
  VolcengineOptions options;
  options.region = flags.region;
  options.function_id = flags.function;
  options.endpoint = flags.endpoint;
  options.image = flags.image;
  options.sandbox_id = flags.sandbox;
  options.aio_url = flags.aio_url;
  if (!flags.lifetime.empty()) options.lifetime = BELLJAR_TRY(parse_duration(flags.lifetime));
  if (flags.hosts == "regional") options.hosts = VolcengineHosts::kRegional;
  else if (flags.hosts == "dual-stack") options.hosts = VolcengineHosts::kDualStack;
  else if (!flags.hosts.empty() && flags.hosts != "central")
    return wrong("--volcengine-hosts", flags.hosts, "use central, regional or dual-stack");
  if (flags.instance == "standard") options.instance_type = VolcengineInstance::kStandard;
  else if (flags.instance == "performance") options.instance_type = VolcengineInstance::kPerformance;
  else if (!flags.instance.empty()) return wrong("--instance-type", flags.instance, "use standard or performance");
  if (flags.on_stop == "kill") options.on_stop = CloudOnStop::kKill;
  else if (flags.on_stop == "pause") options.on_stop = CloudOnStop::kPause;
  else if (flags.on_stop == "leave") options.on_stop = CloudOnStop::kLeave;
  else if (!flags.on_stop.empty()) return wrong("--on-stop", flags.on_stop, "use kill, pause or leave");
  return options;
}

// At the start: whatever comes then, it is known which one lives on.
void tell_id(const VolcengineFlags& flags, const Sandbox& sandbox) {
  if ((flags.on_stop != "pause" && flags.on_stop != "leave") || !flags.aio_url.empty()) return;
  if (const auto* const there = dynamic_cast<const CloudSandbox*>(&sandbox))
    print_note(format("the sandbox is {} (--volcengine-sandbox enters it again)", escaped(there->sandbox_id())));
}

}  // namespace
}  // namespace belljar::cli

int main(int argc, char** argv) {
  using namespace belljar::cli;
  VolcengineFlags flags;
  return run_sandboxed(
      argc, argv,
      {.name = "volcengine",
       .summary = "Run a program in a sandbox of Volcengine, or in an AIO container",
       .usage = "belljar run --backend volcengine -- PROGRAM ARGUMENTS",
       .add_options = [&](const OptionParser& run) { add_volcengine_options(run, flags); },
       .make = [&](const LoadedPolicy&, belljar::SandboxConfig config) -> belljar::Result<std::shared_ptr<belljar::Sandbox>> {
         config.workspace = flags.workspace_at;
         config.factory = belljar::volcengine_backend(BELLJAR_TRY(volcengine_options(flags)));
         return belljar::make_sandbox(config);
       },
       .find_cwd = [](const std::string& asked, const LoadedPolicy&, const belljar::Sandbox&) { return asked; },
       .started = [&](const belljar::Sandbox& sandbox) { tell_id(flags, sandbox); }});
}
