#include <sys/types.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/paths/draft.h"
#include "backend/paths/host.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/profiles.h"

namespace belljar::backend {
namespace {

// What an entry says of exactly this place; kWrite where none does.
Access asked_of(const ViewDraft& draft, std::string_view path) {
  const FsEntry* rule = find_rule(draft.fs, path);
  return rule != nullptr && rule->path == path ? rule->access : Access::kWrite;
}

void add_private(ViewDraft& draft, const std::string& path, mode_t mode, bool readonly = false) {
  if (path.empty() || path == "/" || is_under(path, draft.place.workspace))
    return;  // inside the workspace it is as writable as that
  if (draft.is_private_dir(path) || (draft.kind_of(path) != PathKind::kDirectory && !path.starts_with("/dev/"))) return;
  // An entry is about the sandbox's own, too: read-only, or closed.
  const Access asked = asked_of(draft, path);
  if (asked == Access::kNone) draft.view().private_dirs.push_back({path, 0, true});
  else
    draft.view().private_dirs.push_back(
        {path, readonly || asked == Access::kRead ? 0755U : mode, readonly || asked == Access::kRead});
}

// A write entry that crosses a link inside something writable could be re-pointed by an earlier command: refused, not followed.
Result<std::string> settle(const ViewDraft& draft, const std::string& path, const std::string& rule) {
  const auto real = draft.host.canonical(path);
  if (!real) {
    return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(path)))
        .reason(format("it does not exist ({})", rule))
        .next("create it first, or drop the entry");
  }
  if (*real == path) return *real;
  std::string at = path;
  while (at != "/") {
    if (draft.kind_of(at) == PathKind::kSymlink && (is_under(at, draft.place.workspace) || draft.writable(at))) {
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
bool left_out(ViewDraft& draft, const FsEntry& entry) {
  const bool shipped = entry.origin.file == entry.origin.layer + ".toml" &&
                       std::ranges::find(policy::embedded_profiles(), entry.origin.layer, &policy::EmbeddedProfile::name) !=
                           policy::embedded_profiles().end();
  if (!shipped || draft.host.canonical(entry.path)) return false;
  draft.add_gap("filesystem.absent_writable", entry.path);
  return true;
}

// What a file of the workspace says may not make something persist that others drop.
bool dropped_anyway(const ViewDraft& draft, const FsEntry& entry) {
  return entry.kind == RuleKind::kNarrowing &&
         std::ranges::any_of(draft.fs.scratch, [&](const std::string& scratch) { return is_under(entry.path, scratch); });
}

// What Belljar opens by itself: not where another sandbox works, of which this one is to see nothing; not beside the layers of a
// transaction, which could not take it back; not through a link.
bool not_opened(const ViewDraft& draft, const FsEntry& entry) {
  if (entry.kind != RuleKind::kImplied) return false;
  if (draft.place.layers || draft.host.canonical(entry.path) != entry.path) return true;
  return draft.place.siblings &&
         std::ranges::any_of(draft.place.siblings->hidden, [&](const std::string& other) { return is_under(entry.path, other); });
}

// /tmp/x that is not there: the private /tmp is writable as it is. A home or a workspace below /tmp is the host's.
bool private_anyway(const ViewDraft& draft, const std::string& path) {
  if (draft.kind_of(path) != PathKind::kAbsent || draft.in_shown_home(path) || is_under(path, draft.place.workspace)) return false;
  return std::ranges::any_of(draft.view().private_dirs,
                             [&](const PrivateDir& dir) { return !dir.readonly && is_under(path, dir.target); });
}

Result<void> add_writable(ViewDraft& draft, const std::string& path) {
  if (mounted_under(path)) {
    return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(path)))
        .reason("it is a kernel file system, not a place for files")
        .next("use --device for device nodes");
  }
  if (std::find(draft.paths.writable.begin(), draft.paths.writable.end(), path) != draft.paths.writable.end()) return {};
  draft.paths.writable.push_back(path);
  draft.show(path, Access::kWrite);
  return {};
}

// tmp = "shared": the host's own.
Result<void> share_temp(ViewDraft& draft) {
  for (const char* path : {"/tmp", "/var/tmp", "/dev/shm"}) {
    if (draft.kind_of(path) != PathKind::kDirectory) continue;
    // The stage lies over it meanwhile (tree_stage.cc): what is not writable is put back read-only.
    if ((draft.fs.exclude_slash_tmp && std::string_view(path) == "/tmp") || asked_of(draft, path) == Access::kRead)
      draft.view().binds.push_back({.source = path, .target = path, .readonly = true, .lend = false});
    else if (std::string_view(path).starts_with("/dev/")) draft.show(path, Access::kWrite);
    else BELLJAR_CHECK(add_writable(draft, path));
  }
  const std::string& tmpdir = draft.place.tmpdir;
  if (!draft.fs.exclude_tmpdir_env_var && !tmpdir.empty() && draft.kind_of(tmpdir) == PathKind::kDirectory &&
      !draft.writable(tmpdir) && asked_of(draft, tmpdir) != Access::kRead)
    BELLJAR_CHECK(add_writable(draft, tmpdir));
  return {};
}

// Whether what is writable below it is shown in it (hidden.cc, leave_way). Not where a file in the workspace closes it; and
// not in what holds the home, which has parts of its own that are shown.
bool leaves_ways(const ViewDraft& draft, const FsEntry& hidden) {
  return hidden.kind != RuleKind::kNarrowing && !is_under(draft.place.home, hidden.path);
}

// The entry, other than that for "/", that closes a directory above `path` to all that is in it; the uppermost.
const FsEntry* closing_entry(const ViewDraft& draft, const std::string& path) {
  const FsEntry* found = nullptr;
  for (std::string up = parent_of(path);; up = parent_of(up)) {
    const FsEntry* rule = find_rule(draft.fs, up);
    if (rule != nullptr && rule->access == Access::kNone && rule->path != "/" && !leaves_ways(draft, *rule)) found = rule;
    if (up == "/") return found;
  }
}

Result<void> add_entry(ViewDraft& draft, const FsEntry& entry) {
  const std::string real = BELLJAR_TRY(settle(draft, entry.path, to_string(entry.origin)));
  if (std::ranges::any_of(draft.view().private_dirs, [&](const PrivateDir& dir) { return dir.readonly && dir.target == real; }))
    return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(entry.path)))
        .reason("filesystem.exclude_slash_tmp says that it is not")
        .next("drop the key, or the entry");
  if (const FsEntry* hidden = closing_entry(draft, real); hidden != nullptr)
    return inside_hidden(entry, hidden->path, hidden->kind == RuleKind::kDefaultSecret ? HiddenBy::kDefault : HiddenBy::kEntry);
  return add_writable(draft, real);
}

