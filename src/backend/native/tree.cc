#include "backend/native/tree.h"

#include <sys/mount.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backend/native/host.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

using launch::MountOp;
using launch::MountOpKind;

constexpr std::uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::string_view kStage = "/tmp";                          // exists everywhere; always covered at the end (cover_stage)
constexpr std::string_view kHiddenPlace = "/dev/hidden-by-belljar";  // a directory of mode 000
struct Node {
  std::string_view name;
  unsigned major, minor;  // devices.txt of the kernel
};
constexpr Node kNodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

std::string join(std::string_view folder, std::string_view name) {
  std::string path(folder == "/" ? "" : folder);
  if (!name.empty() && name.front() != '/') path += '/';
  path += name;
  return path;
}

std::string relative_to(std::string_view path, std::string_view folder) {
  if (path == folder) return "";
  return std::string(path.substr(folder == "/" ? 1 : folder.size() + 1));
}

// One mount to attach in phase B.
struct Placement {
  std::string target;
  int slot = -1;
  std::uint32_t flags = 0;
  bool directory = true;
  bool cover = false;  // hides its target
};

class Builder {
 public:
  Builder(const Host& host, const View& view, launch::Plan& plan) : host_(host), view_(view), plan_(plan), slots_(plan.slots) {}

  void names() { make_mask_names(); }

  Result<void> run() {
    capture_binds();
    capture_layers();
    capture_devices();
    capture_mask_floors();
    keep_host_mounts();
    if (view_.whole_root) {
      add({.kind = MountOpKind::kSetAttr, .flags = launch::kRecursive, .attr_set = MOUNT_ATTR_RDONLY | kQuiet, .target = "/"});
    } else {
      // Only the propagation matters: nothing of this tree stays.
      add({.kind = MountOpKind::kSetAttr, .flags = launch::kRecursive, .attr_set = kQuiet, .target = "/"});
    }
    make_stage();
    make_kept_pool();
    make_layered();
    make_hiding_places();
    make_private_dirs();
    make_files();
    if (view_.minimal_dev) make_dev();
    if (view_.fresh_proc) make_proc();
    make_masks();
    make_caches();
    cover_stage();
    for (const Bind& bind : view_.binds) {
      if (bind.source != bind.target && hidden(bind.target))
        return Error(Code::kInvalidArgument, format("cannot show the volume {} at {}", quoted(bind.source), quoted(bind.target)))
            .reason("a rule hides that place, or one above it")
            .next("choose another target, or drop the rule");
    }
    // Whatever it is, it would show what is hidden: the home's own mask, a mount of the host, a protected name.
    std::erase_if(placements_, [&](const Placement& placement) { return !placement.cover && hidden(placement.target); });
    BELLJAR_CHECK(make_mount_points());
    attach_all();
    plan_.slots = slots_;
    return {};
  }

 private:
  void add(MountOp op) { plan_.mounts.push_back(std::move(op)); }
  // What is made on the stage, in whichever list is being written. A restricted root is a mount of `newroot` there.
  void add_stage(MountOp op) {
    op.target.erase(0, kStage.size() + 1);
    if (op.target.starts_with("root/")) op.target.insert(0, "new");
    stage_ops_->push_back(std::move(op));
  }
  int slot() { return slots_++; }
  std::string stage(std::string_view name) const { return join(kStage, name); }
  std::string at(std::string_view target) const {
    return view_.whole_root ? std::string(target) : join(join(kStage, "root"), target);
  }
  void place(std::string target, int from, bool directory = true, std::uint32_t flags = 0) {
    placements_.push_back({.target = std::move(target), .slot = from, .flags = flags, .directory = directory});
  }
  // A mount of something on the stage.
  int capture_own(std::string source, std::uint64_t attributes, std::uint32_t flags = 0) {
    const int to = slot();
    add({.kind = MountOpKind::kCapture,
         .flags = launch::kOwnPlace | flags,
         .slot = to,
         .attr_set = attributes,
         .source = std::move(source)});
    return to;
  }
  void mkdir(const std::string& path, mode_t mode, bool give_away = false) {
    if (!made_.insert(path).second) return;
    add_stage({.kind = MountOpKind::kMkdir, .mode = mode, .target = path});
    if (give_away && view_.chown_private) {
      add_stage({.kind = MountOpKind::kChown, .target = path, .uid = view_.owner_uid, .gid = view_.owner_gid});
    }
  }
  // mkdir -p below a stage directory; the last component is a file when `directory` is false.
  void make_path(const std::string& base, const std::string& relative, bool directory, mode_t mode) {
    std::size_t from = 0;
    while (from < relative.size()) {
      const std::size_t slash = relative.find('/', from);
      const std::string path = base + "/" + relative.substr(0, slash);
      const bool last = slash == std::string::npos;
      if (last && !directory) {
        if (made_.insert(path).second) add_stage({.kind = MountOpKind::kMkfile, .mode = 0600, .target = path});
      } else {
        mkdir(path, mode);
      }
      if (last) return;
      from = slash + 1;
    }
  }

