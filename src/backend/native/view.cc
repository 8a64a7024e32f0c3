#include "backend/native/view.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/host.h"
#include "backend/native/tree.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/defaults.h"
#include "policy/paths.h"
#include "policy/profiles.h"

namespace belljar::backend {
namespace {

// "gitdir: <path>" of a `.git` file, gitrepository-layout(5).
std::string pointer_in(std::string_view text, std::string_view key) {
  if (!text.starts_with(key)) return "";
  text.remove_prefix(key.size());
  const std::size_t end = text.find('\n');
  return std::string(text.substr(0, end));
}

class Planner {
 public:
  Planner(const Host& host, const Policy& policy, const Workplace& place)
      : host_(host), policy_(policy), fs_(policy.filesystem), place_(place) {}

  Result<Paths> run() {
    const FsEntry* root = find_rule(fs_, "/");
    paths_.view.whole_root = root == nullptr || root->access != Access::kNone;
    plan_private();
    BELLJAR_CHECK(plan_writable());
    BELLJAR_CHECK(plan_readable());
    BELLJAR_CHECK(plan_volumes());
    BELLJAR_CHECK(plan_readonly());
    plan_protected();
    plan_pins();
    BELLJAR_CHECK(plan_hidden());
    BELLJAR_CHECK(check_volumes());
    plan_caches();
    show_home();
    BELLJAR_CHECK(plan_devices());
    BELLJAR_CHECK(plan_layers());
    return std::move(paths_);
  }

 private:
  View& view() { return paths_.view; }
  PathKind kind_of(const std::string& path) const { return host_.facts(path).kind; }
  bool writable(std::string_view path) const {
    return std::any_of(paths_.writable.begin(), paths_.writable.end(),
                       [&](const std::string& root) { return is_under(path, root); });
  }
  bool is_private(std::string_view path) const {
    return std::any_of(paths_.view.private_dirs.begin(), paths_.view.private_dirs.end(),
                       [&](const PrivateDir& dir) { return is_under(path, dir.target); });
  }
  bool is_private_dir(std::string_view path) const {
    return std::any_of(paths_.view.private_dirs.begin(), paths_.view.private_dirs.end(),
                       [&](const PrivateDir& dir) { return dir.target == path; });
  }
  // Mounts are attached shallow first: the deepest bind is what is shown.
  const Bind* shown_by(std::string_view path) const {
    const Bind* nearest = nullptr;
    for (const Bind& bind : paths_.view.binds) {
      if (is_under(path, bind.target) && (nearest == nullptr || bind.target.size() >= nearest->target.size())) nearest = &bind;
    }
    return nearest;
  }
  // The host's own name of what is shown at `path`.
  std::string behind(const std::string& path) const {
    const Bind* bind = shown_by(path);
    if (bind == nullptr || bind->source == bind->target) return path;
    return path == bind->target ? bind->source : (bind->source == "/" ? "" : bind->source) + path.substr(bind->target.size());
  }
  // The other way: the name here of the host's `real`, which what is shown at `path` leads to.
  std::string shown_as(const std::string& real, std::string_view path) const {
    const Bind* bind = shown_by(path);
    return bind != nullptr && is_under(real, bind->source) ? bind->target + real.substr(bind->source.size()) : real;
  }
  // At or below the place of a volume that shows something else of the host there.
  const Volume* elsewhere_at(std::string_view path) const {
    const auto found = std::ranges::find_if(elsewhere_, [&](const auto& one) { return is_under(path, one.second->target); });
    return found == elsewhere_.end() ? nullptr : found->second;
  }
  void gap(std::string clause, const std::string& what) { gap(std::move(clause), what, what); }
  void gap(std::string clause, std::string what, std::string where) {
    paths_.gaps.push_back({.clause = std::move(clause), .what = std::move(what), .where = std::move(where)});
  }

  void add_private(const std::string& path, mode_t mode, bool readonly = false) {
    if (path.empty() || path == "/" || is_under(path, place_.workspace)) return;  // inside the workspace it is as writable as that
    const bool known = std::any_of(view().private_dirs.begin(), view().private_dirs.end(),
                                   [&](const PrivateDir& dir) { return dir.target == path; });
    if (known || (kind_of(path) != PathKind::kDirectory && !path.starts_with("/dev/"))) return;
    // An entry is about the sandbox's own, too: read-only, or closed.
    const Access asked = asked_of(path);
    if (asked == Access::kNone) view().private_dirs.push_back({path, 0, true});
    else
      view().private_dirs.push_back({path, readonly || asked == Access::kRead ? 0755U : mode, readonly || asked == Access::kRead});
  }

  // What an entry says of exactly this place; kWrite where none does.
  Access asked_of(std::string_view path) const {
    const FsEntry* rule = find_rule(fs_, path);
    return rule != nullptr && rule->path == path ? rule->access : Access::kWrite;
  }

