// System calls on files of layers and workspaces, whose names and contents an untrusted command chose.
//
// Every path is opened with openat2(2) below a directory descriptor: no symbolic link, no `..` and no other
// mount is followed, whatever the command puts in the way while we work. Whole files are replaced by a
// rename, so that a reader sees the old one or the new one; what must survive a power cut is synced before
// and the directory after it.
#include "txn/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/format.h"
#include "base/made_directories.h"
#include "kernel/sys.h"

namespace belljar::txn {
namespace {

constexpr std::string_view kOverlay = "user.overlay.";
constexpr const char* kOpaque = "user.overlay.opaque";
// A header, then the handle of the file it was copied from (struct ovl_fb, fs/overlayfs/overlayfs.h).
constexpr const char* kOrigin = "user.overlay.origin";
constexpr std::size_t kOriginType = 4, kOriginHeader = 21;

std::string through_proc(int fd) { return format("/proc/self/fd/{}", fd); }

bool is_ours(std::string_view attribute) {
  return !attribute.starts_with(kOverlay) && (attribute.starts_with("user.") || attribute.starts_with("system.posix_acl_"));
}

std::vector<std::string> attribute_names_at(const std::string& path, decltype(&::listxattr) list) {
  std::array<char, 1024> first;
  const ssize_t short_size = list(path.c_str(), first.data(), first.size());
  if (short_size == 0 || (short_size < 0 && errno != ERANGE)) return {};
  std::string buffer(4096, '\0');
  for (;;) {
    const ssize_t size = list(path.c_str(), buffer.data(), buffer.size());
    if (size < 0 && errno == ERANGE && buffer.size() < (1U << 20)) {
      buffer.resize(buffer.size() * 4);
      continue;
    }
    std::vector<std::string> names;
    for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(names.back().size()) + 1) names.emplace_back(buffer.c_str() + at);
    return names;
  }
}

// Of an O_PATH descriptor, too.
std::vector<std::string> attribute_names(int fd) { return attribute_names_at(through_proc(fd), ::listxattr); }

// 1: whole, 0: this file system cannot, -errno.
int share_bytes(int from, int to) { return ::ioctl(to, FICLONE, from) == 0 ? 1 : 0; }

Result<void> copy_range(int from, int to, off_t begin, off_t end, std::string_view path) {
  std::array<char, 1U << 16> buffer;
  while (begin < end) {
    const auto want = static_cast<std::size_t>(std::min<off_t>(end - begin, buffer.size()));
    const ssize_t got = ::pread(from, buffer.data(), want, begin);
    if (got < 0) return call_failed(errno, "pread", "copy", path);
    if (got == 0) return {};
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = ::pwrite(to, buffer.data() + done, static_cast<std::size_t>(got - done), begin + done);
      if (wrote < 0) return call_failed(errno, "pwrite", "copy", path);
      done += wrote;
    }
    begin += got;
  }
  return {};
}

}  // namespace

Error call_failed(int errnum, const char* call, std::string_view what, std::string_view path) {
  const bool full = errnum == ENOSPC || errnum == EDQUOT;
  Error error(full               ? Code::kResourceExhausted
              : errnum == ENOENT ? Code::kNotFound
                                 : Code::kUnavailable,
              format("cannot {} {}", what, quoted(path)));
  return std::move(error).sys(errnum, call).next(full ? "free some space and try again" : "look at the path and try again");
}

int open_beneath(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  if ((flags & O_NOFOLLOW) != 0 && (flags & O_PATH) != 0) {
    // The link itself may be meant: only its parents must not be links, and openat2 has no word for that.
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV;
    const std::string_view folder = parent_path(path);
    if (!folder.empty()) {
      const UniqueFd parent(open_beneath(root, std::string(folder), O_PATH | O_DIRECTORY));
      if (!parent.valid()) return -errno;
      const int fd = kernel::sys::openat2(parent.get(), path.c_str() + folder.size() + 1, how);
      if (fd < 0) errno = -fd;
      return fd;
    }
  }
  const int fd = kernel::sys::openat2(root, path.empty() ? "." : path.c_str(), how);
  if (fd < 0) errno = -fd;
  return fd;
}

Result<UniqueFd> open_directory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return call_failed(errno, "open", "open", path);
  return fd;
}

