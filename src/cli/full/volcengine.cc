// `belljar run --backend volcengine`.
#include "belljar/volcengine.h"

#include <string>
#include <string_view>
#include <utility>

#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/full/cloud.h"
#include "cli/full/components.h"

namespace belljar::cli {
namespace {

struct VolcengineFlags : CloudFlags {
  std::string region, function, endpoint, hosts, instance, image, sandbox, aio_url, lifetime;
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
    return wrong_option("--volcengine-hosts", flags.hosts, "use central, regional or dual-stack");
  if (flags.instance == "standard") options.instance_type = VolcengineInstance::kStandard;
  else if (flags.instance == "performance") options.instance_type = VolcengineInstance::kPerformance;
  else if (!flags.instance.empty()) return wrong_option("--instance-type", flags.instance, "use standard or performance");
  BELLJAR_CHECK(set_on_stop(flags, options.on_stop));
  return options;
}

}  // namespace

int run_on_volcengine(int argc, char** argv) {
  VolcengineFlags flags;
  return run_in_cloud(
      argc, argv, flags,
      {.name = "volcengine",
       .summary = "Run a program in a sandbox of Volcengine, or in an AIO container",
       .usage = "belljar run --backend volcengine -- PROGRAM ARGUMENTS",
       .machine = "sandbox",
       .entering = "--volcengine-sandbox",
       .add_options = [&](const OptionParser& run) { add_volcengine_options(run, flags); },
       .make = [&]() -> Result<SandboxFactory> { return volcengine_backend(BELLJAR_TRY(volcengine_options(flags))); },
       .address = &flags.aio_url});
}

}  // namespace belljar::cli