// One of the sandbox's own where it is to go with it, and below a private directory where the host has none.
Result<void> plan_temp_dir(ViewDraft& draft) {
  constexpr std::string_view kKey = "filesystem.temp_dir";
  const std::string& path = *draft.fs.temp_dir;
  const bool below_private = private_anyway(draft, path);
  if (!below_private && !draft.fs.clean_temp_dir) return add_writable(draft, BELLJAR_TRY(settle(draft, path, std::string(kKey))));
  const std::string real = below_private ? path : BELLJAR_TRY(settle(draft, path, std::string(kKey)));
  if (is_under(draft.place.workspace, real) || is_under(draft.place.home, real) || mounted_under(real))
    return Error(Code::kInvalidArgument, format("cannot give the sandbox a {} of its own", quoted(path)))
        .reason(format("{} lies in it ({}, filesystem.clean_temp_dir)",
                       mounted_under(real) ? "what is the kernel's" : "the workspace or the home", kKey))
        .next("name another directory");
  if (!draft.is_private_dir(real)) draft.view().private_dirs.push_back({real, 0700, false});
  return {};
}

}  // namespace

void plan_private(ViewDraft& draft) {
  if (draft.fs.tmp == Tmp::kPrivate) {
    // Excluded it is nobody's, not the host's: the key may only take away.
    add_private(draft, "/tmp", draft.fs.exclude_slash_tmp ? 0755 : 01777, draft.fs.exclude_slash_tmp);
    add_private(draft, "/var/tmp", 01777);
    add_private(draft, "/dev/shm", 01777);
    add_private(draft, draft.place.runtime_dir, 0700);
    // A TMPDIR that holds the home or the workspace would cover them.
    const bool covers = is_under(draft.place.home, draft.place.tmpdir) || is_under(draft.place.workspace, draft.place.tmpdir);
    if (!draft.fs.exclude_tmpdir_env_var && !covers) add_private(draft, draft.place.tmpdir, 0700);
  }
  draft.view().private_bytes = draft.fs.tmp_size.count;
}

Result<void> plan_writable(ViewDraft& draft) {
  if (draft.policy.mode == Mode::kWorkspaceWrite) {
    const FsEntry* rule = find_rule(draft.fs, draft.place.workspace);
    // An entry for the workspace itself may narrow it.
    if (rule == nullptr || rule->path != draft.place.workspace || rule->access == Access::kWrite)
      BELLJAR_CHECK(add_writable(draft, draft.place.workspace));
  }
  if (draft.fs.tmp == Tmp::kShared) BELLJAR_CHECK(share_temp(draft));
  if (draft.fs.temp_dir) BELLJAR_CHECK(plan_temp_dir(draft));
  for (const FsEntry& entry : draft.fs.entries) {
    if (entry.glob || entry.access != Access::kWrite || private_anyway(draft, entry.path) || dropped_anyway(draft, entry) ||
        not_opened(draft, entry) || left_out(draft, entry))
      continue;
    BELLJAR_CHECK(add_entry(draft, entry));
  }
  std::sort(draft.paths.writable.begin(), draft.paths.writable.end(),
            [](const auto& a, const auto& b) { return depth_of(a) < depth_of(b); });
  return {};
}

}  // namespace belljar::backend
