// What is noted of a path is noted of every directory above it, too: a plan's answer for /a/b/c is another one when /a/b is a link
// now, although c may be the same file.
//
// Hundreds of names are looked up for a plan, and a start that is to be fast cannot look them up again. So the kernel tells:
// inotify(7) of each directory in which something was looked for, poll(2) of the mount table. A directory is watched before its
// names are looked at, and an event is queued before the call that caused it returns: who comes later than a change sees that it
// was.
//
// A name that was there and was removed, moved or made anew has changed, whatever is there now: the kernel takes mounts off what is
// unlinked, so a sandbox made before shows what it hid, though the same inode may be back. Otherwise a directory that had an event
// is looked at name by name. Looked at each time is what is no directory, since another name of the same file, which nobody
// watches, changes its mode and owner; a mount point, whose directory above watches what lies under it; whether the command may
// open a name, since access lists change no mode; the text of files that decide by it; and paths that lead through links.
//
// Nobody can answer for what the kernel does not tell of: file systems that others serve (NFS, FUSE), directories for which there
// were no watches left, lost events, long files that decide by their text. Nor for what lies below /proc, which is another file for
// each process. Where only the kernel itself makes names (/sys, /proc) they are looked at each time.
#include "backend/paths/witness.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "base/read_file.h"
#include "base/real_path.h"
#include "base/unique_fd.h"

namespace belljar::backend {
namespace {

std::string name_in(const std::string& folder, const std::string& name) { return (folder == "/" ? folder : folder + "/") + name; }

bool same_time(const timespec& a, const timespec& b) noexcept { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

constexpr std::size_t kMost = 64U << 10;  // of a file that decides by its text

// Who changes the names of a file system.
enum class Changes { kThisKernelTells, kThisKernelItself, kOthers };
Changes changes_of(long magic) noexcept {
  constexpr long kTold[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
                            TMPFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, RAMFS_MAGIC};
  constexpr long kOwn[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC};
  if (std::ranges::find(kTold, magic) != std::end(kTold)) return Changes::kThisKernelTells;
  return std::ranges::find(kOwn, magic) != std::end(kOwn) ? Changes::kThisKernelItself : Changes::kOthers;
}

// Whether a link on its way leads into procfs, where each process has files of its own: `/dev/fd/3`, whatever it is called.
bool leads_to_processes(std::string rest) {
  constexpr int kMostLinks = 40;  // as path_resolution(7)
  std::string at = "/";
  for (int links = 0; !rest.empty();) {
    const std::size_t slash = rest.find('/');
    const std::string name = rest.substr(0, slash);
    rest.erase(0, slash == std::string::npos ? slash : slash + 1);
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      at = parent_of(at);
      continue;
    }
    struct statfs system{};
    if (at != "/proc" && ::statfs(at.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC) return true;
    std::string next = name_in(at, name);
    char text[PATH_MAX];
    const ssize_t size = ::readlink(next.c_str(), text, sizeof text);
    if (size < 0) {
      at = std::move(next);
      continue;
    }
    if (++links > kMostLinks) return false;
    const std::string target(text, static_cast<std::size_t>(size));
    if (target.starts_with('/')) at = "/";
    rest = target + "/" + rest;
  }
  return false;
}

}  // namespace

bool Witness::Contents::operator==(const Contents& other) const noexcept {
  return identity == other.identity && size == other.size && same_time(modified, other.modified) &&
         same_time(changed, other.changed) && text == other.text;
}

Witness::Contents Witness::contents_of(const std::string& path, int flags) {
  struct statx status{};
  if (::statx(AT_FDCWD, path.c_str(), flags, STATX_BASIC_STATS, &status) != 0) return {};
  const auto time = [](const statx_timestamp& of) { return timespec{of.tv_sec, static_cast<long>(of.tv_nsec)}; };
  // A kernel that does not say which names are mount points (before 5.8) leaves each directory one.
  const bool mounted =
      (status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 || (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return {{true, ::makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino, status.stx_mode, status.stx_uid,
           status.stx_gid, mounted},
          static_cast<off_t>(status.stx_size),
          time(status.stx_mtime),
          time(status.stx_ctime),
          {}};
}

Witness::Contents Witness::text_of(const std::string& path) {
  Contents contents = contents_of(path, 0);
  if (S_ISREG(contents.identity.mode) && static_cast<std::size_t>(contents.size) <= kMost) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    contents.text = file.valid() ? read_at_most(file.get(), kMost).value_or("") : std::string();
  }
  return contents;
}

bool Witness::is_open_now(const std::string& path) const {
  if (uid() == 0) return (contents_of(path, AT_SYMLINK_NOFOLLOW).identity.mode & 07U) != 0;
  return RealHost::open_to_command(path);
}

Witness::Witness()
    : events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), mounts_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {}

Witness::Folder& Witness::folder_at(const std::string& path) const {
  const auto known = folders_.find(path);
  if (known != folders_.end()) return known->second;
  note(path);
  Folder& folder = folders_[path];
  struct statfs system{};
  const long magic = ::statfs(path.c_str(), &system) == 0 ? static_cast<long>(system.f_type) : 0;
  if (magic == PROC_SUPER_MAGIC && path != "/proc") torn_ = path;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    // Nothing can be in it as long as it is what it is, which is noted above it.
    return folder;
  }
  const Changes changes = changes_of(magic);
  folder.tells = changes != Changes::kThisKernelItself;
  if (!folder.tells) return folder;
  const int watch =
      changes == Changes::kOthers
          ? -1
          : ::inotify_add_watch(events_.get(), path.c_str(),
                                IN_CREATE | IN_DELETE | IN_MOVE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
  if (watch < 0) torn_ = path;
  else watched_.emplace(watch, &*folders_.find(path));
  return folder;
}

const Witness::Identity* Witness::note(const std::string& path) const {
  if (!path.starts_with('/') || path == "/") return nullptr;
  auto& children = folder_at(parent_of(path)).children;
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto known = children.find(name);
  if (known != children.end()) return &known->second;
  return &children.emplace(name, contents_of(path, AT_SYMLINK_NOFOLLOW).identity).first->second;
}

PathFacts Witness::facts(const std::string& path) const {
  const Identity* const noted = note(path);
  PathFacts facts = RealHost::facts(path);
  if (noted != nullptr && noted->there == (facts.kind == PathKind::kAbsent)) torn_ = path;
  return facts;
}

std::optional<std::string> Witness::canonical(const std::string& path) const {
  note(path);
  auto real = RealHost::canonical(path);
  if (real == path) return real;
  if (leads_to_processes(path)) torn_ = path;
  if (real || facts(path).kind != PathKind::kAbsent) links_.emplace(path, real.value_or(""));
  return real;
}

std::optional<std::string> Witness::link_text(const std::string& path) const {
  note_file(path);
  return RealHost::link_text(path);
}

std::optional<std::string> Witness::read_small(const std::string& path) const {
  note_file(path);
  return RealHost::read_small(path);
}

std::vector<std::string> Witness::names_in(const std::string& folder) const {
  Folder& known = folder_at(folder);
  auto names = RealHost::names_in(folder);
  if (!known.listing) known.listing = names;
  return names;
}

bool Witness::open_to_command(const std::string& path) const {
  note(path);
  const bool open = RealHost::open_to_command(path);
  open_.emplace(path, open);
  return open;
}

void Witness::note_file(const std::string& path) const {
  note(path);
  if (leads_to_processes(path)) torn_ = path;
  // What lies in a directory is asked for by name; its times change with every name.
  Contents contents = text_of(path);
  if (S_ISDIR(contents.identity.mode)) {
    (void)canonical(path);
    return;
  }
  if (contents.size > static_cast<off_t>(kMost)) torn_ = path;
  files_.emplace(path, std::move(contents));
}

void Witness::take_events() {
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    const ssize_t size = ::read(events_.get(), buffer, sizeof buffer);
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof *event) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) torn_ = "events of inotify";
      const auto [first, last] = watched_.equal_range(event->wd);
      for (auto one = first; one != last; ++one) {
        auto& [path, folder] = *one->second;
        folder.dirty = true;
        if ((event->mask & (IN_IGNORED | IN_UNMOUNT)) != 0) torn_ = path;
        if (event->len == 0 || (event->mask & (IN_CREATE | IN_DELETE | IN_MOVE)) == 0) continue;
        const auto child = folder.children.find(std::string_view(event->name));
        if (child != folder.children.end() && child->second.there) torn_ = name_in(path, child->first);
      }
    }
  }
}