  void plan_private() {
    if (fs_.tmp == Tmp::kPrivate) {
      // Excluded it is nobody's, not the host's: the key may only take away.
      add_private("/tmp", fs_.exclude_slash_tmp ? 0755 : 01777, fs_.exclude_slash_tmp);
      add_private("/var/tmp", 01777);
      add_private("/dev/shm", 01777);
      add_private(place_.runtime_dir, 0700);
      // A TMPDIR that holds the home or the workspace would cover them.
      const bool covers = is_under(place_.home, place_.tmpdir) || is_under(place_.workspace, place_.tmpdir);
      if (!fs_.exclude_tmpdir_env_var && !covers) add_private(place_.tmpdir, 0700);
    }
    view().private_bytes = fs_.tmp_size.count;
  }

  // A write entry that crosses a link inside something writable could be re-pointed by an earlier command: refused, not followed.
  Result<std::string> settle(const std::string& path, const std::string& rule) const {
    const auto real = host_.canonical(path);
    if (!real) {
      return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(path)))
          .reason(format("it does not exist ({})", rule))
          .next("create it first, or drop the entry");
    }
    if (*real == path) return *real;
    std::string at = path;
    while (at != "/") {
      if (kind_of(at) == PathKind::kSymlink && (is_under(at, place_.workspace) || writable(at))) {
        return Error(Code::kPermissionDenied, format("cannot make {} writable", quoted(path)))
            .reason(format("{} is a symbolic link inside a writable directory, so a command could point it anywhere", quoted(at)))
            .next(format("name its target {} if you mean that", quoted(*real)));
      }
      at = parent_of(at);
    }
    return *real;
  }

  // A shipped profile lists what a machine may have: what this one lacks is left out by name. A list of one's own means what it
  // says.
  bool left_out(const FsEntry& entry) {
    const bool shipped = entry.origin.file == entry.origin.layer + ".toml" &&
                         std::ranges::find(policy::embedded_profiles(), entry.origin.layer, &policy::EmbeddedProfile::name) !=
                             policy::embedded_profiles().end();
    if (!shipped || host_.canonical(entry.path)) return false;
    gap("filesystem.absent_writable", entry.path);
    return true;
  }

  // /tmp/x that is not there: the private /tmp is writable as it is. A home or a workspace below /tmp is the host's.
  bool private_anyway(const std::string& path) const {
    if (kind_of(path) != PathKind::kAbsent || in_shown_home(path) || is_under(path, place_.workspace)) return false;
    return std::ranges::any_of(paths_.view.private_dirs,
                               [&](const PrivateDir& dir) { return !dir.readonly && is_under(path, dir.target); });
  }