  void capture_binds() {
    for (const Bind& bind : view_.binds) {
      if (in_layered(bind.source)) continue;
      const int to = slot();
      const std::uint64_t attributes = kQuiet | (bind.readonly ? MOUNT_ATTR_RDONLY : 0);
      if (bind.detached_fd >= 0) {
        add({.kind = MountOpKind::kTakeFd, .slot = to, .fd = bind.detached_fd});
      } else {
        add({.kind = MountOpKind::kCapture,
             .flags = launch::kRecursive,
             .slot = to,
             .userns_fd = bind.idmap_fd,
             .attr_set = attributes,
             .source = bind.source});
      }
      place(bind.target, to, bind.directory);
    }
  }

  bool in_layered(const std::string& path) const { return view_.layered && is_under(path, view_.layered->path); }

  int take(int fd, const std::string& source, std::uint64_t attributes) {
    const int to = slot();
    if (fd >= 0) add({.kind = MountOpKind::kTakeFd, .slot = to, .fd = fd});
    else add({.kind = MountOpKind::kCapture, .slot = to, .attr_set = attributes, .source = source});
    return to;
  }

  // Both halves of a transaction's overlay, and the layers of caches, before the stage covers /tmp, which may hold them.
  void capture_layers() {
    if (view_.kept_pool) kept_slot_ = take(view_.kept_pool->fd, view_.kept_pool->path, kQuiet);
    if (!view_.layered) return;
    below_slot_ = take(view_.layered->workspace_fd, view_.layered->path, MOUNT_ATTR_RDONLY | kQuiet);
    pool_slot_ = take(view_.layered->pool_fd, view_.layered->layers.pool, kQuiet);
    // An overlay shows one file system only: what the host has mounted below is put back, read-only, since no layer can hold it.
    for (const std::string& mount : host_.mount_points()) {
      if (mount == view_.layered->path || !in_layered(mount)) continue;
      const PathFacts facts = host_.facts(mount);
      if (facts.kind == PathKind::kAbsent) continue;
      const int to = slot();
      add({.kind = MountOpKind::kCapture,
           .flags = launch::kRecursive,
           .slot = to,
           .attr_set = MOUNT_ATTR_RDONLY | kQuiet,
           .source = mount});
      place(mount, to, facts.kind == PathKind::kDirectory);
      put_back_.push_back(mount);
    }
  }

  // What the policy lists beside the six of everybody.
  void capture_devices() {
    if (!view_.minimal_dev) return;
    for (const std::string& device : view_.devices) {
      const int to = slot();
      add({.kind = MountOpKind::kCapture,
           .flags = launch::kRecursive,
           .slot = to,
           .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
           .source = device});
      place(device, to, host_.facts(device).kind == PathKind::kDirectory);
    }
  }

  // The lower layers of masks and caches must stay reachable while the stage covers /tmp, and an idmapped one must be attached
  // before an overlay may use it: those two kinds get a copy on the stage.
  bool needs_copy(const std::string& folder, int detached_fd) const { return detached_fd >= 0 || is_under(folder, kStage); }

