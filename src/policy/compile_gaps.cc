#include "policy/compile_gaps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"

namespace belljar::policy {
namespace {

int strictness(Access access) { return access == Access::kNone ? 2 : access == Access::kWrite ? 1 : 0; }

}  // namespace

std::vector<CompileGap> common_gaps(const Policy& policy, std::string_view system, const std::vector<std::string_view>& caps) {
  std::vector<CompileGap> gaps;
  const Limits& limits = policy.limits;
  const std::pair<std::string_view, bool> asked[] = {
      {"cpus", limits.cpus.has_value()},           {"cpu_request", limits.cpu_request.has_value()},
      {"memory", limits.memory.has_value()},       {"memory_request", limits.memory_request.has_value()},
      {"pids", limits.pids.has_value()},           {"open_files", limits.open_files.has_value()},
      {"file_size", limits.file_size.has_value()}, {"disk", limits.disk.has_value()}};
  for (const auto& [name, wanted] : asked) {
    if (wanted && std::ranges::find(caps, name) == caps.end())
      gaps.push_back({format("limits.{}", name), format("{} has no such limit", system)});
  }
  const Filesystem& files = policy.filesystem;
  if (files.caches != Caches::kOff && !files.cache_dirs.empty())
    gaps.push_back({"filesystem.caches", "there are no layers: the host's caches can be read and not written"});
  if (!files.scratch.empty()) gaps.push_back({"filesystem.scratch", "there are no layers: what is written there fails"});
  for (const Volume& volume : files.volumes) {
    if (volume.source != volume.target)
      gaps.push_back({"filesystem.volumes", format("there are no mounts: {} does not appear at {}", volume.source, volume.target)});
  }
  if (files.siblings == Siblings::kHidden)
    gaps.push_back({"filesystem.siblings", "which other sandboxes there are is not known when the text is made"});
  if (!policy.network.credentials.empty() || !policy.network.allowed_requests.empty())
    gaps.push_back({"network.requests", "no proxy of Belljar's runs there to look into them"});
  return gaps;
}

std::vector<FsEntry> in_order(const Filesystem& complete) {
  std::vector<FsEntry> entries;
  for (const FsEntry& entry : complete.entries) {
    if (!entry.glob) entries.push_back(entry);
  }
  for (const Volume& volume : complete.volumes) {
    if (volume.source == volume.target)
      entries.push_back(
          {.path = volume.source, .access = volume.readonly ? Access::kRead : Access::kWrite, .origin = volume.origin});
  }
  std::ranges::stable_sort(entries, [](const FsEntry& a, const FsEntry& b) {
    if (a.path != b.path) return a.path.size() != b.path.size() ? a.path.size() < b.path.size() : a.path < b.path;
    return strictness(a.access) < strictness(b.access);
  });
  std::vector<FsEntry> once;
  for (FsEntry& entry : entries) {
    if (!once.empty() && once.back().path == entry.path) once.back() = std::move(entry);
    else once.push_back(std::move(entry));
  }
  return once;
}

Result<Compiled> finish(Compiled compiled, const Policy& policy, std::string_view system) {
  for (const CompileGap& gap : compiled.gaps) {
    if (std::ranges::find(policy.require, gap.clause) != policy.require.end())
      return Error(Code::kFailedPrecondition, format("{} is required, and {} does not hold it", gap.clause, system))
          .reason(gap.why);
  }
  return compiled;
}

}  // namespace belljar::policy
