#include "backend/paths/live_rules.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/seccomp.h"
#include "kernel/worktree.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/paths.h"

namespace belljar::backend {
namespace {

constexpr std::string_view kGlobs = "filesystem.globs";
constexpr std::string_view kAbsentHidden = "filesystem.hidden_absent";
constexpr std::string_view kAbsentReadonly = "filesystem.absent_readonly";
constexpr std::string_view kHiddenAgain = "filesystem.hidden_again";
constexpr std::string_view kReadonlyAgain = "filesystem.readonly_again";

bool has_globs(const Filesystem& filesystem) noexcept {
  for (const FsEntry& entry : filesystem.entries) {
    if (entry.glob) return true;
  }
  return false;
}

Access access_of(const Gap& gap) noexcept {
  if (gap.clause == kGlobs) return gap.access;
  return gap.clause == kAbsentHidden || gap.clause == kHiddenAgain ? Access::kNone : Access::kRead;
}

// A path that does not exist yet has nothing to mount over, and what is put in place of one that does has no mount: a pattern that
// matches it alone holds it.
void hold_by_name(const PathPlan& paths, Filesystem& filesystem) {
  const std::vector<FsEntry> given = filesystem.entries;
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == kGlobs || !is_held_by_rules(paths, gap)) continue;
    const auto entry = std::ranges::find_if(given, [&](const FsEntry& one) { return !one.glob && one.path == gap.what; });
    FsEntry held;
    if (entry != given.end()) held = *entry;
    else if (gap.clause != kReadonlyAgain)
      held.origin = {.layer = "default secrets", .file = "", .line = 0}, held.kind = RuleKind::kDefaultSecret;
    held.path = policy::literal_glob(gap.where);
    held.glob = true;
    held.access = access_of(gap);
    std::erase_if(filesystem.entries, [&](const FsEntry& one) { return !one.glob && one.path == gap.where; });
    filesystem.entries.push_back(std::move(held));
  }
}

// Whether the policy's network lets the command itself reach the URL of a git server.
std::function<bool(std::string_view)> reach_of(const Network& network) {
  if (network.mode == NetMode::kHost) return [](std::string_view) { return true; };
  if (network.mode != NetMode::kProxy) return {};
  // Asked once in many runs: the rules are made when it is.
  return [network](std::string_view url) {
    const auto rules = policy::make_host_rules(network);
    const bool web = url.starts_with("https://"), plain = url.starts_with("http://");
    const std::uint16_t port = web ? policy::kHttpsPort : plain ? policy::kHttpPort : url.starts_with("git://") ? 9418 : 22;
    const bool is_url = url.find("://") != std::string_view::npos;
    // user@host:path, whatever the path holds
    std::string_view host = policy::place_in_url(is_url ? url : url.substr(0, url.find(':')));
    host = host.substr(0, host.find('/'));
    const auto destination = policy::parse_destination(host, port);
    return rules && destination && policy::decide_host(*rules, *destination).reason == policy::HostReason::kAllowed;
  };
}

// What the host calls a directory that is shown elsewhere.
class HostNames {
 public:
  explicit HostNames(const PathPlan& paths) {
    for (const Bind& bind : paths.view.binds) {
      if (bind.source != bind.target) sources_.emplace(bind.target, bind.source);
    }
  }
  const std::string& of(const std::string& shown) const {
    const auto found = sources_.find(shown);
    return found == sources_.end() ? shown : found->second;
  }

 private:
  std::map<std::string, std::string> sources_;
};

}  // namespace