  void capture_mask_floors() {
    for (const auto& [folder, mask] : view_.masks) {
      if (!needs_copy(folder, mask.detached_fd)) continue;
      const int to = slot();
      if (mask.detached_fd >= 0) add({.kind = MountOpKind::kTakeFd, .slot = to, .fd = mask.detached_fd});
      else
        add({.kind = MountOpKind::kCapture,
             .flags = launch::kRecursive,
             .slot = to,
             .attr_set = MOUNT_ATTR_RDONLY | kQuiet,
             .source = folder});
      floors_[folder] = {to, format("{}/floor{}", kStage, floors_.size())};
    }
  }

  // An overlay shows one file system only: what the host has mounted below a masked folder is put back.
  void keep_host_mounts() {
    if (view_.masks.empty()) return;
    for (const std::string& mount : host_.mount_points()) {
      for (const auto& [folder, mask] : view_.masks) {
        if (mount == folder || !is_under(mount, folder) || covered_by_bind(mount)) continue;
        const PathFacts facts = host_.facts(mount);
        if (facts.kind == PathKind::kAbsent) continue;
        const int to = slot();
        add({.kind = MountOpKind::kCapture,
             .flags = launch::kRecursive | launch::kOptional,
             .slot = to,
             .attr_set = MOUNT_ATTR_RDONLY | kQuiet,
             .source = mount});
        place(mount, to, facts.kind == PathKind::kDirectory, launch::kOptional);
        break;
      }
    }
  }

  // At or below a name that a mask or a cover hides.
  bool hidden(std::string_view path) const {
    return std::ranges::any_of(view_.hide_dirs, [&](const std::string& dir) { return is_under(path, dir); }) ||
           std::ranges::any_of(view_.masks, [&](const auto& mask) {
             if (!is_under(path, mask.first) || path == mask.first) return false;
             const std::string_view inner = path.substr(mask.first.size() + 1);
             return std::ranges::any_of(mask.second.hidden, [&](const std::string& name) { return is_under(inner, name); });
           });
  }

  bool covered_by_bind(const std::string& path) const {
    return std::any_of(view_.binds.begin(), view_.binds.end(), [&](const Bind& bind) { return is_under(path, bind.target); });
  }

  void make_stage() {
    add({.kind = MountOpKind::kStage, .attr_set = kQuiet, .target = std::string(kStage), .data = stage_options(view_)});
    if (view_.whole_root) return;
    mkdir(stage("newroot"), 0755);
    mkdir(stage("root"), 0755);
    const int root = slot();
    add({.kind = MountOpKind::kCapture, .flags = launch::kRecursive, .slot = root, .attr_set = kQuiet, .source = stage("newroot")});
    add({.kind = MountOpKind::kAttach, .slot = root, .target = stage("root")});
    for (const auto& [link, text] : view_.root_links) {
      make_path(stage("root"), relative_to(parent_of(link), "/"), true, 0755);
      add_stage({.kind = MountOpKind::kSymlink, .source = text, .target = at(link)});
    }
  }

  void put(int from, std::string_view name) {
    mkdir(stage(name), 0755);
    add({.kind = MountOpKind::kAttach, .flags = launch::kOwnPlace, .slot = from, .target = stage(name)});
  }

  void make_kept_pool() {
    if (view_.kept_pool) put(kept_slot_, "kept");
  }