  Result<void> add_writable(const std::string& path) {
    if (path == "/proc" || path == "/sys" || path == "/dev" || path.starts_with("/proc/") || path.starts_with("/sys/") ||
        path.starts_with("/dev/")) {
      return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(path)))
          .reason("it is a kernel file system, not a place for files")
          .next("use --device for device nodes");
    }
    if (std::find(paths_.writable.begin(), paths_.writable.end(), path) != paths_.writable.end()) return {};
    paths_.writable.push_back(path);
    view().binds.push_back({.source = path, .target = path, .readonly = false, .directory = kind_of(path) == PathKind::kDirectory});
    return {};
  }

  Result<void> plan_writable() {
    if (policy_.mode == Mode::kWorkspaceWrite) {
      const FsEntry* rule = find_rule(fs_, place_.workspace);
      // An entry for the workspace itself may narrow it.
      if (rule == nullptr || rule->path != place_.workspace || rule->access == Access::kWrite)
        BELLJAR_CHECK(add_writable(place_.workspace));
    }
    if (fs_.tmp == Tmp::kShared) {
      for (const char* path : {"/tmp", "/var/tmp", "/dev/shm"}) {
        if (kind_of(path) != PathKind::kDirectory) continue;
        // The stage lies over it meanwhile (tree.cc): what is not writable is put back read-only.
        if ((fs_.exclude_slash_tmp && std::string_view(path) == "/tmp") || asked_of(path) == Access::kRead)
          view().binds.push_back({.source = path, .target = path, .readonly = true, .lend = false});
        else if (std::string_view(path).starts_with("/dev/"))
          view().binds.push_back({.source = path, .target = path, .readonly = false});
        else BELLJAR_CHECK(add_writable(path));
      }
      if (!fs_.exclude_tmpdir_env_var && !place_.tmpdir.empty() && kind_of(place_.tmpdir) == PathKind::kDirectory &&
          !writable(place_.tmpdir) && asked_of(place_.tmpdir) != Access::kRead)
        BELLJAR_CHECK(add_writable(place_.tmpdir));
    }
    if (fs_.temp_dir) BELLJAR_CHECK(add_writable(BELLJAR_TRY(settle(*fs_.temp_dir, "filesystem.temp_dir"))));
    for (const FsEntry& entry : fs_.entries) {
      if (entry.glob || entry.access != Access::kWrite || private_anyway(entry.path) || left_out(entry)) continue;
      const std::string real = BELLJAR_TRY(settle(entry.path, to_string(entry.origin)));
      if (std::ranges::any_of(paths_.view.private_dirs, [&](const PrivateDir& dir) { return dir.readonly && dir.target == real; }))
        return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(entry.path)))
            .reason("filesystem.exclude_slash_tmp says that it is not")
            .next("drop the key, or the entry");
      const FsEntry* parent = nullptr;
      for (std::string up = parent_of(real);; up = parent_of(up)) {
        const FsEntry* rule = find_rule(fs_, up);
        if (rule != nullptr && rule->access == Access::kNone && rule->path != "/") parent = rule;
        if (up == "/") break;
      }
      if (parent != nullptr) return inside_hidden(entry, parent->path);
      BELLJAR_CHECK(add_writable(real));
    }
    std::sort(paths_.writable.begin(), paths_.writable.end(),
              [](const auto& a, const auto& b) { return depth_of(a) < depth_of(b); });
    return {};
  }

  Error inside_hidden(const FsEntry& entry, const std::string& hidden) const {
    return Error(Code::kInvalidArgument, format("cannot make {} {} inside hidden {}", quoted(entry.path),
                                                entry.access == Access::kWrite ? "writable" : "readable", quoted(hidden)))
        .reason(format("a hidden directory answers EACCES to everything below it (entry from {})", to_string(entry.origin)))
        .next("hide the other parts of that directory one by one, or drop one of the two entries");
  }

  // Restricted root: only what is named can be seen.
  Result<void> plan_readable() {
    if (paths_.view.whole_root) return {};
    const auto show = [&](const std::string& path, const FsEntry* entry) -> Result<void> {
      const auto real = host_.canonical(path);
      if (!real) return {};
      if (entry != nullptr) BELLJAR_CHECK(check_opens_nothing(*entry, *real));
      if (*real != path && kind_of(path) == PathKind::kSymlink) view().root_links.emplace_back(path, *real);
      const bool shown = std::any_of(paths_.readable.begin(), paths_.readable.end(),
                                     [&](const std::string& other) { return is_under(*real, other); });
      if (shown || writable(*real)) return {};
      paths_.readable.push_back(*real);
      view().binds.push_back(
          {.source = *real, .target = *real, .readonly = true, .directory = kind_of(*real) == PathKind::kDirectory});
      return {};
    };
    for (const FsEntry& entry : fs_.entries) {
      if (!entry.glob && entry.access == Access::kRead && entry.path != "/") BELLJAR_CHECK(show(entry.path, &entry));
    }
    if (!writable(place_.workspace)) BELLJAR_CHECK(show(place_.workspace, nullptr));
    return {};
  }

  Result<void> plan_readonly() {
    for (const FsEntry& entry : fs_.entries) {
      if (entry.glob) {
        paths_.gaps.push_back({.clause = "filesystem.globs",
                               .what = format("{} ({})", entry.path, to_string(entry.access)),
                               .where = {},
                               .access = entry.access});
        continue;
      }
      if (entry.access != Access::kRead) continue;
      if (elsewhere_at(entry.path) != nullptr) {
        BELLJAR_CHECK(keep_in_volume(entry));
        continue;
      }
      const auto real = host_.canonical(entry.path);
      if (!real) {
        const std::string where = where_made(host_, entry.path);
        if (writable(entry.path)) gap("filesystem.absent_readonly", entry.path, entry.path);
        if (where != entry.path && writable(where)) gap("filesystem.absent_readonly", entry.path, where);
        continue;
      }
      BELLJAR_CHECK(check_opens_nothing(entry, *real));
      const Bind* bind = shown_by(*real);
      if (writable(*real) || (bind != nullptr && !bind->readonly)) add_readonly(*real);
      else show_through_private(*real);  // --read /tmp/x
    }
    // A workspace below /tmp that nobody made writable.
    if (const FsEntry* rule = find_rule(fs_, place_.workspace); rule == nullptr || rule->access != Access::kNone) {
      if (!writable(place_.workspace)) show_through_private(place_.workspace);
    }
    return {};
  }

  // Below a volume a name means what its source has there.
  Result<void> keep_in_volume(const FsEntry& entry) {
    if (const Bind* bind = shown_by(entry.path); bind == nullptr || bind->readonly) return {};
    const std::string there = behind(entry.path);
    const auto real = host_.canonical(there);
    if (!real) {
      gap("filesystem.absent_readonly", entry.path, entry.path);
      return {};
    }
    if (*real != there)
      return Error(Code::kInvalidArgument, format("cannot keep {} read-only", quoted(entry.path)))
          .reason(format("there is a symbolic link in the volume, and it leads to {} (entry from {})", quoted(*real),
                         to_string(entry.origin)))
          .next("name what the link leads to, or make the volume read-only");
    add_readonly(entry.path);
    return {};
  }

  // An entry of the workspace's file shows nothing: not through a link that the command made, not from below a private directory.
  Result<void> check_opens_nothing(const FsEntry& entry, const std::string& real) const {
    if (entry.kind != RuleKind::kNarrowing) return {};
    Filesystem others;
    std::ranges::copy_if(fs_.entries, std::back_inserter(others.entries),
                         [](const FsEntry& other) { return other.kind != RuleKind::kNarrowing; });
    const FsEntry* rule = find_rule(others, real);
    if (is_under(real, place_.workspace) && (rule == nullptr || !is_under(rule->path, place_.workspace))) return {};
    const bool open = rule == nullptr || rule->access != Access::kNone;
    const bool through =
        is_private(real) && !in_shown_home(real) && (rule == nullptr || !is_private(rule->path) || is_private_dir(rule->path));
    if (open && !through) return {};
    return Error(Code::kPermissionDenied,
                 format("{}: a project file may not make {} readable", to_string(entry.origin), quoted(real)))
        .reason(open ? "it lies below a directory that is private to the sandbox" : "nothing else makes it readable")
        .next("say it in your own policy file or on the command line");
  }

  void show_through_private(const std::string& path) {
    if (!is_private(path) || is_private_dir(path) || bound(path)) return;
    view().binds.push_back({.source = path, .target = path, .readonly = true, .directory = kind_of(path) == PathKind::kDirectory});
  }

  void add_readonly(const std::string& path) {
    if (std::find(paths_.readonly.begin(), paths_.readonly.end(), path) != paths_.readonly.end() ||
        std::find(paths_.writable.begin(), paths_.writable.end(), path) != paths_.writable.end())
      return;
    paths_.readonly.push_back(path);
    std::string source = behind(path);
    const bool directory = kind_of(source) == PathKind::kDirectory;
    view().binds.push_back({.source = std::move(source), .target = path, .readonly = true, .directory = directory});
  }

  // The ancestors of a read-only path become mount points of their own: rename answers EBUSY (PP-05). A pin is writable and lies
  // over what is shown there, so pins are planned when all that is read-only is known, and the first ancestor that is read-only
  // ends them.
  void plan_pins() {
    for (const std::string& path : paths_.readonly) {
      for (std::string up = parent_of(path); up != "/"; up = parent_of(up)) {
        const Bind* bind = shown_by(up);
        if (bind == nullptr || bind->readonly) break;
        if (bind->target == up) continue;  // a mount point as it is; a writable directory may lie above it
        paths_.pinned.push_back(up);
        view().binds.push_back({.source = behind(up), .target = up, .readonly = false});
      }
    }
  }

  Result<void> check_target(const Volume& volume, const std::string& source) const {
    const std::string& target = volume.target;
    const auto refuse = [&](std::string_view why, std::string_view next = "name another target") {
      return Error(Code::kInvalidArgument, format("cannot mount volume {} at {}", quoted(volume.source), quoted(target)))
          .reason(format("{} ({})", why, to_string(volume.origin)))
          .next(std::string(next));
    };
    if (is_private_dir(target))
      return refuse(
          "the sandbox's own is there",
          format("name a place below it, such as {}/data, or write `filesystem.temp_dir = \"{}\"` in place of the volume: "
                 "it is writable and $TMPDIR then",
                 escaped(target), escaped(volume.source)));
    if (target == "/") return refuse("the sandbox's own is there");
    if (mounted_under(target) && !is_under(target, "/dev/shm")) return refuse("it belongs to the kernel's files");
    if (target != place_.workspace && is_under(place_.workspace, target)) return refuse("the workspace lies below it");
    const PathKind there = kind_of(target), kind = kind_of(source);
    if (there != PathKind::kAbsent && there != PathKind::kSymlink &&
        (there == PathKind::kDirectory) != (kind == PathKind::kDirectory) && !out_of_sight(target))
      return refuse(kind == PathKind::kDirectory ? "what is there is no directory, and the volume is one"
                                                 : "there is a directory, and the volume is none");
    return {};
  }

  Result<void> plan_volumes() {
    for (const Volume& volume : fs_.volumes) {
      const auto source = host_.canonical(volume.source);
      if (!source)
        return Error(Code::kInvalidArgument, format("cannot mount volume {}", quoted(volume.source)))
            .reason(format("it does not exist ({})", to_string(volume.origin)))
            .next("create it first");
      BELLJAR_CHECK(check_target(volume, *source));
      view().binds.push_back({.source = *source,
                              .target = volume.target,
                              .readonly = volume.readonly,
                              .directory = kind_of(*source) == PathKind::kDirectory});
      if (!volume.readonly) paths_.writable.push_back(volume.target);
      if (*source != volume.target) elsewhere_.emplace_back(*source, &volume);
    }
    return {};
  }

  // Rules name paths as the host does: what a volume shows under another name they would not hold.
  Result<void> check_volumes() const {
    for (const auto& [source, volume] : elsewhere_) {
      for (const std::string& path : hidden_) {
        if (is_under(path, source) || is_under(source, path)) return leads_around(*volume, "hidden", path);
      }
      for (const FsEntry& entry : fs_.entries) {
        if (entry.access == Access::kWrite || entry.path == "/" || (entry.access == Access::kRead && volume->readonly)) continue;
        const bool within =
            entry.glob ? glob_meets(entry.path, source) : is_under(entry.path, source) || find_rule(fs_, source) == &entry;
        if (within) return leads_around(*volume, entry.access == Access::kNone ? "hidden" : "read-only", entry.path);
      }
    }
    return {};
  }

  // Could the pattern mean something at or below `source` that it does not mean below another directory? `**/NAME` does not, unless
  // it covers `source` itself.
  static bool glob_meets(const std::string& glob, const std::string& source) {
    if (policy::glob_covers(glob, source)) return true;
    const std::size_t start = glob.find("**/") == 0 ? 3 : glob.find("/**/") == 0 ? 4 : std::string::npos;
    if (start != std::string::npos && glob.find('/', start) == std::string::npos) return false;
    const std::string fixed = parent_of(glob.substr(0, glob.find_first_of("*?[") + 1));
    return is_under(fixed, source) || is_under(source, fixed);
  }

  static Error leads_around(const Volume& volume, std::string_view kept, const std::string& path) {
    return Error(Code::kInvalidArgument, format("cannot mount volume {} at {}", quoted(volume.source), quoted(volume.target)))
        .reason(
            format("the rule that keeps {} {} would not hold there (volume from {})", quoted(path), kept, to_string(volume.origin)))
        .next("name a directory beside it, or mount it at its own path");
  }

  // Existing control names at each writable root, as whole directories. Git's are the broker's where there is one, since git itself
  // has to write there; with protect = "all", or without a broker, `.git` is read-only as a whole. What is absent or deeper is the
  // broker's alone.
  void plan_protected() {
    if (fs_.protect == Protect::kNone) return;
    const std::vector<std::string> roots = paths_.writable;
    bool absent = false;
    for (const std::string& root : roots) {
      if (kind_of(root) != PathKind::kDirectory) continue;
      if (fs_.protect == Protect::kAll || !place_.listener || policy_.allow_nested_userns) protect_name(root, ".git", absent);
      for (const std::string_view name : policy::protected_names()) protect_name(root, name, absent);
    }
    if (absent) gap("protect.absent", "names that do not exist yet at a writable root");
  }

  void protect_name(const std::string& root, std::string_view name, bool& absent) {
    const std::string path = root + "/" + std::string(name);
    const std::string there = behind(path);
    const PathKind kind = kind_of(there);
    if (kind == PathKind::kAbsent) absent = true;
    else protect_existing(path, there, kind, name == ".git");
  }

  // `there`: the host's name of it.
  void protect_existing(const std::string& path, const std::string& there, PathKind kind, bool git) {
    // A link, itself or on the way (`.github` -> docs): what it leads to is kept where that is writable.
    if (const auto real = host_.canonical(there); real != there) {
      gap("protect.links", path);
      const std::string inside = real ? shown_as(*real, path) : "";
      if (!inside.empty() && writable(inside)) add_readonly(inside);
      return;
    }
    add_readonly(path);
    ++paths_.protected_dirs;
    if (kind != PathKind::kDirectory) gap("protect.files", path);
    if (!git) return;
    if (kind == PathKind::kFile) protect_pointed(there);
    else protect_common(there);
  }

  // A `.git` file names its repository; a repository may name a common one (worktrees). Both are protected where they lie.
  void protect_pointed(const std::string& file) {
    const auto text = host_.read_small(file);
    if (!text) return;
    std::string target = pointer_in(*text, "gitdir: ");
    if (target.empty()) return;
    if (target.front() != '/') target = parent_of(file) + "/" + target;
    const auto real = host_.canonical(target);
    if (!real) return;
    if (writable(*real)) add_readonly(*real);
    protect_common(*real);
  }

  void protect_common(const std::string& gitdir) {
    const auto text = host_.read_small(gitdir + "/commondir");
    if (!text) return;
    std::string target = pointer_in(*text, "");
    if (target.empty()) return;
    if (target.front() != '/') target = gitdir + "/" + target;
    const auto real = host_.canonical(target);
    if (real && writable(*real)) add_readonly(*real);
  }

  Result<void> plan_hidden() {
    // The list is made here, whatever entries there are: one that is spelled out among them is hidden once all the same.
    std::vector<std::string> homes;
    if (fs_.secrets == Secrets::kDefault) {
      homes.push_back(place_.home);
      if (place_.owner) homes.push_back(place_.owner->callers_home);
    }
    for (const std::string& home : homes) {
      for (const std::string& path : policy::default_secret_paths(home, place_.runtime_dir)) {
        if (!BELLJAR_TRY(overridden(path))) hide(path, Source::kDefault);
      }
    }
    std::vector<const FsEntry*> readable;
    for (const FsEntry& entry : fs_.entries) {
      if (!entry.glob && entry.access == Access::kRead && entry.path != "/") readable.push_back(&entry);
    }
    for (const FsEntry& entry : fs_.entries) {
      if (entry.glob || entry.access != Access::kNone || entry.path == "/") continue;
      if (entry.kind == RuleKind::kDefaultSecret) {
        // Those of the account's home are held as entries are: no mask of $HOME lies there. Belljar's own directory is covered
        // only: a mask of the folder above it would cut off the sockets in there (unix(7) finds none through an overlay).
        const bool account = entry.origin.layer == "default secrets";
        if (is_under(place_.workspace, entry.path) || (account && BELLJAR_TRY(overridden(entry.path)))) continue;
        hide(entry.path, account ? Source::kEntry : Source::kDefault);
        continue;
      }
      if (is_under(place_.workspace, entry.path)) {
        return Error(Code::kInvalidArgument, format("cannot hide {}", quoted(entry.path)))
            .reason(format("the workspace {} lies inside it (entry from {})", quoted(place_.workspace), to_string(entry.origin)))
            .next("choose another workspace or drop the entry");
      }
      if (const Volume* volume = elsewhere_at(entry.path)) {
        return Error(Code::kInvalidArgument, format("cannot hide {}", quoted(entry.path)))
            .reason(format("the volume {} is shown there (entry from {})", quoted(volume->source), to_string(entry.origin)))
            .next("mount a part of the volume that may be seen, or drop the entry");
      }
      for (const FsEntry* other : readable) {
        if (other->path != entry.path && is_under(other->path, entry.path)) return inside_hidden(*other, entry.path);
      }
      BELLJAR_CHECK(check_kernels(entry));
      hide(entry.path, Source::kEntry);
    }
    return {};
  }

  // Files that the kernel makes, and that nothing runs without or each process has of its own.
  static Result<void> check_kernels(const FsEntry& entry) {
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

  enum class Source { kDefault, kEntry };

  // A user's own entry for exactly this path speaks louder than the default list. One below it cannot be served: a hidden directory
  // is closed to everything in it, and opening the whole of it would show what nobody asked for.
  Result<bool> overridden(const std::string& secret) const {
    bool exact = is_under(place_.workspace, secret);
    for (const FsEntry& entry : fs_.entries) {
      if (entry.glob || entry.origin.layer == "built-in" || entry.kind == RuleKind::kDefaultSecret) continue;
      if (entry.path == secret) exact = exact || entry.kind != RuleKind::kNarrowing;
      else if (entry.access != Access::kNone && is_under(entry.path, secret)) return inside_hidden(entry, secret);
    }
    return exact;
  }

  void hide(const std::string& path, Source source) {
    const PathKind kind = kind_of(path);
    if (kind == PathKind::kSymlink) {
      // The name and what it stands for: an alias must not lead around the rule (CVE-2026-25724).
      // Where that is not there yet, what will be made through the name is.
      if (const auto real = host_.canonical(path)) hide_at(path, *real, kind_of(*real), source);
      else if (const std::string where = where_made(host_, path); where != path) hide_at(path, where, kind_of(where), source);
    } else if (kind != PathKind::kAbsent) {
      if (const auto real = host_.canonical(path); real && *real != path) return hide_at(path, *real, kind, source);
    } else if (const std::string where = where_made(host_, path); where != path) {
      hide_at(path, where, kind, source);
    }
    hide_at(path, path, kind, source);
  }

  // `path`: what the policy's `asked` leads to.
  void hide_at(const std::string& asked, const std::string& path, PathKind kind, Source source) {
    ++paths_.hidden;
    const bool absent = kind == PathKind::kAbsent;
    // Absent system paths are held by nobody at their own place either.
    if (!elsewhere_.empty() && (!absent || source == Source::kEntry || is_under(path, place_.home))) hidden_.push_back(path);
    if (elsewhere_at(path) != nullptr) return hide_in_volume(path);
    if (out_of_sight(path)) return;
    if (!paths_.view.whole_root && !shown(path)) return;
    const std::string& home = place_.home;
    if (!home.empty() && home != "/" && is_under(path, home) && path != home && !writable(home) &&
        kind_of(home) == PathKind::kDirectory && !link_between(home, path) && !bound_below(home, path) &&
        !mounted_between(home, path)) {
      // By its own name, never by its folder's: a program that reads other files there (`~/.config/git/ignore`,
      // `~/.cargo/config.toml`) must find them absent, not forbidden.
      mask(home, path, asked);
      return;
    }
    if (!absent && kind != PathKind::kSymlink) {
      // Its owner and mode hold it already, unless it is shown through a bind: root lends those to the command's id.
      if (source == Source::kDefault && !policy_.allow_root_uid && !place_.owner && !bound(path) && !host_.open_to_command(path))
        return;
      const bool directory = kind == PathKind::kDirectory;
      const std::string parent = parent_of(path);
      // A rename on the host takes a cover off; where the parent is read-only here a mask over it does not slip. A bind of the very
      // name lies over a mask.
      const Bind* bind = shown_by(path);
      const bool own = bind != nullptr && bind->target == path;
      if (source == Source::kEntry && !writable(parent) && parent != "/" && !mounted_under(parent) && !own &&
          !out_of_sight(parent)) {
        mask(parent, path, asked);
        return;
      }
      if (writable(parent) && !directory) gap("filesystem.hidden_files", path);
      return cover(path, kind);
    }
    if (source == Source::kDefault && !is_under(path, home))
      return;  // absent system paths: sockets are the connect rule's, files root's
    std::string base = parent_of(path);
    while (base != "/" && kind_of(base) == PathKind::kAbsent) base = parent_of(base);
    if (base == "/" || writable(base) || kind_of(base) != PathKind::kDirectory) {
      gap("filesystem.hidden_absent", asked, path);
      return;
    }
    if (!out_of_sight(base)) mask(base, path, asked);
  }

  void cover(const std::string& path, PathKind kind) {
    std::vector<std::string>& covers = kind == PathKind::kDirectory ? view().hide_dirs : view().hide_files;
    if (std::find(covers.begin(), covers.end(), path) == covers.end()) covers.push_back(path);
  }

  // A name of the default list: the host's own is out of sight there. What the volume has under it is covered, unless the name is
  // where somebody wants the volume.
  void hide_in_volume(const std::string& path) {
    const Bind* bind = shown_by(path);
    const PathKind kind = kind_of(behind(path));
    if (bind->target != path && kind != PathKind::kAbsent && kind != PathKind::kSymlink) cover(path, kind);
  }

  // Below a private directory, and nothing shows the host's there.
  bool out_of_sight(const std::string& path) const { return is_private(path) && !in_shown_home(path) && !bound(path); }
  // Shown from the host although a private directory lies above: a workspace below /tmp.
  bool bound(const std::string& path) const {
    return std::any_of(paths_.view.binds.begin(), paths_.view.binds.end(),
                       [&](const Bind& bind) { return is_under(path, bind.target); });
  }
  // Something between the two is shown by a mount of its own, which lies over a mask of the folder.
  bool bound_below(const std::string& folder, const std::string& path) const {
    return std::ranges::any_of(paths_.view.binds, [&](const Bind& bind) {
      return bind.target != folder && is_under(bind.target, folder) && is_under(path, bind.target);
    });
  }
  // So does what the host has mounted between the two, which tree.cc puts back.
  bool mounted_between(const std::string& folder, const std::string& path) const {
    return std::ranges::any_of(host_.mount_points(), [&](const std::string& mount) {
      return mount.size() > folder.size() && mount.size() < path.size() && is_under(mount, folder) && is_under(path, mount);
    });
  }
  bool in_shown_home(const std::string& path) const { return !place_.home.empty() && is_under(path, place_.home); }
  bool shown(const std::string& path) const {
    return writable(path) || std::any_of(paths_.readable.begin(), paths_.readable.end(),
                                         [&](const std::string& root) { return is_under(path, root); });
  }
  // /dev, /proc and the like have mounts of ours inside: no overlay there.
  static bool mounted_under(const std::string& path) {
    return is_under(path, "/dev") || is_under(path, "/proc") || is_under(path, "/sys");
  }
  bool link_between(const std::string& home, const std::string& path) const {
    for (std::string up = parent_of(path); up.size() > home.size(); up = parent_of(up)) {
      if (kind_of(up) == PathKind::kSymlink) return true;
    }
    return false;
  }

  // `path`: what the policy's `asked` leads to.
  void mask(const std::string& folder, const std::string& path, const std::string& asked) {
    if (!place_.overlays) {
      const PathKind kind = kind_of(path);
      if (kind == PathKind::kAbsent) gap("filesystem.hidden_absent", asked, path);
      else if (kind != PathKind::kSymlink) cover(path, kind);
      return;
    }
    std::vector<std::string>& hidden = view().masks[folder].hidden;
    std::string relative = path.substr(folder.size() + 1);
    if (hidden.empty() || hidden.back() != relative) hidden.push_back(std::move(relative));  // making one twice does no harm
  }

  void plan_caches() {
    if (fs_.caches == Caches::kOff || !place_.overlays || place_.home.empty() || place_.home == "/" ||
        kind_of(place_.home) != PathKind::kDirectory)
      return;
    const auto consider = [&](const std::string& path) {
      if (writable(path) || is_under(place_.workspace, path) || !paths_.view.whole_root) return;
      if (std::ranges::any_of(fs_.volumes, [&](const Volume& volume) { return is_under(path, volume.target); })) return;
      // The home as a whole would be shown around its own rules, and below a private directory nothing is the host's.
      if (is_under(place_.home, path) || out_of_sight(path)) return;
      if (const FsEntry* rule = find_rule(fs_, path);
          rule != nullptr && (rule->path == path || is_under(rule->path, place_.home)) && rule->access != Access::kWrite)
        return;
      const PathKind kind = kind_of(path);
      if (kind == PathKind::kDirectory) {
        if (host_.canonical(path) == path) view().caches.push_back({path, true});
        return;
      }
      const std::string parent = parent_of(path);
      // Absent ones would cost a mount each for programs that never run: only the two that any tool may want.
      const bool common = path == place_.home + "/.cache" || path == place_.home + "/.npm";
      if (!common || kind != PathKind::kAbsent || !is_under(parent, place_.home) || kind_of(parent) != PathKind::kDirectory ||
          writable(place_.home))
        return;
      view().masks[place_.home].ghosts.push_back(path.substr(place_.home.size() + 1));
      view().caches.push_back({path, false});
    };
    for (const std::string& path : fs_.cache_dirs.empty() ? policy::default_cache_dirs(place_.home) : fs_.cache_dirs)
      consider(path);
    keep_readonly_in_caches();
  }

  // A layer is writable all over.
  void keep_readonly_in_caches() {
    const auto in_cache = [&](const std::string& path) {
      return std::ranges::any_of(view().caches, [&](const Cache& cache) { return is_under(path, cache.path); });
    };
    for (const FsEntry& entry : fs_.entries) {
      if (entry.glob || entry.access != Access::kRead) continue;
      const auto real = host_.canonical(entry.path);
      if (!real || !in_cache(*real) || bound(*real)) continue;
      view().binds.push_back(
          {.source = *real, .target = *real, .readonly = true, .directory = kind_of(*real) == PathKind::kDirectory});
    }
  }

  // A home below a private directory (/tmp/home) would vanish: it is shown, read-only. With a mask its overlay does that.
  void show_home() {
    const std::string& home = place_.home;
    if (!view().whole_root) return;  // only what is named: its secrets have no mask there
    if (home.empty() || home == "/" || !is_private(home) || writable(home) || view().masks.contains(home) ||
        kind_of(home) != PathKind::kDirectory)
      return;
    view().binds.push_back({.source = home, .target = home, .readonly = true});
  }

  Result<void> plan_layers() {
    if (!place_.layers) return {};
    const auto refused = [](std::string reason, std::string next) {
      return Error(Code::kInvalidArgument, "cannot run in a transaction (--txn)").reason(std::move(reason)).next(std::move(next));
    };
    if (std::find(paths_.writable.begin(), paths_.writable.end(), place_.workspace) == paths_.writable.end())
      return refused("the policy does not make the workspace writable, so there is nothing to hold back", "drop --txn");
    for (const Bind& bind : view().binds) {
      if (!bind.readonly && bind.source != bind.target && bind.source != place_.workspace &&
          is_under(place_.workspace, bind.source))
        return refused(
            format("the volume {} shows the workspace a second time, writable and outside of the transaction", quoted(bind.target)),
            "make the volume read-only, or drop --txn");
    }
    view().layered = LayeredWorkspace{place_.workspace, *place_.layers};
    return {};
  }

  Result<void> plan_devices() {
    for (const std::string& device : fs_.devices) {
      if (kind_of(device) == PathKind::kAbsent)
        return Error(Code::kNotFound, format("cannot open the device {}", quoted(device)))
            .reason("this machine has none of that name")
            .next("check the name, or drop it from `devices`");
      BELLJAR_CHECK(check_device(device));
      view().devices.push_back(device);
    }
    return {};
  }

  // What is opened is writable and lies over everything else at its place, so it has to be a device: no file, no directory of
  // files.
  Result<void> check_device(const std::string& device) const {
    const auto refused = [&](std::string reason) {
      return Error(Code::kInvalidArgument, format("cannot open the device {}", quoted(device)))
          .reason(std::move(reason))
          .next("name a character or block device, or a directory of them below /dev");
    };
    const PathFacts facts = host_.facts(device);
    if (const auto real = host_.canonical(device); real != device)
      return refused(format("there is a symbolic link on the way, to {}", quoted(real.value_or(""))));
    // /dev/shm, /dev/pts and the like are file systems of their own.
    const bool directory =
        facts.kind == PathKind::kDirectory && device != "/dev" && is_under(device, "/dev") && facts.dev == host_.facts("/dev").dev;
    if (!directory && !S_ISCHR(facts.mode) && !S_ISBLK(facts.mode)) return refused("it is none");
    if (const FsEntry* rule = find_rule(fs_, device); rule != nullptr && rule->access == Access::kNone && rule->path != "/")
      return refused(format("{} is hidden ({})", quoted(rule->path), to_string(rule->origin)));
    return {};
  }

  const Host& host_;
  const Policy& policy_;
  const Filesystem& fs_;
  const Workplace& place_;
  Paths paths_;
  std::vector<std::pair<std::string, const Volume*>> elsewhere_;  // canonical sources of volumes that have another name inside
  std::vector<std::string> hidden_;                               // what check_volumes() looks for
};

}  // namespace

Result<Paths> plan_paths(const Host& host, const Policy& policy, const Workplace& place) {
  return Planner(host, policy, place).run();
}

}  // namespace belljar::backend
