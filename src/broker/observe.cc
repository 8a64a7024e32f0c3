#include "broker/observe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/format.h"
#include "broker/as_caller.h"
#include "broker/observation.h"
#include "broker/path_view.h"
#include "kernel/sys.h"
#include "policy/defaults.h"

namespace belljar::broker {
namespace {

using ObservedAct = Observation::Act;

// One path of a call: which arguments hold it, and what is done with it.
struct Use {
  int number;
  int dirfd;  // index; -1: the working directory
  int path;   // index
  ObservedAct act;
  int flags = -1;                                                          // index of open's flags: they say what kRead really is
  enum class If : std::uint8_t { kAny, kAbsent, kThere } acts = If::kAny;  // on a name that is otherwise it only finds that out
};
constexpr auto kAbsent = Use::If::kAbsent, kThere = Use::If::kThere;

constexpr Use kUses[] = {
    {SYS_openat, 0, 1, ObservedAct::kRead, 2},
    {SYS_newfstatat, 0, 1, ObservedAct::kQuery},
    {SYS_statx, 0, 1, ObservedAct::kQuery},
    {SYS_faccessat, 0, 1, ObservedAct::kQuery},
    {SYS_faccessat2, 0, 1, ObservedAct::kQuery},
    {SYS_readlinkat, 0, 1, ObservedAct::kQuery},
    {SYS_truncate, -1, 0, ObservedAct::kWrite},
    {SYS_fchmodat, 0, 1, ObservedAct::kWrite},
    {kernel::sys::kFchmodat2, 0, 1, ObservedAct::kWrite},
    {SYS_mkdirat, 0, 1, ObservedAct::kMake, -1, kAbsent},
    {SYS_mknodat, 0, 1, ObservedAct::kMake, -1, kAbsent},
    {SYS_unlinkat, 0, 1, ObservedAct::kMake, -1, kThere},
    {SYS_symlinkat, 1, 2, ObservedAct::kMake, -1, kAbsent},
    {SYS_linkat, 0, 1, ObservedAct::kRead},
    {SYS_linkat, 2, 3, ObservedAct::kMake, -1, kAbsent},
    {SYS_renameat, 0, 1, ObservedAct::kMake, -1, kThere},
    {SYS_renameat, 2, 3, ObservedAct::kMake},
    {SYS_renameat2, 0, 1, ObservedAct::kMake, -1, kThere},
    {SYS_renameat2, 2, 3, ObservedAct::kMake},
#if defined(__x86_64__)
    {SYS_open, -1, 0, ObservedAct::kRead, 1},
    {SYS_creat, -1, 0, ObservedAct::kMake},
    {SYS_stat, -1, 0, ObservedAct::kQuery},
    {SYS_lstat, -1, 0, ObservedAct::kQuery},
    {SYS_access, -1, 0, ObservedAct::kQuery},
    {SYS_readlink, -1, 0, ObservedAct::kQuery},
    {SYS_chmod, -1, 0, ObservedAct::kWrite},
    {SYS_mkdir, -1, 0, ObservedAct::kMake, -1, kAbsent},
    {SYS_rmdir, -1, 0, ObservedAct::kMake, -1, kThere},
    {SYS_mknod, -1, 0, ObservedAct::kMake, -1, kAbsent},
    {SYS_unlink, -1, 0, ObservedAct::kMake, -1, kThere},
    {SYS_symlink, -1, 1, ObservedAct::kMake, -1, kAbsent},
    {SYS_link, -1, 0, ObservedAct::kRead},
    {SYS_link, -1, 1, ObservedAct::kMake, -1, kAbsent},
    {SYS_rename, -1, 0, ObservedAct::kMake, -1, kThere},
    {SYS_rename, -1, 1, ObservedAct::kMake},
#endif
};

// Text of the caller up to its NUL, page by page: the next page may not be there.
std::optional<std::string> read_path(const Caller& caller, std::uint64_t address) {
  constexpr std::uint64_t kPageBytes = 4096;
  std::string text;
  while (text.size() < PATH_MAX) {
    char buffer[kPageBytes];
    const std::size_t room = kPageBytes - address % kPageBytes;
    if (!caller.read(address, std::as_writable_bytes(std::span(buffer, room)))) return std::nullopt;
    const void* const end = std::memchr(buffer, 0, room);
    if (end != nullptr)
      return text.append(std::string_view(buffer, static_cast<std::size_t>(static_cast<const char*>(end) - buffer)));
    text.append(buffer, room);
    address += room;
  }
  return std::nullopt;
}

std::string link_of(int file) {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::readlink(format("/proc/self/fd/{}", file).c_str(), path.data(), path.size());
  path.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return path;
}

struct PathLookup {
  std::string path;  // empty: not there, or not to be seen by us
  bool directory = false;
};

PathLookup look_up(Caller& caller, const std::string& path) {
  const auto view = PathView::create(caller, path);
  if (!view) return {};
  const auto file = view->open();
  struct stat status{};
  if (!file || ::fstat(file->get(), &status) != 0) return {};
  std::string where = link_of(file->get());
  if (where == policy::kHiddenPlace) return {};  // a hidden name: it is meant, not where its mask leads
  return {std::move(where), S_ISDIR(status.st_mode)};
}

// `path` without its last component, and that.
std::pair<std::string, std::string> split(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Observation observation_of(Caller& caller, const std::string& path, ObservedAct act) {
  const auto [parent, name] = split(path);
  const PathLookup whole = look_up(caller, path);
  // A name that changes is itself meant, not what a link of that name leads to.
  if (act != ObservedAct::kMake && !whole.path.empty()) return {act, whole.path, true, whole.directory};
  const PathLookup above = look_up(caller, parent);
  const std::string base = !above.path.empty() ? above.path : parent.starts_with('/') ? parent : caller.cwd_path() + "/" + parent;
  return {act, (base == "/" ? "" : base) + "/" + name, !whole.path.empty(), whole.directory};
}

// What an open really does to `path`.
ObservedAct act_of_open(std::uint64_t flags, bool exists) {
  if ((flags & O_PATH) != 0) return ObservedAct::kQuery;
  if ((flags & O_TMPFILE) == O_TMPFILE) return ObservedAct::kMake;
  if ((flags & O_CREAT) != 0 && !exists) return ObservedAct::kMake;
  return (flags & (O_ACCMODE | O_TRUNC)) != 0 ? ObservedAct::kWrite : ObservedAct::kRead;
}

void observe_use(Context& context, const Call& call, const Use& use) {
  Caller caller(call.tid);
  const auto argument = [&](int index) { return call.args[static_cast<std::size_t>(index)]; };
  auto path = read_path(caller, argument(use.path));
  if (!path || path->empty()) return;  // a bad pointer, or a call on a descriptor (AT_EMPTY_PATH)
  const int dirfd = use.dirfd < 0 ? AT_FDCWD : static_cast<int>(argument(use.dirfd));
  if (!path->starts_with('/') && dirfd != AT_FDCWD) *path = format("/proc/self/fd/{}/{}", dirfd, *path);
  Observation seen = observation_of(caller, *path, use.act);
  if (use.flags >= 0) {
    const ObservedAct act = act_of_open(argument(use.flags), seen.exists);
    // With O_TMPFILE the path is the directory in which something is made.
    if (act == ObservedAct::kMake && seen.exists) seen.path += "/", seen.directory = false;
    seen.act = act;
  }
  if (use.acts != Use::If::kAny && seen.exists != (use.acts == kThere)) seen.act = ObservedAct::kQuery;
  if (use.number == SYS_truncate && !seen.exists) return;
  seen.tid = call.tid;
  if (still_waiting(context.listener.get(), call.id)) context.options.observer(seen);
}

// By /proc/TID/exe: the kernel resolved it.
void observe_program(Context& context, const Call& call) {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::readlink(format("/proc/{}/exe", call.tid).c_str(), path.data(), path.size());
  path.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (path.starts_with('/') && !path.ends_with(" (deleted)") && still_waiting(context.listener.get(), call.id))
    context.options.observer({ObservedAct::kExec, std::move(path), true, false, call.tid});
}

}  // namespace

bool observe(Context& context, const Call& call) {
  if (!context.options.observer) return false;
  bool known = false;
  for (const Use& use : kUses) {
    if (use.number != call.number) continue;
    known = true;
    observe_use(context, call, use);
  }
  if (known) observe_program(context, call);
  return known;
}

}  // namespace belljar::broker
