// `belljar run --backend e2b`.
#include "belljar/e2b.h"

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

struct E2bFlags : CloudFlags {
  std::string template_id, api_url, sandbox_url, domain, sandbox, lifetime, user, auth, least_lifetime;
  std::vector<std::string> headers;
};

void add_e2b_options(const OptionParser& app, E2bFlags& flags) {
  const auto option = [&](const char* name, std::string& to, const char* doc, const char* type) {
    app.add_option(name, to, doc).not_empty().type_name(type).group("E2B (the key comes from $E2B_API_KEY)");
  };
  option("--template", flags.template_id, "What the sandbox starts from (default: base)", "NAME");
  option("--e2b-domain", flags.domain, "The service's domain (default: $E2B_DOMAIN, then e2b.app)", "HOST");
  option("--e2b-api-url", flags.api_url, "Its control plane (default: $E2B_API_URL, then https://api.DOMAIN)", "URL");
  option("--e2b-sandbox-url", flags.sandbox_url, "One address for all sandboxes (default: $E2B_SANDBOX_URL, then by the domain)",
         "URL");
  option("--e2b-sandbox", flags.sandbox, "An existing sandbox, running or paused; it is left alive", "ID");
  option("--e2b-user", flags.user, "Who the command is (default: the template's user)", "NAME");
  option("--e2b-auth", flags.auth, "How a compatible service wants the key: api-key (default) or bearer", "HOW");
  option("--e2b-least-lifetime", flags.least_lifetime, "The shortest lifetime that the service takes", "TIME");
  app.add_option("--e2b-header", flags.headers,
                 "A further header for its control plane, no secret: words of a command line are everybody's")
      .not_empty()
      .repeatable()
      .type_name("NAME=TEXT")
      .group("E2B (the key comes from $E2B_API_KEY)");
  option("--lifetime", flags.lifetime, "The service ends the sandbox then, used or not (default: 10m)", "TIME");
  option("--workspace-at", flags.workspace_at, "The workspace there (default: /home/user)", "PATH");
  option("--on-stop", flags.on_stop, "kill (default), pause or leave; the last two say which sandbox it was", "WHAT");
}

Result<E2bOptions> e2b_options(const E2bFlags& flags) {
  E2bOptions options{
      .domain = flags.domain, .api_url = flags.api_url, .sandbox_url = flags.sandbox_url, .sandbox_id = flags.sandbox};
  options.user = flags.user;
  if (!flags.template_id.empty()) options.template_id = flags.template_id;
  if (!flags.lifetime.empty()) options.lifetime = BELLJAR_TRY(parse_duration(flags.lifetime));
  if (!flags.least_lifetime.empty()) options.least_lifetime = BELLJAR_TRY(parse_duration(flags.least_lifetime));
  if (flags.auth == "bearer") options.auth = E2bAuth::kBearer;
  else if (!flags.auth.empty() && flags.auth != "api-key") return wrong_option("--e2b-auth", flags.auth, "use api-key or bearer");
  for (const std::string& text : flags.headers) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return wrong_option("--e2b-header", text, "give NAME=TEXT");
    options.headers[text.substr(0, equals)] = text.substr(equals + 1);
  }
  BELLJAR_CHECK(set_on_stop(flags, options.on_stop));
  return options;
}

}  // namespace

int run_on_e2b(int argc, char** argv) {
  E2bFlags flags;
  return run_in_cloud(argc, argv, flags,
                      {.name = "e2b",
                       .summary = "Run a program on a machine of E2B, or of a service that speaks its API",
                       .usage = "belljar run --backend e2b -- PROGRAM ARGUMENTS",
                       .machine = "sandbox",
                       .entering = "--e2b-sandbox",
                       .add_options = [&](const OptionParser& run) { add_e2b_options(run, flags); },
                       .make = [&]() -> Result<SandboxFactory> { return e2b_backend(BELLJAR_TRY(e2b_options(flags))); }});
}

}  // namespace belljar::cli