  // The workspace as the transaction has it, and everything of it that the policy treats apart: taken out of the overlay, so that
  // no bind leads around the layers.
  void make_layered() {
    if (!view_.layered) return;
    put(below_slot_, "below");
    put(pool_slot_, "layers");
    const int overlay = slot();
    add({.kind = MountOpKind::kOverlay, .slot = overlay, .attr_set = kQuiet, .data = layered_options()});
    put(overlay, "merged");
    for (const Bind& bind : view_.binds) {
      const bool mounted = std::ranges::any_of(put_back_, [&](const std::string& mount) { return is_under(bind.source, mount); });
      if (!in_layered(bind.source) || mounted) continue;
      const bool whole = bind.source == view_.layered->path;
      const std::uint32_t flags =
          whole ? 0U : static_cast<std::uint32_t>(launch::kIfExists);  // the transaction may have removed it
      const int to = slot();
      add({.kind = MountOpKind::kCapture,
           .flags = flags,
           .slot = to,
           .attr_set = kQuiet | (bind.readonly ? MOUNT_ATTR_RDONLY : 0),
           .source = whole ? stage("merged") : join(stage("merged"), relative_to(bind.source, view_.layered->path))});
      place(bind.target, to, bind.directory, flags);
    }
  }

  std::string layered_options() const {
    const WorkspaceLayers& layers = view_.layered->layers;
    const std::string pool = stage("layers") + "/";
    std::vector<std::string> lower;
    for (const std::string& layer : layers.lower) lower.push_back(pool + layer);
    lower.push_back(stage("below"));
    constexpr std::size_t kLongestValue = 255;  // fsconfig(2)
    std::string joined;
    for (const std::string& layer : lower) joined += (joined.empty() ? "" : ":") + layer;
    std::string options;
    if (joined.size() <= kLongestValue) {
      options = "lowerdir=" + joined + '\0';
    } else {
      for (const std::string& layer : lower) options += "lowerdir+=" + layer + '\0';  // Linux 6.8
    }
    options += "upperdir=" + pool + layers.upper + '\0' + "workdir=" + pool + layers.work + '\0';
    // The same for root, so that a layer means the same whoever mounts it. No index: it would tie a layer to one lower directory.
    options += std::string("userxattr") + '\0' + "index=off" + '\0';
    return options;
  }

  static std::string names_of(int number) { return format("{}/mask{}", kStage, number); }

  // The hidden names are a file system of their own until an overlay takes them in: they are made beside all that comes between.
  void make_mask_names() {
    if (view_.masks.empty()) return;
    stage_ops_ = &plan_.stage_names;
    add_stage({.kind = MountOpKind::kSymlink, .source = std::string(kHiddenPlace), .target = stage("absent")});
    int number = 0;
    for (const auto& [folder, mask] : view_.masks) make_names(folder, mask, names_of(number++));
    stage_ops_ = &plan_.stage_rest;
  }

  void make_masks() {
    if (view_.masks.empty()) return;
    add({.kind = MountOpKind::kAwait});
    for (auto& [folder, floor] : floors_) {
      mkdir(floor.second, 0755);
      add({.kind = MountOpKind::kAttach, .flags = launch::kOwnPlace, .slot = floor.first, .target = floor.second});
    }
    int number = 0;
    for (const auto& [folder, mask] : view_.masks) make_mask(folder, number++);
  }

  // One overlay holds the masked names of a folder and the writable layer of the caches in it: the folder is shown through a
  // read-only copy of it, each cache through a writable one.
  void make_mask(const std::string& folder, int number) {
    const std::string lower = "lowerdir=" + names_of(number) + ":" + escape_layer(reachable(folder)) + '\0';
    const int to = slot();
    const std::vector<const Cache*> caches = caches_of(folder);
    if (!caches.empty()) {
      const std::string layers = make_upper(format("cache{}", number));
      add({.kind = MountOpKind::kOverlay, .flags = launch::kOptional, .slot = to, .attr_set = kQuiet, .data = lower + layers});
    }
    add({.kind = MountOpKind::kOverlay,
         .flags = launch::kIfEmpty,
         .slot = to,
         .attr_set = kQuiet | (caches.empty() ? MOUNT_ATTR_RDONLY : 0),
         .data = lower});
    if (caches.empty()) return place(folder, to);
    const std::string merged = stage(format("cache{}/merged", number));
    add({.kind = MountOpKind::kAttach, .flags = launch::kOwnPlace, .slot = to, .target = merged});
    place(folder, capture_own(merged, kQuiet | MOUNT_ATTR_RDONLY));
    for (const Cache* cache : caches)
      place(cache->path, capture_own(join(merged, relative_to(cache->path, folder)), kQuiet, launch::kOptional), true,
            launch::kOptional);
  }

