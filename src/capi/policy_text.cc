// A policy as TOML text, merged like a file of the user's, on top of the profile that it names.
//
// The profile is a layer of its own below the text's settings, so the key is taken out of the layer before
// the two are merged.
#include <stdlib.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/environment.h"
#include "base/real_path.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "capi/values.h"
#include "policy/merge.h"
#include "policy/parse.h"
#include "policy/profiles.h"
#include "policy/schema.h"

namespace belljar::capi {
namespace {

// Takes the name of the profile out of the layer.
std::string take_profile(policy::Layer& layer) {
  std::string name = "workspace-write";
  for (const policy::Setting& setting : layer.settings) {
    if (setting.key->name == "profile") name = std::get<std::string>(setting.value);
  }
  std::erase_if(layer.settings, [](const policy::Setting& setting) { return setting.key->name == "profile"; });
  return name;
}

}  // namespace

Result<Policy> policy_of(const char* toml, const std::string& workspace) {
  if (toml == nullptr) return Policy();
  policy::Layer own = BELLJAR_TRY(policy::parse_toml(toml, "policy_toml", "policy"));
  const std::string profile = take_profile(own);
  const std::vector<policy::Layer> layers = {BELLJAR_TRY(policy::profile_layer(profile)), std::move(own)};
  policy::MergeContext context;
  context.workspace = workspace.empty() ? real_path(".") : real_path_or_given(workspace);
  context.home = own_variable("HOME");
  context.tmpdir = own_variable("TMPDIR");
  context.runtime_dir = own_variable("XDG_RUNTIME_DIR");
  context.state_dir = default_state_dir();
  return BELLJAR_TRY(policy::merge(layers, context)).policy;
}

}  // namespace belljar::capi
