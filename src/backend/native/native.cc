// From a policy to a plan for namespaces, and root's lent identity.
//
// The order of prepare_at() is by what takes longest. A thread of root's, a helper process of an ordinary user's, makes
// the namespaces first (early_setup.h); the hidden names, which take longest on the stage, are handed to it as soon as the paths
// are planned, and the rest of the stage when the tree is known. The report comes last, since it is written
// from the plan.
//
// Root's command runs as an id that no account has, one for each front process, so that neither signals nor
// per-user limits of two sandboxes meet. The workspace is lent to that id by an idmapped mount: its owner on
// disk appears as the command's own id, and no file changes hands. Where a file system cannot be idmapped,
// everything is tried once more with the owner of the workspace as the command's id (paths/owner.h).
//
// Lending must not show more than was asked. A folder on the way to something lent that the id may not enter
// is replaced by an empty directory of ours that holds only the way (open_way): lending the folder itself
// would show all of it, somebody's ~/.ssh included.
#include "backend/native/native.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/confine.h"
#include "backend/native/kept_caches.h"
#include "backend/native/network.h"
#include "backend/native/report.h"
#include "backend/native/sockets.h"
#include "backend/native/tree.h"
#include "backend/paths/host.h"
#include "backend/paths/live_rules.h"
#include "backend/paths/owner.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "backend/paths/volume_targets.h"
#include "base/format.h"
#include "base/paths.h"
#include "base/unique_fd.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "launch/early_setup.h"
#include "launch/idmap.h"
#include "launch/plan.h"
#include "policy/backends.h"

namespace belljar::backend {
namespace {

constexpr std::uint64_t kIsolation = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
// Host ids that no account has: root's sandboxes run as one of these, a different one for each front process, so that neither
// signals nor per-user limits of one sandbox touch another.
constexpr uid_t kLentIdBase = 0x70000000;
constexpr uid_t kInsideId = 1000;  // when the workspace belongs to root: never 0 inside

// Root lends paths to an unprivileged id through idmapped mounts, each owner on disk mapped to that id. -1: it is shown as it is,
// because it belongs to that id anyway.
class Lender {
 public:
  Lender(const Host& host, uid_t uid, gid_t gid) : host_(host), uid_(uid), gid_(gid) {}

  Result<int> lend(launch::Plan& plan, const std::string& path, bool readonly, launch::Below below = launch::Below::kRecursive) {
    const PathFacts facts = host_.facts(path);
    if (facts.uid == uid_) return -1;
    const UniqueFd& idmap = *BELLJAR_TRY(map_for(facts.uid, facts.gid));
    const std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (readonly ? MOUNT_ATTR_RDONLY : 0);
    plan.kept_fds.push_back(BELLJAR_TRY(launch::capture_idmapped(path, idmap, attributes, below)));
    return plan.kept_fds.back().get();
  }

  // The two halves of a transaction's overlay. The layers' files belong on disk to whom the workspace belongs.
  Result<void> lend_layers(launch::Plan& plan, LayeredWorkspace& layered) {
    const PathFacts facts = host_.facts(layered.path);
    if (facts.uid == uid_) return {};
    const UniqueFd idmap = BELLJAR_TRY(launch::make_idmap(facts.uid, facts.gid, uid_, gid_, launch::Zero::kMapped));
    constexpr std::uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    const auto take = [&](const std::string& path, std::uint64_t attributes) -> Result<int> {
      plan.kept_fds.push_back(BELLJAR_TRY(launch::capture_idmapped(path, idmap, attributes, launch::Below::kAlone)));
      return plan.kept_fds.back().get();
    };
    layered.workspace_fd = BELLJAR_TRY(take(layered.path, kQuiet | MOUNT_ATTR_RDONLY));
    layered.pool_fd = BELLJAR_TRY(take(layered.layers.pool, kQuiet));
    return {};
  }

  // Layers of caches belong on disk to whom the workspace belongs, too.
  Result<void> lend_kept(launch::Plan& plan, const std::string& workspace, KeptPool& kept) {
    const PathFacts facts = host_.facts(workspace);
    if (facts.uid == uid_) return {};
    const UniqueFd idmap = BELLJAR_TRY(launch::make_idmap(facts.uid, facts.gid, uid_, gid_, launch::Zero::kMapped));
    plan.kept_fds.push_back(
        BELLJAR_TRY(launch::capture_idmapped(kept.path, idmap, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, launch::Below::kAlone)));
    kept.fd = plan.kept_fds.back().get();
    return {};
  }

