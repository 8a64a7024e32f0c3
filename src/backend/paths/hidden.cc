// How each hidden name is held, chosen among five means by what lies around it (hide_at):
//
//   1. Nothing, when it cannot be seen anyway: below a private directory, outside a restricted root, or
//      (default list) its mode keeps the command out.
//   2. A way: something writable lies in it, so a directory of our own is shown there with the path to that
//      part alone.
//   3. The home's mask: one overlay over the home has an entry for each name. It is the best means: it holds
//      names that do not exist yet, and a rename on the host does not take it off.
//   4. A mask of the nearest existing folder above, where that is not writable here: for entries of the
//      policy, and for absent names.
//   5. A cover: an empty file or directory is mounted over the name. A rename on the host takes a cover off,
//      and where the parent is writable here the name can be made anew; both are a Gap.
//
// A mask is refused where a mount between the folder and the name would lie over it (bound_below,
// mounted_between) or a link is on the way (link_between): the entry in the mask would not be where the path
// leads.
//
// Names are held by what they lead to as well: an alias must not lead around the rule (CVE-2026-25724). A
// link that leads to nothing yet is held at the place where what it names would be made (where_made).
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/owner.h"
#include "backend/paths/plan.h"
#include "backend/paths/plan_input.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/defaults.h"

namespace belljar::backend {
namespace {

// kOtherHome: the default list in a home that is not $HOME; held as entries are, and absent where it is absent.
// kSibling: a directory that another sandbox works in. Covered whatever its mode: whose it is may change that.
enum class Source { kDefault, kOtherHome, kEntry, kSibling };

bool is_held_as_entry(Source source) { return source == Source::kEntry || source == Source::kOtherHome; }

// Files that the kernel makes, and that nothing runs without or each process has of its own.
Result<void> check_kernels(const FsEntry& entry) {
  constexpr std::string_view kNeeded[] = {"/dev", "/dev/null", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc"};
  constexpr std::string_view kOwn[] = {"/proc/self", "/proc/thread-self", "/proc/mounts", "/proc/net"};
  const bool needed = std::ranges::find(kNeeded, entry.path) != std::end(kNeeded);
  const bool own = std::ranges::any_of(kOwn, [&](std::string_view name) { return is_under(entry.path, name); });
  if (!needed && !own) return {};
  return Error(Code::kInvalidArgument, format("cannot hide {}", quoted(entry.path)))
      .reason(format("{} (entry from {})", needed ? "programs do not run without it" : "each process has its own there",
                     to_string(entry.origin)))
      .next("drop the entry, or hide single files: other processes are invisible in /proc, and /dev holds only harmless nodes");
}

// A user's own entry for exactly this path speaks louder than the default list. One that only reads below it cannot be served: a
// hidden directory is closed to everything in it, and opening the whole of it would show what nobody asked for. What is writable
// there is shown alone (leave_way).
Result<bool> overridden(const PlanInput& input, const std::string& secret) {
  bool exact = false;
  for (const FsEntry& entry : input.fs.entries) {
    if (entry.glob || entry.origin.layer == "built-in" || entry.kind == RuleKind::kDefaultSecret) continue;
    // The workspace is shown through it, with what is said of its own parts.
    if (is_under(input.place.workspace, secret) && is_under(entry.path, input.place.workspace)) continue;
    if (entry.path == secret) exact = exact || entry.kind != RuleKind::kNarrowing;
    else if (entry.access == Access::kRead && is_under(entry.path, secret)) return inside_hidden(entry, secret, HiddenBy::kDefault);
  }
  return exact;
}

// Something between the two is shown by a mount of its own, which lies over a mask of the folder.
bool bound_below(const PathPlan& plan, const std::string& folder, const std::string& path) {
  return std::ranges::any_of(plan.view.binds, [&](const Bind& bind) {
    return bind.target != folder && is_under(bind.target, folder) && is_under(path, bind.target);
  });
}

// So does what the host has mounted between the two, which keep_host_mounts() puts back.
bool mounted_between(const PlanInput& input, const std::string& folder, const std::string& path) {
  return std::ranges::any_of(input.host.mount_points(), [&](const std::string& mount) {
    return mount.size() > folder.size() && mount.size() < path.size() && is_under(mount, folder) && is_under(path, mount);
  });
}

bool link_between(const PlanInput& input, const std::string& home, const std::string& path) {
  for (std::string up = parent_of(path); up.size() > home.size(); up = parent_of(up)) {
    if (input.kind_of(up) == PathKind::kSymlink) return true;
  }
  return false;
}

// Of a restricted root, where only what is named can be seen.
bool shown(const PathPlan& plan, const std::string& path) {
  return plan.may_write(path) || std::ranges::any_of(plan.readable, [&](const std::string& root) { return is_under(path, root); });
}

void cover(PathPlan& plan, const std::string& path, PathKind kind) {
  std::vector<std::string>& covers = kind == PathKind::kDirectory ? plan.view.hide_dirs : plan.view.hide_files;
  if (std::find(covers.begin(), covers.end(), path) == covers.end()) covers.push_back(path);
}

// `path`: what the policy's `asked` leads to.
void mask(PathPlan& plan, const PlanInput& input, const std::string& folder, const std::string& path, const std::string& asked) {
  if (!input.place.overlays) {
    const PathKind kind = input.kind_of(path);
    if (kind == PathKind::kAbsent) plan.add_gap("filesystem.hidden_absent", asked, path);
    else if (kind != PathKind::kSymlink) cover(plan, path, kind);
    return;
  }
  std::vector<std::string>& hidden = plan.view.masks[folder].hidden;
  std::string relative = path.substr(folder.size() + 1);
  if (hidden.empty() || hidden.back() != relative) hidden.push_back(std::move(relative));  // making one twice does no harm
}

// What hides a name hides all below it, and is no directory that anything could be made in. Returns how many names went. Few names
// share many folders: those are looked up, so that the usual list, which has no such names, pays for no set of its own.
std::size_t drop_nested(std::vector<std::string>& names) {
  std::unordered_set<std::string_view> folders;
  std::string_view last;
  for (const std::string& name : names) {
    const std::string_view folder = std::string_view(name).substr(0, std::min(name.rfind('/'), name.size()));
    if (folder.size() == name.size() || folder == last) continue;
    last = folder;
    for (std::string_view up = folder; folders.insert(up).second && up.find('/') != up.npos;) up = up.substr(0, up.rfind('/'));
  }
  std::vector<std::string> around;
  std::ranges::copy_if(names, std::back_inserter(around), [&](const std::string& name) { return folders.contains(name); });
  return std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(around, [&](const std::string& one) { return one != name && is_under(name, one); });
  });
}

// A name of the default list: the host's own is out of sight there. What the volume has under it is covered, unless the name is
// where somebody wants the volume.
void hide_in_volume(PathPlan& plan, const PlanInput& input, const std::string& path) {
  const Bind* bind = plan.shown_by(path);
  const PathKind kind = input.kind_of(plan.behind(path));
  if (bind->target != path && kind != PathKind::kAbsent && kind != PathKind::kSymlink) cover(plan, path, kind);
}

// A name that hide_at() has to hold: what the policy's `asked` leads to.
struct Hidden {
  std::string asked, path;
  PathKind kind;
  Source source;
};

// By its own name, never by its folder's: a program that reads other files there (`~/.config/git/ignore`, `~/.cargo/config.toml`)
// must find them absent, not forbidden.
bool held_by_homes_mask(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  const std::string& home = input.place.home;
  return !home.empty() && home != "/" && is_under(path, home) && path != home && !plan.may_write(home) &&
         input.kind_of(home) == PathKind::kDirectory && !link_between(input, home, path) && !bound_below(plan, home, path) &&
         !mounted_between(input, home, path);
}

void hide_existing(PathPlan& plan, const PlanInput& input, const Hidden& name) {
  const std::string& path = name.path;
  // Its owner and mode hold it already, unless it is shown through a bind: root lends those to the command's id.
  if (name.source == Source::kDefault && !input.policy.allow_root_uid && !input.place.owner && !plan.bound(path) &&
      !input.host.open_to_command(path))
    return;
  const std::string parent = parent_of(path);
  // A rename on the host takes a cover off; where the parent is read-only here a mask over it does not slip. A bind of the very
  // name lies over a mask.
  const Bind* bind = plan.shown_by(path);
  const bool own = bind != nullptr && bind->target == path;
  if (is_held_as_entry(name.source) && !plan.may_write(parent) && parent != "/" && !mounted_under(parent) && !own &&
      !out_of_sight(plan, input, parent))
    return mask(plan, input, parent, path, name.asked);
  // Made anew under that name, by the host or with the folders above it, it is not what the cover lies over.
  if (plan.may_write(parent)) plan.add_gap("filesystem.hidden_again", name.asked, path);
  cover(plan, path, name.kind);
}

// A link counts as absent: what it leads to is held at its own place.
void hide_absent(PathPlan& plan, const PlanInput& input, const Hidden& name) {
  if (name.source == Source::kDefault && !is_under(name.path, input.place.home))
    return;  // absent system paths: sockets are the connect rule's, files root's
  std::string base = parent_of(name.path);
  while (base != "/" && input.kind_of(base) == PathKind::kAbsent) base = parent_of(base);
  if (base == "/" || plan.may_write(base) || input.kind_of(base) != PathKind::kDirectory)
    return plan.add_gap("filesystem.hidden_absent", name.asked, name.path);
  if (!out_of_sight(plan, input, base)) mask(plan, input, base, name.path, name.asked);
}

// The workspace or something else that is writable lies in it.
bool has_way(const PathPlan& plan, const PlanInput& input, const Hidden& name) {
  if (is_under(input.place.workspace, name.path)) return true;
  return name.source != Source::kSibling &&
         std::ranges::any_of(plan.writable, [&](const std::string& root) { return leaves_way(input, name.path, root); });
}

// A directory of our own is seen there, with nothing but the way to what is shown.
void leave_way(PathPlan& plan, const PlanInput& input, const Hidden& name) {
  const std::string& path = name.path;
  const std::string& workspace = input.place.workspace;
  if (path == workspace || std::ranges::find(plan.ways, path) != plan.ways.end()) return;
  plan.ways.push_back(path);
  plan.view.private_dirs.push_back({path, 0755, true});
  if (!is_under(workspace, path)) {
    // As for a cover: made anew under that name it is not what this lies over.
    if (plan.may_write(parent_of(path))) plan.add_gap("filesystem.hidden_again", name.asked, path);
    return;
  }
  const bool shown = std::ranges::any_of(plan.view.binds, [&](const Bind& bind) { return bind.target == workspace; });
  if (!shown) show(plan, input, workspace, plan.may_write(workspace) ? Access::kWrite : Access::kRead);
}

// gpg does nothing, not even verify a signature, where it has no directory and cannot make one.
bool needs_own_directory(const PathPlan& plan, const PlanInput& input, const Hidden& name) {
  return name.kind == PathKind::kAbsent && name.source == Source::kDefault && input.place.overlays &&
         name.path == policy::gpg_directory(input.place.home) && held_by_homes_mask(plan, input, name.path);
}

// An empty one, gone with the sandbox; also where the host makes it later.
void give_own_directory(PathPlan& plan, const PlanInput& input, const std::string& path) {
  plan.view.masks[input.place.home].ghosts.push_back(path.substr(input.place.home.size() + 1));
  plan.view.private_dirs.push_back({path, 0700});
  plan.emptied.push_back(path);
}

void hide_at(PathPlan& plan, const PlanInput& input, const Hidden& name) {
  if (name.source != Source::kSibling) ++plan.hidden;
  const bool absent = name.kind == PathKind::kAbsent;
  if (absent && name.source == Source::kEntry) plan.view.closed.push_back(name.path);
  // Absent system paths are held by nobody at their own place either.
  if (!input.remapped_volumes.empty() && (!absent || is_held_as_entry(name.source) || is_under(name.path, input.place.home)))
    plan.beside_volumes.push_back(name.path);
  if (input.remapped_volume_at(name.path) != nullptr) return hide_in_volume(plan, input, name.path);
  if (out_of_sight(plan, input, name.path)) return;
  if (!plan.view.whole_root && !shown(plan, name.path)) return;
  if (has_way(plan, input, name)) return leave_way(plan, input, name);
  if (needs_own_directory(plan, input, name)) return give_own_directory(plan, input, name.path);
  if (held_by_homes_mask(plan, input, name.path)) return mask(plan, input, input.place.home, name.path, name.asked);
  if (absent || name.kind == PathKind::kSymlink) return hide_absent(plan, input, name);
  hide_existing(plan, input, name);
}

void hide(PathPlan& plan, const PlanInput& input, const std::string& path, Source source) {
  const PathKind kind = input.kind_of(path);
  if (kind == PathKind::kSymlink) {
    // The name and what it stands for: an alias must not lead around the rule (CVE-2026-25724).
    // Where that is not there yet, what will be made through the name is.
    if (const auto real = input.host.canonical(path)) hide_at(plan, input, {path, *real, input.kind_of(*real), source});
    else if (const std::string where = where_made(input.host, path); where != path)
      hide_at(plan, input, {path, where, input.kind_of(where), source});
  } else if (kind != PathKind::kAbsent) {
    if (const auto real = input.host.canonical(path); real && *real != path)
      return hide_at(plan, input, {path, *real, kind, source});
  } else if (const std::string where = where_made(input.host, path); where != path) {
    hide_at(plan, input, {path, where, kind, source});
  }
  hide_at(plan, input, {path, path, kind, source});
}

// Where others may pass to it; the way to another is an empty directory of ours (native.cc, open_way), which a mask would undo.
bool open_to_all(const PlanInput& input, const std::string& home) {
  if (!input.host.open_to_command(home)) return false;
  for (std::string up = home; up != "/"; up = parent_of(up)) {
    if ((input.host.facts(up).mode & S_IXOTH) == 0) return false;
  }
  return true;
}

struct Home {
  std::string path, runtime_dir;
  Source source;
};

// Root's commands may read what the owner of the workspace lets others read, and, where they run as that owner, what is theirs: so
// both homes count, the caller's and the owner's. No mask of $HOME lies on the second, so its names are held as entries are.
std::vector<Home> homes_of(const PathPlan& plan, const PlanInput& input) {
  const Workplace& place = input.place;
  std::vector<Home> homes = {{place.home, place.runtime_dir, Source::kDefault}};
  const auto add = [&](const std::string& home, const std::string& runtime_dir) {
    if (home.empty() || home == "/" || std::ranges::find(homes, home, &Home::path) != homes.end()) return;
    const bool shown = plan.bound(home) || open_to_all(input, home);
    homes.push_back({home, runtime_dir, shown ? Source::kOtherHome : Source::kDefault});
  };
  if (place.owner) add(place.owner->callers_home, place.runtime_dir);
  if (input.host.uid() != 0) return homes;
  if (const auto theirs = place_of_owner(input.host, place)) add(theirs->home, theirs->runtime_dir);
  return homes;
}

// The list is made here, whatever entries there are: one that is spelled out among them is hidden once all the same.
Result<void> hide_default_secrets(PathPlan& plan, const PlanInput& input) {
  if (input.fs.secrets != Secrets::kDefault) return {};
  for (const Home& home : homes_of(plan, input)) {
    for (const std::string& path : policy::default_secret_paths(home.path, home.runtime_dir, input.policy.profile)) {
      if (!BELLJAR_TRY(overridden(input, path)))
        hide(plan, input, path, is_under(path, home.path) ? home.source : Source::kDefault);
    }
  }
  return {};
}

// Those of the account's home are held as entries are: no mask of $HOME lies there. Belljar's own directory is covered only: a
// mask of the folder above it would cut off the sockets in there (unix(7) finds none through an overlay).
Result<void> hide_secret_entry(PathPlan& plan, const PlanInput& input, const FsEntry& entry) {
  const bool account = entry.origin.layer == "default secrets";
  if (account && BELLJAR_TRY(overridden(input, entry.path))) return {};
  hide(plan, input, entry.path, account ? Source::kOtherHome : Source::kDefault);
  return {};
}

// In a directory that leaves a way nothing else is shown, whatever came first: a mask would show its folder, a layer what it lies
// over.
void close_around_ways(PathPlan& plan) {
  const auto gone = [&](const std::string& path) {
    const Bind* bind = plan.shown_by(path);
    return std::ranges::any_of(plan.ways, [&](const std::string& way) {
      return is_under(path, way) && (bind == nullptr || !is_under(bind->target, way));
    });
  };
  std::erase_if(plan.view.masks, [&](const auto& mask) { return gone(mask.first); });
  std::erase_if(plan.view.hide_dirs, gone);
  std::erase_if(plan.view.hide_files, gone);
  std::erase_if(plan.view.caches, [&](const Cache& cache) { return gone(cache.path); });
}

Result<void> check_may_be_hidden(const PlanInput& input, const FsEntry& entry) {
  const auto refused = [&](std::string reason, std::string next) {
    return Error(Code::kInvalidArgument, format("cannot hide {}", quoted(entry.path)))
        .reason(format("{} (entry from {})", reason, to_string(entry.origin)))
        .next(std::move(next));
  };
  if (is_under(input.place.workspace, entry.path))
    return refused(format("the workspace {} lies inside it", quoted(input.place.workspace)),
                   "choose another workspace or drop the entry");
  if (const Volume* volume = input.remapped_volume_at(entry.path))
    return refused(format("the volume {} is shown there", quoted(volume->source)),
                   "mount a part of the volume that may be seen, or drop the entry");
  for (const FsEntry& other : input.fs.entries) {
    const bool readable = !other.glob && other.access == Access::kRead && other.path != "/";
    if (readable && other.path != entry.path && is_under(other.path, entry.path))
      return inside_hidden(other, entry.path, HiddenBy::kEntry);
  }
  return check_kernels(entry);
}

void hide_siblings(PathPlan& plan, const PlanInput& input) {
  if (!input.place.siblings) return;
  for (const std::string& path : input.place.siblings->hidden) {
    if (input.kind_of(path) == PathKind::kDirectory) hide_at(plan, input, {path, path, PathKind::kDirectory, Source::kSibling});
  }
  for (auto& [folder, mask] : plan.view.masks) drop_nested(mask.hidden);  // they are no secrets, and do not count
}

}  // namespace

Result<PathPlan> plan_hidden(PathPlan plan, const PlanInput& input) {
  BELLJAR_CHECK(hide_default_secrets(plan, input));
  for (const FsEntry& entry : input.fs.entries) {
    if (entry.glob || entry.access != Access::kNone || entry.path == "/") continue;
    if (entry.kind == RuleKind::kDefaultSecret) {
      BELLJAR_CHECK(hide_secret_entry(plan, input, entry));
      continue;
    }
    BELLJAR_CHECK(check_may_be_hidden(input, entry));
    hide(plan, input, entry.path, Source::kEntry);
  }
  for (auto& [folder, mask] : plan.view.masks) plan.hidden -= drop_nested(mask.hidden);
  hide_siblings(plan, input);
  close_around_ways(plan);
  return plan;
}

}  // namespace belljar::backend
