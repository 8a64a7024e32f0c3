#include "backend/native/host.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "base/unique_fd.h"

namespace belljar::backend {
namespace {

// mountinfo writes space, tab, newline and backslash as \ooo, proc(5).
std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
      i += 3;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

std::string read_whole(const char* path, std::size_t most) {
  std::string text;
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  char buffer[16384];
  while (fd.valid() && text.size() < most) {
    const ssize_t size = ::read(fd.get(), buffer, sizeof buffer);
    if (size <= 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

RealHost::RealHost() : uid_(::geteuid()), gid_(::getegid()) {}

PathFacts RealHost::facts(const std::string& path) const {
  struct stat status{};
  if (::lstat(path.c_str(), &status) < 0) return {};
  PathFacts facts{PathKind::kOther, status.st_uid, status.st_gid, status.st_mode, status.st_dev};
  if (S_ISDIR(status.st_mode)) facts.kind = PathKind::kDirectory;
  else if (S_ISREG(status.st_mode)) facts.kind = PathKind::kFile;
  else if (S_ISLNK(status.st_mode)) facts.kind = PathKind::kSymlink;
  return facts;
}

std::optional<std::string> RealHost::canonical(const std::string& path) const {
  char buffer[PATH_MAX];
  if (::realpath(path.c_str(), buffer) == nullptr) return std::nullopt;
  return std::string(buffer);
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
    mount_points_->push_back(unescape(line.substr(0, line.find(' '))));
    at = end + 1;
  }
  return *mount_points_;
}

int RealHost::landlock_abi() const {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

bool is_under(std::string_view path, std::string_view folder) noexcept {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return "/";
  return std::string(path.substr(0, slash));
}

std::size_t depth_of(std::string_view path) noexcept {
  if (path == "/") return 0;
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

}  // namespace belljar::backend