Result<void> make_directories(const std::string& path) {
  const auto failure = belljar::make_directories(path);
  if (failure.errnum != 0) return call_failed(failure.errnum, "mkdir", "make", failure.path);
  return {};
}

std::string_view parent_path(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty()) path += '/';
  path += name;
  return path;
}

bool within(std::string_view path, std::string_view folder) noexcept {
  return folder.empty() || (path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/'));
}

Result<ParentAndName> open_parent(int root, const std::string& path) {
  const std::string_view folder = parent_path(path);
  ParentAndName spot{UniqueFd(open_beneath(root, std::string(folder), O_PATH | O_DIRECTORY)),
                     path.substr(folder.empty() ? 0 : folder.size() + 1)};
  if (!spot.parent.valid()) return call_failed(errno, "openat2", "reach", path);
  return spot;
}

Result<Spot> LastFolder::find(int root, const std::string& path) {
  const std::string_view above = parent_path(path);
  if (!fd_.valid() || above != path_) {
    fd_ = BELLJAR_TRY(open_parent(root, path)).parent;
    path_ = above;
  }
  return Spot{fd_.get(), path.substr(above.empty() ? 0 : above.size() + 1)};
}

std::optional<struct stat> find_status(int dir, const std::string& name) noexcept {
  struct stat status{};
  const int flags = AT_SYMLINK_NOFOLLOW | (name.empty() ? AT_EMPTY_PATH : 0);
  if (dir < 0 || ::fstatat(dir, name.c_str(), &status, flags) < 0) return std::nullopt;
  return status;
}

std::int64_t birth_time(int fd) noexcept {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &status) < 0 || (status.stx_mask & STATX_BTIME) == 0) return 0;
  return status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec;
}

