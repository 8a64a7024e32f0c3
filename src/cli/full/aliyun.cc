// `belljar run --backend aliyun`.
#include "belljar/aliyun.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/full/cloud.h"
#include "cli/full/components.h"

namespace belljar::cli {
namespace {

struct AliyunFlags : CloudFlags {
  std::string route, image, endpoint, region, session, policy, network, idle_release;
  std::vector<std::string> contexts, labels;
};

void add_aliyun_options(const OptionParser& app, AliyunFlags& flags) {
  const std::string group = "Aliyun (keys come from $AGENTBAY_API_KEY, or $ALIYUN_ACCESS_KEY_ID and $ALIYUN_ACCESS_KEY_SECRET)";
  const auto option = [&](const char* name, auto& to, const char* doc, const char* type) {
    return app.add_option(name, to, doc).not_empty().type_name(type).group(group);
  };
  option("--aliyun-route", flags.route, "agentbay, or gateway: the machine behind $ALIYUN_MCP_ENDPOINT (default: whose key is set)",
         "WHAT");
  option("--aliyun-image", flags.image, "What the session is made of (default: linux_latest)", "NAME");
  option("--aliyun-region", flags.region, "cn-... or one abroad (default: $AGENTBAY_REGION_ID, $ALIYUN_REGION, then China)",
         "NAME");
  option("--aliyun-endpoint", flags.endpoint, "AgentBay's address (default: $AGENTBAY_ENDPOINT, then the region's)", "HOST");
  option("--aliyun-session", flags.session, "An existing session, running or paused; it is left alive", "ID");
  option("--aliyun-policy", flags.policy, "A policy of the account: what closes the session's network", "ID");
  option("--aliyun-network", flags.network, "A network of the account", "ID");
  option("--aliyun-context", flags.contexts, "A persistent context of the account, and where it is; may be repeated", "ID:PATH")
      .repeatable();
  option("--aliyun-label", flags.labels, "A label of the session; may be repeated", "NAME=TEXT").repeatable();
  option("--idle-release", flags.idle_release, "The service ends a session that is not used for so long (default: 10m)", "TIME");
  option("--workspace-at", flags.workspace_at, "The workspace there (default: /home/wuying, or /workspace of a code image)",
         "PATH");
  option("--on-stop", flags.on_stop, "kill (default), pause or leave; the last two say which session it was", "WHAT");
}

Result<void> set_lists(const AliyunFlags& flags, AliyunOptions& options) {
  for (const std::string& context : flags.contexts) {
    const std::size_t colon = context.find(":/");
    if (colon == std::string::npos || colon == 0) return wrong_option("--aliyun-context", context, "use ID:/PATH");
    options.contexts.push_back({.context_id = context.substr(0, colon), .path = context.substr(colon + 1), .sync_policy = {}});
  }
  for (const std::string& label : flags.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) return wrong_option("--aliyun-label", label, "use NAME=TEXT");
    options.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return {};
}

Result<AliyunOptions> aliyun_options(const AliyunFlags& flags) {
  AliyunOptions options{.region = flags.region, .endpoint = flags.endpoint};
  options.policy_id = flags.policy;
  options.network_id = flags.network;
  options.session_id = flags.session;
  if (!flags.image.empty()) options.image_id = flags.image;
  if (!flags.idle_release.empty()) options.idle_release = BELLJAR_TRY(parse_duration(flags.idle_release));
  if (flags.route == "agentbay") options.route = AliyunRoute::kAgentBay;
  else if (flags.route == "gateway") options.route = AliyunRoute::kGateway;
  else if (!flags.route.empty()) return wrong_option("--aliyun-route", flags.route, "use agentbay or gateway");
  BELLJAR_CHECK(set_on_stop(flags, options.on_stop));
  BELLJAR_CHECK(set_lists(flags, options));
  return options;
}

}  // namespace

int run_on_aliyun(int argc, char** argv) {
  AliyunFlags flags;
  return run_in_cloud(argc, argv, flags,
                      {.name = "aliyun",
                       .summary = "Run a program on a machine of Aliyun (AgentBay)",
                       .usage = "belljar run --backend aliyun -- PROGRAM ARGUMENTS",
                       .machine = "session",
                       .entering = "--aliyun-session",
                       .add_options = [&](const OptionParser& run) { add_aliyun_options(run, flags); },
                       .make = [&]() -> Result<SandboxFactory> { return aliyun_backend(BELLJAR_TRY(aliyun_options(flags))); }});
}

}  // namespace belljar::cli
