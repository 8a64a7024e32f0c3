#include "backend/native/live_rules.h"

#include <time.h>

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/native/tree.h"
#include "backend/native/view.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/seccomp.h"
#include "policy/paths.h"

namespace belljar::backend {
namespace {

bool has_globs(const Filesystem& filesystem) noexcept {
  for (const FsEntry& entry : filesystem.entries) {
    if (entry.glob) return true;
  }
  return false;
}

// A path that does not exist yet has nothing to mount over: a pattern that matches it alone holds it.
void hold_absent(const Paths& paths, Filesystem& filesystem) {
  for (FsEntry& entry : filesystem.entries) {
    if (entry.glob || entry.access != Access::kRead) continue;
    for (const Gap& gap : paths.gaps) {
      if (gap.clause != "filesystem.absent_readonly" || gap.what != entry.path) continue;
      entry.path = policy::literal_glob(entry.path);
      entry.glob = true;
      break;
    }
  }
}

}  // namespace

std::shared_ptr<const broker::FileRules> make_file_rules(const Policy& policy, const Paths& paths,
                                                         std::optional<broker::HeldPaths> held) {
  broker::FileRulesOptions options;
  options.held = std::move(held);
  options.filesystem.protect = policy.filesystem.protect;
  options.filesystem.entries = policy.filesystem.entries;
  hold_absent(paths, options.filesystem);
  // Without patterns only what asks for writing counts here, and the list of secrets is long.
  if (!options.held && !has_globs(options.filesystem))
    std::erase_if(options.filesystem.entries, [](const FsEntry& entry) { return entry.access != Access::kWrite; });
  ::clock_gettime(CLOCK_REALTIME, &options.began);
  options.roots = paths.writable;
  for (const PrivateDir& dir : paths.view.private_dirs) options.exempt.push_back(dir.target);
  for (const Cache& cache : paths.view.caches) options.exempt.push_back(cache.path);
  auto rules = std::make_shared<const broker::FileRules>(std::move(options));
  return rules->any() ? rules : nullptr;
}

kernel::FileCalls file_calls(const broker::FileRules* rules) noexcept {
  if (rules == nullptr) return kernel::FileCalls::kDirect;
  if (rules->every_read_matters()) return kernel::FileCalls::kAll;
  return rules->holds_paths() ? kernel::FileCalls::kDirectories : kernel::FileCalls::kWrites;
}

}  // namespace belljar::backend
