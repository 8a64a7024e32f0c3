#include "backend/paths/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/paths.h"
#include "base/read_file.h"
#include "base/unique_fd.h"
#include "kernel/small_file.h"

namespace belljar::backend {
namespace {

std::string read_whole(const char* path, std::size_t most) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  return fd.valid() ? read_at_most(fd.get(), most).value_or("") : std::string();
}

}  // namespace

RealHost::RealHost() : uid_(::geteuid()), gid_(::getegid()) {}

// getdents64(2) by hand: opendir(3) takes 32 KiB from the heap and asks for the folder's status each time.
void RealHost::read_names(const std::string& folder, std::size_t most_bytes, Listing& listing) {
  listing.listed = true;
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return;
  alignas(dirent64) char buffer[8192];
  ssize_t size = 0;
  while ((size = ::getdents64(fd.get(), buffer, sizeof buffer)) > 0 && listing.text.size() < most_bytes) {
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      (listing.text += entry->d_name).push_back('\0');
      at += entry->d_reclen;
    }
  }
  if (size != 0) return;
  for (std::size_t at = 0; at < listing.text.size(); at = listing.text.find('\0', at) + 1)
    listing.names.emplace_back(listing.text.c_str() + at);
  std::sort(listing.names.begin(), listing.names.end());
  listing.complete = true;
}

RealHost::Listing& RealHost::folder_of(std::string_view path) const {
  const std::string_view folder = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  const auto known = listings_.find(folder);
  return known != listings_.end() ? known->second : listings_[std::string(folder)];
}

// Whether the listing of its folder, or of a folder above, already tells. Most homes lack most of the folders that could hold
// secrets.
bool RealHost::known_absent(std::string_view path) const {
  constexpr int kWorthListing = 16;  // a name that is not there costs 1 us, a folder of 150 names 70
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return false;
  Listing& folder = folder_of(path);
  if (folder.absent) return true;
  if (!folder.listed) {
    const std::string above(path.substr(0, slash));
    folder.absent = facts(above).kind == PathKind::kAbsent;
    if (folder.absent) return true;
    if (++folder.asked < kWorthListing) return false;
    constexpr std::size_t kMost = 64U << 10;  // beyond it, single look-ups are cheaper
    read_names(above, kMost, folder);
  }
  return folder.complete && !std::binary_search(folder.names.begin(), folder.names.end(), path.substr(slash + 1));
}

std::vector<std::string> RealHost::names_in(const std::string& folder) const {
  Listing& known = listings_[folder];
  if (!known.complete) {
    known = {};
    read_names(folder, static_cast<std::size_t>(-1), known);
  }
  return {known.names.begin(), known.names.end()};
}

PathFacts RealHost::facts(const std::string& path) const {
  const auto known = facts_.find(path);
  if (known != facts_.end()) return known->second;
  if (known_absent(path)) return {};
  PathFacts& facts = facts_[path];
  struct stat status{};
  if (::lstat(path.c_str(), &status) < 0) return facts;
  facts = {PathKind::kOther, status.st_uid, status.st_gid, status.st_mode, status.st_dev};
  if (S_ISDIR(status.st_mode)) facts.kind = PathKind::kDirectory;
  else if (S_ISREG(status.st_mode)) facts.kind = PathKind::kFile;
  else if (S_ISLNK(status.st_mode)) facts.kind = PathKind::kSymlink;
  return facts;
}

std::optional<std::string> RealHost::canonical(const std::string& path) const {
  if (path.empty() || path == "/") return path;
  const auto known = canonical_.find(path);
  if (known != canonical_.end()) return known->second;
  std::optional<std::string> result;
  const std::string parent = parent_of(path);
  const PathKind kind = facts(path).kind;
  // What lstat(2) does not find has no real path; most names that could hold secrets are not there.
  if (kind == PathKind::kAbsent) return canonical_[path] = std::nullopt;
  if (path.starts_with('/') && kind != PathKind::kSymlink && is_literal(path)) {
    // No link at the end: only the parent has to be resolved, and it is the same for many.
    if (auto above = canonical(parent)) result = (*above == "/" ? "" : *above) + path.substr(path.rfind('/'));
  } else {
    char buffer[PATH_MAX];
    if (::realpath(path.c_str(), buffer) != nullptr) result = buffer;
  }
  canonical_[path] = result;
  return result;
}

bool RealHost::open_to_command(const std::string& path) const {
  if (uid_ == 0) return (facts(path).mode & 07U) != 0;  // as an id of no account and no group
  return ::access(path.c_str(), R_OK) == 0 || ::access(path.c_str(), W_OK) == 0 || ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> RealHost::link_text(const std::string& path) const {
  char text[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  if (size <= 0 || size == sizeof text) return std::nullopt;
  return std::string(text, static_cast<std::size_t>(size));
}

std::optional<std::string> RealHost::read_small(const std::string& path) const {
  if (facts(path).kind != PathKind::kFile) return std::nullopt;
  return read_whole(path.c_str(), 256U << 10);
}

const std::vector<std::string>& RealHost::mount_points() const {
  if (mount_points_) return *mount_points_;
  mount_points_.emplace();
  const std::string text = read_whole("/proc/self/mountinfo", 64U << 20);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    for (int field = 0; field < 4; ++field) {  // id, parent, device, root; then the mount point
      const std::size_t space = line.find(' ');
      if (space == std::string_view::npos) break;
      line.remove_prefix(space + 1);
    }
    mount_points_->push_back(kernel::unescape_octal(line.substr(0, line.find(' '))));
    at = end + 1;
  }
  return *mount_points_;
}

int RealHost::landlock_abi() const {
  if (landlock_abi_) return *landlock_abi_;
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return landlock_abi_.emplace(abi < 0 ? 0 : static_cast<int>(abi));
}

void RealHost::forget() const noexcept {
  const auto drop = [](auto&... known) { ((known = std::remove_reference_t<decltype(known)>()), ...); };
  drop(mount_points_, facts_, canonical_, listings_);
}

bool is_under(std::string_view path, std::string_view folder) noexcept {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string where_made(const Host& host, const std::string& path) {
  std::string at = path;
  for (int links = 0; links < 40; ++links) {  // as many as the kernel follows, path_resolution(7)
    std::string above = parent_of(at);
    std::optional<std::string> there;
    while (!(there = host.canonical(above)) && above != "/") above = parent_of(above);
    const std::string real = std::move(there).value_or(above);
    const std::string base = real == "/" ? "" : real;
    const std::string rest = at.substr(above == "/" ? 0 : above.size());
    const std::size_t end = std::min(rest.find('/', 1), rest.size());
    at = base + rest;
    // A link that leads to nothing yet: what is made through it is made there.
    const auto text = host.facts(base + rest.substr(0, end)).kind == PathKind::kSymlink ? host.link_text(base + rest.substr(0, end))
                                                                                        : std::nullopt;
    if (!text) break;
    at = (text->starts_with('/') ? *text : base + "/" + *text) + rest.substr(end);
  }
  if (at.starts_with('/') && is_literal(at)) return at;
  return std::filesystem::path(at).lexically_normal();  // what is left of "..": behind names that are not there
}

std::size_t depth_of(std::string_view path) noexcept {
  if (path == "/") return 0;
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

}  // namespace belljar::backend
