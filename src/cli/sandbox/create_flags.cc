#include "cli/sandbox/create_flags.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "cli/command_line.h"

namespace belljar::cli {
namespace {

using std::chrono::milliseconds;

Result<milliseconds> positive(const char* flag, const std::string& text) {
  auto duration = parse_duration(text);
  if (!duration)
    return Error(duration.error().code(), format("{}: {}", flag, duration.error().what())).next(duration.error().next());
  if (*duration <= milliseconds(0))
    return Error(Code::kInvalidArgument, format("{}: {} is no time to come", flag, belljar::quoted(text)));
  return *duration;
}

}  // namespace

void add_create_options(const OptionParser& app, CreateFlags& flags) {
  add_policy_options(app, flags.policy);
  app.add_option("--name", flags.name, "A name beside its id: letters, digits, `.`, `_`, `-`").not_empty().type_name("NAME");
  app.add_option("--expires", flags.expires, "When it ends by itself, from now; `never`: only by `belljar kill` (default: 24h)")
      .type_name("TIME");
  app.add_option("--sample-every", flags.sample_every,
                 "Write what it uses into its log this often, at most every 100ms (default: not)")
      .not_empty()
      .type_name("TIME");
  app.add_flag("--json", flags.json, "Print one JSON object: what was made, and what is enforced by what");
}

Result<void> parse_create(std::vector<std::string> words, CreateFlags& flags) {
  CommandLine app("", "belljar create");
  add_create_options(app, flags);
  return app.parse(std::move(words));
}

Result<std::optional<milliseconds>> expiry_of(const CreateFlags& flags) {
  if (flags.expires == "never") return std::optional<milliseconds>();
  return std::optional<milliseconds>(BELLJAR_TRY(positive("--expires", flags.expires)));
}

Result<std::optional<milliseconds>> sampling_of(const CreateFlags& flags) {
  if (flags.sample_every.empty()) return std::optional<milliseconds>();
  const milliseconds every = BELLJAR_TRY(positive("--sample-every", flags.sample_every));
  return std::optional<milliseconds>(std::max(every, milliseconds(100)));
}

}  // namespace belljar::cli