  // Existing names become directories of mode 000. The many absent ones become hard links to one symbolic link that leads to such a
  // directory, which `ls -l` shows: 2.6 us each where a directory takes 3.3. Inside a cache all are links: what can be written
  // could be given another mode.
  void make_names(const std::string& folder, const Mask& mask, const std::string& dir) {
    // The overlay's root shows the mode and owner of its upper layer: copy the folder's.
    const PathFacts facts = host_.facts(folder);
    mkdir(dir, facts.mode & 07777U);
    if (view_.chown_private) {
      add_stage({.kind = MountOpKind::kChown,
                 .target = dir,
                 .uid = mask.lent ? view_.owner_uid : facts.uid,
                 .gid = mask.lent ? view_.owner_gid : facts.gid});
    }
    std::string links;
    for (const std::string& name : mask.hidden) {
      make_ghost_parents(folder, dir, name);
      const std::string path = folder + "/" + name;
      if (!in_cache(path) && host_.facts(path).kind != PathKind::kAbsent) mkdir(dir + "/" + name, 0);
      else (links += name).push_back('\0');
    }
    if (!links.empty())
      add_stage({.kind = MountOpKind::kLinkNames, .source = "../absent", .target = dir, .data = std::move(links)});
    for (const std::string& ghost : mask.ghosts) {
      make_ghost_parents(folder, dir, ghost);
      mkdir(dir + "/" + ghost, 0755, true);
    }
  }

  bool in_cache(std::string_view path) const {
    return std::any_of(view_.caches.begin(), view_.caches.end(), [&](const Cache& cache) { return is_under(path, cache.path); });
  }

  std::vector<const Cache*> caches_of(const std::string& folder) const {
    std::vector<const Cache*> found;
    for (const Cache& cache : view_.caches) {
      if (cache.kept.empty() && is_under(cache.path, folder) && cache.path != folder) found.push_back(&cache);
    }
    return found;
  }