// `all`: of what the kernel tells of, too.
std::string Witness::changed_in(const std::string& path, const Folder& folder, bool all) {
  for (const auto& [name, identity] : folder.children) {
    if (!all && (!identity.there || (S_ISDIR(identity.mode) && !identity.mounted))) continue;
    if (contents_of(name_in(path, name), AT_SYMLINK_NOFOLLOW).identity != identity) return name_in(path, name);
  }
  if (all && folder.listing && RealHost().names_in(path) != *folder.listing) return path;
  return {};
}

std::string Witness::changed() {
  pollfd table{mounts_.get(), POLLPRI, 0};
  if (!mounts_.valid() || ::poll(&table, 1, 0) != 0) return "/proc/self/mountinfo";
  take_events();
  if (!torn_.empty()) return torn_;
  for (auto& [path, folder] : folders_) {
    if (std::string differs = changed_in(path, folder, !folder.tells || folder.dirty); !differs.empty()) return differs;
    if (folder.dirty) folder.dirty = false;  // a write is a copy of the page, after pid 1 was cloned
  }
  for (const auto& [path, contents] : files_) {
    if (text_of(path) != contents) return path;
  }
  for (const auto& [path, open] : open_) {
    if (is_open_now(path) != open) return path;
  }
  for (const auto& [path, real] : links_) {
    if (real_path(path) != real) return path;
  }
  return {};
}

}  // namespace belljar::backend
