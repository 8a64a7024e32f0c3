#include "backend/container/runtimes.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "backend/container/engine.h"
#include "base/paths.h"
#include "belljar/policy.h"

namespace belljar::backend::container {
namespace {

bool has_own_kernel(std::string_view program) {
  constexpr std::array<std::string_view, 5> kOwnKernel = {"runsc", "kata", "krun", "io.containerd.runsc.", "io.containerd.kata"};
  program = file_name(program);
  return std::ranges::any_of(kOwnKernel, [program](std::string_view known) { return program.starts_with(known); });
}

}  // namespace

Isolation isolation_of_runtime(const EngineFacts& facts, const std::string& name) {
  const std::string& asked = name.empty() ? facts.default_runtime : name;
  const auto found = facts.runtimes.find(asked);
  // Docker takes a shim's own name without being told of it before.
  const std::string_view program = found != facts.runtimes.end() ? std::string_view(found->second) : std::string_view(asked);
  const bool known = found != facts.runtimes.end() || program.starts_with("io.containerd.");
  return known && has_own_kernel(program) ? Isolation::kVm : Isolation::kContainer;
}

std::string choose_runtime(const EngineFacts& facts, const std::string& given, Isolation wanted) {
  if (!given.empty() || isolation_of_runtime(facts, "") >= wanted) return given;
  for (const auto& [name, program] : facts.runtimes) {
    if (isolation_of_runtime(facts, name) >= wanted) return name;
  }
  return given;
}

}  // namespace belljar::backend::container