  // Parents of a masked name appear in the upper layer and merge with the host's; they show the mode and owner they have here.
  void make_ghost_parents(const std::string& folder, const std::string& dir, const std::string& name) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string relative = "/" + name.substr(0, slash);
      if (made_.contains(dir + relative)) continue;
      const PathFacts facts = host_.facts(folder + relative);
      mkdir(dir + relative, facts.kind == PathKind::kDirectory ? (facts.mode & 07777U) | 0055U : 0755, in_cache(folder + relative));
    }
  }

  // In lowerdir a colon separates layers and a backslash escapes, overlayfs.rst; a comma is no separator with fsconfig(2).
  static std::string escape_layer(const std::string& path) {
    std::string result;
    for (const char c : path) {
      if (c == ':' || c == '\\') result.push_back('\\');
      result.push_back(c);
    }
    return result;
  }

  // The host path of a cache as it can be reached now: below the copy of a mask's floor if there is one.
  std::string reachable(const std::string& path) const {
    for (const auto& [folder, floor] : floors_) {
      if (is_under(path, folder)) return path == folder ? floor.second : floor.second + "/" + relative_to(path, folder);
    }
    return path;
  }

  // Caches outside of masked folders, and those that are kept: an overlay each.
  void make_caches() {
    int number = 0;
    for (const Cache& cache : view_.caches) {
      if (!cache.kept.empty()) {
        make_kept_cache(cache, number++);
        continue;
      }
      if (std::any_of(view_.masks.begin(), view_.masks.end(),
                      [&](const auto& mask) { return is_under(cache.path, mask.first) && cache.path != mask.first; }))
        continue;
      const int to = slot();
      const std::string layers = make_upper(format("own-cache{}", number++));
      add({.kind = MountOpKind::kOverlay,
           .flags = launch::kOptional,
           .slot = to,
           .attr_set = kQuiet,
           .data = lower_of(cache) + layers});
      place(cache.path, to, true, launch::kOptional);
    }
  }

  // One overlay for one cache, so that its layer holds nothing else, whatever the policy of the next command says. Where the layer
  // cannot be mounted (its file system is an overlay or a network's), what is written is discarded, and the report says so.
  void make_kept_cache(const Cache& cache, int number) {
    const std::string lower = lower_of(cache);
    const std::string layer = stage("kept/" + cache.kept);
    std::string kept = "upperdir=" + layer + "/up" + '\0' + "workdir=" + layer + "/work" + '\0';
    // As for a transaction: the same for root, and no index, so that the layer fits whatever the host has in the cache by then.
    kept += std::string("userxattr") + '\0' + "index=off" + '\0';
    const int to = slot();
    add({.kind = MountOpKind::kOverlay,
         .flags = view_.kept_pool->required ? 0U : static_cast<std::uint32_t>(launch::kOptional),
         .slot = to,
         .attr_set = kQuiet,
         .data = lower + kept,
         .clause = "filesystem.caches"});
    const std::string discarded = make_upper(format("own-cache{}", number));
    add({.kind = MountOpKind::kOverlay,
         .flags = launch::kOptional | launch::kIfEmpty,
         .slot = to,
         .attr_set = kQuiet,
         .data = lower + discarded});
    place(cache.path, to, true, launch::kOptional);
  }

  std::string lower_of(const Cache& cache) const {
    std::string lower;
    for (const std::string& path : floors_of(cache)) lower += (lower.empty() ? "lowerdir=" : ":") + escape_layer(path);
    lower.push_back('\0');
    return lower;
  }

  // What lies below a cache's layer, top first: hidden names in it, then the host's.
  std::vector<std::string> floors_of(const Cache& cache) const {
    std::vector<std::string> floors;
    int number = 0;
    for (const auto& [folder, mask] : view_.masks) {
      const std::string names = names_of(number++);
      if (cache.path == folder) floors.push_back(names);
      if (!is_under(cache.path, folder) || cache.path == folder) continue;
      const std::string relative = relative_to(cache.path, folder);
      const auto within = [&](const std::string& name) { return is_under(folder + "/" + name, cache.path); };
      if (std::ranges::any_of(mask.hidden, within) || std::ranges::any_of(mask.ghosts, within))
        floors.push_back(names + "/" + relative);
    }
    if (cache.exists) floors.push_back(reachable(cache.path));
    return floors;
  }

  // The writable half of an overlay, as option pairs.
  std::string make_upper(const std::string& name) {
    const std::string dir = stage(name);
    for (const std::string_view part : {"", "/up", "/work", "/merged"})
      mkdir(dir + std::string(part), part == "/work" ? 0700 : 0755, part == "/up");
    std::string options = "upperdir=" + dir + "/up" + '\0' + "workdir=" + dir + "/work" + '\0';
    // In a user namespace trusted.* attributes cannot be written: without this a directory that was removed cannot be made again
    // (EIO).
    if (!view_.chown_private) options += std::string("userxattr") + '\0';
    return options;
  }

  void make_hiding_places() {
    if (view_.hide_dirs.empty() && view_.hide_files.empty()) return;
    mkdir(stage("hidden"), 0);
    add_stage({.kind = MountOpKind::kMkfile, .mode = 0, .target = stage("hidden-file")});
    const auto cover = [&](const std::string& target, std::string_view with, bool directory) {
      place(target, capture_own(stage(with), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC | kQuiet), directory, launch::kIfExists);
      placements_.back().cover = true;
    };
    for (const std::string& path : view_.hide_dirs) cover(path, "hidden", true);
    for (const std::string& path : view_.hide_files) cover(path, "hidden-file", false);
  }

  void make_private_dirs() {
    int number = 0;
    for (const PrivateDir& dir : view_.private_dirs) make_private_dir(dir, format("private{}", number++));
  }

  void make_private_dir(const PrivateDir& dir, const std::string& name) {
    mkdir(stage(name), dir.mode, dir.mode == 0700);
    place(dir.target, capture_own(stage(name), kQuiet | (dir.readonly ? MOUNT_ATTR_RDONLY : 0)));
    own_[dir.target] = stage(name);
  }

  // Whoever reaches the stage un-hides every name on it. A view that shows nothing over it gets an empty directory there; a
  // restricted root is pivoted away from it.
  void cover_stage() {
    const bool covered = std::ranges::any_of(
        placements_, [](const Placement& placement) { return placement.target == kStage && placement.flags == 0; });
    if (view_.whole_root && !covered) make_private_dir({std::string(kStage), 0755, true}, "cover");
  }

  void make_files() {
    int number = 0;
    for (const auto& [target, contents] : view_.files) {
      const std::string path = format("{}/file{}", kStage, number++);
      add_stage({.kind = MountOpKind::kWriteFile, .mode = 0644, .target = path, .data = contents});
      place(target, capture_own(path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC | kQuiet), false, launch::kIfExists);
    }
  }

  // A /dev of our own: six harmless nodes, a devpts instance (other terminals of the user do not exist in it), the usual links.
  void make_dev() {
    const std::string dev = stage("dev");
    mkdir(dev, 0755);
    own_["/dev"] = dev;
    for (const Node& node : kNodes) {
      add_stage({.kind = MountOpKind::kDevice,
                 .device = view_.make_devices ? makedev(node.major, node.minor) : 0,
                 .source = join("/dev", node.name),
                 .target = join(dev, node.name)});
    }
    constexpr std::pair<std::string_view, std::string_view> kLinks[] = {
        {"/proc/self/fd", "fd"},       {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
        {"/proc/self/fd/2", "stderr"}, {"/proc/kcore", "core"},      {"pts/ptmx", "ptmx"}};
    for (const auto& [to, name] : kLinks)
      add_stage({.kind = MountOpKind::kSymlink, .source = std::string(to), .target = join(dev, name)});
    mkdir(join(dev, kHiddenPlace.substr(5)), 0);
    const int pts = slot();
    std::string options("newinstance\0ptmxmode=0666\0mode=0620\0", 36);
    if (view_.chown_private) {
      options += format("uid={}", view_.owner_uid);
      options.push_back('\0');
      options += format("gid={}", view_.owner_gid);
      options.push_back('\0');
    }
    add({.kind = MountOpKind::kDevpts, .slot = pts, .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .data = std::move(options)});
    place("/dev/pts", pts);
  }

  void make_proc() {
    proc_slot_ = slot();
    const std::uint32_t flags = view_.proc_optional ? static_cast<std::uint32_t>(launch::kOptional) : 0U;
    add({.kind = MountOpKind::kProc, .flags = flags, .slot = proc_slot_, .attr_set = kQuiet | MOUNT_ATTR_NOEXEC});
  }

  // What lies over `target` when it is attached: the deepest placement above it, or the host.
  Result<void> make_mount_points() {
    if (!view_.whole_root) {
      for (const std::string_view folder : {"/proc", "/dev"}) make_path(stage("root"), std::string(folder.substr(1)), true, 0755);
      for (const Placement& placement : placements_) {
        if (!placed_above(placement)) make_path(stage("root"), relative_to(placement.target, "/"), placement.directory, 0755);
      }
    }
    for (const Placement& placement : placements_) {
      for (const auto& [folder, path] : own_) {
        if (placement.target == folder || !is_under(placement.target, folder) || hidden_below(folder, placement.target)) continue;
        make_path(path, relative_to(placement.target, folder), placement.directory, 0755);
      }
      BELLJAR_CHECK(check_mount_point(placement));
    }
    return {};
  }

  // Another placement between `folder` and `target` brings the mount point itself.
  bool hidden_below(const std::string& folder, const std::string& target) const {
    return std::any_of(placements_.begin(), placements_.end(), [&](const Placement& other) {
      return other.target != folder && other.target != target && is_under(other.target, folder) && is_under(target, other.target);
    });
  }
  bool placed_above(const Placement& placement) const {
    return std::any_of(placements_.begin(), placements_.end(), [&](const Placement& other) {
      return other.target != placement.target && is_under(placement.target, other.target);
    });
  }

  Result<void> check_mount_point(const Placement& placement) const {
    if ((placement.flags & (launch::kIfExists | launch::kOptional)) != 0 || !view_.whole_root) return {};
    for (const auto& [folder, path] : own_) {
      if (is_under(placement.target, folder)) return {};
    }
    for (const auto& [folder, mask] : view_.masks) {
      for (const std::string& ghost : mask.ghosts) {
        if (is_under(placement.target, folder + "/" + ghost)) return {};
      }
    }
    if (host_.facts(placement.target).kind != PathKind::kAbsent) return {};
    return Error(Code::kInvalidArgument, format("cannot show anything at {}", quoted(placement.target)))
        .reason("the path does not exist, and a sandbox leaves no stub on the host")
        .next("create it first, or choose a target below /tmp");
  }

  void attach_all() {
    if (view_.minimal_dev) {
      const int dev = slot();
      add({.kind = MountOpKind::kCapture,
           .flags = launch::kRecursive | launch::kOwnPlace,
           .slot = dev,
           .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
           .attr_clr = MOUNT_ATTR_NODEV,
           .source = stage("dev")});
      add({.kind = MountOpKind::kAttach, .slot = dev, .target = at("/dev")});
    }
    if (view_.fresh_proc) attach_proc();
    std::stable_sort(placements_.begin(), placements_.end(),
                     [](const Placement& a, const Placement& b) { return depth_of(a.target) < depth_of(b.target); });
    for (const Placement& placement : placements_) {
      add({.kind = MountOpKind::kAttach, .flags = placement.flags, .slot = placement.slot, .target = at(placement.target)});
    }
    if (view_.whole_root) return;
    add({.kind = MountOpKind::kSetAttr, .attr_set = MOUNT_ATTR_RDONLY, .target = stage("root")});
    add({.kind = MountOpKind::kPivot, .target = stage("root")});
  }

  void attach_proc() {
    const std::uint32_t optional = view_.proc_optional ? static_cast<std::uint32_t>(launch::kOptional) : 0U;
    add({.kind = MountOpKind::kAttach, .flags = optional, .slot = proc_slot_, .target = at("/proc")});
    for (const std::string_view path : {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"}) {
      const int to = slot();
      const std::string target = at(path);
      add({.kind = MountOpKind::kCapture,
           .flags = launch::kOwnPlace | launch::kIfExists | optional,
           .slot = to,
           .attr_set = MOUNT_ATTR_RDONLY | kQuiet | MOUNT_ATTR_NOEXEC,
           .source = target});
      add({.kind = MountOpKind::kAttach, .flags = launch::kOwnPlace | launch::kIfExists | optional, .slot = to, .target = target});
    }
  }

  const Host& host_;
  const View& view_;
  launch::Plan& plan_;
  int slots_;
  int proc_slot_ = -1;
  int below_slot_ = -1, pool_slot_ = -1, kept_slot_ = -1;
  std::vector<Placement> placements_;
  std::vector<std::string> put_back_;                          // what the host has mounted in a layered workspace
  std::map<std::string, std::string> own_;                     // private target -> its path on the stage
  std::map<std::string, std::pair<int, std::string>> floors_;  // masked folder -> slot, path on the stage
  std::unordered_set<std::string> made_;
  std::vector<MountOp>* stage_ops_ = &plan_.stage_rest;
};

}  // namespace

std::string stage_options(const View& view) {
  std::string options = format("size={}", view.private_bytes) + '\0' + "mode=0755" + '\0';
  if (view.private_inodes != 0) options += format("nr_inodes={}", view.private_inodes) + '\0';
  return options;
}

void build_names(const Host& host, const View& view, launch::Plan& plan) { Builder(host, view, plan).names(); }

Result<void> build_tree_ops(const Host& host, const View& view, launch::Plan& plan) { return Builder(host, view, plan).run(); }

}  // namespace belljar::backend