  // May the lent id pass through `folder` as it is?
  bool passable(const std::string& folder) const {
    const PathFacts facts = host_.facts(folder);
    return (facts.mode & S_IXOTH) != 0 || facts.uid == uid_;
  }
  // May it list `folder` as it is?
  bool readable(const std::string& folder) const {
    constexpr mode_t kAll = S_IROTH | S_IXOTH;
    const PathFacts facts = host_.facts(folder);
    return facts.uid == uid_ || (facts.mode & kAll) == kAll;
  }
  // May anybody make files in `folder` as it is?
  bool open_to_all(const std::string& folder) const {
    constexpr mode_t kAll = S_IWOTH | S_IXOTH;
    const PathFacts facts = host_.facts(folder);
    return facts.kind == PathKind::kDirectory && (facts.mode & kAll) == kAll;
  }

 private:
  Result<const UniqueFd*> map_for(uid_t uid, gid_t gid) {
    const auto key = std::make_pair(uid, gid);
    auto found = maps_.find(key);
    if (found == maps_.end()) found = maps_.emplace(key, BELLJAR_TRY(launch::make_idmap(uid, gid, uid_, gid_))).first;
    return &found->second;
  }

  const Host& host_;
  uid_t uid_;
  gid_t gid_;
  std::map<std::pair<uid_t, gid_t>, UniqueFd> maps_;
};

// Folders on the way to `path` that the lent id may not enter, shallowest first.
std::vector<std::string> closed_ancestors(const Host& host, const Lender& lender, const std::string& path) {
  std::vector<std::string> closed;
  for (std::string up = parent_of(path); up != "/"; up = parent_of(up)) {
    if (host.facts(up).kind == PathKind::kDirectory && !lender.passable(up)) closed.insert(closed.begin(), up);
  }
  return closed;
}

// A workspace that is only read is shown with the owner and mode it has, where that lets the lent id in.
bool is_open_to_lent(const Host& host, const Lender& lender, const std::string& workspace) {
  return lender.readable(workspace) && closed_ancestors(host, lender, workspace).empty();
}

// A mask shows its folder with the owner and mode it has, but in the home and in a workspace that would be closed.
bool lends_masked(const Host& host, const Lender& lender, const Workplace& place, const std::string& folder) {
  return folder == place.home || (is_under(folder, place.workspace) && !is_open_to_lent(host, lender, place.workspace));
}

// Who may make mount namespaces may show `.git` under another path, and writes id maps with its own credentials: no live rules
// then.
bool judges_files(const Policy& policy, const Workplace& place) { return place.listener && !policy.allow_nested_userns; }

bool is_required(const Policy& policy, std::string_view clause) {
  return std::ranges::find(policy.require, clause) != policy.require.end();
}

// What a required clause rests on is not left out: the start ends instead. A one-shot command begins with the start, so nobody
// could look at the report in between.
void insist(const Policy& policy, launch::Plan& plan) {
  for (launch::MountOp& op : plan.mounts) {
    if (!op.clause.empty() && is_required(policy, op.clause)) op.flags &= ~static_cast<std::uint32_t>(launch::kOptional);
  }
}

// What is written into the caches is discarded this time.
void keep_none(View& view, std::string why) {
  view.kept_pool.reset();
  view.not_kept = std::move(why);
  for (Cache& cache : view.caches) cache.kept.clear();
}

void plan_kept_caches(const Host& host, const Policy& policy, const Workplace& place, View& view, Prepared& prepared) {
  if (!place.kept_caches) return;
  if (std::ranges::all_of(view.caches, &Cache::scratch)) {
    view.not_kept = "no cache is layered: the policy makes them writable, hides them, or there are none";
    return;
  }
  if (place.kept_caches->pool.empty()) return keep_none(view, place.kept_caches->why_not);
  const PathFacts owner = host.facts(place.workspace);
  const bool judged = judges_files(policy, place) && policy.filesystem.protect != Protect::kNone;
  if (const auto found = find_kept_layers(place.kept_caches->pool, owner.uid, owner.gid, judged, view); !found)
    return keep_none(view, found.error().line());
  view.kept_pool = KeptPool{.path = place.kept_caches->pool};
  prepared.held = place.kept_caches->lock;
}

void lay_files(const Host& host, const Workplace& place, View& view) {
  for (const auto& [path, contents] : place.laid) {
    const std::string folder = parent_of(path);
    const std::string real = host.canonical(folder).value_or(folder);
    const auto layer = std::ranges::find_if(view.caches, [&](const Cache& cache) { return cache.scratch && cache.path == real; });
    if (layer == view.caches.end()) continue;
    layer->laid.emplace_back(file_name(path), contents);
    for (const std::string& other : place.replaced) {
      const std::string there = host.canonical(other).value_or("");
      if (host.facts(there).kind == PathKind::kFile && std::ranges::find(view.hide_files, there) == view.hide_files.end())
        view.hide_files.push_back(there);
    }
  }
}

Result<void> lend_everything(const Host& host, const Workplace& place, PathPlan& paths, launch::Plan& plan) {
  Lender lender(host, plan.outside_uid, plan.outside_gid);
  View& view = paths.view;
  std::vector<Bind> extra;
  const auto is_private = [&](const std::string& path) {
    return std::any_of(view.private_dirs.begin(), view.private_dirs.end(),
                       [&](const PrivateDir& dir) { return is_under(path, dir.target); });
  };
  // A folder on the way that the lent id may not enter is replaced by an empty one of ours that holds nothing but the way: lending
  // the folder itself would show all of it, somebody's ~/.ssh included.
  // It needs no mask then.
  const auto open_way = [&](const std::string& target) {
    for (const std::string& folder : closed_ancestors(host, lender, target)) {
      const bool known =
          is_private(folder) ||
          std::any_of(view.binds.begin(), view.binds.end(),
                      [&](const Bind& bind) { return bind.lend && is_under(folder, bind.target); }) ||
          std::any_of(view.masks.begin(), view.masks.end(),
                      [&](const auto& mask) { return mask.second.detached_fd >= 0 && is_under(folder, mask.first); }) ||
          folder == place.home;
      if (known) continue;
      view.masks.erase(folder);
      view.private_dirs.push_back({folder, 0755});
    }
  };
  // A home that cannot be lent (root's in a container) is shown as it is to a workspace that can, where others may enter it; else
  // an empty one is. -1: it is not lent.
  const auto lend_home = [&]() -> Result<int> {
    auto fd = lender.lend(plan, place.home, true);
    if (fd || !launch::is_refused_idmap(fd.error()) || is_under(place.workspace, place.home)) return fd;
    if (lender.passable(place.home)) return -1;
    view.masks.erase(place.home);
    view.private_dirs.push_back({place.home, 0755, true});
    return -1;
  };
  for (auto& [folder, mask] : view.masks) {
    if (folder != place.home && lends_masked(host, lender, place, folder))
      mask.detached_fd = BELLJAR_TRY(lender.lend(plan, folder, true));
  }
  if (view.masks.contains(place.home)) {
    const int fd = BELLJAR_TRY(lend_home());
    if (const auto mask = view.masks.find(place.home); mask != view.masks.end()) mask->second.detached_fd = fd;
    open_way(place.home);
  }
  // A mask of the home brings it along with the rest.
  for (Cache& cache : view.caches) {
    if (!cache.scratch || !cache.exists || (view.masks.contains(place.home) && is_under(cache.path, place.home))) continue;
    if (const auto fd = lender.lend(plan, cache.path, true)) cache.detached_fd = *fd;
  }
  for (Bind& bind : view.binds) {
    open_way(bind.target);
    if (view.layered && is_under(bind.source, view.layered->path)) continue;  // shown out of the overlay, which is lent as a whole
    const bool lent = bind.lend && (view.whole_root || !bind.readonly);
    if (bind.detached_fd >= 0 || !lent) continue;
    auto fd = lender.lend(plan, bind.source, bind.readonly);
    if (fd) bind.detached_fd = *fd;
    else if (!place.owner || (!bind.readonly && !lender.open_to_all(bind.source)))
      return std::move(fd).error();  // read-only, or where all may write (/tmp), it is shown with the owner and mode it has
  }
  // Where nothing can be lent (paths/owner.h) the caller's home is an empty one, unless others may enter it.
  if (place.owner && place.owner->callers_home != "/" && host.facts(place.owner->callers_home).kind == PathKind::kDirectory &&
      !lender.passable(place.owner->callers_home) && !is_private(place.owner->callers_home))
    view.private_dirs.push_back({place.owner->callers_home, 0755});
  if (!place.home.empty() && place.home != "/" && !view.masks.contains(place.home) && view.whole_root &&
      host.facts(place.home).kind == PathKind::kDirectory && !lender.passable(place.home) &&
      std::none_of(view.binds.begin(), view.binds.end(),
                   [&](const Bind& bind) { return bind.lend && is_under(place.home, bind.target); })) {
    if (const int fd = BELLJAR_TRY(lend_home()); fd >= 0)
      extra.push_back({.source = place.home, .target = place.home, .readonly = true, .detached_fd = fd});
  }
  const auto holds_it = [&](const Bind& bind) { return bind.lend && is_under(place.workspace, bind.target); };
  const bool in_lent_home = (view.masks.contains(place.home) || !extra.empty()) && is_under(place.workspace, place.home);
  if (view.whole_root && !is_open_to_lent(host, lender, place.workspace) && !in_lent_home &&
      !view.masks.contains(place.workspace) && std::ranges::none_of(view.binds, holds_it)) {
    extra.push_back({.source = place.workspace,
                     .target = place.workspace,
                     .readonly = true,
                     .detached_fd = BELLJAR_TRY(lender.lend(plan, place.workspace, true))});
  }
  open_way(place.workspace);
  if (view.layered) BELLJAR_CHECK(lender.lend_layers(plan, *view.layered));
  if (view.kept_pool) {
    if (const auto lent = lender.lend_kept(plan, place.workspace, *view.kept_pool); !lent) keep_none(view, lent.error().line());
  }
  view.binds.insert(view.binds.begin(), std::make_move_iterator(extra.begin()), std::make_move_iterator(extra.end()));
  return {};
}

// What is made on the stage belongs to the lent id, and so do masked folders that are lent.
void own_stage(const Host& host, const Workplace& place, const launch::Plan& plan, View& view) {
  view.chown_private = true;
  view.make_devices = true;
  view.owner_uid = plan.outside_uid;
  view.owner_gid = plan.outside_gid;
  const Lender lender(host, plan.outside_uid, plan.outside_gid);
  for (auto& [folder, mask] : view.masks)
    mask.lent = lends_masked(host, lender, place, folder) && host.facts(folder).uid != plan.outside_uid;
}

// The sandbox's own id needs a name: many programs ask for it and some refuse to run without (git, ssh, node's os.userInfo()).
void name_inside_id(const Host& host, const Workplace& place, const launch::Plan& plan, View& view) {
  if (host.facts("/etc/passwd").kind != PathKind::kFile || host.facts("/etc/group").kind != PathKind::kFile) return;
  const auto users = host.read_small("/etc/passwd");
  const auto groups = host.read_small("/etc/group");
  if (!users || !groups) return;
  const std::string home = place.home.empty() ? "/" : place.home;
  view.files.push_back(
      {{"/etc/passwd"}, format("belljar:x:{}:{}:Belljar sandbox:{}:/bin/sh\n", plan.inside_uid, plan.inside_gid, home) + *users});
  view.files.push_back({{"/etc/group"}, format("belljar:x:{}:\n", plan.inside_gid) + *groups});
}

void choose_identity(const Host& host, const Policy& policy, const Workplace& place, launch::Plan& plan) {
  plan.outside_uid = host.uid();
  plan.outside_gid = host.gid();
  plan.inside_uid = host.uid();
  plan.inside_gid = host.gid();
  plan.identity = launch::Identity::kSelfMapped;
  if (host.uid() != 0) return;
  const PathFacts owner = host.facts(place.workspace);
  plan.inside_uid = owner.uid != 0 ? owner.uid : kInsideId;
  plan.inside_gid = owner.gid != 0 ? owner.gid : kInsideId;
  if (policy.allow_root_uid) return;
  plan.identity = launch::Identity::kRootMapped;
  const auto lent = kLentIdBase + static_cast<uid_t>(::getpid());
  plan.outside_uid = place.owner ? place.owner->uid : lent;
  plan.outside_gid = place.owner ? place.owner->gid : lent;
}

Result<Prepared> prepare_full_access(const Host& host, const Policy& policy, const Workplace& place) {
  Prepared prepared;
  launch::Plan& plan = prepared.plan;
  plan.env = place.env;
  plan.default_cwd = place.cwd;
  if (policy.mode == Mode::kExternalSandbox) {
    plan.subreaper = true;
    plan.drop_privileges = false;
    prepared.report = report_external(plan);
    policy::report_isolation(policy, Isolation::kNone, "nothing", prepared.report);
    return prepared;
  }
  // The kill guarantee and the result format stay: a pid namespace, and the /proc that belongs to it.
  plan.clone_flags = CLONE_NEWPID | CLONE_NEWNS;
  plan.drop_privileges = host.uid() != 0;
  if (host.uid() != 0) {
    choose_identity(host, policy, place, plan);
    plan.clone_flags |= CLONE_NEWUSER;
  }
  plan.mounts.push_back({.kind = launch::MountOpKind::kSetAttr, .flags = launch::kRecursive, .target = "/"});
  plan.mounts.push_back(
      {.kind = launch::MountOpKind::kProc, .slot = 0, .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC});
  plan.mounts.push_back({.kind = launch::MountOpKind::kAttach, .slot = 0, .target = "/proc"});
  plan.slots = 1;
  prepared.pid_namespace = true;
  prepared.user_namespace = host.uid() != 0;
  prepared.report = report_full_access(plan);
  policy::report_isolation(policy, Isolation::kGuardRails, "a pid namespace for the kill guarantee", prepared.report);
  return prepared;
}

}  // namespace

Result<Prepared> NativeBackend::prepare(const Policy& policy, const Workplace& given) {
  const Workplace place = canonical_place(host_, given);
  if (policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox)
    return prepare_full_access(host_, policy, place);
  auto prepared = prepare_at(policy, place);
  if (prepared || !launch::is_refused_idmap(prepared.error())) return prepared;
  const auto as_owner = place_of_owner(host_, place);
  return as_owner ? prepare_at(policy, *as_owner) : std::move(prepared);
}

Result<Prepared> NativeBackend::prepare_at(const Policy& policy, const Workplace& place) {
  Prepared prepared;
  launch::Plan& plan = prepared.plan;
  plan.env = place.env;
  plan.default_cwd = place.cwd;
  plan.clone_flags = kIsolation;
  choose_identity(host_, policy, place, plan);
  if (plan.identity == launch::Identity::kSelfMapped) plan.clone_flags |= CLONE_NEWUSER;
  prepared.own_network = policy.network.mode != NetMode::kHost;
  if (prepared.own_network) {
    plan.clone_flags |= CLONE_NEWNET;
    plan.loopback_up = true;
  }
  prepared.pid_namespace = true;
  prepared.user_namespace = true;
  // A helper process of ours would be one more in the group that we have to leave for limits (kernel/cgroup_create.cc), and one
  // more of those that RLIMIT_NPROC counts.
  const bool as_user = plan.identity == launch::Identity::kSelfMapped;
  if (plan.identity == launch::Identity::kRootMapped || (as_user && place.one_command && !wants_group(policy.limits))) {
    plan.early = launch::EarlySetup::begin({.as_user = as_user,
                                            .network = plan.loopback_up,
                                            .inside_uid = plan.inside_uid,
                                            .outside_uid = plan.outside_uid,
                                            .inside_gid = plan.inside_gid,
                                            .outside_gid = plan.outside_gid});
  }

  BELLJAR_CHECK(make_volume_targets(policy, place, place.workspace));
  PathPlan paths = BELLJAR_TRY(plan_paths(host_, policy, place));
  paths.view.proc_optional = policy.enable_weaker_nested_sandbox;
  plan.keyring_required = is_required(policy, launch::kKeyringClause);
  plan_kept_caches(host_, policy, place, paths.view, prepared);
  if (prepared.own_network) plan_network(host_, policy.network, plan, paths.view);
  for (const ShownFile& file : place.files) {
    std::set<std::string> there;
    for (const std::string& path : file.paths) {
      if (const auto real = path.starts_with("/dev/") ? path : host_.canonical(path)) there.insert(*real);
    }
    if (!there.empty()) paths.view.files.push_back({{there.begin(), there.end()}, file.contents});
  }
  lay_files(host_, place, paths.view);
  const bool lends = plan.identity == launch::Identity::kRootMapped;
  if (lends) own_stage(host_, place, plan, paths.view);
  paths.view.seen = build_names(host_, paths.view, plan);
  if (plan.early) plan.early->make_names(stage_options(paths.view), plan.stage_names);
  if (lends) {
    BELLJAR_CHECK(lend_everything(host_, place, paths, plan));
    name_inside_id(host_, place, plan, paths.view);
  }
  prepared.sockets = BELLJAR_TRY(list_sockets(host_, policy, paths.writable));
  warn_of_sockets(prepared.sockets, prepared.warnings);
  if (const auto& layered = paths.view.layered)
    prepared.overlay = {.path = layered->path, .upper = layered->layers.pool + "/" + layered->layers.upper};
  BELLJAR_CHECK(build_tree_ops(host_, paths.view, plan));
  prepared.scratch = given_layers(paths.view);
  prepared.seen = paths.view.seen;
  insist(policy, plan);
  if (plan.early) plan.early->make_rest(plan.stage_rest);
  if (judges_files(policy, place)) prepared.file_rules = make_file_rules(policy, paths);
  confine(host_, policy, place, paths, prepared);
  prepared.report = report_native(host_, policy, place, paths, prepared);
  policy::report_isolation(policy, Isolation::kNamespace, "namespaces of its own on this kernel", prepared.report);
  return prepared;
}

}  // namespace belljar::backend