Result<std::vector<std::string>> list_names(int dir) {
  const int copy = ::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) {
    const int error = errno;
    if (copy >= 0) ::close(copy);
    return call_failed(error, "opendir", "list", through_proc(dir));
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> read_whole(int dir, const std::string& path, std::uint64_t most) {
  const UniqueFd file(open_beneath(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) < 0) return call_failed(errno, "open", "read", path);
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > most)
    return Error(Code::kOutOfRange, format("cannot read {}", quoted(path))).reason("it is no file, or too large");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return call_failed(errno, "read", "read", path);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Result<void> write_bytes(int fd, std::string_view bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return call_failed(errno, "write", "write", path);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<void> write_whole(int dir, const std::string& name, std::string_view bytes, Durable durable) {
  const std::string temporary = name + ".new";
  const UniqueFd file(::openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return call_failed(errno, "open", "write", temporary);
  auto wrote = write_bytes(file.get(), bytes, temporary);
  if (wrote && durable == Durable::kYes && ::fsync(file.get()) < 0) wrote = call_failed(errno, "fsync", "write", temporary);
  if (wrote && ::renameat(dir, temporary.c_str(), dir, name.c_str()) < 0) wrote = call_failed(errno, "rename", "write", name);
  if (!wrote) {
    ::unlinkat(dir, temporary.c_str(), 0);
    return wrote;
  }
  if (durable == Durable::kYes && ::fsync(dir) < 0) return call_failed(errno, "fsync", "write", name);
  return {};
}

Result<void> replace_whole(int dir, const std::string& name, std::string_view bytes) {
  const std::string temporary = name + ".new";
  // Cut off between the two last steps: the new file is the valid one.
  if (::renameat2(dir, temporary.c_str(), dir, name.c_str(), RENAME_NOREPLACE) < 0 && errno != ENOENT && errno != EEXIST)
    return call_failed(errno, "renameat2", "write", name);
  const UniqueFd file(::openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return call_failed(errno, "open", "write", temporary);
  if (auto wrote = write_bytes(file.get(), bytes, temporary); !wrote) {
    ::unlinkat(dir, temporary.c_str(), 0);
    return wrote;
  }
  if (::unlinkat(dir, name.c_str(), 0) < 0 && errno != ENOENT) return call_failed(errno, "unlinkat", "write", name);
  if (::renameat(dir, temporary.c_str(), dir, name.c_str()) < 0) return call_failed(errno, "rename", "write", name);
  return {};
}

Result<std::string> read_replaced(int dir, const std::string& name, std::uint64_t most) {
  constexpr int kTries = 100;  // somebody may be replacing it just now
  for (int i = 0;; ++i) {
    auto bytes = read_whole(dir, name, most);
    if (bytes || bytes.error().code() != Code::kNotFound) return bytes;
    auto temporary = read_whole(dir, name + ".new", most);
    if (temporary || temporary.error().code() != Code::kNotFound || i == kTries) return temporary;
  }
}

std::map<std::string, std::string> read_attributes(int fd) {
  std::map<std::string, std::string> attributes;
  for (const std::string& name : attribute_names(fd)) {
    if (!is_ours(name)) continue;
    std::string value(1U << 16, '\0');  // XATTR_SIZE_MAX
    const ssize_t size = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
    if (size < 0) continue;
    value.resize(static_cast<std::size_t>(size));
    attributes.emplace(name, std::move(value));
  }
  return attributes;
}

Result<void> write_attributes(int fd, const std::map<std::string, std::string>& wanted, std::string_view path) {
  const auto present = read_attributes(fd);
  for (const auto& [name, value] : present) {
    if (!wanted.contains(name) && ::fremovexattr(fd, name.c_str()) < 0 && errno != ENODATA)
      return call_failed(errno, "fremovexattr", "set attributes of", path);
  }
  for (const auto& [name, value] : wanted) {
    const auto found = present.find(name);
    if (found != present.end() && found->second == value) continue;
    if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) < 0)
      return call_failed(errno, "fsetxattr", "set attributes of", path);
  }
  return {};
}

bool is_opaque(int directory) noexcept {
  char value[2] = {};
  return ::fgetxattr(directory, kOpaque, value, sizeof value) >= 1 && value[0] == 'y';
}

Result<void> make_opaque(int directory) {
  if (::fsetxattr(directory, kOpaque, "y", 1, 0) < 0) return call_failed(errno, "fsetxattr", "mark", through_proc(directory));
  return {};
}

bool is_copy_of(int upper, int lower) noexcept {
  constexpr unsigned kMost = MAX_HANDLE_SZ;
  std::array<unsigned char, kOriginHeader + kMost> origin;
  const ssize_t size = ::fgetxattr(upper, kOrigin, origin.data(), origin.size());
  alignas(file_handle) std::array<unsigned char, sizeof(file_handle) + kMost> buffer{};
  auto* const handle = new (buffer.data()) file_handle;
  handle->handle_bytes = kMost;
  int mount = 0;
  if (size <= static_cast<ssize_t>(kOriginHeader) || ::name_to_handle_at(lower, "", handle, &mount, AT_EMPTY_PATH) < 0)
    return false;
  const unsigned char* const bytes = buffer.data() + sizeof(file_handle);
  return origin[kOriginType] == handle->handle_type && static_cast<std::size_t>(size) == kOriginHeader + handle->handle_bytes &&
         std::equal(bytes, bytes + handle->handle_bytes, origin.data() + kOriginHeader);
}

bool has_overlay_attributes(int fd) {
  return std::ranges::any_of(attribute_names(fd), [](const std::string& name) { return name.starts_with(kOverlay); });
}

void drop_overlay_attributes(int fd) noexcept {
  for (const std::string& name : attribute_names(fd)) {
    if (name.starts_with(kOverlay)) ::fremovexattr(fd, name.c_str());
  }
}

bool take_overlay_attributes(int dir, const std::string& name, mode_t mode) noexcept {
  const std::string path = format("{}/{}", through_proc(dir), name);
  for (const std::string& attribute : attribute_names_at(path, ::llistxattr)) {
    if (!attribute.starts_with(kOverlay)) continue;
    const bool writable = ::geteuid() == 0 || (mode & S_IWUSR) != 0;
    if (attribute == kOpaque || !writable || ::lremovexattr(path.c_str(), attribute.c_str()) < 0) return false;
  }
  return true;
}

Result<void> copy_bytes(int from, int to, std::string_view path) {
  struct stat status{};
  if (::fstat(from, &status) < 0) return call_failed(errno, "fstat", "copy", path);
  if (share_bytes(from, to) == 1) return {};
  constexpr off_t kSmall = 1U << 16, kBlock = 512;
  if (status.st_size <= kSmall && status.st_blocks * kBlock >= status.st_size)  // no holes to look for
    return copy_range(from, to, 0, status.st_size, path);
  for (off_t at = 0; at < status.st_size;) {
    off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    off_t hole = data < 0 ? status.st_size : ::lseek(from, data, SEEK_HOLE);
    if (data < 0) data = at;
    if (hole < 0) hole = status.st_size;
    BELLJAR_CHECK(copy_range(from, to, data, hole, path));
    at = hole;
  }
  if (::ftruncate(to, status.st_size) < 0) return call_failed(errno, "ftruncate", "copy", path);
  return {};
}

namespace {

struct Source {
  UniqueFd file;
  std::map<std::string, std::string> attributes;
};

Source open_with_attributes(int dir, const std::string& path, int flags) {
  Source source{UniqueFd(::openat(dir, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags)), {}};
  if (source.file.valid()) source.attributes = read_attributes(source.file.get());
  return source;
}

// One that its owner may not read is lent read permission for that moment, since nobody but its owner could; its attributes need it
// as its bytes do, xattr(7). Killed in it, its mode stays 0400 for 0 (0600 for 0200): more than the command left to its owner, and
// to nobody else.
Source open_source(int dir, const std::string& name, const struct stat& status) {
  Source source = open_with_attributes(dir, name, O_NOFOLLOW);
  if (source.file.valid() || errno != EACCES || status.st_uid != ::geteuid()) return source;
  const UniqueFd itself(::openat(dir, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const std::string path = through_proc(itself.get());
  struct stat now{};
  if (!itself.valid() || ::fstat(itself.get(), &now) != 0 || now.st_ino != status.st_ino || now.st_dev != status.st_dev)
    return errno = EACCES, Source();
  if (::chmod(path.c_str(), (status.st_mode & 07777U) | S_IRUSR) < 0) return errno = EACCES, Source();
  source = open_with_attributes(AT_FDCWD, path, 0);
  const int error = errno;
  ::chmod(path.c_str(), status.st_mode & 07777U);
  errno = error;
  return source;
}

}  // namespace

Result<void> copy_node(int from_dir, const std::string& from, int to_dir, const std::string& to) {
  struct stat status{};
  if (::fstatat(from_dir, from.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0) return call_failed(errno, "fstatat", "copy", from);
  const timespec times[2] = {status.st_atim, status.st_mtim};
  if (S_ISLNK(status.st_mode)) {
    if (::symlinkat(read_link(from_dir, from).c_str(), to_dir, to.c_str()) < 0)
      return call_failed(errno, "symlinkat", "copy", from);
  } else if (S_ISREG(status.st_mode)) {
    const Source source = open_source(from_dir, from, status);
    const UniqueFd target(::openat(to_dir, to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!source.file.valid() || !target.valid()) return call_failed(errno, "openat", "copy", from);
    BELLJAR_CHECK(copy_bytes(source.file.get(), target.get(), from));
    give_owner(target.get(), status);
    BELLJAR_CHECK(write_attributes(target.get(), source.attributes, from));  // while it may be written to
    if (::fchmod(target.get(), status.st_mode & 07777U) < 0) return call_failed(errno, "fchmod", "copy", from);
    (void)::futimens(target.get(), times);
    return {};
  } else {
    if (::mknodat(to_dir, to.c_str(), status.st_mode, status.st_rdev) < 0) return call_failed(errno, "mknodat", "copy", from);
    if (::fchmodat(to_dir, to.c_str(), status.st_mode & 07777U, 0) < 0) return call_failed(errno, "fchmodat", "copy", from);
  }
  if (::fchownat(to_dir, to.c_str(), status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) < 0 && ::geteuid() == 0)
    return call_failed(errno, "fchownat", "copy", from);
  (void)::utimensat(to_dir, to.c_str(), times, AT_SYMLINK_NOFOLLOW);
  return {};
}

void give_owner(int fd, const struct stat& status) noexcept {
  if (::fchown(fd, status.st_uid, status.st_gid) < 0) return;
}

Result<bool> same_bytes(int one, int other) {
  std::array<char, 1U << 15> left;
  std::array<char, 1U << 15> right;
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(one, left.data(), left.size(), at);
    const ssize_t also = ::pread(other, right.data(), right.size(), at);
    if (got < 0 || also < 0) return call_failed(errno, "pread", "compare", through_proc(one));
    if (got != also || std::memcmp(left.data(), right.data(), static_cast<std::size_t>(got)) != 0) return false;
    if (got == 0) return true;
    at += got;
  }
}

std::string read_link(int dir, const std::string& name) {
  std::string text(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(dir, name.c_str(), text.data(), text.size());
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return text;
}

}  // namespace belljar::txn