std::shared_ptr<const broker::FileRules> make_file_rules(const Policy& policy, const PathPlan& paths,
                                                         std::optional<broker::EnforcedPaths> held) {
  broker::FileRulesOptions options;
  options.held = std::move(held);
  options.filesystem.protect = policy.filesystem.protect;
  options.filesystem.entries = policy.filesystem.entries;
  hold_by_name(paths, options.filesystem);
  for (const Gap& gap : paths.gaps) {
    if (!has_mount(gap)) continue;
    options.in_place.push_back(gap.where);
    if (gap.what != gap.where) options.in_place.push_back(gap.what);  // the links on the way to it
  }
  for (const Cache& cache : paths.view.caches) {
    if (cache.required) options.in_place.push_back(cache.path);
  }
  // Without patterns only what asks for writing counts here, and the list of secrets is long.
  if (!options.held && !has_globs(options.filesystem))
    std::erase_if(options.filesystem.entries, [](const FsEntry& entry) { return entry.access != Access::kWrite; });
  ::clock_gettime(CLOCK_REALTIME, &options.began);
  options.reaches = reach_of(policy.network);
  options.roots = paths.writable;
  const HostNames on_host(paths);
  for (const std::string& root : options.roots) options.host_roots.push_back(on_host.of(root));
  if (!policy.filesystem.allow_git_removal) {
    options.keep_git = paths.writable;
    // What is in the layers of a transaction can be taken back, what is beside them cannot.
    if (paths.view.layered)
      std::erase_if(options.keep_git, [&](const std::string& root) { return is_under(root, paths.view.layered->path); });
    look_for_git(options, [on_host](const std::string& root) { return on_host.of(root); });
  }
  for (const PrivateDir& dir : paths.view.private_dirs) options.exempt.push_back(dir.target);
  for (const Cache& cache : paths.view.caches) (cache.kept.empty() ? options.exempt : options.kept).push_back(cache.path);
  auto rules = std::make_shared<const broker::FileRules>(std::move(options));
  return rules->any() ? rules : nullptr;
}

void look_for_git(broker::FileRulesOptions& options, const std::function<std::string(const std::string&)>& on_host) {
  options.has_git = [on_host](const std::string& root) {
    struct stat now{};
    return ::lstat((on_host(root) + "/.git").c_str(), &now) == 0;
  };
  options.is_git = [on_host](const std::string& root) { return kernel::is_git_directory(on_host(root)); };
}

bool has_mount(const Gap& gap) noexcept { return gap.clause == kHiddenAgain || gap.clause == kReadonlyAgain; }

bool is_held_by_rules(const PathPlan& paths, const Gap& gap) {
  if (gap.clause == kGlobs || gap.clause == kAbsentReadonly || has_mount(gap)) return true;
  return gap.clause == kAbsentHidden &&
         std::ranges::any_of(paths.writable, [&](const std::string& root) { return policy::is_within(gap.where, root); });
}

EnforcementClause held_clause(const Gap& gap, Mounts mounts) {
  EnforcementClause clause{gap.clause, "", "broker: the call is performed outside, by name at any depth", Enforced::kPartial, ""};
  const Access access = access_of(gap);
  if (gap.clause == kGlobs) clause.asked = format("rule for {}", escaped(gap.what));
  else clause.asked = format("{} {} once it exists", escaped(gap.what), access == Access::kNone ? "hidden" : "read-only");
  switch (access) {
    case Access::kNone:
      clause.detail =
          "opens, listings and changes of names are refused; the file can still be run as a program, and its attributes asked for "
          "(stat, readlink, extended attributes) and, by its owner, changed (times, owner, extended attributes)";
      break;
    case Access::kRead:
      clause.detail = "content and name are held; its owner can still change times, owner and extended attributes";
      if (mounts == Mounts::kOwn) clause.detail += " and, by a descriptor, the mode";  // else the broker judges fchmod
      break;
    case Access::kWrite:
      clause.enforced = Enforced::kFull;
      break;
  }
  return clause;
}

bool is_judged_at_commit(const Policy& policy, const PathPlan& paths, const broker::FileRules& rules) {
  const View& view = paths.view;
  if (!view.layered || policy.filesystem.protect != Protect::kDefault || !rules.only_protects()) return false;
  const std::string& workspace = view.layered->path;
  const auto leaves = [&](const Bind& bind) { return !bind.readonly && !is_under(bind.source, workspace); };
  return paths.writable == std::vector<std::string>{workspace} && std::ranges::none_of(view.binds, leaves) &&
         std::ranges::all_of(view.caches, [](const Cache& cache) { return cache.kept.empty(); });
}

kernel::FileCalls file_calls(const broker::FileRules* rules) noexcept {
  if (rules == nullptr) return kernel::FileCalls::kDirect;
  if (rules->every_read_matters()) return kernel::FileCalls::kAll;
  return rules->holds_paths() ? kernel::FileCalls::kDirectories : kernel::FileCalls::kWrites;
}

}  // namespace belljar::backend
