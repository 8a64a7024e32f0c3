// The environment of a command, from the policy and the caller's.
//
// The order of the rules for one variable: `pass` lets it through by its exact name, whatever else is said;
// otherwise it must be inherited or included, and not excluded. Exclusion comes last, so that a secret which
// an include pattern covers by accident stays outside. What the policy sets, and then what the call sets,
// replaces all of that.
#include <algorithm>

#include "policy/defaults.h"
#include "policy/paths.h"

namespace belljar::policy {
namespace {

bool any_match(std::span<const std::string_view> patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [name](std::string_view pattern) { return name_match(pattern, name); });
}
bool any_match(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [name](const std::string& pattern) { return name_match(pattern, name); });
}

bool passes(const Environment& environment, std::string_view name) {
  // Exact, letters' case included: `pass` overrules the exclude patterns, so it must not catch more than was meant.
  if (std::ranges::find(environment.pass, name) != environment.pass.end()) return true;
  const bool inherited =
      environment.inherit == Inherit::kAll || (environment.inherit == Inherit::kCore && any_match(core_variables(), name));
  if (!inherited && !any_match(environment.include, name)) return false;
  return !any_match(environment.exclude, name);
}

}  // namespace

std::vector<std::string> build_environment(const Environment& environment, std::span<const std::string> caller,
                                           const std::map<std::string, std::string>& overrides) {
  std::map<std::string_view, std::string_view> chosen;
  for (const std::string& variable : caller) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string_view name = std::string_view(variable).substr(0, equals);
    if (passes(environment, name)) chosen.emplace(name, std::string_view(variable).substr(equals + 1));
  }
  for (const auto& [name, text] : environment.set) chosen[name] = text;
  for (const auto& [name, text] : overrides) chosen[name] = text;
  std::vector<std::string> result;
  result.reserve(chosen.size());
  for (const auto& [name, text] : chosen) {
    std::string variable(name);
    variable.append("=").append(text);
    result.push_back(std::move(variable));
  }
  return result;
}

}  // namespace belljar::policy
