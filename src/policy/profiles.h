// Shipped profiles: profiles/*.toml, embedded at build time (cmake/Profiles.cmake).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "belljar/result.h"
#include "policy/layer.h"

namespace belljar::policy {

struct EmbeddedProfile {
  std::string_view name;
  std::string_view toml;
};

// Sorted by name. The generated file defines it.
std::span<const EmbeddedProfile> embedded_profiles() noexcept;

// The first line of a profile's text, which says in one sentence what it is for.
std::string_view summary_of(const EmbeddedProfile& profile) noexcept;

// The layer of a shipped profile. workspace-write, the default, is built without parsing (a test holds it equal to its file): `run`
// starts with it each time. Errors: kNotFound with the nearest name.
Result<Layer> profile_layer(std::string_view name);

}  // namespace belljar::policy
