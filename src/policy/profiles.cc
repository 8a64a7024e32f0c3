#include "policy/profiles.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "policy/parse.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

// profiles/workspace-write.toml, by hand. tests/policy/profiles_test.cc compares the two.
Layer workspace_write() {
  Layer layer;
  layer.name = "workspace-write";
  layer.settings.push_back({find_key("mode"), std::string("workspace-write"), {"workspace-write", "workspace-write.toml", 5}, {}});
  return layer;
}

}  // namespace

std::string_view summary_of(const EmbeddedProfile& profile) noexcept {
  std::string_view line = profile.toml.substr(0, profile.toml.find('\n'));
  while (line.starts_with('#') || line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

Result<Layer> profile_layer(std::string_view name) {
  if (name == "workspace-write") return workspace_write();
  std::vector<std::string_view> names;
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    if (profile.name == name) return parse_toml(profile.toml, std::string(name) + ".toml", name);
    names.push_back(profile.name);
  }
  const std::string_view near = nearest(name, names), right = known_synonym("mode", name);
  std::string all;
  for (const std::string_view known : names) all += format("{}{}", all.empty() ? "" : ", ", known);
  return Error(Code::kNotFound, format("there is no profile {}", quoted(name)))
      .reason("shipped are " + all)
      .next(!right.empty() ? std::string(right)
            : near.empty() ? "name one of them, or a file: --policy ./policy.toml"
                           : format("did you mean `{}`?", near));
}

}  // namespace belljar::policy
