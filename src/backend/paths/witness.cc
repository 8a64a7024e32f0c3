// What is noted of a path is noted of every directory above it, too: a plan's answer for /a/b/c is another one when /a/b is a link
// now, although c may be the same file.
//
// The order of changed() is from cheap to dear: the mount table is one read, files that decide by their contents are few, and of the
// rest each directory is asked once. Names that are not there cost nothing more while their directory is unchanged.
//
// A directory's change time is not trusted where it was changed within the last second before we looked (two changes in one tick of
// the clock bear the same time), nor on file systems that others serve (NFS, FUSE), which may tell it late.
#include "backend/paths/witness.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/paths.h"
#include "kernel/small_file.h"

namespace belljar::backend {
namespace {

bool same_time(const timespec& a, const timespec& b) noexcept { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

std::string mount_table() { return kernel::read_small_file(AT_FDCWD, "/proc/self/mountinfo").value_or(""); }

// File systems of this kernel's own.
bool keeps_times(const std::string& directory) noexcept {
  constexpr long kKnown[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
                             F2FS_SUPER_MAGIC};
  struct statfs status{};
  return ::statfs(directory.c_str(), &status) == 0 && std::ranges::find(kKnown, static_cast<long>(status.f_type)) != std::end(kKnown);
}

}  // namespace

bool Witness::Contents::operator==(const Contents& other) const noexcept {
  return identity == other.identity && size == other.size && same_time(modified, other.modified) && same_time(changed, other.changed);
}

Witness::Contents Witness::contents_of(const std::string& path, int flags) {
  struct stat status{};
  if (::fstatat(AT_FDCWD, path.c_str(), &status, flags) != 0) return {};
  return {{true, status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid}, status.st_size, status.st_mtim,
          status.st_ctim};
}

Witness::Identity Witness::identity_of(const std::string& path) { return contents_of(path, AT_SYMLINK_NOFOLLOW).identity; }

Witness::Witness() : mounts_(mount_table()) {}

void Witness::note(std::string_view path) const {
  if (!path.starts_with('/') || paths_.contains(path)) return;
  const std::string name(path);
  const Identity found = identity_of(name);
  paths_.emplace(name, found);
  if (name == "/") return;
  const std::string above = parent_of(name);
  note(above);
  if (found.there || directories_.contains(above)) return;
  Directory directory{contents_of(above, AT_SYMLINK_NOFOLLOW), false};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const bool settled = directory.self.identity.there && directory.self.changed.tv_sec + 1 < now.tv_sec;
  directory.tells = settled && S_ISDIR(directory.self.identity.mode) && keeps_times(above);
  directories_.emplace(above, directory);
}

PathFacts Witness::facts(const std::string& path) const {
  note(path);
  PathFacts facts = RealHost::facts(path);
  const auto noted = paths_.find(path);
  if (noted != paths_.end() && noted->second.there == (facts.kind == PathKind::kAbsent)) torn_ = path;
  return facts;
}

std::optional<std::string> Witness::canonical(const std::string& path) const {
  note(path);
  auto real = RealHost::canonical(path);
  const auto noted = paths_.find(path);
  if (real != path && noted != paths_.end() && noted->second.there) links_.emplace(path, real);
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
  note(folder);
  auto names = RealHost::names_in(folder);
  listed_.emplace(folder, names);
  return names;
}

bool Witness::open_to_command(const std::string& path) const {
  note_file(path);  // a rule of an access list changes no mode
  return RealHost::open_to_command(path);
}

void Witness::note_file(const std::string& path) const {
  note(path);
  // What lies in a directory is asked for by name; its times change with every name.
  const Contents contents = contents_of(path, 0);
  if (S_ISDIR(contents.identity.mode)) (void)canonical(path);
  else files_.emplace(path, contents);
}

std::string Witness::changed() const {
  if (!torn_.empty()) return torn_;
  if (mount_table() != mounts_) return "/proc/self/mountinfo";
  for (const auto& [path, contents] : files_) {
    if (contents_of(path, 0) != contents) return path;
  }
  std::map<std::string_view, bool> unchanged;  // of directories_
  for (const auto& [path, directory] : directories_)
    unchanged[path] = directory.tells && contents_of(path, AT_SYMLINK_NOFOLLOW) == directory.self;
  for (const auto& [path, identity] : paths_) {
    if (!identity.there) {
      const auto above = unchanged.find(std::string_view(path).substr(0, std::max<std::size_t>(path.rfind('/'), 1)));
      if (above != unchanged.end() && above->second) continue;
    }
    if (identity_of(path) != identity) return path;
  }
  if (!listed_.empty() || !links_.empty()) {
    const RealHost now;
    for (const auto& [folder, names] : listed_) {
      if (now.names_in(folder) != names) return folder;
    }
    for (const auto& [path, real] : links_) {
      if (now.canonical(path) != real) return path;
    }
  }
  return {};
}

}  // namespace belljar::backend
