// Any bytes as a rules file and as foreign settings: no crash; a workspace's file never allows; what is imported is a policy that
// parses.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "guard/foreign.h"
#include "guard/rules.h"
#include "policy/parse.h"

using namespace belljar::guard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto set = parse_rules(text, "f.toml", Trust::kWorkspace)) {
    if (std::ranges::any_of(set->rules, [](const Rule& rule) { return rule.decision == Decision::kAllow; }) ||
        !set->disabled.empty())
      std::abort();
    if (!parse_rules(text, "f.toml", Trust::kUser)) std::abort();
  }
  for (const char* file : {"f.toml", "f.json"}) {
    const auto imported = import_settings(text, file, {});
    if (imported && !belljar::policy::parse_toml(imported->policy, "p.toml", "user")) std::abort();
    if (imported && imported->has_permission && !parse_rules(to_toml(imported->permission), "p.toml", Trust::kUser)) std::abort();
  }
  return 0;
}
